//! What should stand beside a segment, made from its batches.

use super::epochs::LeaderEpochs;
use super::index_builder::{IndexBuilder, IndexConfig};
use super::interruption::LoadError;
use super::open_file::{OpenFile, Progress};
use super::segment_file::SegmentFile;
use super::segment_recovery::SegmentRecovery;
use crate::names::LEADER_EPOCHS;
use crate::producers::Producers;
use crate::sidefiles::checkpoint::write_leader_epochs;
use crate::sidefiles::offset_index::OffsetEntry;
use crate::sidefiles::time_index::TimeEntry;
use crate::sidefiles::transaction_index::AbortedTransaction;
use crate::source::Source;
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;

/// There is no clock: no producer is silent for so long that Kafka drops it.
const NOW_MS: i64 = 0;
const EXPIRATION_MS: i64 = i64::MAX;

/// What messages call the segment, whose name is not known here.
const SEGMENT: &str = "the segment";

/// The side files of one segment as Kafka would write them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideFiles {
    /// `.index`.
    pub offset_index: Vec<u8>,
    /// `.timeindex`.
    pub time_index: Vec<u8>,
    /// `.txnindex`; Kafka makes no such file where this is empty.
    pub transaction_index: Vec<u8>,
    /// The `.snapshot` after the last batch.
    pub snapshot: Vec<u8>,
    /// The offset in that snapshot's name.
    pub next_offset: i64,
    /// Bytes of the segment up to the first batch that a recovery cuts off.
    pub valid_bytes: u64,
    /// Why it cuts it off.
    pub fault: Option<String>,
}

/// Builds what should stand beside the segments of a log, one after the other: their indexes as a
/// recovery makes them, the producer snapshot after each, and the leader epochs after the last.
#[derive(Debug)]
pub struct Rebuild {
    producers: Producers,
    /// Producers that have changed since they were loaded.
    changed: Vec<i64>,
    epochs: LeaderEpochs,
    config: IndexConfig,
}

impl Rebuild {
    /// Begins with the producer snapshot and the `leader-epoch-checkpoint` of what is before the first
    /// segment.
    ///
    /// # Errors
    /// [`LoadError::Snapshot`] where `snapshot` is none, [`LoadError::Refused`] where Kafka gives up on
    /// the checkpoint.
    pub fn new(
        snapshot: Option<&[u8]>,
        leader_epochs: Option<&[u8]>,
        config: IndexConfig,
    ) -> Result<Self, LoadError> {
        let mut producers = Producers::new(0);
        if let Some(snapshot) = snapshot {
            producers.load(snapshot, 0, NOW_MS, EXPIRATION_MS).map_err(LoadError::Snapshot)?;
        }
        let checkpoint = String::from_utf8_lossy(LEADER_EPOCHS);
        let epochs = match leader_epochs {
            Some(data) => LeaderEpochs::read(data, &checkpoint)?,
            None => LeaderEpochs::default(),
        };
        Ok(Self { producers, changed: Vec::new(), epochs, config })
    }

    /// Builds what should stand beside the next segment.
    ///
    /// # Errors
    /// [`LoadError::Refused`] where a recovery would end with an exception, and what keeps the segment
    /// from being read. After an error the leader epochs are those of the segments before, and nothing
    /// else can be built.
    pub fn segment(
        &mut self,
        segment: &dyn Source,
        base_offset: i64,
    ) -> Result<SideFiles, LoadError> {
        self.epochs.mark();
        let built = self.build(segment, base_offset);
        if built.is_err() {
            self.epochs.undo();
        }
        built
    }

    fn build(&mut self, segment: &dyn Source, base_offset: i64) -> Result<SideFiles, LoadError> {
        self.go_on_at(base_offset)?;
        let progress = Progress::new(&|_| true);
        let file = OpenFile::new(Box::new(segment), SEGMENT.as_bytes(), &progress);
        let size = file.size()?;
        let mut log = SegmentFile::new(Some(file), (0, size), SEGMENT.to_owned());
        let mut built = IndexBuilder::new(base_offset);
        let mut codecs = Codecs::new(Limits::default());
        let fault = SegmentRecovery {
            config: &self.config,
            codecs: &mut codecs,
            producers: &mut self.producers,
            changed: &mut self.changed,
            epochs: &mut self.epochs,
            partition: "",
        }
        .run(&mut log, &mut built)?;
        built.finish()?;
        let aborted = built.aborted.iter().flat_map(AbortedTransaction::to_bytes);
        Ok(SideFiles {
            offset_index: built.index.iter().flat_map(OffsetEntry::to_bytes).collect(),
            time_index: built.time_index.iter().flat_map(TimeEntry::to_bytes).collect(),
            transaction_index: aborted.collect(),
            snapshot: self.producers.snapshot(),
            next_offset: self.producers.end_offset(),
            valid_bytes: built.valid_bytes,
            fault,
        })
    }

    /// The producers as the snapshot after the segment before has them.
    fn go_on_at(&mut self, base_offset: i64) -> Result<(), LoadError> {
        if !self.producers.reload(&self.changed, base_offset, NOW_MS, EXPIRATION_MS) {
            let snapshot = self.producers.snapshot();
            self.producers = Producers::new(base_offset);
            let loaded = self.producers.load(&snapshot, base_offset, NOW_MS, EXPIRATION_MS);
            loaded.map_err(LoadError::Snapshot)?;
        }
        self.changed.clear();
        Ok(())
    }

    /// The bytes of `leader-epoch-checkpoint` after the segments so far.
    pub fn leader_epochs(&self) -> Vec<u8> {
        write_leader_epochs(&self.epochs.entries())
    }
}

/// Builds what should stand beside one segment; `snapshot` is the producer snapshot before it.
///
/// # Errors
/// See [`Rebuild::new`] and [`Rebuild::segment`].
pub fn rebuild_side_files(
    segment: &dyn Source,
    base_offset: i64,
    snapshot: Option<&[u8]>,
    config: &IndexConfig,
) -> Result<SideFiles, LoadError> {
    Rebuild::new(snapshot, None, *config)?.segment(segment, base_offset)
}
