//! A batch of magic 2 as a producer grows it, and sends it as often as it has to.

use ottla_kernels::{BinaryColumn, Offsets, Validity};

use super::BuildError;
use super::fields::{BatchFields, RecordsSummary, compress, write_header};
use super::records::{NewRecord, body_size, records_section, write_measured};
use crate::attributes::Compression;
use crate::compression::Codecs;
use crate::header::{NONE, RECORD_BATCH_OVERHEAD};
use crate::limits::MAX_BUILT_BYTES;
use crate::varint::{read_varint, read_varlong, varint_size, write_varint, write_varlong};

/// Bytes reserved for the first records. Memory doubles from there, so that a partition with few
/// records costs little.
const FIRST_BYTES: usize = 1024;

/// The records of one batch, kept as they are written when they are not compressed: bytes go in once.
///
/// # Examples
/// ```
/// use ottla_format::builder::{BatchBuilder, BatchFields, NewRecord};
/// use ottla_format::{compression::Codecs, limits::Limits};
///
/// let mut builder = BatchBuilder::new(16384);
/// let record = NewRecord { value: Some(b"hello"), ..NewRecord::default() };
/// assert!(builder.push(&record)?);
/// let fields = BatchFields::default();
/// let mut batch = vec![0; builder.prepare(&fields, &mut Codecs::new(Limits::default()))?];
/// builder.write(&fields, &mut batch)?;
/// assert_eq!(batch.len(), 61 + 12);
/// # Ok::<(), ottla_format::builder::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    max_bytes: u64,
    batch: Vec<u8>,
    summary: RecordsSummary,
    compressed: Option<CompressedRecords>,
}

/// The records as a codec left them.
#[derive(Clone, Debug)]
struct CompressedRecords {
    codec: (Compression, Option<i32>),
    payload: Vec<u8>,
}

impl BatchBuilder {
    /// A batch of at most `max_bytes` bytes uncompressed, unless its first record is larger.
    pub fn new(max_bytes: u64) -> Self {
        let first = max_bytes.min(FIRST_BYTES as u64) as usize;
        let mut batch = Vec::with_capacity(first.max(RECORD_BATCH_OVERHEAD));
        batch.resize(RECORD_BATCH_OVERHEAD, 0);
        let summary = RecordsSummary {
            base_timestamp: NONE,
            max_timestamp: NONE,
            last_offset_delta: -1,
            record_count: 0,
        };
        let max_bytes = max_bytes.min(MAX_BUILT_BYTES);
        Self { max_bytes, batch, summary, compressed: None }
    }

    /// How many records it has.
    pub fn count(&self) -> usize {
        self.summary.record_count as usize
    }

    /// Bytes of the whole batch, uncompressed.
    pub fn size(&self) -> usize {
        self.batch.len()
    }

    /// How large it may become, uncompressed.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Appends a record, whose `offset_delta` is ignored. Returns whether it has room for it; the
    /// first always has.
    ///
    /// # Errors
    /// [`BuildError::Timestamp`], and [`BuildError::TooLarge`] for a first record beyond what a batch
    /// can be. The batch is then unchanged.
    #[inline]
    pub fn push(&mut self, record: &NewRecord<'_>) -> Result<bool, BuildError> {
        let delta = self.summary.record_count;
        let timestamp = record.timestamp;
        if timestamp < NONE {
            return Err(BuildError::Timestamp { index: delta as usize, timestamp });
        }
        let base_timestamp = if delta == 0 { timestamp } else { self.summary.base_timestamp };
        let body = body_size(record, base_timestamp, delta);
        let prefix = varint_size(i32::try_from(body).unwrap_or(i32::MAX)) as u64;
        let size = (self.batch.len() as u64).saturating_add(prefix).saturating_add(body);
        let next = delta.checked_add(1).filter(|_| size <= self.max_bytes || delta == 0);
        let Some(record_count) = next else { return Ok(false) };
        if size > MAX_BUILT_BYTES {
            return Err(BuildError::TooLarge { size, limit: MAX_BUILT_BYTES });
        }
        write_measured(&mut self.batch, record, body as i32, base_timestamp, delta);
        self.summary = RecordsSummary {
            base_timestamp,
            max_timestamp: self.summary.max_timestamp.max(timestamp),
            last_offset_delta: delta,
            record_count,
        };
        self.compressed = None;
        Ok(true)
    }

    /// Appends rows as long as there is room. Returns how many it took.
    ///
    /// # Errors
    /// [`BuildError`], whose index is the row; the batch is then unchanged.
    pub fn push_rows<'r>(
        &mut self,
        rows: impl Iterator<Item = (usize, Result<NewRecord<'r>, BuildError>)>,
    ) -> Result<usize, BuildError> {
        let (size, summary) = (self.batch.len(), self.summary);
        let mut taken = 0usize;
        for (row, record) in rows {
            match record.and_then(|record| self.push(&record)) {
                Ok(true) => taken = taken.saturating_add(1),
                Ok(false) => break,
                Err(error) => {
                    self.batch.truncate(size);
                    self.summary = summary;
                    return Err(error.of_row(row));
                }
            }
        }
        Ok(taken)
    }

    /// The batch without some of its records.
    #[must_use]
    pub fn without(&self, indexes: &[usize]) -> Self {
        let mut keeps = vec![true; self.count()];
        for &index in indexes {
            if let Some(keep) = keeps.get_mut(index) {
                *keep = false;
            }
        }
        self.only(|index| keeps.get(index).copied().unwrap_or_default())
    }

    /// Its first `at` records, and the others.
    #[must_use]
    pub fn split(&self, at: usize) -> (Self, Self) {
        (self.only(|index| index < at), self.only(|index| index >= at))
    }

    /// A batch of the records that are kept. What is behind the numbers of a record is copied as it is.
    fn only(&self, keeps: impl Fn(usize) -> bool) -> Self {
        let mut kept = Self::new(self.max_bytes);
        let mut rest = records_section(&self.batch);
        for index in 0..self.count() {
            let Some((timestamp_delta, parts, behind)) = first_record(rest) else { break };
            rest = behind;
            if keeps(index) {
                kept.push_parts(self.summary.base_timestamp.wrapping_add(timestamp_delta), parts);
            }
        }
        kept
    }

    /// Appends a record of another batch, which had room for it.
    fn push_parts(&mut self, timestamp: i64, parts: &[u8]) {
        let summary = &mut self.summary;
        let delta = summary.record_count;
        if delta == 0 {
            summary.base_timestamp = timestamp;
        }
        summary.max_timestamp = summary.max_timestamp.max(timestamp);
        summary.last_offset_delta = delta;
        summary.record_count = delta.saturating_add(1);
        let mut numbers = Vec::with_capacity(16);
        numbers.push(0);
        write_varlong(&mut numbers, timestamp.wrapping_sub(summary.base_timestamp));
        write_varint(&mut numbers, delta);
        write_varint(&mut self.batch, numbers.len().saturating_add(parts.len()) as i32);
        self.batch.extend_from_slice(&numbers);
        self.batch.extend_from_slice(parts);
    }

    /// Checks the fields, and compresses the records unless that has been done. Returns the bytes of
    /// the finished batch, whose `base_offset` and other fields may change until [`write`](Self::write).
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn prepare(
        &mut self,
        fields: &BatchFields,
        codecs: &mut Codecs,
    ) -> Result<usize, BuildError> {
        fields.check()?;
        if self.summary.record_count == 0 {
            return Err(BuildError::NoRecords);
        }
        if fields.compression == Compression::None {
            return Ok(self.size());
        }
        let codec = (fields.compression, fields.compression_level);
        if self.compressed.as_ref().is_none_or(|compressed| compressed.codec != codec) {
            let payload = compress(codecs, codec, 2, records_section(&self.batch))?;
            self.compressed = Some(CompressedRecords { codec, payload });
        }
        Ok(RECORD_BATCH_OVERHEAD.saturating_add(self.payload(fields).len()))
    }

    /// Writes the batch that has been prepared into memory of its size.
    ///
    /// # Errors
    /// [`BuildError::BufferSize`].
    pub fn write(&self, fields: &BatchFields, batch: &mut [u8]) -> Result<(), BuildError> {
        let payload = self.payload(fields);
        let expected = RECORD_BATCH_OVERHEAD.saturating_add(payload.len());
        let found = batch.len();
        let records = batch.get_mut(RECORD_BATCH_OVERHEAD..).filter(|_| found == expected);
        records.ok_or(BuildError::BufferSize { expected, found })?.copy_from_slice(payload);
        write_header(batch, fields, &self.summary);
        Ok(())
    }

    fn payload(&self, fields: &BatchFields) -> &[u8] {
        match &self.compressed {
            Some(compressed) if fields.compression != Compression::None => &compressed.payload,
            _ => records_section(&self.batch),
        }
    }
}

/// The first record of some that this module wrote: its timestamp delta, what is behind its numbers,
/// and the records behind it.
fn first_record(records: &[u8]) -> Option<(i64, &[u8], &[u8])> {
    let (length, used) = read_varint(records).ok()?;
    let (body, behind) = records.get(used..)?.split_at_checked(usize::try_from(length).ok()?)?;
    let numbers = body.get(1..)?;
    let (timestamp_delta, used) = read_varlong(numbers).ok()?;
    let numbers = numbers.get(used..)?;
    let (_, used) = read_varint(numbers).ok()?;
    Some((timestamp_delta, numbers.get(used..)?, behind))
}

/// Records as columns, of which rows go into several batches: each row is checked when it is read.
#[derive(Clone, Copy, Debug)]
pub struct RowColumns<'a> {
    /// One for all rows, or one a row.
    pub timestamps: RowTimestamps<'a>,
    /// Without a column all keys are null.
    pub keys: Option<BinaryColumn<'a>>,
    /// Without a column all values are null.
    pub values: Option<BinaryColumn<'a>>,
}

/// Timestamps of rows.
#[derive(Clone, Copy, Debug)]
pub enum RowTimestamps<'a> {
    /// One for all, in ms.
    One(i64),
    /// One a row, in ms.
    Each(&'a [i64]),
}

impl<'a> RowColumns<'a> {
    /// The record of a row, without headers.
    ///
    /// # Errors
    /// [`BuildError::Row`] and [`BuildError::RowOffset`].
    #[inline]
    pub fn record(&self, row: usize) -> Result<NewRecord<'a>, BuildError> {
        let timestamp = match self.timestamps {
            RowTimestamps::One(timestamp) => timestamp,
            RowTimestamps::Each(timestamps) => {
                *timestamps.get(row).ok_or(BuildError::Row { row, rows: timestamps.len() })?
            }
        };
        let part = |column: &Option<BinaryColumn<'a>>| {
            column.as_ref().map_or(Ok(None), |column| value_at(column, row))
        };
        let (key, value) = (part(&self.keys)?, part(&self.values)?);
        Ok(NewRecord { timestamp, key, value, headers: Vec::new(), offset_delta: None })
    }
}

/// The value of a column at a row.
///
/// # Errors
/// [`BuildError::Row`] and [`BuildError::RowOffset`].
#[inline]
pub fn value_at<'a>(column: &BinaryColumn<'a>, row: usize) -> Result<Option<&'a [u8]>, BuildError> {
    let bounds = match column.offsets {
        Offsets::I32(offsets) => pair(offsets, row).map(|(from, to)| (from.into(), to.into())),
        Offsets::I64(offsets) => pair(offsets, row),
    };
    let (from, to): (i64, i64) =
        bounds.ok_or_else(|| BuildError::Row { row, rows: rows_of(column) })?;
    let is_valid = match column.validity {
        Validity::All => Some(true),
        Validity::Bools(valid) => valid.get(row).copied(),
        Validity::Bitmap { bits, first_bit } => first_bit
            .checked_add(row)
            .and_then(|bit| bits.get(bit / 8).map(|byte| byte >> (bit % 8) & 1 == 1)),
    };
    if !is_valid.ok_or_else(|| BuildError::Row { row, rows: rows_of(column) })? {
        return Ok(None);
    }
    let range = usize::try_from(from).ok().zip(usize::try_from(to).ok());
    let value = range.and_then(|(from, to)| column.data.get(from..to));
    value.map(Some).ok_or(BuildError::RowOffset { row, from, to, size: column.data.len() })
}

fn pair<T: Copy>(offsets: &[T], row: usize) -> Option<(T, T)> {
    Some((*offsets.get(row)?, *offsets.get(row.checked_add(1)?)?))
}

/// How many rows a column has.
pub fn rows_of(column: &BinaryColumn<'_>) -> usize {
    let offsets = match column.offsets {
        Offsets::I32(offsets) => offsets.len(),
        Offsets::I64(offsets) => offsets.len(),
    };
    let valid = match column.validity {
        Validity::All => usize::MAX,
        Validity::Bools(valid) => valid.len(),
        Validity::Bitmap { bits, first_bit } => {
            bits.len().saturating_mul(8).saturating_sub(first_bit)
        }
    };
    offsets.saturating_sub(1).min(valid)
}
