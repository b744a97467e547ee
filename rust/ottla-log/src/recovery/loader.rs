//! The steps of a start, one after the other (`LogLoader`, and what `UnifiedLog` adds).

use super::epochs::LeaderEpochs;
use super::files::{Content, Files, Index};
use super::producers::ProducerState;
use super::rebuild::{Pass, Rebuilt};
use super::segment::{Extent, Reader, is_in_range};
use super::stop::Stop;
use super::{RebuiltIndexes, Restart};
use crate::names::{
    CHECKPOINT, CLEANED, DELETED, INDEX, LEADER_EPOCHS, LOG, PARTITION_METADATA, PartitionState,
    SWAP, SegmentNames, TIME_INDEX, TRANSACTION_INDEX, file_name, offset_of,
};
use crate::sidefiles::offset_index::{OFFSET_ENTRY_BYTES, OffsetEntry};
use crate::sidefiles::transaction_index::{ABORTED_TRANSACTION_BYTES, AbortedTransaction};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Bytes of a text file that is read.
const MAX_TEXT_BYTES: u64 = 16 << 20;

/// Segments that are split before we stop telling what comes of it.
const MAX_SPLITS: usize = 1000;

/// Bytes that Kafka copies at once into the parts of a segment it splits.
const SPLIT_CHUNK_BYTES: u64 = 1 << 20;

/// Aborted transactions kept over all segments that are recovered.
const KEPT_ABORTED: usize = 1 << 20;

/// A start under way.
pub(super) struct Loader<'d> {
    pub(super) reader: Reader<'d>,
    restart: Restart,
    pub(super) segments: BTreeMap<i64, SegmentNames>,
    pub(super) epochs: LeaderEpochs,
    pub(super) state: ProducerState,
    /// What recovery has made of the indexes of segments.
    pub(super) rebuilt: BTreeMap<i64, RebuiltIndexes>,
    aborted: usize,
    /// The segment recovered last, whose index is kept entry by entry.
    newest: Option<SegmentNames>,
    splits: usize,
}

/// Where the log begins and ends.
pub(super) struct Offsets {
    pub(super) log_start_offset: i64,
    pub(super) log_end_offset: i64,
}

impl<'d> Loader<'d> {
    pub(super) fn new(reader: Reader<'d>, restart: Restart) -> Self {
        Self {
            reader,
            restart,
            segments: BTreeMap::new(),
            epochs: LeaderEpochs::default(),
            state: ProducerState::empty(),
            rebuilt: BTreeMap::new(),
            aborted: 0,
            newest: None,
            splits: 0,
        }
    }

    pub(super) fn load(&mut self) -> Result<Offsets, Stop> {
        self.read_epochs()?;
        self.state = ProducerState::new(&self.reader.files)?;
        self.finish_swaps()?;
        self.splitting(Self::load_segments)?;
        let log_end_offset =
            if self.reader.partition.as_bytes().ends_with(PartitionState::Delete.suffix()) {
                if self.segments.is_empty() {
                    self.create_segment(0)?;
                }
                0
            } else {
                self.splitting(Self::recover_log)?
            };
        self.epochs.truncate_from_end(log_end_offset);
        let checkpoint = self.restart.log_start_offset;
        let first = self.segments.first_key_value().map_or(checkpoint, |(&base, _)| base);
        let log_start_offset = checkpoint.max(first);
        self.epochs.truncate_from_start(checkpoint);
        let bases: Vec<_> = self.segments.keys().copied().collect();
        self.state.remove_strays(&bases, &mut self.reader.files)?;
        self.state.rebuild(
            &mut self.reader,
            &self.segments,
            log_start_offset,
            log_end_offset,
            self.restart.stopped_cleanly,
        )?;
        self.find_first_unstable(log_start_offset, log_end_offset)?;
        self.read_metadata()?;
        Ok(Offsets { log_start_offset, log_end_offset })
    }

    fn files(&mut self) -> &mut Files<'d> {
        &mut self.reader.files
    }

    fn read_epochs(&mut self) -> Result<(), Stop> {
        match self.reader.files.get(LEADER_EPOCHS) {
            Some(Content::Disk(origin)) => {
                let data = self.reader.files.read(origin, MAX_TEXT_BYTES)?;
                self.epochs = LeaderEpochs::read(&data, &self.reader.path(LEADER_EPOCHS))?;
            }
            _ => self.files().put(LEADER_EPOCHS, Content::Other),
        }
        Ok(())
    }

    /// Deletes what an operation under way has left, and ends a swap that was under way.
    fn finish_swaps(&mut self) -> Result<(), Stop> {
        let mut swaps = Vec::new();
        let mut cleaned = Vec::new();
        let mut lowest_cleaned = i64::MAX;
        for name in self.reader.files.names() {
            if name.ends_with(DELETED) && !is_deleted_checkpoint(&name) {
                self.files().remove(&name);
            } else if name.ends_with(CLEANED) {
                lowest_cleaned = lowest_cleaned.min(offset_of(&name)?);
                cleaned.push(name);
            } else if name.ends_with(SWAP) {
                swaps.push(name);
            }
        }
        let mut replaced: Option<(i64, i64)> = None;
        for name in swaps {
            let base_offset = offset_of(&name)?;
            if base_offset >= lowest_cleaned {
                self.files().remove(&name);
            } else if name.strip_suffix(SWAP).is_some_and(|name| name.ends_with(LOG)) {
                let next_offset = self.swap_end(base_offset)?;
                let (first, end) = replaced.unwrap_or((i64::MAX, i64::MIN));
                replaced = Some((first.min(base_offset), end.max(next_offset)));
            }
        }
        for name in cleaned {
            self.files().remove(&name);
        }
        for name in self.reader.files.names() {
            let is_replaced = replaced.is_some_and(|(first, end)| {
                offset_of(&name).is_ok_and(|offset| (first..end).contains(&offset))
            });
            if is_replaced && !name.ends_with(SWAP) {
                self.files().remove(&name);
            }
        }
        for name in self.reader.files.names() {
            if let Some(target) = name.strip_suffix(SWAP) {
                self.files().rename(&name, target);
            }
        }
        Ok(())
    }

    /// The offset after a segment that waits to be swapped in.
    fn swap_end(&mut self, base_offset: i64) -> Result<i64, Stop> {
        let names = SegmentNames::with_suffix(base_offset, SWAP);
        let had_index = self.reader.files.exists(&names.index);
        let next_offset = self.reader.next_offset(&names)?;
        if !had_index {
            // Made at full size, and taken for full when it is opened again.
            let count = self.reader.config.segment_index_bytes / OFFSET_ENTRY_BYTES as u64;
            self.files().put(&names.index, Content::Index(Index::Zeros(count)));
        }
        Ok(next_offset)
    }

    /// Runs a step again each time it has met a segment that has to be split.
    fn splitting<T>(&mut self, step: impl Fn(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        loop {
            match step(self) {
                Err(Stop::Overflow { base_offset }) if self.splits < MAX_SPLITS => {
                    self.splits += 1;
                    self.split(base_offset)?;
                }
                result => return result,
            }
        }
    }

    fn load_segments(&mut self) -> Result<(), Stop> {
        self.segments.clear();
        for name in self.reader.files.names() {
            let mut index_suffixes = [INDEX, TIME_INDEX, TRANSACTION_INDEX].iter();
            let is_index = index_suffixes.any(|suffix| name.ends_with(suffix));
            if is_index {
                if !self.reader.files.exists(&file_name(offset_of(&name)?, LOG)) {
                    self.files().remove(&name);
                }
            } else if name.ends_with(LOG) {
                self.load_segment(&SegmentNames::of(offset_of(&name)?))?;
            }
        }
        Ok(())
    }

    fn load_segment(&mut self, names: &SegmentNames) -> Result<(), Stop> {
        self.reader.extent(&names.log)?;
        let is_sound = if self.reader.files.exists(&names.index) {
            if !self.reader.files.exists(&names.time_index) {
                self.files().put(&names.time_index, Content::Other);
            }
            self.has_sound_transaction_index(names)?
        } else {
            false
        };
        if !is_sound {
            self.recover_segment(names)?;
        }
        self.segments.insert(names.base_offset, names.clone());
        Ok(())
    }

    /// Whether no entry of a transaction index ends before its segment.
    fn has_sound_transaction_index(&mut self, names: &SegmentNames) -> Result<bool, Stop> {
        let Some(Content::Disk(origin)) = self.reader.files.get(&names.transaction_index) else {
            return Ok(true);
        };
        let source = self.reader.files.open(origin)?;
        let mut position = 0;
        let mut bytes = [0; ABORTED_TRANSACTION_BYTES];
        while crate::source::fill(&*source, position, &mut bytes)? == bytes.len() {
            let Some(entry) = AbortedTransaction::read(&bytes, 0) else {
                let path = self.reader.path(&names.transaction_index);
                return Err(Stop::kafka(format!(
                    "Unexpected aborted transaction version {} in transaction index {path}, \
                     current version is 0",
                    bytes[0]
                )));
            };
            if entry.last_offset < names.base_offset {
                return Ok(false);
            }
            position += bytes.len() as u64;
        }
        Ok(true)
    }

    /// Recovers one segment: how many bytes it cuts off.
    fn recover_segment(&mut self, names: &SegmentNames) -> Result<u64, Stop> {
        let mut state = ProducerState::new(&self.reader.files)?;
        let (start, base_offset) = (self.restart.log_start_offset, names.base_offset);
        state.rebuild(&mut self.reader, &self.segments, start, base_offset, false)?;
        self.forget_entries();
        let mut log = self.reader.log(&names.log)?;
        let mut rebuilt = Rebuilt::new(base_offset);
        let mut pass = Pass {
            config: &self.reader.config,
            codecs: &mut self.reader.codecs,
            producers: &mut state.producers,
            epochs: &mut self.epochs,
            partition: &self.reader.partition,
        };
        let mut result = pass.run(&mut log, &mut rebuilt);
        let mut cut = 0;
        if result.is_ok() {
            cut = self.reader.truncate(&names.log, rebuilt.valid_bytes)?;
            result = rebuilt.finish();
        }
        self.keep(names, rebuilt);
        result?;
        state.take_snapshot(&mut self.reader.files);
        Ok(cut)
    }

    /// Keeps what a recovery has made of a segment, the entries of its index until the next one.
    fn keep(&mut self, names: &SegmentNames, rebuilt: Rebuilt) {
        let mut summary = RebuiltIndexes {
            offset_entries: rebuilt.index.len() as u64,
            time_entries: rebuilt.time_index.len() as u64,
            aborted_count: rebuilt.aborted.len() as u64,
            aborted: Vec::new(),
            max_timestamp: rebuilt.max_timestamp.0,
            fault: rebuilt.fault,
        };
        self.aborted += rebuilt.aborted.len();
        let files = &mut self.reader.files;
        let index = Index::Entries(rebuilt.index.into());
        files.put(&names.index, Content::Index(index));
        files.put(&names.time_index, Content::Other);
        if !rebuilt.aborted.is_empty() || files.exists(&names.transaction_index) {
            files.put(&names.transaction_index, Content::Other);
        }
        if self.aborted <= KEPT_ABORTED {
            summary.aborted = rebuilt.aborted;
        }
        self.rebuilt.insert(names.base_offset, summary);
        self.newest = Some(names.clone());
    }

    /// Lets go of the entries of the segment recovered last; they can be derived again.
    fn forget_entries(&mut self) {
        let Some(names) = self.newest.take() else { return };
        let size = match self.reader.files.get(&names.log) {
            Some(Content::Log(extent)) => extent.size,
            _ => return,
        };
        if let Some(Content::Index(Index::Entries(_))) = self.reader.files.get(&names.index) {
            let derived = Index::Derived { valid_bytes: size };
            self.files().put(&names.index, Content::Index(derived));
        }
    }

    /// Recovers what was not flushed, and finds the end of the log.
    fn recover_log(&mut self) -> Result<i64, Stop> {
        if !self.restart.stopped_cleanly {
            self.recover_unflushed()?;
        }
        let checkpoint = self.restart.log_start_offset;
        if let Some(names) = self.segments.last_key_value().map(|(_, names)| names.clone()) {
            let log_end_offset = self.reader.next_offset(&names)?;
            if log_end_offset >= checkpoint {
                return Ok(log_end_offset);
            }
            let all: Vec<_> = self.segments.keys().copied().collect();
            self.delete_segments(&all);
            self.epochs.clear();
            self.state.truncate_fully(checkpoint, &mut self.reader.files);
        }
        self.create_segment(checkpoint)?;
        let names = SegmentNames::of(checkpoint);
        self.reader.next_offset(&names)
    }

    fn recover_unflushed(&mut self) -> Result<(), Stop> {
        let from = self.restart.recovery_point;
        let first = self.segments.range(..=from).next_back().map_or(from, |(&base, _)| base);
        let unflushed: Vec<_> = self.segments.range(first..).map(|(_, n)| n.clone()).collect();
        for (index, names) in unflushed.iter().enumerate() {
            let cut = match self.recover_segment(names) {
                Err(Stop::InvalidOffset(_)) => self.empty_segment(names)?,
                result => result?,
            };
            if cut > 0 {
                // Kafka tells the offset it has cut to, and reads for it.
                self.reader.next_offset(names)?;
                let rest = unflushed.get(index + 1..).unwrap_or_default();
                let later: Vec<_> = rest.iter().map(|names| names.base_offset).collect();
                self.delete_segments(&later);
                break;
            }
        }
        Ok(())
    }

    /// Truncates a segment to its base offset: how many bytes that cuts off.
    fn empty_segment(&mut self, names: &SegmentNames) -> Result<u64, Stop> {
        let position = self.reader.translate(names, names.base_offset)?;
        let empty = Index::Entries(Rc::default());
        self.files().put(&names.index, Content::Index(empty));
        let cut = match position {
            Some(position) => self.reader.truncate(&names.log, position)?,
            None => 0,
        };
        let mut log = self.reader.log(&names.log)?;
        let mut max_timestamp = -1;
        let mut at = 0;
        while let Some(frame) = log.next(at, log.size())? {
            max_timestamp = log.info(&frame)?.max_timestamp.max(max_timestamp);
            at = frame.end();
        }
        if let Some(summary) = self.rebuilt.get_mut(&names.base_offset) {
            *summary = RebuiltIndexes { max_timestamp, ..RebuiltIndexes::default() };
        }
        Ok(cut)
    }

    fn delete_segments(&mut self, base_offsets: &[i64]) {
        for base_offset in base_offsets {
            if let Some(names) = self.segments.remove(base_offset) {
                for name in names.all() {
                    self.files().remove(name);
                }
            }
            self.rebuilt.remove(base_offset);
            self.state.delete(*base_offset, &mut self.reader.files);
        }
    }

    fn create_segment(&mut self, base_offset: i64) -> Result<(), Stop> {
        let names = SegmentNames::of(base_offset);
        self.reader.extent(&names.log)?;
        for name in [&names.index, &names.time_index] {
            if !self.reader.files.exists(name) {
                self.files().put(name, Content::Index(Index::Entries(Rc::default())));
            }
        }
        self.segments.insert(base_offset, names);
        Ok(())
    }

    /// Splits a segment whose offsets are too far apart for its indexes.
    fn split(&mut self, base_offset: i64) -> Result<(), Stop> {
        let names = SegmentNames::of(base_offset);
        let next_offset = self.reader.next_offset(&names)?;
        if next_offset <= base_offset || is_in_range(base_offset, next_offset.wrapping_sub(1)) {
            let path = self.reader.path(&names.log);
            return Err(Stop::illegal_argument(format!(
                "Split operation is only permitted for segments with overflow, and the problem \
                 path is {path}"
            )));
        }
        let whole = self.reader.extent(&names.log)?;
        let mut parts = Vec::new();
        let mut position = 0;
        while position < whole.size {
            let part = self.part_of_split(&names, position)?;
            position = part.end;
            parts.push(part);
        }
        if self.segments.remove(&base_offset).is_some() {
            for name in names.all() {
                self.files().remove(name);
            }
            if parts.iter().all(|part| part.base_offset != base_offset) {
                self.state.delete(base_offset, &mut self.reader.files);
            }
        }
        for part in parts {
            let names = SegmentNames::of(part.base_offset);
            let extent = Extent {
                origin: whole.origin.clone(),
                start: whole.start + part.start,
                size: part.end - part.start,
            };
            self.files().put(&names.log, Content::Log(extent));
            let entries = Index::Entries(part.entries.into());
            self.files().put(&names.index, Content::Index(entries));
            self.files().put(&names.time_index, Content::Other);
            self.segments.insert(part.base_offset, names);
        }
        Ok(())
    }

    /// The batches from a position on that one segment can hold.
    fn part_of_split(&mut self, names: &SegmentNames, start: u64) -> Result<Part, Stop> {
        let mut log = self.reader.log(&names.log)?;
        let Some(first) = log.next(start, log.size())? else {
            return Err(Stop::other("java.util.NoSuchElementException", "no batch to split at"));
        };
        let base_offset = log.base_offset(&first, &mut self.reader.codecs)?;
        let mut part = Part { base_offset, start, end: start, entries: Vec::new() };
        let mut since_entry = 0;
        loop {
            let mut chunk = 0;
            let mut last_offset = base_offset;
            while let Some(frame) = log.next(part.end + chunk, log.size())? {
                let last = log.last_offset(&frame)?;
                let fits = chunk == 0 || chunk + frame.total < SPLIT_CHUNK_BYTES;
                if !is_in_range(base_offset, last) || !fits {
                    break;
                }
                last_offset = last;
                chunk += frame.total;
            }
            if chunk == 0 {
                break;
            }
            if since_entry > self.reader.config.index_interval_bytes {
                part.entries.push(OffsetEntry {
                    relative_offset: last_offset.wrapping_sub(base_offset) as i32,
                    position: (part.end - start) as i32,
                });
                since_entry = 0;
            }
            since_entry += chunk;
            part.end += chunk;
        }
        if part.end == start {
            let message = format!("Failed to append records from position {start}");
            return Err(Stop::other("java.lang.IllegalStateException", message));
        }
        Ok(part)
    }

    /// Kafka looks for the batch where the oldest open transaction begins.
    fn find_first_unstable(&mut self, log_start_offset: i64, end_offset: i64) -> Result<(), Stop> {
        let unstable = self.state.producers.transactions().first_unstable_offset();
        let Some(offset) = unstable.map(|offset| offset.max(log_start_offset)) else {
            return Ok(());
        };
        if offset >= end_offset {
            return Ok(());
        }
        let first = self.segments.range(..=offset).next_back().map_or(offset, |(&base, _)| base);
        let names: Vec<_> = self.segments.range(first..).map(|(_, names)| names.clone()).collect();
        for names in names {
            if self.reader.translate(&names, offset)?.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn read_metadata(&mut self) -> Result<(), Stop> {
        let Some(Content::Disk(origin)) = self.reader.files.get(PARTITION_METADATA) else {
            return Ok(());
        };
        let data = self.reader.files.read(origin, MAX_TEXT_BYTES)?;
        if crate::sidefiles::metadata::read_partition_metadata(&data).is_err() {
            let path = self.reader.path(PARTITION_METADATA);
            return Err(Stop::other(
                "org.apache.kafka.common.errors.KafkaStorageException",
                format!("Error while reading partition metadata file {path}"),
            ));
        }
        Ok(())
    }

    /// Whether the directory says to which topic it belongs.
    pub(super) fn has_metadata(&self) -> bool {
        self.reader.files.exists(PARTITION_METADATA)
    }
}

/// Snapshots of KRaft are deleted by others.
fn is_deleted_checkpoint(name: &[u8]) -> bool {
    name.strip_suffix(DELETED).is_some_and(|name| name.ends_with(CHECKPOINT))
}

struct Part {
    base_offset: i64,
    start: u64,
    end: u64,
    entries: Vec<OffsetEntry>,
}
