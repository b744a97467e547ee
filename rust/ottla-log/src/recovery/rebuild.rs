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
    /// `leader-epoch-checkpoint` after the last batch.
    pub leader_epochs: Vec<u8>,
    /// Bytes of the segment up to the first batch that a recovery cuts off.
    pub valid_bytes: u64,
    /// Why it cuts it off.
    pub fault: Option<String>,
}

/// Builds what should stand beside a segment: its indexes as a recovery makes them, and the producer
/// snapshot and leader epochs after it. `snapshot` and `leader_epochs` are the files before it.
///
/// # Errors
/// [`LoadError::Refused`] where a recovery would end with an exception, [`LoadError::Snapshot`] where
/// `snapshot` is none, and what keeps the segment from being read.
pub fn rebuild_side_files(
    segment: &dyn Source,
    base_offset: i64,
    snapshot: Option<&[u8]>,
    leader_epochs: Option<&[u8]>,
    config: &IndexConfig,
) -> Result<SideFiles, LoadError> {
    let mut producers = Producers::new(base_offset);
    if let Some(snapshot) = snapshot {
        producers.load(snapshot, base_offset, 0, i64::MAX).map_err(LoadError::Snapshot)?;
    }
    let checkpoint = String::from_utf8_lossy(LEADER_EPOCHS);
    let mut epochs = match leader_epochs {
        Some(data) => LeaderEpochs::read(data, &checkpoint)?,
        None => LeaderEpochs::default(),
    };
    let progress = Progress::new(&|_| true);
    let file = OpenFile::new(Box::new(segment), SEGMENT.as_bytes(), &progress);
    let size = file.size()?;
    let mut log = SegmentFile::new(Some(file), (0, size), SEGMENT.to_owned());
    let mut built = IndexBuilder::new(base_offset);
    let mut codecs = Codecs::new(Limits::default());
    let fault = SegmentRecovery {
        config,
        codecs: &mut codecs,
        producers: &mut producers,
        changed: &mut Vec::new(),
        epochs: &mut epochs,
        partition: "",
    }
    .run(&mut log, &mut built)?;
    built.finish()?;
    Ok(SideFiles {
        offset_index: built.index.iter().flat_map(OffsetEntry::to_bytes).collect(),
        time_index: built.time_index.iter().flat_map(TimeEntry::to_bytes).collect(),
        transaction_index: built.aborted.iter().flat_map(AbortedTransaction::to_bytes).collect(),
        snapshot: producers.snapshot(),
        next_offset: producers.end_offset(),
        leader_epochs: write_leader_epochs(&epochs.entries()),
        valid_bytes: built.valid_bytes,
        fault,
    })
}
