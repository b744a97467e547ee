//! A segment with its sparse index: an entry for each 4 KiB or so of batches, from which one walks
//! over headers.

use super::segment::Segment;
use ottla_format::batch::BatchInfo;
use ottla_format::header::{Envelope, Header, RECORD_BATCH_OVERHEAD};
use std::io;
use std::ops::Range;

/// Kafka's `index.interval.bytes`.
const INTERVAL_BYTES: u64 = 4 << 10;

/// A batch that has an entry of its own.
#[derive(Clone, Copy, Debug)]
struct IndexEntry {
    base_offset: i64,
    position: u64,
    /// The largest timestamp of the batches before it, −1 for none.
    max_timestamp_before: i64,
}

/// A segment of a log.
pub(super) struct IndexedSegment {
    /// The offset that names it.
    pub(super) base_offset: i64,
    pub(super) created_ms: i64,
    pub(super) size: u64,
    /// The offset behind its last batch.
    pub(super) next_offset: i64,
    /// Timestamp of its first batch, by which it is rolled.
    pub(super) first_timestamp: Option<i64>,
    /// The largest timestamp, −1 for none.
    pub(super) max_timestamp: i64,
    /// The first batch that has it.
    max_timestamp_position: u64,
    /// When a batch was added last.
    pub(super) appended_ms: i64,
    index: Vec<IndexEntry>,
    /// Bytes behind the batch of the last entry.
    unindexed: u64,
    data: Box<dyn Segment>,
}

impl IndexedSegment {
    pub(super) fn new(base_offset: i64, now_ms: i64, data: Box<dyn Segment>) -> Self {
        Self {
            base_offset,
            created_ms: now_ms,
            size: 0,
            next_offset: base_offset,
            first_timestamp: None,
            max_timestamp: -1,
            max_timestamp_position: 0,
            appended_ms: now_ms,
            index: Vec::new(),
            unindexed: 0,
            data,
        }
    }

    /// Adds batches whose bytes are these parts.
    pub(super) fn append(
        &mut self,
        parts: &[&[u8]],
        batches: &[BatchInfo],
        now_ms: i64,
    ) -> io::Result<()> {
        self.data.append(parts, batches)?;
        for batch in batches {
            self.note(batch);
        }
        self.appended_ms = now_ms;
        Ok(())
    }

    /// Takes down a batch at the end of the segment.
    fn note(&mut self, batch: &BatchInfo) {
        let position = self.size;
        if self.index.is_empty() || self.unindexed > INTERVAL_BYTES {
            self.index.push(IndexEntry {
                base_offset: batch.base_offset,
                position,
                max_timestamp_before: self.max_timestamp,
            });
            self.unindexed = 0;
        }
        if batch.max_timestamp > self.max_timestamp {
            self.max_timestamp = batch.max_timestamp;
            self.max_timestamp_position = position;
        }
        self.first_timestamp.get_or_insert(batch.max_timestamp);
        self.size = position.saturating_add(batch.size);
        self.unindexed = self.unindexed.saturating_add(batch.size);
        self.next_offset = batch.last_offset.saturating_add(1);
    }

    /// The header of the batch at a position, `None` at the end.
    fn batch_at(&self, position: u64) -> io::Result<Option<BatchInfo>> {
        if position >= self.size {
            return Ok(None);
        }
        let mut head = [0; RECORD_BATCH_OVERHEAD];
        let mut filled = 0usize;
        let end = position.saturating_add(RECORD_BATCH_OVERHEAD as u64).min(self.size);
        self.data.read(position..end, &mut |slice| {
            if let Some(to) = head.get_mut(filled..filled.saturating_add(slice.len())) {
                to.copy_from_slice(slice);
            }
            filled = filled.saturating_add(slice.len());
        })?;
        let Some(envelope) = Envelope::read(&head, 0) else { return Ok(None) };
        if envelope.magic >= 2 {
            return Ok(
                Header::read(&head, 0).map(|header| BatchInfo::from_header(&header, position))
            );
        }
        let whole = self.bytes(position..position.saturating_add(envelope.total() as u64))?;
        let info = BatchInfo::read(&whole, 0, &envelope).ok();
        Ok(info.map(|info| BatchInfo { position, ..info }))
    }

    /// The bytes of a range, copied.
    pub(super) fn bytes(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let size = range.end.min(self.size).saturating_sub(range.start);
        let mut bytes = Vec::with_capacity(size as usize);
        self.read(range, &mut |slice| bytes.extend_from_slice(slice))?;
        Ok(bytes)
    }

    /// Gives the bytes of a range to `each`.
    pub(super) fn read(&self, range: Range<u64>, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        self.data.read(range, each)
    }

    /// The first batch from a position on for which `is_wanted`.
    fn first_from(
        &self,
        mut position: u64,
        is_wanted: impl Fn(&BatchInfo) -> bool,
    ) -> io::Result<Option<BatchInfo>> {
        while let Some(batch) = self.batch_at(position)? {
            if is_wanted(&batch) {
                return Ok(Some(batch));
            }
            position = position.saturating_add(batch.size);
        }
        Ok(None)
    }

    /// Where the last entry for which `is_before` begins; the entries increase by it.
    fn entry_before(&self, is_before: impl Fn(&IndexEntry) -> bool) -> u64 {
        let behind = self.index.partition_point(is_before);
        self.index.get(behind.saturating_sub(1)).map_or(0, |entry| entry.position)
    }

    /// The batch that holds an offset, or the next one.
    pub(super) fn find_offset(&self, offset: i64) -> io::Result<Option<BatchInfo>> {
        if offset >= self.next_offset {
            return Ok(None);
        }
        let start = self.entry_before(|entry| entry.base_offset <= offset);
        self.first_from(start, |batch| batch.last_offset >= offset)
    }

    /// The first batch that has a timestamp or a later one, and reaches an offset.
    pub(super) fn find_timestamp(
        &self,
        timestamp: i64,
        offset: i64,
    ) -> io::Result<Option<BatchInfo>> {
        if self.max_timestamp < timestamp {
            return Ok(None);
        }
        let start = self.entry_before(|entry| entry.max_timestamp_before < timestamp);
        self.first_from(start, |batch| {
            batch.max_timestamp >= timestamp && batch.last_offset >= offset
        })
    }

    /// The first batch with the largest timestamp of those that reach an offset.
    pub(super) fn find_max_timestamp(&self, offset: i64) -> io::Result<Option<BatchInfo>> {
        let largest = self.batch_at(self.max_timestamp_position)?;
        if largest.is_none_or(|largest| largest.last_offset >= offset) {
            return Ok(largest);
        }
        let mut found: Option<BatchInfo> = None;
        let mut next = self.find_offset(offset)?;
        while let Some(batch) = next {
            if found.is_none_or(|found| batch.max_timestamp > found.max_timestamp) {
                found = Some(batch);
            }
            next = self.batch_at(batch.position.saturating_add(batch.size))?;
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
        if end >= self.size && before_offset >= self.next_offset {
            return Ok((self.size, self.next_offset));
        }
        let known = self
            .entry_before(|entry| entry.position <= end && entry.base_offset < before_offset)
            .max(first.position);
        let (mut position, mut next_offset) = (known, first.base_offset);
        if known > first.position {
            next_offset = self.batch_at(known)?.map_or(next_offset, |batch| batch.base_offset);
        }
        while let Some(batch) = self.batch_at(position)? {
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
        let Some(first) = self.find_offset(offset)? else { return Ok(()) };
        let mut kept = Vec::new();
        let mut position = 0;
        while position < first.position
            && let Some(batch) = self.batch_at(position)?
        {
            position = position.saturating_add(batch.size);
            kept.push(batch);
        }
        self.data.truncate(first.position)?;
        (self.size, self.unindexed, self.next_offset) = (0, 0, self.base_offset);
        (self.max_timestamp, self.max_timestamp_position) = (-1, 0);
        self.first_timestamp = None;
        self.index.clear();
        for batch in kept {
            self.note(&batch);
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.data.flush()
    }

    /// Nothing is added from now on.
    pub(super) fn seal(&mut self) -> io::Result<()> {
        self.index.shrink_to_fit();
        self.data.flush()?;
        self.data.seal()
    }
}
