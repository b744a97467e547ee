//! Message sets of magic 0 and 1.

use super::BuildError;
use super::fields::{check_level, compress};
use super::records::{NewRecord, offset_deltas};
use crate::attributes::{Compression, LOG_APPEND_TIME};
use crate::compression::Codecs;
use crate::header::{LOG_OVERHEAD, NONE, field};
use crate::legacy::MIN_BODY_BYTES_V1;
use crate::limits::MAX_BUILT_BYTES;
use ottla_kernels::gzip::crc32;

/// The fields of a message set that its records do not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub struct LegacyFields {
    /// 0 or 1.
    pub magic: i8,
    /// Offset of the first record.
    pub base_offset: i64,
    /// When the broker appended the set, in ms: its timestamp type becomes LogAppendTime. Magic 0 has
    /// no timestamps.
    pub log_append_time_ms: Option<i64>,
    /// With a codec, the records become one compressed wrapper.
    pub compression: Compression,
    /// `None` for the codec's default.
    pub compression_level: Option<i32>,
}

/// Builds a message set: one entry per record, or one compressed wrapper around all of them. Inner
/// offsets are absolute with magic 0 and relative with magic 1.
///
/// # Errors
/// [`BuildError`].
pub fn build_legacy(
    fields: &LegacyFields,
    records: &[NewRecord<'_>],
    codecs: &mut Codecs,
) -> Result<Vec<u8>, BuildError> {
    let LegacyFields { magic, compression, .. } = *fields;
    if !(0..=1).contains(&magic) {
        return Err(BuildError::Magic { magic });
    }
    check_legacy_codec(fields)?;
    if let Some(index) = records.iter().position(|record| !record.headers.is_empty()) {
        return Err(BuildError::Headers { index, magic });
    }
    check_level(compression, fields.compression_level)?;
    let deltas = offset_deltas(records)?;
    let size = records
        .iter()
        .map(|record| MessageSetWriter::entry_size(record))
        .fold(0, u64::saturating_add)
        .min(MAX_BUILT_BYTES);
    let mut writer = MessageSetWriter::new(*fields, size as usize, MAX_BUILT_BYTES);
    for (record, &delta) in records.iter().zip(&deltas) {
        writer.push(record, delta)?;
    }
    writer.finish(codecs)
}

fn check_legacy_codec(fields: &LegacyFields) -> Result<(), BuildError> {
    let LegacyFields { magic, compression: codec, .. } = *fields;
    if codec == Compression::Zstd { Err(BuildError::Codec { codec, magic }) } else { Ok(()) }
}

/// A message set written record by record. Holds the bytes of the set and no record.
#[derive(Clone, Debug)]
pub struct MessageSetWriter {
    fields: LegacyFields,
    set: Vec<u8>,
    /// Bytes of the set if every entry were of magic 1.
    size: u64,
    max_timestamp: i64,
    last_offset_delta: Option<i32>,
    limit: u64,
}

impl MessageSetWriter {
    /// A writer with room for `records_bytes` bytes of records, for a set of at most `limit` bytes.
    pub fn new(fields: LegacyFields, records_bytes: usize, limit: u64) -> Self {
        let set = Vec::with_capacity(records_bytes);
        Self { fields, set, size: 0, max_timestamp: NONE, last_offset_delta: None, limit }
    }

    /// Appends a record with this offset delta; its headers are ignored.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`].
    pub fn push(&mut self, record: &NewRecord<'_>, offset_delta: i32) -> Result<(), BuildError> {
        self.size = self.size.saturating_add(Self::entry_size(record));
        if self.size > self.limit {
            return Err(BuildError::TooLarge { size: self.size, limit: self.limit });
        }
        let LegacyFields { magic, base_offset, log_append_time_ms, .. } = self.fields;
        let is_wrapped = self.is_wrapped();
        let offset = if is_wrapped && magic > 0 { 0 } else { base_offset };
        LegacyEntry {
            offset: offset.wrapping_add(i64::from(offset_delta)),
            magic,
            attributes: self.timestamp_type_bit(),
            timestamp: log_append_time_ms.filter(|_| !is_wrapped).unwrap_or(record.timestamp),
            key: record.key,
            value: record.value,
        }
        .write(&mut self.set);
        self.max_timestamp = self.max_timestamp.max(record.timestamp);
        self.last_offset_delta = Some(offset_delta);
        Ok(())
    }

    /// The whole set, in a wrapper where the fields name a codec.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn finish(self, codecs: &mut Codecs) -> Result<Vec<u8>, BuildError> {
        check_legacy_codec(&self.fields)?;
        let Some(last) = self.last_offset_delta else { return Err(BuildError::NoRecords) };
        if !self.is_wrapped() {
            return Ok(self.set);
        }
        let LegacyFields { magic, base_offset, compression, compression_level, .. } = self.fields;
        let payload = compress(codecs, (compression, compression_level), magic, &self.set)?;
        let mut wrapper = Vec::with_capacity(payload.len().saturating_add(ENTRY_OVERHEAD as usize));
        LegacyEntry {
            offset: base_offset.wrapping_add(i64::from(last)),
            magic,
            attributes: self.timestamp_type_bit() | compression as u8,
            timestamp: self.fields.log_append_time_ms.unwrap_or(self.max_timestamp),
            key: None,
            value: Some(&payload),
        }
        .write(&mut wrapper);
        Ok(wrapper)
    }

    fn entry_size(record: &NewRecord<'_>) -> u64 {
        let bytes = |part: Option<&[u8]>| part.map_or(0, <[u8]>::len) as u64;
        ENTRY_OVERHEAD.saturating_add(bytes(record.key)).saturating_add(bytes(record.value))
    }

    fn is_wrapped(&self) -> bool {
        self.fields.compression != Compression::None
    }

    fn timestamp_type_bit(&self) -> u8 {
        let is_append_time = self.fields.log_append_time_ms.is_some() && self.fields.magic > 0;
        if is_append_time { LOG_APPEND_TIME as u8 } else { 0 }
    }
}

/// Bytes of an entry of magic 1 beside key and value.
const ENTRY_OVERHEAD: u64 = (LOG_OVERHEAD + MIN_BODY_BYTES_V1) as u64;

struct LegacyEntry<'a> {
    offset: i64,
    magic: i8,
    attributes: u8,
    timestamp: i64,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
}

impl LegacyEntry<'_> {
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "the positions are those of bytes just written to `out`"
    )]
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let size_at = start + field::BATCH_LENGTH;
        let (crc_at, covered_at) = (start + LOG_OVERHEAD, start + field::MAGIC);
        out.extend_from_slice(&self.offset.to_be_bytes());
        out.extend_from_slice(&[0; field::MAGIC - field::BATCH_LENGTH]);
        out.extend_from_slice(&self.magic.to_be_bytes());
        out.push(self.attributes);
        if self.magic > 0 {
            out.extend_from_slice(&self.timestamp.to_be_bytes());
        }
        for part in [self.key, self.value] {
            out.extend_from_slice(&part.map_or(-1, |bytes| bytes.len() as i32).to_be_bytes());
            out.extend_from_slice(part.unwrap_or_default());
        }
        let size = (out.len() - crc_at) as u32;
        let crc = crc32(0, &out[covered_at..]);
        out[size_at..crc_at].copy_from_slice(&size.to_be_bytes());
        out[crc_at..covered_at].copy_from_slice(&crc.to_be_bytes());
    }
}
