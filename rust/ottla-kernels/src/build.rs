//! Columns to the records of one batch: their exact size first, then straight into memory of that
//! size, because copying them once more would cost a quarter of everything.
//!
//! Record `i` has offset delta `i`, time delta `timestamps[i] - timestamps[0]`, and no headers. The
//! AVX-512 writer makes varints by `pdep` and copies 64 bytes at a time, which may write past the
//! record (into what is written next) but never reads past a column; the last records, which would
//! be written past the end, are left to the plain writer.

use crate::level::Level;
use std::fmt;

/// A column of keys or values, as Arrow lays out `Binary` and `LargeBinary`.
#[derive(Clone, Copy, Debug)]
pub struct BinaryColumn<'a> {
    /// Value `i` is `data[offsets[i]..offsets[i + 1]]`.
    pub offsets: Offsets<'a>,
    /// The bytes of all values.
    pub data: &'a [u8],
    /// Which values there are; the others are null.
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
    /// Arrow's bitmap: value `i` by bit `first_bit + i`, the lowest bit of a byte first.
    Bitmap {
        /// The bits.
        bits: &'a [u8],
        /// The bit of value 0.
        first_bit: usize,
    },
}

/// The records of a batch in columns; without a column of keys or values all of them are null.
#[derive(Clone, Copy, Debug)]
pub struct RecordColumns<'a> {
    /// Milliseconds; the first is the batch's base timestamp.
    pub timestamps: &'a [i64],
    /// Keys.
    pub keys: Option<BinaryColumn<'a>>,
    /// Values.
    pub values: Option<BinaryColumn<'a>>,
}

/// Why columns make no batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// A batch has at least one record, and a record count of 31 bits at most.
    RecordCount {
        /// How many timestamps there are.
        count: usize,
    },
    /// A column of keys or values has another number of values, or too little validity, than there are
    /// timestamps.
    ColumnLength,
    /// Offset `index` is before the one before it, or outside the data.
    Offset {
        /// The first such offset.
        index: usize,
    },
    /// The records take more than the 2 GiB that the header of a batch can say.
    TooLarge,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::RecordCount { count } => {
                write!(f, "{count} records cannot be one batch, which has 1 to {}", i32::MAX)
            }
            BuildError::ColumnLength => {
                f.write_str("a column has another number of rows than there are timestamps")
            }
            BuildError::Offset { index } => {
                write!(
                    f,
                    "offset {index} of a column is outside its data or before the offset before it"
                )
            }
            BuildError::TooLarge => {
                f.write_str("the records take more than a batch can hold, 2 GiB")
            }
        }
    }
}

impl std::error::Error for BuildError {}

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

/// The largest records section: what the `batch_length` of a header leaves.
const MAX_RECORDS_BYTES: u64 = i32::MAX as u64 - 49;

impl<'a> RecordsPlan<'a> {
    /// Checks the columns against each other and sums up their size; `level` also is the level of
    /// the writing.
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

impl BinaryColumn<'_> {
    /// Whether there are `count` values and every one lies in the data.
    fn check(&self, count: usize) -> Result<(), BuildError> {
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

fn check_offsets<O: Offset>(offsets: &[O], count: usize, data: usize) -> Result<(), BuildError> {
    if offsets.len() != count.saturating_add(1) {
        return Err(BuildError::ColumnLength);
    }
    let (from, to) = (&offsets[..count], &offsets[1..]);
    // Without a way out of the loop, so that it becomes vectors.
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
trait Offset: Copy + Ord + Into<i64> {}
impl Offset for i32 {}
impl Offset for i64 {}

/// A checked column, seen by the loops: where value `i` lies, and how long it is.
trait Values: Copy {
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

/// Values that all are there.
#[derive(Clone, Copy)]
struct AllValues<'a, O> {
    offsets: &'a [O],
    data: &'a [u8],
}

impl<O: Offset> Values for AllValues<'_, O> {
    #[inline(always)]
    unsafe fn value(self, index: usize) -> (usize, i64) {
        // SAFETY: there is one offset more than values.
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
trait Loop {
    type Output;
    fn run<K: Values, V: Values>(self, timestamps: &[i64], keys: K, values: V) -> Self::Output;
}

/// Runs a loop with the types of the columns, which are checked.
fn with_columns<L: Loop>(columns: &RecordColumns, the_loop: L) -> L::Output {
    fn with_keys<L: Loop, K: Values>(columns: &RecordColumns, the_loop: L, keys: K) -> L::Output {
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

#[inline(always)]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Bytes of the varint of a zigzag number: its bits by seven, rounded up, without a division.
#[inline(always)]
fn varint_bytes(zigzag: u64) -> u64 {
    u64::from(((70 - (zigzag | 1).leading_zeros()) * 37) >> 8)
}

struct SizeOf {
    level: Level,
}

impl Loop for SizeOf {
    type Output = u64;
    fn run<K: Values, V: Values>(self, timestamps: &[i64], keys: K, values: V) -> u64 {
        match self.level {
            // SAFETY: the level is usable; the columns are checked.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { x86::size_of(timestamps, keys, values) },
            // SAFETY: the columns are checked.
            _ => unsafe { size_of(timestamps, keys, values) },
        }
    }
}

/// Bytes of all records, without a branch, so that the loop becomes vectors where zeros can be
/// counted in them.
///
/// # Safety
/// The columns are checked for the count of the timestamps.
#[inline(always)]
unsafe fn size_of<K: Values, V: Values>(timestamps: &[i64], keys: K, values: V) -> u64 {
    let Some(&first) = timestamps.first() else {
        return 0;
    };
    let mut size = 0u64;
    for (index, &timestamp) in timestamps.iter().enumerate() {
        // SAFETY: as the caller promises.
        let ((_, key), (_, value)) = unsafe { (keys.value(index), values.value(index)) };
        let part = |length: i64| varint_bytes(zigzag(length)) + length.max(0) as u64;
        let body = 2
            + varint_bytes(zigzag(timestamp.wrapping_sub(first)))
            + varint_bytes((index as u64) << 1)
            + part(key)
            + part(value);
        size = size.wrapping_add(body + varint_bytes(body << 1));
    }
    size
}

struct Write<'a> {
    level: Level,
    records: &'a mut [u8],
}

impl Loop for Write<'_> {
    type Output = ();
    fn run<K: Values, V: Values>(self, timestamps: &[i64], keys: K, values: V) {
        let done = match self.level {
            // SAFETY: the level is usable; the columns are checked; the memory has the size of the
            // records.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { x86::write(timestamps, keys, values, self.records) },
            _ => Done { records: 0, bytes: 0 },
        };
        // SAFETY: the columns are checked.
        unsafe {
            write_plainly(timestamps, keys, values, done.records, &mut self.records[done.bytes..]);
        };
    }
}

/// How far a writer came.
struct Done {
    records: usize,
    bytes: usize,
}

/// Records from `from` on, one byte of a varint at a time: the portable writer and the oracle.
///
/// # Safety
/// The columns are checked for the count of the timestamps.
unsafe fn write_plainly<K: Values, V: Values>(
    timestamps: &[i64],
    keys: K,
    values: V,
    from: usize,
    mut to: &mut [u8],
) {
    fn put<'a>(to: &'a mut [u8], bytes: &[u8]) -> &'a mut [u8] {
        let (here, rest) = to.split_at_mut(bytes.len());
        here.copy_from_slice(bytes);
        rest
    }
    fn put_varint(mut to: &mut [u8], value: i64) -> &mut [u8] {
        let mut rest = zigzag(value);
        while rest > 0x7f {
            to = put(to, &[rest as u8 | 0x80]);
            rest >>= 7;
        }
        put(to, &[rest as u8])
    }
    fn put_part<'a>(
        to: &'a mut [u8],
        data: &[u8],
        (position, length): (usize, i64),
    ) -> &'a mut [u8] {
        let to = put_varint(to, length);
        put(to, &data[position..position + length.max(0) as usize])
    }
    let first = timestamps[0];
    for (index, &timestamp) in timestamps.iter().enumerate().skip(from) {
        // SAFETY: as the caller promises.
        let (key, value) = unsafe { (keys.value(index), values.value(index)) };
        let delta = timestamp.wrapping_sub(first);
        let bytes = |value: i64| varint_bytes(zigzag(value)) as i64;
        let body = 2
            + bytes(delta)
            + bytes(index as i64)
            + bytes(key.1)
            + key.1.max(0)
            + bytes(value.1)
            + value.1.max(0);
        to = put_varint(to, body);
        to = put(to, &[0]);
        to = put_varint(to, delta);
        to = put_varint(to, index as i64);
        to = put_part(to, keys.data(), key);
        to = put_part(to, values.data(), value);
        to = put(to, &[0]);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Done, Values, varint_bytes, zigzag};
    use std::arch::x86_64::{
        _bzhi_u64, _mm512_loadu_si512, _mm512_maskz_loadu_epi8, _mm512_storeu_si512, _pdep_u64,
    };

    const PAYLOAD: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    const CONTINUES: u64 = 0x8080_8080_8080_8080;

    /// Bytes a record may write past its key and value: six varints stored as words, and copies of
    /// 64 bytes at a time.
    const SLACK: usize = 400;

    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,bmi1,bmi2,lzcnt")]
    pub(super) unsafe fn size_of<K: Values, V: Values>(
        timestamps: &[i64],
        keys: K,
        values: V,
    ) -> u64 {
        // SAFETY: as the caller promises.
        unsafe { super::size_of(timestamps, keys, values) }
    }

    /// Copies `size` bytes in steps of 64, of which it reads only the bytes there are. `PAIRS`
    /// stores at least two: the length of the next value is hard to guess, and a wrong guess costs
    /// as much as three stores.
    ///
    /// # Safety
    /// `size` bytes at `from` are readable, and `size + 192` bytes at `to` are writable.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,bmi2")]
    unsafe fn copy<const PAIRS: bool>(from: *const u8, to: *mut u8, size: usize) {
        let step = |k: usize| {
            let mask = _bzhi_u64(!0, size.saturating_sub(64 * k).min(64) as u32);
            // SAFETY: bytes beyond `size` are masked, and AVX-512 does not touch them; 64 bytes are
            // writable there.
            unsafe {
                let bytes = _mm512_maskz_loadu_epi8(mask, from.wrapping_add(64 * k).cast());
                _mm512_storeu_si512(to.wrapping_add(64 * k).cast(), bytes);
            }
        };
        if size <= 64 && !PAIRS {
            step(0);
        } else if size <= 256 {
            step(0);
            step(1);
            if size > 128 {
                step(2);
                step(3);
            }
        } else {
            // SAFETY: all steps are inside `size`.
            unsafe {
                let mut k = 0;
                while k + 64 <= size {
                    _mm512_storeu_si512(to.add(k).cast(), _mm512_loadu_si512(from.add(k).cast()));
                    k += 64;
                }
                let last = size - 64;
                _mm512_storeu_si512(to.add(last).cast(), _mm512_loadu_si512(from.add(last).cast()));
            }
        }
    }

    /// A varint of up to 8 bytes (56 bits) in one word, zeros above it.
    #[derive(Clone, Copy)]
    struct Word {
        word: u64,
        bytes: usize,
    }

    #[inline]
    #[target_feature(enable = "bmi2,lzcnt")]
    fn varint(zigzag: u64) -> Word {
        let bytes = varint_bytes(zigzag) as usize;
        Word {
            word: _pdep_u64(zigzag, PAYLOAD) | CONTINUES & ((1u64 << ((8 * (bytes - 1)) & 63)) - 1),
            bytes,
        }
    }

    /// Stores a whole word; the place after the varint.
    ///
    /// # Safety
    /// 8 bytes at `to` are writable.
    #[inline(always)]
    unsafe fn put(to: *mut u8, varint: Word) -> *mut u8 {
        // SAFETY: the caller promises the 8 bytes, and a varint here has no more.
        unsafe {
            to.cast::<u64>().write_unaligned(varint.word);
            to.add(varint.bytes)
        }
    }

    /// As many records as wide stores have room for, beginning with the first.
    ///
    /// # Safety
    /// The columns are checked for the count of the timestamps, which is not 0.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,bmi1,bmi2,lzcnt")]
    pub(super) unsafe fn write<K: Values, V: Values>(
        timestamps: &[i64],
        keys: K,
        values: V,
        records: &mut [u8],
    ) -> Done {
        let (key_data, value_data) = (keys.data().as_ptr(), values.data().as_ptr());
        let (first, count, size) = (timestamps[0], timestamps.len(), records.len());
        let start = records.as_mut_ptr();
        let (mut written, mut index, mut offset_bytes) = (0, 0, 1);
        while index < count {
            // Offset deltas of one segment (below 64, 8192, 2^20 …) have varints of one size, which
            // needs no counting.
            let segment_end = count.min(1 << (7 * offset_bytes - 1));
            let offset_continues = CONTINUES & ((1u64 << (8 * (offset_bytes - 1))) - 1);
            while index < segment_end {
                // SAFETY: `index` is below the count.
                let (timestamp, (key_at, key_length), (value_at, value_length)) = unsafe {
                    (*timestamps.get_unchecked(index), keys.value(index), values.value(index))
                };
                let delta = zigzag(timestamp.wrapping_sub(first));
                let (key_size, value_size) =
                    (key_length.max(0) as usize, value_length.max(0) as usize);
                // A time delta of nine or ten bytes (years apart), or the end is near: the rest by
                // the plain writer.
                if delta >> 56 != 0
                    || size - written < SLACK
                    || size - written - SLACK < key_size + value_size
                {
                    return Done { records: index, bytes: written };
                }
                let (delta, key, value) =
                    (varint(delta), varint(zigzag(key_length)), varint(zigzag(value_length)));
                let offset = Word {
                    word: _pdep_u64((index as u64) << 1, PAYLOAD) | offset_continues,
                    bytes: offset_bytes,
                };
                let body = 2
                    + delta.bytes
                    + offset_bytes
                    + key.bytes
                    + key_size
                    + value.bytes
                    + value_size;
                // SAFETY: key, value and `SLACK` bytes are left; the columns hold what the lengths
                // say.
                unsafe {
                    // The word has zeros above the varint: the first of them is the attributes.
                    let mut to = put(start.add(written), varint(zigzag(body as i64))).add(1);
                    let before_key = delta.bytes + offset_bytes;
                    if key.bytes == 1 && before_key < 8 {
                        let word = delta.word
                            | offset.word << (8 * delta.bytes)
                            | key.word << (8 * before_key);
                        to = put(to, Word { word, bytes: before_key + 1 });
                    } else {
                        to = put(put(put(to, delta), offset), key);
                    }
                    copy::<false>(key_data.wrapping_add(key_at), to, key_size);
                    to = put(to.add(key_size), value);
                    copy::<true>(value_data.wrapping_add(value_at), to, value_size);
                    to = to.add(value_size);
                    *to = 0; // No headers.
                    written = to.offset_from_unsigned(start) + 1;
                }
                index += 1;
            }
            offset_bytes += 1;
        }
        Done { records: count, bytes: written }
    }
}
