//! Checked columns as the loops see them, compiled for each pair of their types.

#![allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "indexes are below the count that the columns were checked for"
)]

use super::columns::{BinaryColumn, Offset, Offsets, RecordColumns, Validity};

/// A checked column: where value `i` lies, and how long it is.
pub(super) trait Values: Copy {
    /// Where value `index` begins, and its length, −1 for null.
    ///
    /// # Safety
    /// `index` is below the count the column was checked for.
    unsafe fn value(self, index: usize) -> (usize, i64);

    /// The bytes of all values.
    fn data(&self) -> &[u8];
}

/// No column: every value is null.
#[derive(Clone, Copy)]
struct NoValues;

impl Values for NoValues {
    #[inline(always)]
    unsafe fn value(self, _: usize) -> (usize, i64) {
        (0, -1)
    }
    #[inline(always)]
    fn data(&self) -> &[u8] {
        &[]
    }
}

/// Values of which none is null.
#[derive(Clone, Copy)]
struct AllValues<'a, O> {
    offsets: &'a [O],
    data: &'a [u8],
}

impl<O: Offset> Values for AllValues<'_, O> {
    #[inline(always)]
    unsafe fn value(self, index: usize) -> (usize, i64) {
        // SAFETY: there is one more offset than values.
        let (from, to) =
            unsafe { (*self.offsets.get_unchecked(index), *self.offsets.get_unchecked(index + 1)) };
        (from.into() as usize, to.into().wrapping_sub(from.into()))
    }
    #[inline(always)]
    fn data(&self) -> &[u8] {
        self.data
    }
}

/// Values of which some are null.
#[derive(Clone, Copy)]
struct SomeValues<'a, O> {
    values: AllValues<'a, O>,
    validity: Validity<'a>,
}

impl<O: Offset> Values for SomeValues<'_, O> {
    #[inline(always)]
    unsafe fn value(self, index: usize) -> (usize, i64) {
        let is_valid = match self.validity {
            Validity::All => true,
            Validity::Bools(valid) => valid[index],
            Validity::Bitmap { bits, first_bit } => {
                let bit = first_bit + index;
                bits[bit / 8] >> (bit % 8) & 1 != 0
            }
        };
        // SAFETY: as the caller promises.
        if is_valid { unsafe { self.values.value(index) } } else { (0, -1) }
    }
    #[inline(always)]
    fn data(&self) -> &[u8] {
        self.values.data
    }
}

/// A loop over both columns, compiled for each pair of their types.
pub(super) trait ColumnLoop {
    type Output;
    fn run<K: Values, V: Values>(self, timestamps: &[i64], keys: K, values: V) -> Self::Output;
}

/// Runs a loop with the types of the columns, which have been checked.
pub(super) fn with_columns<L: ColumnLoop>(columns: &RecordColumns, the_loop: L) -> L::Output {
    fn with_keys<L: ColumnLoop, K: Values>(
        columns: &RecordColumns,
        the_loop: L,
        keys: K,
    ) -> L::Output {
        let t = columns.timestamps;
        match columns.values {
            None => the_loop.run(t, keys, NoValues),
            Some(BinaryColumn { offsets: Offsets::I32(offsets), data, validity }) => {
                let values = AllValues { offsets, data };
                match validity {
                    Validity::All => the_loop.run(t, keys, values),
                    _ => the_loop.run(t, keys, SomeValues { values, validity }),
                }
            }
            Some(BinaryColumn { offsets: Offsets::I64(offsets), data, validity }) => {
                let values = AllValues { offsets, data };
                match validity {
                    Validity::All => the_loop.run(t, keys, values),
                    _ => the_loop.run(t, keys, SomeValues { values, validity }),
                }
            }
        }
    }
    match columns.keys {
        None => with_keys(columns, the_loop, NoValues),
        Some(BinaryColumn { offsets: Offsets::I32(offsets), data, validity }) => {
            let values = AllValues { offsets, data };
            match validity {
                Validity::All => with_keys(columns, the_loop, values),
                _ => with_keys(columns, the_loop, SomeValues { values, validity }),
            }
        }
        Some(BinaryColumn { offsets: Offsets::I64(offsets), data, validity }) => with_keys(
            columns,
            the_loop,
            SomeValues { values: AllValues { offsets, data }, validity },
        ),
    }
}
