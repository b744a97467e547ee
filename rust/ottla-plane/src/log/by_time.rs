//! Records of a log by their timestamps.

use super::indexed::IndexedSegment;
use super::partition_log::PartitionLog;
use ottla_format::attributes::TimestampType;
use ottla_format::batch::{BatchInfo, Payload, RecordCursor, payload};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use std::io;

/// A record that was found by its timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimedOffset {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
}

impl PartitionLog {
    /// The first record from an offset on that has a timestamp or a later one.
    pub(crate) fn find_timestamp(
        &self,
        timestamp: i64,
        offset: i64,
        codecs: &mut Codecs,
    ) -> io::Result<Option<TimedOffset>> {
        for segment in self.segments_from(offset) {
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
        for segment in self.segments_from(offset) {
            let known = found.map_or(-1, |(_, batch)| batch.max_timestamp);
            if segment.tally.max_timestamp() > known
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
