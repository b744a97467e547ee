//! Keys and values as Arrow views over the source, written during the walk: 16 bytes each, not copied.
//!
//! ```text
//! 0      4                        16
//! │length│ up to 12 bytes         │   short
//! │length│prefix│buffer │position │   long: 4 bytes each
//! ```

use crate::block::{Block, Column};
use crate::header::{BatchHeader, estimate_records};
use crate::numbers::Row;
use crate::target::Target;
use crate::walk::{Record, Sink};
use std::sync::Arc;

/// Bytes of a row in the columns key, value, offset, timestamp and flags.
const WIDTHS: [usize; 5] = [16, 16, 8, 8, 1];
/// The longest value that is inside its view.
const INLINE_BYTES: usize = 12;
/// Bits of a row's flags.
const NULL_KEY: u8 = 1;
const NULL_VALUE: u8 = 2;

/// Rows of offset, timestamp, key view and value view, of the records that a
/// [`run`](crate::run::run) or [`push`](Views::push) added.
pub struct Views {
    block: Block<5>,
    rows: usize,
    place: Place,
    extents: Vec<usize>,
}

/// What long views refer to: buffer index in the low half, position of the data in that buffer in
/// the high half.
#[derive(Clone, Copy, Debug)]
struct Place(u64);

/// The finished columns of [`Views`].
#[derive(Clone, Debug)]
pub struct ViewColumns {
    /// The number of rows.
    pub row_count: usize,
    /// i64, little-endian on every CPU there is.
    pub offsets: Column,
    /// i64, milliseconds.
    pub timestamps: Column,
    /// Arrow views.
    pub keys: Column,
    /// Arrow views.
    pub values: Column,
    /// Which keys are null.
    pub key_nulls: Nulls,
    /// Which values are null.
    pub value_nulls: Nulls,
    /// For each buffer, a position that no view of it goes beyond.
    #[cfg_attr(not(feature = "arrow"), allow(dead_code, reason = "for Arrow alone"))]
    pub(crate) extents: Vec<usize>,
}

/// Which rows of a column are null.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nulls {
    /// Their number.
    pub count: usize,
    /// Arrow's validity bitmap, a set bit for each row that is not null; absent when no row is.
    pub validity: Option<Vec<u8>>,
}

impl Views {
    /// No rows, with room for `capacity`; more is made when needed. Views refer to buffer 0.
    pub fn new(capacity: usize) -> Views {
        Views { block: Block::new(WIDTHS, capacity), rows: 0, place: Place(0), extents: Vec::new() }
    }

    /// No rows, with room for about the records of `data`, estimated from its first batches.
    pub fn for_data(data: &[u8]) -> Views {
        Views::new(estimate_records(data))
    }

    /// Makes room for `additional` more rows.
    #[inline]
    pub fn reserve(&mut self, additional: usize) {
        let need = self.rows.saturating_add(additional);
        if need > self.block.capacity() {
            self.block.grow(self.rows, need);
        }
    }

    /// Sets what the views of the rows that follow refer to: the data they come from lies at `position`
    /// of buffer `buffer_index`.
    pub fn set_buffer(&mut self, buffer_index: u32, position: u32) {
        self.place = Place(u64::from(position) << 32 | u64::from(buffer_index));
    }

    /// Adds a row whose key and value lie in `data`. A part outside it becomes an empty view.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "sums of 32 bits; memory holds fewer rows than 64 bits count"
    )]
    pub fn push(&mut self, data: &[u8], row: Row) {
        self.reserve(1);
        self.extend(data);
        let part = |position: u32, length: i32| -> (usize, usize) {
            let (from, size) = (position as usize, length.max(0) as usize);
            if from + size <= data.len() { (from, size) } else { (0, 0) }
        };
        let (key, value) =
            (part(row.key_position, row.key_length), part(row.value_position, row.value_length));
        let pointers = self.pointers();
        // SAFETY: there is room for one more.
        unsafe {
            pointers.key.write(view_by_slice(data, key.0, key.1, self.place));
            pointers.value.write(view_by_slice(data, value.0, value.1, self.place));
            pointers.offset.write(row.offset);
            pointers.timestamp.write(row.timestamp);
            pointers.flags.write(flags(row.key_length, row.value_length));
        }
        self.rows += 1;
    }

    /// Records that views may refer to all of `data`, at the place set last.
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "`extents` is resized to have the index, of 32 bits"
    )]
    fn extend(&mut self, data: &[u8]) {
        let (index, position) = (self.place.0 as u32 as usize, (self.place.0 >> 32) as usize);
        if self.extents.len() <= index {
            self.extents.resize(index + 1, 0);
        }
        let end = position.saturating_add(data.len());
        self.extents[index] = self.extents[index].max(end);
    }

    /// Removes all rows but the first `rows`.
    pub fn truncate(&mut self, rows: usize) {
        self.rows = self.rows.min(rows);
    }

    /// The number of rows.
    pub fn row_count(&self) -> usize {
        self.rows
    }

    /// The columns; no more rows can be added.
    pub fn finish(self) -> ViewColumns {
        let rows = self.rows;
        // SAFETY: the column has `rows` initialised bytes.
        let flags = unsafe { std::slice::from_raw_parts(self.block.column::<4>(), rows) };
        let (key_nulls, value_nulls) = (Nulls::of(flags, NULL_KEY), Nulls::of(flags, NULL_VALUE));
        let block = Arc::new(self.block);
        // SAFETY: every row of every column is written.
        unsafe {
            ViewColumns {
                row_count: rows,
                keys: Column::new::<5, 0>(&block, rows),
                values: Column::new::<5, 1>(&block, rows),
                offsets: Column::new::<5, 2>(&block, rows),
                timestamps: Column::new::<5, 3>(&block, rows),
                key_nulls,
                value_nulls,
                extents: self.extents,
            }
        }
    }

    /// Where the next row goes.
    #[inline(always)]
    fn pointers(&self) -> ViewPointers {
        ViewPointers {
            key: self.block.column::<0>().cast::<u128>().wrapping_add(self.rows),
            value: self.block.column::<1>().cast::<u128>().wrapping_add(self.rows),
            offset: self.block.column::<2>().cast::<i64>().wrapping_add(self.rows),
            timestamp: self.block.column::<3>().cast::<i64>().wrapping_add(self.rows),
            flags: self.block.column::<4>().wrapping_add(self.rows),
        }
    }
}

impl std::fmt::Debug for Views {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Views").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl Nulls {
    /// The rows whose flags have `bit`.
    pub(crate) fn of(flags: &[u8], bit: u8) -> Nulls {
        // The sum of 255 flags fits a byte, and additions of bytes are vectorised.
        let count = flags
            .chunks(255)
            .map(|some| usize::from(some.iter().map(|flag| u8::from(flag & bit != 0)).sum::<u8>()))
            .sum();
        if count == 0 {
            return Nulls::default();
        }
        let byte = |rows: &[u8]| {
            rows.iter().enumerate().fold(0, |bits, (k, flag)| bits | u8::from(flag & bit == 0) << k)
        };
        Nulls { count, validity: Some(flags.chunks(8).map(byte).collect()) }
    }
}

#[inline(always)]
#[allow(clippy::arithmetic_side_effects, reason = "sums two bits")]
fn flags(key_length: i32, value_length: i32) -> u8 {
    u8::from(key_length < 0) * NULL_KEY + u8::from(value_length < 0) * NULL_VALUE
}

/// For each length, which of the bytes 4..16 of a view hold data. Entry 13 is for all long values: the
/// prefix.
#[repr(align(16))]
struct ViewMasks([[u8; 16]; INLINE_BYTES + 2]);

#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "indexes that are counted to the size of the masks, at compile time"
)]
static MASKS: ViewMasks = {
    let mut masks = [[0; 16]; INLINE_BYTES + 2];
    let mut entry = 0;
    while entry < masks.len() {
        let bytes = if entry > INLINE_BYTES { 4 } else { entry };
        let mut k = 0;
        while k < bytes {
            masks[entry][4 + k] = 255;
            k += 1;
        }
        entry += 1;
    }
    ViewMasks(masks)
};

/// Writes the view of `size` bytes at `position`, without a branch on the size: short and long
/// values alternate in real columns.
///
/// # Safety
/// 16 bytes at `position` of `data` are readable, and `to` is writable.
#[inline(always)]
unsafe fn write_view(data: *const u8, position: usize, size: usize, place: Place, to: *mut u128) {
    let is_long = u64::from(size > INLINE_BYTES).wrapping_neg();
    let end = (((position as u64) << 32).wrapping_add(place.0)) & is_long;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller promises the bytes; the mask exists for every size; SSE2 is part of
    // x86-64.
    unsafe {
        use std::arch::x86_64::{
            _mm_and_si128, _mm_load_si128, _mm_loadu_si128, _mm_or_si128, _mm_set_epi64x,
            _mm_slli_si128, _mm_storeu_si128,
        };
        let bytes = _mm_slli_si128(_mm_loadu_si128(data.add(position).cast()), 4);
        let mask = _mm_load_si128(MASKS.0.as_ptr().add(size.min(INLINE_BYTES + 1)).cast());
        let ends = _mm_set_epi64x(end as i64, size as i64);
        _mm_storeu_si128(to.cast(), _mm_or_si128(_mm_and_si128(bytes, mask), ends));
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // SAFETY: the caller promises the 16 bytes.
        let bytes = u128::from_le(unsafe { data.add(position).cast::<u128>().read_unaligned() });
        let mask = u128::from_le_bytes(MASKS.0[size.min(INLINE_BYTES + 1)]);
        let view = (bytes << 32 & mask) | size as u128 | u128::from(end) << 64;
        // SAFETY: the caller promises the place.
        unsafe { to.write(view.to_le()) };
    }
}

/// The same from a slice, for the last bytes of a buffer. Bytes outside `data` are left out.
#[cold]
#[inline(never)]
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "at most 12 bytes are shown, and 16 fit a view"
)]
fn view_by_slice(data: &[u8], position: usize, size: usize, place: Place) -> u128 {
    let is_long = size > INLINE_BYTES;
    let shown = if is_long { 4 } else { size };
    let mut view = [0; 16];
    view[..4].copy_from_slice(&(size as u32).to_le_bytes());
    if let Some(bytes) = data.get(position..position + shown) {
        view[4..4 + shown].copy_from_slice(bytes);
    }
    if is_long {
        view[8..].copy_from_slice(&((position as u64) << 32).wrapping_add(place.0).to_le_bytes());
    }
    u128::from_ne_bytes(view)
}

#[derive(Clone, Copy, Debug)]
struct ViewPointers {
    key: *mut u128,
    value: *mut u128,
    offset: *mut i64,
    timestamp: *mut i64,
    flags: *mut u8,
}

impl ViewPointers {
    /// Prefetches for writing the cache lines of rows some way ahead.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    #[allow(clippy::arithmetic_side_effects, reason = "addresses are not read")]
    fn prefetch(self, index: usize) {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        const LINE: usize = 8;
        const AHEAD: usize = 64;
        if index.is_multiple_of(LINE) {
            let row = index + AHEAD;
            // SAFETY: a prefetch may have any address.
            unsafe {
                _mm_prefetch::<_MM_HINT_ET0>(self.offset.wrapping_add(row).cast());
                _mm_prefetch::<_MM_HINT_ET0>(self.timestamp.wrapping_add(row).cast());
                _mm_prefetch::<_MM_HINT_ET0>(self.key.wrapping_add(row).cast());
                _mm_prefetch::<_MM_HINT_ET0>(self.key.wrapping_add(row + LINE / 2).cast());
                _mm_prefetch::<_MM_HINT_ET0>(self.value.wrapping_add(row).cast());
                _mm_prefetch::<_MM_HINT_ET0>(self.value.wrapping_add(row + LINE / 2).cast());
            }
        }
    }
}

/// Writes the rows of one batch.
#[derive(Clone, Copy, Debug)]
pub struct ViewSink {
    pointers: ViewPointers,
    base_offset: i64,
    base_timestamp: i64,
    delta_mask: i64,
    place: Place,
}

// SAFETY: it writes row `index` of a place with room for the count it was made for.
#[allow(clippy::arithmetic_side_effects, reason = "a position inside `data` plus 16")]
unsafe impl Sink for ViewSink {
    #[inline(always)]
    unsafe fn put(self, data: &[u8], index: usize, record: Record) {
        #[cfg(target_arch = "x86_64")]
        self.pointers.prefetch(index);
        let (key_size, value_size) =
            (record.key_length.max(0) as usize, record.value_length.max(0) as usize);
        // SAFETY: the caller promises that `index` is below the count, for which there is room;
        // where 16 bytes at the value are inside `data`, so are 16 at the key, which lies before
        // it.
        unsafe {
            let (key, value) = (self.pointers.key.add(index), self.pointers.value.add(index));
            if record.value_position + 16 <= data.len() {
                write_view(data.as_ptr(), record.key_position, key_size, self.place, key);
                write_view(data.as_ptr(), record.value_position, value_size, self.place, value);
            } else {
                key.write(view_by_slice(data, record.key_position, key_size, self.place));
                value.write(view_by_slice(data, record.value_position, value_size, self.place));
            }
            let offset = self.base_offset.wrapping_add(index as i64);
            self.pointers.offset.add(index).write(offset);
            let delta = record.timestamp_delta & self.delta_mask;
            self.pointers.timestamp.add(index).write(self.base_timestamp.wrapping_add(delta));
            self.pointers.flags.add(index).write(flags(record.key_length, record.value_length));
        }
    }
}

// SAFETY: `sink` reserves room for the record count.
unsafe impl Target for Views {
    type Sink = ViewSink;
    /// Positions in a view are 32 bits with a sign.
    const MAX_POSITION: usize = i32::MAX as usize;

    #[inline]
    fn begin(&mut self, data: &[u8]) {
        self.extend(data);
    }

    #[inline]
    fn sink(&mut self, header: &BatchHeader) -> ViewSink {
        self.reserve(header.record_count as u32 as usize);
        let (base_timestamp, delta_mask) = header.timestamp_base_and_mask();
        ViewSink {
            pointers: self.pointers(),
            base_offset: header.base_offset,
            base_timestamp,
            delta_mask,
            place: self.place,
        }
    }

    #[inline]
    #[allow(clippy::arithmetic_side_effects, reason = "memory holds fewer rows than 64 bits count")]
    unsafe fn done(&mut self, header: &BatchHeader) {
        self.rows += header.record_count as usize;
    }
}
