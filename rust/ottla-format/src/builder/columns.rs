//! A batch of magic 2 from columns.

use ottla_kernels::{Level, RecordColumns, RecordsPlan};

use super::BuildError;
use super::fields::{BatchFields, RecordsSummary, compress, write_header};
use crate::attributes::Compression;
use crate::compression::Codecs;
use crate::header::{NONE, RECORD_BATCH_OVERHEAD};
use crate::limits::MAX_BUILT_BYTES;

/// A batch of magic 2 from columns, checked and measured before it is written. Record `i` has offset
/// delta `i` and no headers.
///
/// # Examples
/// ```
/// use ottla_format::builder::{BatchFields, ColumnsPlan};
/// use ottla_kernels::{BinaryColumn, Offsets, RecordColumns, Validity};
///
/// let offsets = Offsets::I32(&[0, 5]);
/// let values = BinaryColumn { offsets, data: b"hello", validity: Validity::All };
/// let columns = RecordColumns { timestamps: &[0], keys: None, values: Some(values) };
/// let plan = ColumnsPlan::new(&BatchFields::default(), columns)?;
/// let mut batch = vec![0; plan.size().expect("not compressed")];
/// plan.write(&mut batch)?;
/// assert_eq!(batch.len(), 61 + 12);
/// # Ok::<(), ottla_format::builder::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ColumnsPlan<'a> {
    fields: BatchFields,
    records: RecordsPlan<'a>,
    summary: RecordsSummary,
}

impl<'a> ColumnsPlan<'a> {
    /// Checks fields and columns.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn new(fields: &BatchFields, columns: RecordColumns<'a>) -> Result<Self, BuildError> {
        fields.check()?;
        if fields.delete_horizon_ms.is_some() {
            return Err(BuildError::DeleteHorizonOfColumns);
        }
        let records = RecordsPlan::new(Level::best(), columns)?;
        let size = (records.size() as u64).saturating_add(RECORD_BATCH_OVERHEAD as u64);
        if size > MAX_BUILT_BYTES {
            return Err(BuildError::TooLarge { size, limit: MAX_BUILT_BYTES });
        }
        let timestamps = columns.timestamps;
        // Without an early exit, so that the compiler vectorises the loop.
        let (minimum, maximum) = timestamps
            .iter()
            .fold((i64::MAX, NONE), |(minimum, maximum), &t| (minimum.min(t), maximum.max(t)));
        if minimum < NONE
            && let Some((index, &timestamp)) = timestamps.iter().enumerate().find(|t| *t.1 < NONE)
        {
            return Err(BuildError::Timestamp { index, timestamp });
        }
        let Some(&base_timestamp) = timestamps.first() else { return Err(BuildError::NoRecords) };
        let record_count = timestamps.len() as i32;
        let summary = RecordsSummary {
            base_timestamp,
            max_timestamp: maximum,
            last_offset_delta: record_count.saturating_sub(1),
            record_count,
        };
        Ok(Self { fields: *fields, records, summary })
    }

    /// Bytes of the batch; `None` if it is compressed, as its size is not known before it is built.
    pub fn size(&self) -> Option<usize> {
        (self.fields.compression == Compression::None)
            .then_some(RECORD_BATCH_OVERHEAD.saturating_add(self.records.size()))
    }

    /// Writes a batch that is not compressed into memory of its size.
    ///
    /// # Errors
    /// [`BuildError::BufferSize`].
    pub fn write(&self, batch: &mut [u8]) -> Result<(), BuildError> {
        let expected = self.size().unwrap_or(0);
        let found = batch.len();
        let records = batch.get_mut(RECORD_BATCH_OVERHEAD..).filter(|_| found == expected);
        self.records.write(records.ok_or(BuildError::BufferSize { expected, found })?);
        write_header(batch, &self.fields, &self.summary);
        Ok(())
    }

    /// Builds the batch, compressed or not.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn build(&self, codecs: &mut Codecs) -> Result<Vec<u8>, BuildError> {
        if let Some(size) = self.size() {
            let mut batch = vec![0; size];
            self.write(&mut batch)?;
            return Ok(batch);
        }
        let mut records = vec![0; self.records.size()];
        self.records.write(&mut records);
        let codec = (self.fields.compression, self.fields.compression_level);
        let payload = compress(codecs, codec, 2, &records)?;
        let mut batch = Vec::with_capacity(RECORD_BATCH_OVERHEAD.saturating_add(payload.len()));
        batch.resize(RECORD_BATCH_OVERHEAD, 0);
        batch.extend_from_slice(&payload);
        write_header(&mut batch, &self.fields, &self.summary);
        Ok(batch)
    }
}

/// Builds a batch of magic 2 from columns: [`ColumnsPlan`] in one call.
///
/// # Errors
/// [`BuildError`].
pub fn build_batch_from_columns(
    fields: &BatchFields,
    columns: RecordColumns<'_>,
    codecs: &mut Codecs,
) -> Result<Vec<u8>, BuildError> {
    ColumnsPlan::new(fields, columns)?.build(codecs)
}
