//! The records of one batch from columns: their exact size first, then the bytes straight into memory of
//! that size, because one more copy would cost a quarter of everything.
//!
//! Record `i` has offset delta `i`, timestamp delta `timestamps[i] - timestamps[0]`, and no headers.
//! The AVX-512 writer leaves the last records, which its wide stores would write past the end, to the
//! plain writer.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod columns;
mod plain;
mod values;

use crate::header::{HEADER_BYTES, LOG_OVERHEAD};
use crate::level::Level;
use plain::Written;
use values::{ColumnLoop, Values, with_columns};

pub use columns::{BinaryColumn, BuildError, Offsets, RecordColumns, Validity};

/// Columns that fit together, and the exact size of their records.
///
/// # Examples
///
/// ```
/// use ottla_kernels::{BinaryColumn, Level, Offsets, RecordColumns, RecordsPlan, Validity};
///
/// let values = BinaryColumn {
///     offsets: Offsets::I32(&[0, 5]),
///     data: b"value",
///     validity: Validity::All,
/// };
/// let columns = RecordColumns { timestamps: &[1_500_000], keys: None, values: Some(values) };
/// let plan = RecordsPlan::new(Level::best(), columns).expect("columns that fit");
/// let mut records = vec![0; plan.size()];
/// plan.write(&mut records);
/// assert_eq!(records, b"\x16\0\0\0\x01\x0avalue\0");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RecordsPlan<'a> {
    level: Level,
    columns: RecordColumns<'a>,
    size: usize,
}

/// The largest records section that the `batch_length` of a header can express.
const MAX_RECORDS_BYTES: u64 = i32::MAX as u64 - (HEADER_BYTES - LOG_OVERHEAD) as u64;

impl<'a> RecordsPlan<'a> {
    /// Checks the columns against each other and computes the size of their records. `level` is that of
    /// the writer too.
    ///
    /// # Errors
    ///
    /// [`BuildError`].
    pub fn new(level: Level, columns: RecordColumns<'a>) -> Result<RecordsPlan<'a>, BuildError> {
        let count = columns.timestamps.len();
        if count == 0 || i32::try_from(count).is_err() {
            return Err(BuildError::RecordCount { count });
        }
        for column in [&columns.keys, &columns.values].into_iter().flatten() {
            column.check(count)?;
        }
        let level = level.usable();
        let size = with_columns(&columns, SizeOf { level });
        if size > MAX_RECORDS_BYTES {
            return Err(BuildError::TooLarge);
        }
        Ok(RecordsPlan { level, columns, size: size as usize })
    }

    /// Bytes of the records.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Writes the records.
    ///
    /// # Panics
    ///
    /// If `records` is not of the planned size.
    pub fn write(&self, records: &mut [u8]) {
        assert_eq!(records.len(), self.size, "memory of the planned size");
        with_columns(&self.columns, Write { level: self.level, records });
    }
}

/// Sums up the bytes of all records.
struct SizeOf {
    level: Level,
}

impl ColumnLoop for SizeOf {
    type Output = u64;
    fn run<K: Values, V: Values>(self, timestamps: &[i64], keys: K, values: V) -> u64 {
        match self.level {
            // SAFETY: the level is usable; the columns are checked.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512::size_of(timestamps, keys, values) },
            // SAFETY: the columns are checked.
            _ => unsafe { plain::size_of(timestamps, keys, values) },
        }
    }
}

/// Writes all records into memory of their size.
struct Write<'a> {
    level: Level,
    records: &'a mut [u8],
}

#[allow(clippy::indexing_slicing, reason = "a writer does not write past the end")]
impl ColumnLoop for Write<'_> {
    type Output = ();
    fn run<K: Values, V: Values>(self, timestamps: &[i64], keys: K, values: V) {
        let written = match self.level {
            // SAFETY: the level is usable; the columns are checked; the memory has the size of the
            // records.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512::write(timestamps, keys, values, self.records) },
            _ => Written { records: 0, bytes: 0 },
        };
        // SAFETY: the columns are checked.
        unsafe {
            plain::write(
                timestamps,
                keys,
                values,
                written.records,
                &mut self.records[written.bytes..],
            );
        };
    }
}
