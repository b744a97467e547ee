//! A batch of magic 2 from records, at once or one by one.

use super::BuildError;
use super::fields::{BatchFields, RecordsSummary, compress, write_header};
use crate::attributes::Compression;
use crate::compression::Codecs;
use crate::error::ErrorKind;
use crate::header::{NONE, RECORD_BATCH_OVERHEAD};
use crate::limits::MAX_BUILT_BYTES;
use crate::varint::{varint_size, varlong_size, write_varint, write_varlong};

/// A record to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub struct NewRecord<'a> {
    /// In ms; −1 for none.
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: Vec<(&'a [u8], Option<&'a [u8]>)>,
    /// The record's offset minus the base offset; `None` for one more than the record before.
    pub offset_delta: Option<i32>,
}

/// Builds a batch of magic 2.
///
/// # Errors
/// [`BuildError`].
///
/// # Examples
/// ```
/// use ottla_format::builder::{BatchFields, NewRecord, build_batch};
/// use ottla_format::{compression::Codecs, limits::Limits};
///
/// let record = NewRecord { value: Some(b"hello"), ..NewRecord::default() };
/// let mut codecs = Codecs::new(Limits::default());
/// let batch = build_batch(&BatchFields::default(), &[record], &mut codecs)?;
/// assert_eq!(batch.len(), 61 + 12);
/// # Ok::<(), ottla_format::builder::BuildError>(())
/// ```
pub fn build_batch(
    fields: &BatchFields,
    records: &[NewRecord<'_>],
    codecs: &mut Codecs,
) -> Result<Vec<u8>, BuildError> {
    fields.check()?;
    let deltas = offset_deltas(records)?;
    let Some(first) = records.first() else { return Err(BuildError::NoRecords) };
    let base_timestamp = fields.delete_horizon_ms.unwrap_or(first.timestamp);

    let mut size = RECORD_BATCH_OVERHEAD as u64;
    for (record, &delta) in records.iter().zip(&deltas) {
        let body = body_size(record, base_timestamp, delta);
        let prefix = varint_size(i32::try_from(body).unwrap_or(i32::MAX)) as u64;
        size = size.saturating_add(prefix).saturating_add(body);
    }
    if size > MAX_BUILT_BYTES {
        return Err(BuildError::TooLarge { size, limit: MAX_BUILT_BYTES });
    }

    let mut batch = Vec::with_capacity(size as usize);
    batch.resize(RECORD_BATCH_OVERHEAD, 0);
    for (record, &delta) in records.iter().zip(&deltas) {
        write_record(&mut batch, record, base_timestamp, delta);
    }
    if fields.compression != Compression::None {
        let codec = (fields.compression, fields.compression_level);
        let payload = compress(codecs, codec, 2, records_section(&batch))?;
        batch.truncate(RECORD_BATCH_OVERHEAD);
        batch.extend_from_slice(&payload);
    }
    let summary = RecordsSummary {
        base_timestamp,
        max_timestamp: records.iter().map(|record| record.timestamp).max().unwrap_or(NONE),
        last_offset_delta: deltas.last().copied().unwrap_or(0),
        record_count: records.len() as i32,
    };
    write_header(&mut batch, fields, &summary);
    Ok(batch)
}

/// A batch of magic 2 written record by record, with offset deltas 0, 1, 2, …, as a broker writes a
/// batch that it rebuilds. Holds the bytes of the batch and no record.
#[derive(Clone, Debug)]
pub struct RecordsWriter {
    batch: Vec<u8>,
    summary: RecordsSummary,
    limit: u64,
}

impl RecordsWriter {
    /// A writer with room for `records_bytes` bytes of records, for a batch of at most `limit`
    /// bytes.
    pub fn new(records_bytes: usize, limit: u64) -> Self {
        let summary = RecordsSummary {
            base_timestamp: NONE,
            max_timestamp: NONE,
            last_offset_delta: -1,
            record_count: 0,
        };
        let mut batch = Vec::with_capacity(RECORD_BATCH_OVERHEAD.saturating_add(records_bytes));
        batch.resize(RECORD_BATCH_OVERHEAD, 0);
        Self { batch, summary, limit }
    }

    /// Appends a record; its `offset_delta` is ignored.
    ///
    /// # Errors
    /// [`BuildError::Timestamp`] and [`BuildError::TooLarge`].
    pub fn push(&mut self, record: &NewRecord<'_>) -> Result<(), BuildError> {
        let index = self.summary.record_count;
        if record.timestamp < NONE {
            let (index, timestamp) = (index as usize, record.timestamp);
            return Err(BuildError::Timestamp { index, timestamp });
        }
        if index == 0 {
            self.summary.base_timestamp = record.timestamp;
        }
        let body = body_size(record, self.summary.base_timestamp, index);
        let size = (self.batch.len() as u64).saturating_add(body);
        let next = index.checked_add(1).filter(|_| size <= self.limit);
        let Some(record_count) = next else {
            return Err(BuildError::TooLarge { size, limit: self.limit });
        };
        write_record(&mut self.batch, record, self.summary.base_timestamp, index);
        self.summary.max_timestamp = self.summary.max_timestamp.max(record.timestamp);
        self.summary.last_offset_delta = index;
        self.summary.record_count = record_count;
        Ok(())
    }

    /// The whole batch. `compress` compresses the records where `fields` name a codec.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn finish(
        mut self,
        fields: &BatchFields,
        compress: impl FnOnce(&[u8]) -> Result<Vec<u8>, ErrorKind>,
    ) -> Result<Vec<u8>, BuildError> {
        fields.check()?;
        if self.summary.record_count == 0 {
            return Err(BuildError::NoRecords);
        }
        if fields.compression != Compression::None {
            let records = records_section(&self.batch);
            let size = records.len() as u64;
            let too_large = |_| BuildError::TooLarge { size, limit: self.limit };
            let payload = compress(records).map_err(too_large)?;
            self.batch.truncate(RECORD_BATCH_OVERHEAD);
            self.batch.extend_from_slice(&payload);
        }
        write_header(&mut self.batch, fields, &self.summary);
        Ok(self.batch)
    }
}

#[allow(clippy::indexing_slicing, reason = "both writers begin with 61 bytes for the header")]
pub(super) fn records_section(batch: &[u8]) -> &[u8] {
    &batch[RECORD_BATCH_OVERHEAD..]
}

/// The offset delta of each record.
///
/// # Errors
/// [`BuildError::TooManyRecords`], [`BuildError::OffsetDelta`] and [`BuildError::Timestamp`].
pub(super) fn offset_deltas(records: &[NewRecord<'_>]) -> Result<Vec<i32>, BuildError> {
    if i32::try_from(records.len()).is_err() {
        return Err(BuildError::TooManyRecords { count: records.len() as u64 });
    }
    let mut minimum = 0i64;
    let mut deltas = Vec::with_capacity(records.len());
    for (index, record) in records.iter().enumerate() {
        let delta = record.offset_delta.map_or(minimum, i64::from);
        let fits = i32::try_from(delta).ok().filter(|_| delta >= minimum);
        deltas.push(fits.ok_or(BuildError::OffsetDelta { index, delta, minimum })?);
        minimum = delta.saturating_add(1);
        let timestamp = record.timestamp;
        if timestamp < NONE {
            return Err(BuildError::Timestamp { index, timestamp });
        }
    }
    Ok(deltas)
}

/// Bytes of a record after its length.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "sums of sizes of slices that are in memory at once, and a few bytes for each"
)]
pub(super) fn body_size(record: &NewRecord<'_>, base_timestamp: i64, offset_delta: i32) -> u64 {
    let part = |bytes: Option<&[u8]>| {
        bytes.map_or(1, |bytes| varint_size(bytes.len() as i32) + bytes.len()) as u64
    };
    let headers: u64 =
        record.headers.iter().map(|&(key, value)| part(Some(key)) + part(value)).sum();
    let timestamp_delta = record.timestamp.wrapping_sub(base_timestamp);
    let numbers = varlong_size(timestamp_delta)
        + varint_size(offset_delta)
        + varint_size(record.headers.len() as i32);
    1 + numbers as u64 + part(record.key) + part(record.value) + headers
}

/// Appends a record whose size has been checked.
pub(super) fn write_record(
    out: &mut Vec<u8>,
    record: &NewRecord<'_>,
    base_timestamp: i64,
    offset_delta: i32,
) {
    let body = body_size(record, base_timestamp, offset_delta) as i32;
    write_measured(out, record, body, base_timestamp, offset_delta);
}

/// Appends a record whose [`body_size`] is known, and has been checked.
#[inline]
pub(super) fn write_measured(
    out: &mut Vec<u8>,
    record: &NewRecord<'_>,
    body: i32,
    base_timestamp: i64,
    offset_delta: i32,
) {
    write_varint(out, body);
    out.push(0);
    write_varlong(out, record.timestamp.wrapping_sub(base_timestamp));
    write_varint(out, offset_delta);
    write_bytes(out, record.key);
    write_bytes(out, record.value);
    write_varint(out, record.headers.len() as i32);
    for &(key, value) in &record.headers {
        write_bytes(out, Some(key));
        write_bytes(out, value);
    }
}

fn write_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else { return write_varint(out, -1) };
    write_varint(out, bytes.len() as i32);
    out.extend_from_slice(bytes);
}
