//! What compaction leaves of a batch of magic 2 (`docs/kafka/record-batch.md` §11).
//!
//! Base offset, last offset, sequences, producer, leader epoch and codec stay, so that offsets and
//! producers go on as if every record were there.

use super::BuildError;
use super::fields::{BatchFields, RecordsSummary, compress, write_header};
use super::records::{NewRecord, records_section, write_record};
use crate::attributes::{Compression, TimestampType};
use crate::batch::{BatchInfo, Record};
use crate::compression::Codecs;
use crate::header::{NONE, RECORD_BATCH_OVERHEAD};
use crate::limits::MAX_BUILT_BYTES;

/// The records of a batch that are left, written one by one. Holds the bytes of the batch and no
/// record.
#[derive(Clone, Debug)]
pub struct CompactedWriter {
    info: BatchInfo,
    delete_horizon_ms: Option<i64>,
    base_timestamp: Option<i64>,
    max_timestamp: i64,
    record_count: i32,
    batch: Vec<u8>,
}

impl CompactedWriter {
    /// A writer of what is left of the batch with these fields, with room for `records_bytes` bytes of
    /// records. From the delete horizon on, the cleaner may remove its tombstones and markers (KIP-534).
    pub fn new(info: &BatchInfo, delete_horizon_ms: Option<i64>, records_bytes: usize) -> Self {
        let mut batch = Vec::with_capacity(RECORD_BATCH_OVERHEAD.saturating_add(records_bytes));
        batch.resize(RECORD_BATCH_OVERHEAD, 0);
        Self {
            info: *info,
            delete_horizon_ms,
            base_timestamp: delete_horizon_ms,
            max_timestamp: NONE,
            record_count: 0,
            batch,
        }
    }

    /// Appends a record of that batch.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`].
    pub fn push(&mut self, record: &Record<'_>) -> Result<(), BuildError> {
        let base_timestamp = *self.base_timestamp.get_or_insert(record.timestamp);
        let written = NewRecord {
            timestamp: record.timestamp,
            key: record.key,
            value: record.value,
            headers: record.headers.iter().collect(),
            offset_delta: None,
        };
        write_record(&mut self.batch, &written, base_timestamp, record.offset_delta);
        self.max_timestamp = self.max_timestamp.max(record.timestamp);
        self.record_count = self.record_count.saturating_add(1);
        let size = self.batch.len() as u64;
        if size > MAX_BUILT_BYTES {
            return Err(BuildError::TooLarge { size, limit: MAX_BUILT_BYTES });
        }
        Ok(())
    }

    /// The whole batch.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn finish(mut self, codecs: &mut Codecs) -> Result<Vec<u8>, BuildError> {
        let base_timestamp = self.base_timestamp.ok_or(BuildError::NoRecords)?;
        let compression = self.info.compression().unwrap_or(Compression::None);
        if compression != Compression::None {
            let payload = compress(codecs, (compression, None), 2, records_section(&self.batch))?;
            self.batch.truncate(RECORD_BATCH_OVERHEAD);
            self.batch.extend_from_slice(&payload);
        }
        let fields = BatchFields {
            compression,
            delete_horizon_ms: self.delete_horizon_ms,
            ..fields_of(&self.info)
        };
        let summary = RecordsSummary {
            base_timestamp,
            max_timestamp: self.max_timestamp,
            last_offset_delta: self.info.last_offset_delta(),
            record_count: self.record_count,
        };
        write_header(&mut self.batch, &fields, &summary);
        Ok(self.batch)
    }
}

/// A batch without records, which tells no more than its offsets and its producer's sequences.
pub fn build_emptied(info: &BatchInfo) -> Vec<u8> {
    let mut batch = vec![0; RECORD_BATCH_OVERHEAD];
    let summary = RecordsSummary {
        base_timestamp: NONE,
        max_timestamp: info.max_timestamp,
        last_offset_delta: info.last_offset_delta(),
        record_count: 0,
    };
    write_header(&mut batch, &fields_of(info), &summary);
    batch
}

/// What stays of a batch whatever becomes of its records.
fn fields_of(info: &BatchInfo) -> BatchFields {
    let is_append_time = info.timestamp_type() == TimestampType::LogAppendTime;
    BatchFields {
        base_offset: info.base_offset,
        partition_leader_epoch: info.partition_leader_epoch,
        log_append_time_ms: is_append_time.then_some(info.max_timestamp),
        producer_id: info.producer_id,
        producer_epoch: info.producer_epoch,
        base_sequence: info.base_sequence,
        is_transactional: info.is_transactional(),
        is_control: info.is_control(),
        ..BatchFields::default()
    }
}
