//! The log of a partition as a start has it by now: its segments, and what is kept beside them.

use super::aborted_entries::AbortedEntries;
use super::epochs::LeaderEpochs;
use super::files::{Directory, FileContent, Files, NewIndex};
use super::index_builder::IndexBuilder;
use super::interruption::{Interruption, LoadError};
use super::open_file::Progress;
use super::producer_state::ProducerStateManager;
use super::restart::Restart;
use super::segment::SegmentReader;
use super::segment_recovery::SegmentRecovery;
use crate::names::SegmentNames;
use crate::sidefiles::snapshot::SnapshotEntry;
use crate::sidefiles::transaction_index::AbortedTransaction;
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Aborted transactions that a prediction holds over all segments that are recovered.
const MAX_ABORTED: usize = 1 << 20;

/// The indexes of a segment that was recovered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RebuiltIndexes {
    /// Entries of `.index`.
    pub offset_entries: u64,
    /// Entries of `.timeindex`.
    pub time_entries: u64,
    /// Entries of `.txnindex`.
    pub aborted_count: u64,
    /// These entries; none where there are too many over all segments.
    pub aborted: Vec<AbortedTransaction>,
    /// Greatest timestamp, −1 for none.
    pub max_timestamp: i64,
    /// Why batches at the end were cut off.
    pub fault: Option<String>,
}

/// A log that is being loaded.
pub(super) struct PartitionLog<'d> {
    pub(super) reader: SegmentReader<'d>,
    /// From `log-start-offset-checkpoint`.
    pub(super) log_start_checkpoint: i64,
    /// Whether somebody goes on with the log that is loaded.
    pub(super) is_for_use: bool,
    pub(super) segments: BTreeMap<i64, SegmentNames>,
    pub(super) epochs: LeaderEpochs,
    pub(super) state: ProducerStateManager,
    /// Producers as the recovery of a segment has them, which goes by the snapshots alone; `None`
    /// where these have changed meanwhile.
    recovering: Option<ProducerStateManager>,
    /// What recovery has made of the indexes of segments.
    pub(super) rebuilt: BTreeMap<i64, RebuiltIndexes>,
    aborted_count: usize,
    /// The segment recovered last, whose index is held entry by entry.
    newest: Option<SegmentNames>,
}

impl<'d> PartitionLog<'d> {
    /// The files of a directory, of which nothing is loaded yet.
    pub(super) fn begin(
        directory: &'d dyn Directory,
        partition: &str,
        restart: &Restart,
        progress: &Rc<Progress<'d>>,
    ) -> Result<Self, LoadError> {
        let reader = SegmentReader {
            files: Files::new(directory, progress)?,
            codecs: Codecs::new(Limits::default()),
            config: restart.config,
            partition: partition.to_owned(),
        };
        Ok(Self {
            reader,
            log_start_checkpoint: restart.log_start_offset,
            is_for_use: false,
            segments: BTreeMap::new(),
            epochs: LeaderEpochs::default(),
            state: ProducerStateManager::empty(),
            recovering: None,
            rebuilt: BTreeMap::new(),
            aborted_count: 0,
            newest: None,
        })
    }

    /// The log is loaded for use: all that is read of producers and of aborted transactions is kept.
    pub(super) fn keep_all(&mut self) {
        self.is_for_use = true;
    }

    /// No producers yet, and the snapshots that there are.
    pub(super) fn new_state(&self) -> Result<ProducerStateManager, Interruption> {
        ProducerStateManager::new(&self.reader.files, self.is_for_use)
    }

    /// Whether the file of the leader epochs says the same of a log that ends at an offset, or has one
    /// more that would begin there: such as that of a leader which has written nothing yet.
    pub(super) fn has_epochs_on_disk(&self, end_offset: i64) -> Result<bool, LoadError> {
        let Some(stored) = self.reader.read_epochs()? else { return Ok(false) };
        let mut stored = stored.entries();
        stored.pop_if(|last| last.start_offset == end_offset);
        Ok(stored == self.epochs.entries())
    }

    /// The segments from the one that holds an offset on.
    pub(super) fn segments_from(&self, offset: i64) -> Vec<SegmentNames> {
        let first = self.segments.range(..=offset).next_back().map_or(offset, |(&base, _)| base);
        self.segments.range(first..).map(|(_, names)| names.clone()).collect()
    }

    /// Recovers one segment. Returns how many bytes it cuts off.
    pub(super) fn recover_segment(&mut self, names: &SegmentNames) -> Result<u64, Interruption> {
        let mut state = match self.recovering.take() {
            Some(state) => state.anew(),
            None => self.new_state()?,
        };
        let result = self.recover_segment_with(&mut state, names);
        self.recovering = Some(state);
        result
    }

    fn recover_segment_with(
        &mut self,
        state: &mut ProducerStateManager,
        names: &SegmentNames,
    ) -> Result<u64, Interruption> {
        let (start, base_offset) = (self.log_start_checkpoint, names.base_offset);
        state.rebuild(&mut self.reader, &self.segments, start, base_offset, false)?;
        self.forget_entries();
        let mut log = self.reader.log(&names.log)?;
        let mut built = IndexBuilder::new(base_offset);
        let mut recovery = SegmentRecovery {
            config: &self.reader.config,
            codecs: &mut self.reader.codecs,
            producers: &mut state.producers,
            changed: &mut state.changed,
            epochs: &mut self.epochs,
            partition: &self.reader.partition,
        };
        let (fault, result) = match recovery.run(&mut log, &mut built) {
            Ok(fault) => {
                let cut = self.reader.truncate(&names.log, built.valid_bytes)?;
                (fault, built.finish().map(|()| cut))
            }
            Err(interruption) => (None, Err(interruption)),
        };
        self.set_indexes(names, built, fault);
        let cut = result?;
        state.take_snapshot(&mut self.reader.files)?;
        Ok(cut)
    }

    /// Puts the indexes of a recovered segment into place; the entries are held until the next one.
    fn set_indexes(&mut self, names: &SegmentNames, built: IndexBuilder, fault: Option<String>) {
        let mut rebuilt = RebuiltIndexes {
            offset_entries: built.index.len() as u64,
            time_entries: built.time_index.len() as u64,
            aborted_count: built.aborted.len() as u64,
            aborted: Vec::new(),
            max_timestamp: built.max_timestamp(),
            fault,
        };
        self.aborted_count = self.aborted_count.saturating_add(built.aborted.len());
        let files = &mut self.reader.files;
        files.put(&names.index, FileContent::Index(NewIndex::Entries(built.index.into())));
        files.put(&names.time_index, FileContent::Other);
        if !built.aborted.is_empty() || files.exists(&names.transaction_index) {
            files.put(&names.transaction_index, FileContent::Other);
        }
        if self.is_for_use || self.aborted_count <= MAX_ABORTED {
            rebuilt.aborted = built.aborted;
        }
        self.rebuilt.insert(names.base_offset, rebuilt);
        self.newest = Some(names.clone());
    }

    /// Drops the entries of the segment recovered last; they can be derived again.
    fn forget_entries(&mut self) {
        let Some(names) = self.newest.take() else { return };
        let files = &mut self.reader.files;
        let valid_bytes = match files.get(&names.log) {
            Some(FileContent::Log(extent)) => extent.size,
            _ => return,
        };
        if let Some(FileContent::Index(NewIndex::Entries(_))) = files.get(&names.index) {
            files.put(&names.index, FileContent::Index(NewIndex::Derived { valid_bytes }));
        }
    }

    /// Truncates a segment to its base offset. Returns how many bytes that cuts off.
    pub(super) fn empty_segment(&mut self, names: &SegmentNames) -> Result<u64, Interruption> {
        let position = self.reader.translate(names, names.base_offset)?;
        let empty = NewIndex::Entries(Rc::default());
        self.reader.files.put(&names.index, FileContent::Index(empty));
        let cut = match position {
            Some(position) => self.reader.truncate(&names.log, position)?,
            None => 0,
        };
        let mut log = self.reader.log(&names.log)?;
        let mut max_timestamp = -1;
        let mut position = 0;
        while let Some(frame) = log.next(position, log.size())? {
            max_timestamp = log.info(&frame)?.max_timestamp.max(max_timestamp);
            position = frame.end();
        }
        if let Some(rebuilt) = self.rebuilt.get_mut(&names.base_offset) {
            *rebuilt = RebuiltIndexes { max_timestamp, ..RebuiltIndexes::default() };
        }
        Ok(cut)
    }

    /// Segments are recovered: what that knows of producers is the log's.
    pub(super) fn end_recovery(&mut self) {
        if let Some(recovering) = self.recovering.take() {
            self.state.retain(recovering);
        }
    }

    /// The producers by id, once the log is loaded. What led to them is forgotten.
    pub(super) fn take_producers(&mut self) -> Vec<SnapshotEntry> {
        let state = std::mem::replace(&mut self.state, ProducerStateManager::empty());
        self.recovering = None;
        self.reader.files.forget_snapshots();
        state.into_by_id()
    }

    /// Deletes the snapshot of a deleted segment.
    pub(super) fn delete_snapshot(&mut self, base_offset: i64) {
        self.state.delete(base_offset, &mut self.reader.files);
        self.recovering = None;
    }

    pub(super) fn delete_segments(&mut self, base_offsets: &[i64]) {
        for base_offset in base_offsets {
            if let Some(names) = self.segments.remove(base_offset) {
                self.remove_files(&names);
            }
            self.rebuilt.remove(base_offset);
            self.delete_snapshot(*base_offset);
        }
    }

    pub(super) fn remove_files(&mut self, names: &SegmentNames) {
        for name in names.all() {
            self.reader.files.remove(name);
        }
    }

    pub(super) fn create_segment(&mut self, base_offset: i64) -> Result<(), Interruption> {
        let names = SegmentNames::of(base_offset);
        self.reader.extent(&names.log)?;
        for name in [&names.index, &names.time_index] {
            if !self.reader.files.exists(name) {
                let empty = NewIndex::Entries(Rc::default());
                self.reader.files.put(name, FileContent::Index(empty));
            }
        }
        self.segments.insert(base_offset, names);
        Ok(())
    }

    /// The entries of a segment's transaction index, where there is one on disk.
    pub(super) fn aborted_on_disk(
        &self,
        names: &SegmentNames,
    ) -> Result<AbortedEntries<'d>, LoadError> {
        let file = match self.reader.files.get(&names.transaction_index) {
            Some(FileContent::Disk(origin)) => Some(self.reader.files.open(origin)?),
            _ => None,
        };
        Ok(AbortedEntries::new(file))
    }
}
