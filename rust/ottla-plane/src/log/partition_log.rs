//! Segments in a row: rolling, reading, searching, retention (`docs/kafka/log-dir.md` §2).

use super::indexed::IndexedSegment;
use super::segment::Segment;
use ottla_format::attributes::TimestampType;
use ottla_format::batch::{BatchInfo, Payload, RecordCursor, payload};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use std::io;
use std::ops::Range;

/// What of a topic's configuration concerns the log alone, under Kafka's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// `segment.bytes`.
    pub segment_bytes: i32,
    /// `segment.ms`.
    pub segment_ms: i64,
    /// Whether `cleanup.policy` contains `delete`, without which the other two mean nothing.
    pub is_deleted: bool,
    /// `retention.ms`, −1 for ever.
    pub retention_ms: i64,
    /// `retention.bytes`, −1 for any.
    pub retention_bytes: i64,
}

/// Batches of a log that are read: a range of one of its segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    segment: usize,
    range: Range<u64>,
    /// The offset behind the last of them.
    pub(crate) next_offset: i64,
}

impl Span {
    pub(crate) fn size(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }
}

/// A record that was found by its timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimedOffset {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
}

/// The log of a partition. Its last segment is the active one; there is always one.
pub(crate) struct PartitionLog {
    segments: Vec<IndexedSegment>,
    make: fn() -> Box<dyn Segment>,
}

impl PartitionLog {
    /// An empty log that begins at an offset.
    pub(crate) fn new(offset: i64, now_ms: i64, make: fn() -> Box<dyn Segment>) -> Self {
        Self { segments: vec![IndexedSegment::new(offset, now_ms, make())], make }
    }

    /// Bytes of all batches.
    pub(crate) fn size(&self) -> u64 {
        self.segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.size))
    }

    /// Base offsets of the segments.
    pub(crate) fn segments(&self) -> impl Iterator<Item = (i64, u64)> {
        self.segments.iter().map(|segment| (segment.base_offset, segment.size))
    }

    /// Adds batches whose bytes are these parts. Where the active segment has no room for them, or is
    /// too old, a new one begins.
    pub(crate) fn append(
        &mut self,
        parts: &[&[u8]],
        batches: &[BatchInfo],
        settings: &LogSettings,
        now_ms: i64,
    ) -> io::Result<()> {
        let (Some(first), Some(last)) = (batches.first(), batches.last()) else { return Ok(()) };
        if let Some(active) = self.segments.last()
            && must_roll(active, batches, last.last_offset, settings, now_ms)
        {
            self.roll(first.base_offset.max(active.next_offset), now_ms)?;
        }
        match self.segments.last_mut() {
            Some(active) => active.append(parts, batches, now_ms),
            None => Ok(()),
        }
    }

    fn roll(&mut self, base_offset: i64, now_ms: i64) -> io::Result<()> {
        if let Some(active) = self.segments.last_mut() {
            active.seal()?;
        }
        self.segments.push(IndexedSegment::new(base_offset, now_ms, (self.make)()));
        Ok(())
    }

    /// The segment that holds an offset, by its number, or the one before it.
    fn segment_of(&self, offset: i64) -> usize {
        let behind = self.segments.partition_point(|segment| segment.base_offset <= offset);
        behind.saturating_sub(1)
    }

    /// The batch that holds an offset, or the next one, and the number of its segment.
    fn find(&self, offset: i64) -> io::Result<Option<(usize, BatchInfo)>> {
        for (number, segment) in self.segments.iter().enumerate().skip(self.segment_of(offset)) {
            if let Some(batch) = segment.find_offset(offset)? {
                return Ok(Some((number, batch)));
            }
        }
        Ok(None)
    }

    /// Base offset of the batch that holds an offset, or of the next one.
    pub(crate) fn base_offset_of(&self, offset: i64) -> io::Result<Option<i64>> {
        Ok(self.find(offset)?.map(|(_, batch)| batch.base_offset))
    }

    /// The whole batches from the one that holds an offset on, of which none begins at
    /// `before_offset` or behind, in at most `max_bytes`; where `must_progress`, the first of them
    /// even if it is larger (KIP-74).
    pub(crate) fn read(
        &self,
        offset: i64,
        before_offset: i64,
        max_bytes: u64,
        must_progress: bool,
    ) -> io::Result<Span> {
        if offset >= before_offset || max_bytes == 0 && !must_progress {
            return Ok(Span { next_offset: offset, ..Span::default() });
        }
        let Some((number, first)) = self.find(offset)? else {
            return Ok(Span { next_offset: offset, ..Span::default() });
        };
        let max_bytes = if must_progress { max_bytes.max(first.size) } else { max_bytes };
        let Some(segment) = self.segments.get(number) else { return Ok(Span::default()) };
        let (end, next_offset) = segment.end_of_read(&first, before_offset, max_bytes)?;
        Ok(Span { segment: number, range: first.position..end, next_offset })
    }

    /// Gives the bytes of what was read to `each`.
    pub(crate) fn give(&self, span: &Span, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        match self.segments.get(span.segment) {
            Some(segment) if span.size() > 0 => segment.read(span.range.clone(), each),
            _ => Ok(()),
        }
    }

    /// The bytes of each segment, for who reads the log again.
    pub(crate) fn sets(&self) -> io::Result<Vec<Vec<u8>>> {
        self.segments.iter().map(|segment| segment.bytes(0..segment.size)).collect()
    }

    /// The first record from an offset on that has a timestamp or a later one.
    pub(crate) fn find_timestamp(
        &self,
        timestamp: i64,
        offset: i64,
        codecs: &mut Codecs,
    ) -> io::Result<Option<TimedOffset>> {
        for segment in self.segments.iter().skip(self.segment_of(offset)) {
            let mut offset = offset;
            while let Some(batch) = segment.find_timestamp(timestamp, offset)? {
                let found = first_record(segment, &batch, codecs, |record| {
                    record.timestamp >= timestamp && record.offset >= offset
                })?;
                if found.is_some() {
                    return Ok(found);
                }
                // Its header promised more than its records have.
                offset = batch.last_offset.saturating_add(1);
            }
        }
        Ok(None)
    }

    /// The first record from an offset on that has the largest timestamp of all from there on.
    pub(crate) fn find_max_timestamp(
        &self,
        offset: i64,
        codecs: &mut Codecs,
    ) -> io::Result<Option<TimedOffset>> {
        let mut found: Option<(&IndexedSegment, BatchInfo)> = None;
        for segment in self.segments.iter().skip(self.segment_of(offset)) {
            let known = found.map_or(-1, |(_, batch)| batch.max_timestamp);
            if segment.max_timestamp > known
                && let Some(batch) = segment.find_max_timestamp(offset)?
                && batch.max_timestamp > known
            {
                found = Some((segment, batch));
            }
        }
        let Some((segment, batch)) = found else { return Ok(None) };
        let timestamp = batch.max_timestamp;
        let first = first_record(segment, &batch, codecs, |record| {
            record.timestamp == timestamp && record.offset >= offset
        })?;
        // A header's timestamp that no record has, or none that is left, is that of the batch.
        let of_batch = TimedOffset { offset: batch.base_offset.max(offset), timestamp };
        Ok(first.or(Some(of_batch)))
    }

    /// Deletes the segments that `retention.ms`, `retention.bytes` or the log start allow, oldest
    /// first, and of those that are wholly replicated. Returns the offset at which the log begins.
    pub(crate) fn delete_old(
        &mut self,
        settings: &LogSettings,
        log_start_offset: i64,
        high_watermark: i64,
        now_ms: i64,
    ) -> io::Result<i64> {
        let mut gone = 0usize;
        let mut size = self.size();
        for (number, segment) in self.segments.iter().enumerate() {
            let next = self.segments.get(number.saturating_add(1));
            let end = next.map_or(segment.next_offset, |next| next.base_offset);
            let is_empty_end = next.is_none() && segment.size == 0;
            if is_empty_end || high_watermark < end {
                break;
            }
            let last_ms = if segment.max_timestamp >= 0 {
                segment.max_timestamp
            } else {
                segment.appended_ms
            };
            let age_ms = now_ms.saturating_sub(last_ms);
            let is_old = (0..age_ms).contains(&settings.retention_ms);
            let left = size.saturating_sub(segment.size);
            let is_too_much =
                u64::try_from(settings.retention_bytes).is_ok_and(|limit| left >= limit);
            let is_below = next.is_some() && end <= log_start_offset;
            if !(is_below || settings.is_deleted && (is_old || is_too_much)) {
                break;
            }
            size = left;
            gone = number.saturating_add(1);
        }
        if gone == self.segments.len()
            && let Some(active) = self.segments.last()
        {
            self.roll(active.next_offset, now_ms)?;
        }
        self.segments.drain(..gone);
        let first = self.segments.first().map_or(log_start_offset, |first| first.base_offset);
        Ok(if gone > 0 { first.max(log_start_offset) } else { log_start_offset })
    }

    /// Drops the batches that reach an offset.
    pub(crate) fn truncate(&mut self, offset: i64) -> io::Result<()> {
        let kept = self.segment_of(offset).saturating_add(1);
        self.segments.truncate(kept);
        self.segments.last_mut().map_or(Ok(()), |active| active.truncate(offset))
    }

    /// Makes what was added survive a crash.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.segments.last_mut().map_or(Ok(()), IndexedSegment::flush)
    }
}

/// Whether batches begin a new segment.
fn must_roll(
    active: &IndexedSegment,
    batches: &[BatchInfo],
    last_offset: i64,
    settings: &LogSettings,
    now_ms: i64,
) -> bool {
    if active.size == 0 {
        return false;
    }
    let size = batches.iter().fold(0u64, |sum, batch| sum.saturating_add(batch.size));
    let is_full =
        active.size.saturating_add(size) > u64::from(settings.segment_bytes.unsigned_abs());
    // By the records' own time, or by the clock where they have none.
    let max_timestamp = batches.iter().map(|batch| batch.max_timestamp).max().unwrap_or(-1);
    let waited_ms = match active.first_timestamp.filter(|&first| first >= 0) {
        Some(first) => max_timestamp.saturating_sub(first),
        None => now_ms.saturating_sub(active.created_ms),
    };
    let is_too_far = last_offset.saturating_sub(active.base_offset) > i64::from(i32::MAX);
    is_full || waited_ms > settings.segment_ms || is_too_far
}

/// The first record of a batch for which `is_wanted`; none of a batch that cannot be read.
fn first_record(
    segment: &IndexedSegment,
    batch: &BatchInfo,
    codecs: &mut Codecs,
    is_wanted: impl Fn(TimedOffset) -> bool,
) -> io::Result<Option<TimedOffset>> {
    if batch.magic >= 2 && batch.timestamp_type() == TimestampType::LogAppendTime {
        let first = TimedOffset { offset: batch.base_offset, timestamp: batch.max_timestamp };
        if is_wanted(first) {
            return Ok(Some(first));
        }
    }
    let bytes = segment.bytes(batch.position..batch.position.saturating_add(batch.size))?;
    let records = match payload(batch, &bytes) {
        Ok(Payload::Plain { bytes, .. }) => bytes,
        Ok(Payload::Compressed { codec, reading, bytes, .. }) => {
            codecs.decompress(codec, reading, bytes).unwrap_or_default()
        }
        Err(_) => return Ok(None),
    };
    let Ok(mut cursor) = RecordCursor::start(batch, records, Limits::default()) else {
        return Ok(None);
    };
    while let Ok(Some(record)) = cursor.next(records) {
        let found = TimedOffset { offset: record.offset, timestamp: record.timestamp };
        if is_wanted(found) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}
