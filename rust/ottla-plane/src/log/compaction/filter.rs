//! What stays of a batch.

use super::CompactionFault;
use super::offset_map::OffsetMap;
use super::transactions::CleanedTransactions;
use ottla_format::attributes::{Compression, TimestampType};
use ottla_format::batch::{BatchInfo, Payload, Record, RecordCursor, payload};
use ottla_format::builder::{
    BuildError, CompactedWriter, LegacyFields, MessageSetWriter, NewRecord, build_emptied,
};
use ottla_format::compression::Codecs;
use ottla_format::error::Error;
use ottla_format::legacy;
use ottla_format::limits::{Limits, MAX_BUILT_BYTES};
use ottla_log::producers::control_record;
use std::collections::HashMap;

/// What stays of a batch.
pub(super) enum Left {
    Nothing,
    /// The batch as it is.
    Everything,
    /// A batch in its place.
    Rewritten(Vec<u8>),
}

/// The end of what is known of a producer, which has to stay known after a start of the broker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastBatch {
    /// Of its last batch of records; `None` where a marker alone tells its epoch.
    pub(crate) last_offset: Option<i64>,
    pub(crate) producer_epoch: i16,
}

/// Records that were looked at, and those that stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// All of them, markers included.
    pub read: u64,
    /// Those that stay.
    pub kept: u64,
    /// Those without a key, which have no place in a compacted log.
    pub without_key: u64,
}

/// By what batches are judged.
pub(super) struct Filter<'a> {
    pub(super) map: &'a OffsetMap,
    pub(super) producers: &'a HashMap<i64, LastBatch>,
    pub(super) transactions: CleanedTransactions,
    pub(super) now_ms: i64,
    pub(super) delete_retention_ms: i64,
    /// Whether tombstones of magic 0 and 1 stay in this segment.
    pub(super) keeps_legacy_tombstones: bool,
    /// The batch that ends here stays, if only as an empty one, so that the end of the log is known.
    pub(super) high_watermark: i64,
    pub(super) counts: RecordCounts,
    /// Of each record of a batch, whether it stays.
    pub(super) verdicts: Vec<bool>,
}

impl Filter<'_> {
    /// Judges one batch of a walk in order.
    pub(super) fn left_of(
        &mut self,
        info: &BatchInfo,
        batch: &[u8],
        codecs: &mut Codecs,
    ) -> Result<Left, CompactionFault> {
        let is_needless = if info.is_control() {
            let record = control_record(batch, info, codecs)?;
            self.transactions.on_control(info, record.map(|(record, _)| record))
        } else {
            self.transactions.on_records(info)
        };
        let is_past_horizon = info.delete_horizon_ms().is_some_and(|ms| ms <= self.now_ms);
        let is_dropped = is_needless && (is_past_horizon || !info.is_control());
        let keeps_empty = info.magic >= 2
            && (self.is_last_of_producer(info)
                || info.last_offset.checked_add(1) == Some(self.high_watermark));
        if is_dropped && !keeps_empty {
            let records = u64::try_from(info.record_count.unwrap_or(1)).unwrap_or(0);
            self.counts.read = self.counts.read.saturating_add(records);
            return Ok(Left::Nothing);
        }

        let records = records_of(info, batch, codecs)?;
        let mut has_tombstones = false;
        self.verdicts.clear();
        let mut cursor = RecordCursor::start(info, records, Limits::default())?;
        while let Some(record) = cursor.next(records)? {
            let stays = !is_dropped && (info.is_control() || self.stays(info, &record));
            has_tombstones |= stays && record.value.is_none();
            self.verdicts.push(stays);
        }
        let read = self.verdicts.len();
        let kept = self.verdicts.iter().filter(|&&stays| stays).count();
        self.counts.read = self.counts.read.saturating_add(read as u64);
        self.counts.kept = self.counts.kept.saturating_add(kept as u64);
        if kept == 0 {
            return Ok(if keeps_empty { emptied(info, batch) } else { Left::Nothing });
        }
        let begins_horizon = info.magic >= 2
            && info.delete_horizon_ms().is_none()
            && (has_tombstones || is_needless && info.is_control());
        if kept == read && !begins_horizon && !has_other_magic_inside(info, records) {
            return Ok(Left::Everything);
        }
        if info.magic < 2 {
            let writer = self.legacy_writer(info, records)?;
            return Ok(Left::Rewritten(writer.finish(codecs)?));
        }
        let horizon = self.now_ms.saturating_add(self.delete_retention_ms);
        let horizon = if begins_horizon { Some(horizon) } else { info.delete_horizon_ms() };
        let mut writer = CompactedWriter::new(info, horizon, records.len());
        self.each_left(info, records, |record| writer.push(record))?;
        Ok(Left::Rewritten(writer.finish(codecs)?))
    }

    /// Gives the records of a batch that stay to `push`.
    fn each_left(
        &self,
        info: &BatchInfo,
        records: &[u8],
        mut push: impl FnMut(&Record<'_>) -> Result<(), BuildError>,
    ) -> Result<(), CompactionFault> {
        let mut cursor = RecordCursor::start(info, records, Limits::default())?;
        for &stays in &self.verdicts {
            if let Some(record) = cursor.next(records)?.filter(|_| stays) {
                push(&record)?;
            }
        }
        Ok(())
    }

    /// The wrapper of magic 0 or 1 around the records that stay.
    fn legacy_writer(
        &self,
        info: &BatchInfo,
        records: &[u8],
    ) -> Result<MessageSetWriter, CompactionFault> {
        let is_append_time = info.timestamp_type() == TimestampType::LogAppendTime;
        let mut writer: Option<(i64, MessageSetWriter)> = None;
        let compression = info.compression()?;
        self.each_left(info, records, |record| {
            let (base_offset, writer) = writer.get_or_insert_with(|| {
                let fields = LegacyFields {
                    magic: info.magic,
                    base_offset: record.offset,
                    log_append_time_ms: is_append_time.then_some(info.max_timestamp),
                    compression,
                    compression_level: None,
                };
                let writer = MessageSetWriter::new(fields, records.len(), MAX_BUILT_BYTES);
                (record.offset, writer)
            });
            let delta = record.offset.saturating_sub(*base_offset);
            let written = NewRecord {
                timestamp: record.timestamp,
                key: record.key,
                value: record.value,
                headers: Vec::new(),
                offset_delta: None,
            };
            writer.push(&written, i32::try_from(delta).unwrap_or(i32::MAX))
        })?;
        Ok(writer.ok_or(BuildError::NoRecords)?.1)
    }

    fn is_last_of_producer(&self, info: &BatchInfo) -> bool {
        let last = self.producers.get(&info.producer_id).filter(|_| info.has_producer_id());
        last.is_some_and(|last| match last.last_offset {
            Some(offset) => info.last_offset == offset,
            None => info.is_control() && info.producer_epoch == last.producer_epoch,
        })
    }

    fn stays(&mut self, info: &BatchInfo, record: &Record<'_>) -> bool {
        if record.offset > self.map.latest_offset() {
            return true;
        }
        let Some(key) = record.key else {
            self.counts.without_key = self.counts.without_key.saturating_add(1);
            return false;
        };
        let keeps_tombstones = if info.magic >= 2 {
            info.delete_horizon_ms().is_none_or(|horizon| self.now_ms < horizon)
        } else {
            self.keeps_legacy_tombstones
        };
        (record.value.is_some() || keeps_tombstones) && self.map.is_newest(key, record.offset)
    }
}

/// The payload of a batch, inflated.
pub(super) fn records_of<'a>(
    info: &BatchInfo,
    batch: &'a [u8],
    codecs: &'a mut Codecs,
) -> Result<&'a [u8], CompactionFault> {
    match payload(info, batch)? {
        Payload::Plain { bytes, .. } => Ok(bytes),
        Payload::Compressed { codec, reading, bytes, start } => codecs
            .decompress(codec, reading, bytes)
            .map_err(|kind| CompactionFault::Unreadable(Error::new(kind, start))),
    }
}

/// Whether a wrapper of magic 0 or 1 holds records of the other one, as early brokers wrote them
/// (KAFKA-4298). Written anew they are of one magic.
fn has_other_magic_inside(info: &BatchInfo, records: &[u8]) -> bool {
    let is_plain = info.compression().is_ok_and(|codec| codec == Compression::None);
    let is_wrapper = info.magic < 2 && !is_plain;
    is_wrapper
        && legacy::entries(records).is_ok_and(|entries| {
            let mut bodies = entries.iter().filter_map(|entry| entry.body(records));
            bodies.any(|body| legacy::magic_of(body) != info.magic)
        })
}

/// A batch without its records.
fn emptied(info: &BatchInfo, batch: &[u8]) -> Left {
    let emptied = build_emptied(info);
    if emptied == batch { Left::Everything } else { Left::Rewritten(emptied) }
}
