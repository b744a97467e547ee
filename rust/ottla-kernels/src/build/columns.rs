//! The columns a batch is built from, and how they must fit together.

use std::fmt;

/// A column of keys or values, as Arrow lays out `Binary` and `LargeBinary`.
#[derive(Clone, Copy, Debug)]
pub struct BinaryColumn<'a> {
    /// Value `i` is `data[offsets[i]..offsets[i + 1]]`.
    pub offsets: Offsets<'a>,
    /// The bytes of all values.
    pub data: &'a [u8],
    /// Which values are not null.
    pub validity: Validity<'a>,
}

/// Where values begin and end: one offset more than there are values.
#[derive(Clone, Copy, Debug)]
pub enum Offsets<'a> {
    /// Arrow's `Binary`.
    I32(&'a [i32]),
    /// Arrow's `LargeBinary`.
    I64(&'a [i64]),
}

/// Which values are not null.
#[derive(Clone, Copy, Debug)]
pub enum Validity<'a> {
    /// All.
    All,
    /// Those with `true`.
    Bools(&'a [bool]),
    /// Arrow's bitmap: bit `first_bit + i` is set if value `i` is not null; the lowest bit of a byte
    /// comes first.
    Bitmap {
        /// The bits.
        bits: &'a [u8],
        /// The bit of value 0.
        first_bit: usize,
    },
}

/// The records of a batch as columns. Without a column of keys (values) all keys (values) are null.
#[derive(Clone, Copy, Debug)]
pub struct RecordColumns<'a> {
    /// Milliseconds; the first is the batch's base timestamp.
    pub timestamps: &'a [i64],
    /// Keys.
    pub keys: Option<BinaryColumn<'a>>,
    /// Values.
    pub values: Option<BinaryColumn<'a>>,
}

/// Why no batch can be built from columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// A batch has at least one record, and a record count of at most 31 bits.
    RecordCount {
        /// How many timestamps there are.
        count: usize,
    },
    /// A column of keys or values does not have as many values as there are timestamps, or its validity
    /// is too short.
    ColumnLength,
    /// Offset `index` is less than the one before it, or outside the data.
    Offset {
        /// The first such offset.
        index: usize,
    },
    /// The records exceed the 2 GiB that the size field of a batch can express.
    TooLarge,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::RecordCount { count } => {
                write!(f, "{count} records cannot be one batch, which has 1 to {}", i32::MAX)
            }
            BuildError::ColumnLength => {
                f.write_str("a column does not have as many rows as there are timestamps")
            }
            BuildError::Offset { index } => {
                write!(
                    f,
                    "offset {index} of a column is outside its data or less than the one before it"
                )
            }
            BuildError::TooLarge => {
                f.write_str("the records exceed 2 GiB, the most a batch can hold")
            }
        }
    }
}

impl std::error::Error for BuildError {}

impl BinaryColumn<'_> {
    /// Refuses a column that does not have `count` values, or one outside the data.
    pub(super) fn check(&self, count: usize) -> Result<(), BuildError> {
        let enough = match self.validity {
            Validity::All => true,
            Validity::Bools(valid) => valid.len() >= count,
            Validity::Bitmap { bits, first_bit } => {
                first_bit.checked_add(count).is_some_and(|end| end.div_ceil(8) <= bits.len())
            }
        };
        if !enough {
            return Err(BuildError::ColumnLength);
        }
        match self.offsets {
            Offsets::I32(offsets) => check_offsets(offsets, count, self.data.len()),
            Offsets::I64(offsets) => check_offsets(offsets, count, self.data.len()),
        }
    }
}

#[allow(
    clippy::indexing_slicing,
    reason = "the length is checked first, and `index` is at most it"
)]
#[allow(clippy::arithmetic_side_effects, reason = "`index` is above 0 where it is reduced")]
fn check_offsets<O: Offset>(offsets: &[O], count: usize, data: usize) -> Result<(), BuildError> {
    if offsets.len() != count.saturating_add(1) {
        return Err(BuildError::ColumnLength);
    }
    let (from, to) = (&offsets[..count], &offsets[1..]);
    // Without an early exit, so that the compiler vectorises the loop.
    let ascends = from.iter().zip(to).fold(1, |ascends, (a, b)| ascends & u8::from(a <= b));
    let inside = |offset: O| usize::try_from(offset.into()).is_ok_and(|offset| offset <= data);
    if ascends == 1 && inside(offsets[0]) && inside(offsets[count]) {
        return Ok(());
    }
    let bad = |index: &usize| {
        !inside(offsets[*index]) || (*index > 0 && offsets[*index] < offsets[index - 1])
    };
    Err(BuildError::Offset { index: (0..=count).find(bad).unwrap_or(count) })
}

/// The type of an offset.
pub(super) trait Offset: Copy + Ord + Into<i64> {}
impl Offset for i32 {}
impl Offset for i64 {}
