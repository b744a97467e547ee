//! The fields of a batch that its records do not decide, and its header once the records stand
//! behind it.

use ottla_kernels::crc32c;

use super::BuildError;
use crate::attributes::{CONTROL, Compression, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL};
use crate::compression::{Codecs, levels};
use crate::header::{CRC_START, Header, LOG_OVERHEAD, NONE, RECORD_BATCH_OVERHEAD};
use crate::limits::MAX_BUILT_BYTES;

/// The fields of a batch that its records do not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub struct BatchFields {
    pub base_offset: i64,
    pub partition_leader_epoch: i32,
    /// When the broker appended the batch, in ms: its timestamp type becomes LogAppendTime.
    pub log_append_time_ms: Option<i64>,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub is_transactional: bool,
    /// Whether the records are control records (KIP-98).
    pub is_control: bool,
    pub compression: Compression,
    /// `None` for the codec's default.
    pub compression_level: Option<i32>,
    /// When the cleaner may remove the batch's tombstones and markers, in ms (KIP-534).
    pub delete_horizon_ms: Option<i64>,
}

impl Default for BatchFields {
    /// Offset 0, no producer, no compression, CreateTime.
    fn default() -> Self {
        Self {
            base_offset: 0,
            partition_leader_epoch: -1,
            log_append_time_ms: None,
            producer_id: NONE,
            producer_epoch: -1,
            base_sequence: -1,
            is_transactional: false,
            is_control: false,
            compression: Compression::None,
            compression_level: None,
            delete_horizon_ms: None,
        }
    }
}

impl BatchFields {
    /// Refuses what Kafka's own builder refuses.
    pub(super) fn check(&self) -> Result<(), BuildError> {
        let Self { producer_id, producer_epoch, base_sequence, .. } = *self;
        if self.is_transactional && producer_id == NONE {
            return Err(BuildError::TransactionalWithoutProducer);
        }
        if producer_id != NONE && producer_epoch == -1 {
            return Err(BuildError::ProducerEpoch { producer_id, producer_epoch });
        }
        if producer_id != NONE && base_sequence < 0 && !self.is_control {
            return Err(BuildError::BaseSequence { producer_id, base_sequence });
        }
        if let Some(delete_horizon_ms) = self.delete_horizon_ms.filter(|&ms| ms < 0) {
            return Err(BuildError::DeleteHorizon { delete_horizon_ms });
        }
        check_level(self.compression, self.compression_level)
    }
}

/// Refuses a level that the codec does not have.
pub(super) fn check_level(codec: Compression, level: Option<i32>) -> Result<(), BuildError> {
    let Some(level) = level else { return Ok(()) };
    match levels(codec) {
        Some((range, _)) if range.contains(&level) => Ok(()),
        _ => Err(BuildError::CompressionLevel { codec, level }),
    }
}

/// The compressed records. Codec, level and magic have been checked, so only the size can be wrong.
pub(super) fn compress(
    codecs: &mut Codecs,
    (codec, level): (Compression, Option<i32>),
    magic: i8,
    records: &[u8],
) -> Result<Vec<u8>, BuildError> {
    let too_large = |bytes: usize| BuildError::TooLarge {
        size: (bytes as u64).saturating_add(RECORD_BATCH_OVERHEAD as u64),
        limit: MAX_BUILT_BYTES,
    };
    let payload =
        codecs.compress(codec, level, magic, records).map_err(|_| too_large(records.len()))?;
    if (payload.len() as u64).saturating_add(RECORD_BATCH_OVERHEAD as u64) > MAX_BUILT_BYTES {
        return Err(too_large(payload.len()));
    }
    Ok(payload)
}

/// What the records decide of a header.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordsSummary {
    pub(super) base_timestamp: i64,
    pub(super) max_timestamp: i64,
    pub(super) last_offset_delta: i32,
    pub(super) record_count: i32,
}

/// Writes the header over the first 61 bytes of a batch whose records section is in place.
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "every caller has put 61 bytes for the header before the records"
)]
pub(super) fn write_header(batch: &mut [u8], fields: &BatchFields, summary: &RecordsSummary) {
    let bit = |is_set: bool, bit: u16| if is_set { bit } else { 0 };
    let mut header = Header {
        base_offset: fields.base_offset,
        batch_length: (batch.len() - LOG_OVERHEAD) as i32,
        partition_leader_epoch: fields.partition_leader_epoch,
        magic: 2,
        crc: 0,
        attributes: fields.compression as u16
            | bit(fields.log_append_time_ms.is_some(), LOG_APPEND_TIME)
            | bit(fields.is_transactional, TRANSACTIONAL)
            | bit(fields.is_control, CONTROL)
            | bit(fields.delete_horizon_ms.is_some(), DELETE_HORIZON),
        last_offset_delta: summary.last_offset_delta,
        base_timestamp: summary.base_timestamp,
        max_timestamp: fields.log_append_time_ms.unwrap_or(summary.max_timestamp),
        producer_id: fields.producer_id,
        producer_epoch: fields.producer_epoch,
        base_sequence: fields.base_sequence,
        record_count: summary.record_count,
    };
    batch[..RECORD_BATCH_OVERHEAD].copy_from_slice(&header.to_bytes());
    header.crc = crc32c(&batch[CRC_START..]);
    batch[..RECORD_BATCH_OVERHEAD].copy_from_slice(&header.to_bytes());
}
