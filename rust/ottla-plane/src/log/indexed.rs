//! A segment and its sparse indexes, as Kafka fills them: an entry for each 4 KiB or so of batches, from
//! which one walks over headers (`docs/kafka/log-dir.md` §3.1, §3.2).

use super::headers::Headers;
use super::segment::{Ends, Segment, SegmentReader};
use ottla_format::batch::BatchInfo;
use ottla_format::batches::Batches;
use ottla_format::limits::MAX_BATCH_BYTES;
use ottla_log::sidefiles::fill::IndexFill;
use ottla_log::sidefiles::offset_index::{OFFSET_ENTRY_BYTES, OffsetEntry};
use ottla_log::sidefiles::time_index::{TIME_ENTRY_BYTES, TimeEntry};
use ottla_log::sidefiles::transaction_index::AbortedTransaction;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of batches that are read at once.
const PIECE_BYTES: u64 = 1 << 20;

/// What the batches of a segment amount to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    pub(super) size: u64,
    /// The offset behind the last batch.
    pub(super) next_offset: i64,
    /// Timestamp of the first batch, by which the segment is rolled.
    pub(super) first_timestamp: Option<i64>,
    fill: IndexFill,
}

impl Tally {
    fn empty(base_offset: i64) -> Self {
        let fill = IndexFill::new(base_offset);
        Self { size: 0, next_offset: base_offset, first_timestamp: None, fill }
    }

    /// The largest timestamp, −1 for none.
    pub(super) fn max_timestamp(&self) -> i64 {
        self.fill.max_timestamp
    }
}

/// Batches that are added, with the entries of the indexes that come with them.
struct Entries {
    tally: Tally,
    offsets: Vec<OffsetEntry>,
    times: Vec<TimeEntry>,
}

/// A segment of a log.
pub(super) struct IndexedSegment {
    /// The offset that names it.
    pub(super) base_offset: i64,
    pub(super) created_ms: i64,
    /// When a batch was added last.
    pub(super) appended_ms: i64,
    pub(super) tally: Tally,
    data: Box<dyn Segment>,
}

impl IndexedSegment {
    /// A segment without a batch.
    pub(super) fn new(base_offset: i64, now_ms: i64, data: Box<dyn Segment>) -> Self {
        let tally = Tally::empty(base_offset);
        Self { base_offset, created_ms: now_ms, appended_ms: now_ms, tally, data }
    }

    /// A segment whose batches and entries are there: counted from the last entries on.
    pub(super) fn resume(
        base_offset: i64,
        now_ms: i64,
        data: Box<dyn Segment>,
    ) -> io::Result<Self> {
        let mut segment = Self::new(base_offset, now_ms, data);
        segment.count()?;
        Ok(segment)
    }

    /// Counts what the batches amount to, from the last entries on.
    fn count(&mut self) -> io::Result<()> {
        let Ends { size, offset_entries, time_entries } = self.data.ends();
        self.tally = Tally { size, ..Tally::empty(self.base_offset) };
        let mut headers = Headers::new(&*self.data, size);
        self.tally.first_timestamp = headers.at(0)?.map(|first| first.max_timestamp);
        let timed = last_entry(time_entries, |number| self.data.time_entry(number))?;
        let indexed = last_entry(offset_entries, |number| self.data.offset_entry(number))?;
        let fill = &mut self.tally.fill;
        if let Some(entry) = timed {
            fill.count(entry.offset(self.base_offset), entry.timestamp);
            fill.indexed_timestamp = entry.timestamp;
        }
        fill.last_entry = indexed.map_or(0, position_of);
        // With every entry of the offset index the time index gets what is larger until then.
        let mut position = if timed.is_some() { fill.last_entry } else { 0 };
        while let Some(batch) = headers.at(position)? {
            self.tally.fill.count(batch.last_offset, batch.max_timestamp);
            self.tally.next_offset = batch.last_offset.saturating_add(1);
            position = position.saturating_add(batch.size);
        }
        Ok(())
    }

    /// Adds batches whose bytes are these parts, all of them or none.
    pub(super) fn append(
        &mut self,
        parts: &[&[u8]],
        batches: &[BatchInfo],
        index_interval_bytes: u64,
        now_ms: i64,
    ) -> io::Result<()> {
        let Entries { tally, offsets, times } = self.entries_of(batches, index_interval_bytes);
        self.data.append(parts, &offsets, &times)?;
        self.tally = tally;
        self.appended_ms = now_ms;
        Ok(())
    }

    /// The entries that batches at the end of the segment get. The first of a segment has none.
    fn entries_of(&self, batches: &[BatchInfo], index_interval_bytes: u64) -> Entries {
        let (mut offsets, mut times) = (Vec::new(), Vec::new());
        let mut tally = self.tally;
        for batch in batches {
            let (position, last_offset) = (tally.size, batch.last_offset);
            if tally.fill.add(position, last_offset, batch.max_timestamp, index_interval_bytes) {
                let relative_offset = last_offset.wrapping_sub(self.base_offset) as i32;
                offsets.push(OffsetEntry { relative_offset, position: position as i32 });
                times.extend(tally.fill.time_entry());
            }
            tally.first_timestamp.get_or_insert(batch.max_timestamp);
            tally.size = position.saturating_add(batch.size);
            tally.next_offset = last_offset.saturating_add(1);
        }
        Entries { tally, offsets, times }
    }

    /// Adds transactions whose markers are in it.
    pub(super) fn add_aborted(&mut self, aborted: &[AbortedTransaction]) -> io::Result<()> {
        self.data.add_aborted(aborted)
    }

    /// Whether its indexes have no room for another entry, of indexes of so many bytes.
    pub(super) fn is_index_full(&self, segment_index_bytes: u64) -> bool {
        let room = usize::try_from(segment_index_bytes).unwrap_or(usize::MAX);
        let Ends { offset_entries, time_entries, .. } = self.data.ends();
        // The last entry of the time index is left for the end of the segment.
        offset_entries >= entries_in(room, OFFSET_ENTRY_BYTES)
            || time_entries.saturating_add(1) >= entries_in(room, TIME_ENTRY_BYTES)
    }

    /// The headers of its batches.
    fn headers(&self) -> Headers<'_> {
        Headers::new(&*self.data, self.tally.size)
    }

    /// The bytes of a range, copied.
    pub(super) fn bytes(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let size = range.end.min(self.tally.size).saturating_sub(range.start);
        let mut bytes = Vec::with_capacity(size as usize);
        self.read(range, &mut |slice| bytes.extend_from_slice(slice))?;
        Ok(bytes)
    }

    /// Gives the bytes of a range to `each`.
    pub(super) fn read(&self, range: Range<u64>, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        self.data.read(range, each)
    }

    /// Gives the whole batches from the one that holds an offset on to `each`, in pieces of a bounded
    /// size.
    pub(super) fn each_piece<E: From<io::Error>>(
        &self,
        offset: i64,
        each: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut position = self.position_before(offset)?;
        let mut wanted = PIECE_BYTES;
        while position < self.tally.size {
            let end = position.saturating_add(wanted).min(self.tally.size);
            let piece = self.bytes(position..end)?;
            let mut batches = Batches::new(&piece, 0);
            let is_damaged = batches.by_ref().any(|found| found.is_err());
            let size = batches.position() as u64;
            if size > 0 || is_damaged {
                let whole = if is_damaged { None } else { piece.get(..batches.position()) };
                each(whole.unwrap_or(&piece))?;
                wanted = PIECE_BYTES;
            } else if end < self.tally.size && wanted <= MAX_BATCH_BYTES {
                // Larger than a piece.
                wanted = wanted.saturating_mul(2);
                continue;
            }
            if size == 0 {
                break;
            }
            position = position.saturating_add(size);
        }
        Ok(())
    }

    /// The first batch from a position on for which `is_wanted`.
    fn first_from(
        &self,
        mut position: u64,
        is_wanted: impl Fn(&BatchInfo) -> bool,
    ) -> io::Result<Option<BatchInfo>> {
        let mut headers = self.headers();
        while let Some(batch) = headers.at(position)? {
            if is_wanted(&batch) {
                return Ok(Some(batch));
            }
            position = position.saturating_add(batch.size);
        }
        Ok(None)
    }

    /// Where the last entry of the offset index for which `is_before` begins.
    fn entry_before(&self, is_before: impl Fn(&OffsetEntry) -> bool) -> io::Result<u64> {
        let entry = |number| self.data.offset_entry(number);
        let count = self.data.ends().offset_entries;
        let behind = entries_before(count, entry, is_before)?;
        let last = last_entry(behind, entry)?;
        Ok(last.map_or(0, position_of))
    }

    /// Where to begin to look for an offset.
    fn position_before(&self, offset: i64) -> io::Result<u64> {
        self.entry_before(|entry| entry.offset(self.base_offset) <= offset)
    }

    /// The batch that holds an offset, or the next one.
    pub(super) fn find_offset(&self, offset: i64) -> io::Result<Option<BatchInfo>> {
        if offset >= self.tally.next_offset {
            return Ok(None);
        }
        let start = self.position_before(offset)?;
        self.first_from(start, |batch| batch.last_offset >= offset)
    }

    /// The first batch that has a timestamp or a later one, and reaches an offset.
    pub(super) fn find_timestamp(
        &self,
        timestamp: i64,
        offset: i64,
    ) -> io::Result<Option<BatchInfo>> {
        if self.tally.max_timestamp() < timestamp {
            return Ok(None);
        }
        // Up to the offset of an entry no timestamp is larger than the entry's.
        let entry = |number| self.data.time_entry(number);
        let count = self.data.ends().time_entries;
        let behind = entries_before(count, entry, |entry| entry.timestamp < timestamp)?;
        let last = last_entry(behind, entry)?;
        let known = last.map_or(self.base_offset, |entry| entry.offset(self.base_offset));
        let start = self.position_before(known.max(offset))?;
        self.first_from(start, |batch| {
            batch.max_timestamp >= timestamp && batch.last_offset >= offset
        })
    }

    /// The first batch with the largest timestamp of those that reach an offset.
    pub(super) fn find_max_timestamp(&self, offset: i64) -> io::Result<Option<BatchInfo>> {
        if self.tally.fill.max_timestamp_offset >= offset {
            return self.find_offset(self.tally.fill.max_timestamp_offset);
        }
        let mut found: Option<BatchInfo> = None;
        let mut headers = self.headers();
        let mut next = self.find_offset(offset)?;
        while let Some(batch) = next {
            if found.is_none_or(|found| batch.max_timestamp > found.max_timestamp) {
                found = Some(batch);
            }
            next = headers.at(batch.position.saturating_add(batch.size))?;
        }
        Ok(found)
    }

    /// Where the whole batches from a position on end of which none begins at `before_offset` or
    /// behind, in at most `max_bytes`, and the offset behind them.
    pub(super) fn end_of_read(
        &self,
        first: &BatchInfo,
        before_offset: i64,
        max_bytes: u64,
    ) -> io::Result<(u64, i64)> {
        let end = first.position.saturating_add(max_bytes);
        if end >= self.tally.size && before_offset >= self.tally.next_offset {
            return Ok((self.tally.size, self.tally.next_offset));
        }
        let is_before = |entry: &OffsetEntry| {
            position_of(*entry) <= end && entry.offset(self.base_offset) < before_offset
        };
        let known = self.entry_before(is_before)?.max(first.position);
        let mut headers = self.headers();
        let (mut position, mut next_offset) = (known, first.base_offset);
        if known > first.position {
            next_offset = headers.at(known)?.map_or(next_offset, |batch| batch.base_offset);
        }
        while let Some(batch) = headers.at(position)? {
            let behind = position.saturating_add(batch.size);
            if behind > end || batch.base_offset >= before_offset {
                break;
            }
            (position, next_offset) = (behind, batch.last_offset.saturating_add(1));
        }
        Ok((position, next_offset))
    }

    /// Drops the batches that reach an offset.
    pub(super) fn truncate(&mut self, offset: i64) -> io::Result<()> {
        let first = self.find_offset(offset)?;
        let Some(first) = first else { return Ok(()) };
        let Ends { offset_entries, time_entries, .. } = self.data.ends();
        let ends = Ends {
            size: first.position,
            offset_entries: entries_before(
                offset_entries,
                |number| self.data.offset_entry(number),
                |entry| position_of(*entry) < first.position,
            )?,
            time_entries: entries_before(
                time_entries,
                |number| self.data.time_entry(number),
                |entry| entry.offset(self.base_offset) < first.base_offset,
            )?,
        };
        self.data.truncate(ends, offset)?;
        self.count()
    }

    /// Nothing is added from now on: the time index gets the largest timestamp.
    pub(super) fn seal(&mut self) -> io::Result<()> {
        let mut tally = self.tally;
        if let Some(entry) = tally.fill.time_entry() {
            self.data.append(&[], &[], &[entry])?;
        }
        self.tally = tally;
        self.data.seal();
        Ok(())
    }

    pub(super) fn file(&self) -> io::Result<Option<Arc<File>>> {
        self.data.file()
    }

    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.data.paths()
    }

    pub(super) fn close(&mut self) {
        self.data.seal();
    }

    /// The time by which the segment is old: the largest timestamp or, where no record has one, when
    /// a batch was added last.
    pub(super) fn largest_timestamp(&self) -> i64 {
        match self.tally.max_timestamp() {
            ..0 => self.appended_ms,
            timestamp => timestamp,
        }
    }

    /// How many bytes it has, and how many entries its indexes.
    pub(super) fn ends(&self) -> Ends {
        self.data.ends()
    }

    pub(super) fn reader(&self) -> Box<dyn SegmentReader> {
        self.data.reader()
    }

    /// Makes a sealed segment survive a crash.
    pub(super) fn sync(&self) -> io::Result<()> {
        for path in self.paths() {
            match File::open(path) {
                Ok(file) => file.sync_data()?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn set_modified(&self) -> io::Result<()> {
        self.data.set_modified(self.appended_ms)
    }

    pub(super) fn rename(&mut self, suffix: &'static [u8]) -> io::Result<()> {
        self.data.rename(suffix)
    }

    pub(super) fn delete(&mut self) -> io::Result<()> {
        self.data.delete()
    }
}

#[allow(clippy::arithmetic_side_effects, reason = "divides by the size of an entry")]
fn entries_in(bytes: usize, size: usize) -> usize {
    bytes / size
}

/// The last of so many entries.
fn last_entry<T>(
    count: usize,
    entry: impl Fn(usize) -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    count.checked_sub(1).map_or(Ok(None), entry)
}

/// How many entries are before the first for which not `is_before`; the entries increase by it.
fn entries_before<T>(
    count: usize,
    entry: impl Fn(usize) -> io::Result<Option<T>>,
    is_before: impl Fn(&T) -> bool,
) -> io::Result<usize> {
    let (mut from, mut to) = (0usize, count);
    while from < to {
        let middle = from.midpoint(to);
        if entry(middle)?.is_some_and(|entry| is_before(&entry)) {
            from = middle.saturating_add(1);
        } else {
            to = middle;
        }
    }
    Ok(from)
}

/// The position of an entry. Kafka writes none below zero.
fn position_of(entry: OffsetEntry) -> u64 {
    u64::try_from(entry.position).unwrap_or(0)
}
