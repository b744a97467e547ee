//! Records as columns of numbers, written during the walk: 32 bytes per record.

use crate::block::Block;
use crate::header::{BatchHeader, estimate_records};
use crate::target::Target;
use crate::walk::{Record, Sink};

/// Bytes of a row in each column.
const WIDTHS: [usize; 6] = [8, 8, 4, 4, 4, 4];

/// One record as numbers. Positions count from the beginning of the buffer; a length of −1 is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The record's offset.
    pub offset: i64,
    /// Its timestamp in milliseconds.
    pub timestamp: i64,
    /// Where the key is, or would be.
    pub key_position: u32,
    /// Bytes of the key, −1 for null.
    pub key_length: i32,
    /// Where the value is, or would be.
    pub value_position: u32,
    /// Bytes of the value, −1 for null.
    pub value_length: i32,
}

/// Columns `offset` and `timestamp` (i64), `key_position` (u32), `key_length` (i32),
/// `value_position` (u32) and `value_length` (i32), of the records that a [`run`](crate::run::run)
/// or [`push`](Numbers::push) added.
///
/// # Examples
///
/// ```
/// use ottla_kernels::Numbers;
/// use ottla_kernels::numbers::Row;
///
/// let mut numbers = Numbers::new(0);
/// numbers.push(Row {
///     offset: 7,
///     timestamp: 0,
///     key_position: 65,
///     key_length: -1,
///     value_position: 66,
///     value_length: 5,
/// });
/// assert_eq!(numbers.offsets(), [7]);
/// assert_eq!(numbers.key_lengths(), [-1]);
/// ```
pub struct Numbers {
    block: Block<6>,
    rows: usize,
    position_base: u32,
}

impl Numbers {
    /// No rows, with room for `capacity`; more is made when needed.
    pub fn new(capacity: usize) -> Numbers {
        Numbers { block: Block::new(WIDTHS, capacity), rows: 0, position_base: 0 }
    }

    /// No rows, with room for about the records of `data`, estimated from its first batches.
    pub fn for_data(data: &[u8]) -> Numbers {
        Numbers::new(estimate_records(data))
    }

    /// Makes room for `additional` more rows.
    #[inline]
    pub fn reserve(&mut self, additional: usize) {
        let need = self.rows.saturating_add(additional);
        if need > self.block.capacity() {
            self.block.grow(self.rows, need);
        }
    }

    /// Sets what is added to every position of the batches that follow, for payloads that lie one
    /// behind the other elsewhere.
    pub fn set_position_base(&mut self, base: u32) {
        self.position_base = base;
    }

    /// Adds one row as it is, without [`set_position_base`](Numbers::set_position_base).
    #[allow(clippy::arithmetic_side_effects, reason = "memory holds fewer rows than 64 bits count")]
    pub fn push(&mut self, row: Row) {
        self.reserve(1);
        // SAFETY: there is room for one more.
        unsafe { self.pointers().write(0, row) };
        self.rows += 1;
    }

    /// Removes all rows but the first `rows`.
    pub fn truncate(&mut self, rows: usize) {
        self.rows = self.rows.min(rows);
    }

    /// The number of rows.
    pub fn row_count(&self) -> usize {
        self.rows
    }

    /// Offsets of the records.
    pub fn offsets(&self) -> &[i64] {
        // SAFETY: the column has `rows` initialised numbers of this type.
        unsafe { std::slice::from_raw_parts(self.block.column::<0>().cast(), self.rows) }
    }

    /// Timestamps in milliseconds.
    pub fn timestamps(&self) -> &[i64] {
        // SAFETY: as in `offsets`.
        unsafe { std::slice::from_raw_parts(self.block.column::<1>().cast(), self.rows) }
    }

    /// Where the keys are.
    pub fn key_positions(&self) -> &[u32] {
        // SAFETY: as in `offsets`.
        unsafe { std::slice::from_raw_parts(self.block.column::<2>().cast(), self.rows) }
    }

    /// Bytes of the keys, −1 for null.
    pub fn key_lengths(&self) -> &[i32] {
        // SAFETY: as in `offsets`.
        unsafe { std::slice::from_raw_parts(self.block.column::<3>().cast(), self.rows) }
    }

    /// Where the values are.
    pub fn value_positions(&self) -> &[u32] {
        // SAFETY: as in `offsets`.
        unsafe { std::slice::from_raw_parts(self.block.column::<4>().cast(), self.rows) }
    }

    /// Bytes of the values, −1 for null.
    pub fn value_lengths(&self) -> &[i32] {
        // SAFETY: as in `offsets`.
        unsafe { std::slice::from_raw_parts(self.block.column::<5>().cast(), self.rows) }
    }

    /// The addresses of the columns in the order above, for consumers that take memory by address. They
    /// and the [`row_count`](Numbers::row_count) rows there are valid until rows are added or the owner
    /// is dropped.
    pub fn column_addresses(&self) -> [usize; 6] {
        [
            self.block.column::<0>() as usize,
            self.block.column::<1>() as usize,
            self.block.column::<2>() as usize,
            self.block.column::<3>() as usize,
            self.block.column::<4>() as usize,
            self.block.column::<5>() as usize,
        ]
    }

    /// Where the next row goes.
    #[inline(always)]
    fn pointers(&self) -> NumberPointers {
        NumberPointers {
            offset: self.block.column::<0>().cast::<i64>().wrapping_add(self.rows),
            timestamp: self.block.column::<1>().cast::<i64>().wrapping_add(self.rows),
            key_position: self.block.column::<2>().cast::<u32>().wrapping_add(self.rows),
            key_length: self.block.column::<3>().cast::<i32>().wrapping_add(self.rows),
            value_position: self.block.column::<4>().cast::<u32>().wrapping_add(self.rows),
            value_length: self.block.column::<5>().cast::<i32>().wrapping_add(self.rows),
        }
    }
}

impl std::fmt::Debug for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Numbers").field("rows", &self.rows).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug)]
struct NumberPointers {
    offset: *mut i64,
    timestamp: *mut i64,
    key_position: *mut u32,
    key_length: *mut i32,
    value_position: *mut u32,
    value_length: *mut i32,
}

impl NumberPointers {
    /// # Safety
    /// There is room for a row at `index`.
    #[inline(always)]
    unsafe fn write(self, index: usize, row: Row) {
        // SAFETY: the caller promises the room.
        unsafe {
            self.offset.add(index).write(row.offset);
            self.timestamp.add(index).write(row.timestamp);
            self.key_position.add(index).write(row.key_position);
            self.key_length.add(index).write(row.key_length);
            self.value_position.add(index).write(row.value_position);
            self.value_length.add(index).write(row.value_length);
        }
    }

    /// Prefetches for writing the cache lines of rows some way ahead: one per column every 8 or 16
    /// rows.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    #[allow(clippy::arithmetic_side_effects, reason = "addresses are not read")]
    fn prefetch(self, index: usize) {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        const LINE: usize = 16;
        const AHEAD: usize = 128;
        if index.is_multiple_of(LINE) {
            let row = index + AHEAD;
            // SAFETY: a prefetch may have any address.
            unsafe {
                _mm_prefetch::<_MM_HINT_ET0>(self.offset.wrapping_add(row).cast());
                _mm_prefetch::<_MM_HINT_ET0>(self.offset.wrapping_add(row + LINE / 2).cast());
                _mm_prefetch::<_MM_HINT_ET0>(self.timestamp.wrapping_add(row).cast());
                _mm_prefetch::<_MM_HINT_ET0>(self.timestamp.wrapping_add(row + LINE / 2).cast());
                _mm_prefetch::<_MM_HINT_ET0>(self.key_position.wrapping_add(row).cast());
                _mm_prefetch::<_MM_HINT_ET0>(self.key_length.wrapping_add(row).cast());
                _mm_prefetch::<_MM_HINT_ET0>(self.value_position.wrapping_add(row).cast());
                _mm_prefetch::<_MM_HINT_ET0>(self.value_length.wrapping_add(row).cast());
            }
        }
    }
}

/// Writes the rows of one batch.
#[derive(Clone, Copy, Debug)]
pub struct NumberSink {
    pointers: NumberPointers,
    base_offset: i64,
    base_timestamp: i64,
    delta_mask: i64,
    position_base: u32,
}

// SAFETY: it writes row `index` of a place with room for the count it was made for.
unsafe impl Sink for NumberSink {
    #[inline(always)]
    unsafe fn put(self, _: &[u8], index: usize, record: Record) {
        #[cfg(target_arch = "x86_64")]
        self.pointers.prefetch(index);
        let row = Row {
            offset: self.base_offset.wrapping_add(index as i64),
            timestamp: self.base_timestamp.wrapping_add(record.timestamp_delta & self.delta_mask),
            key_position: (record.key_position as u32).wrapping_add(self.position_base),
            key_length: record.key_length,
            value_position: (record.value_position as u32).wrapping_add(self.position_base),
            value_length: record.value_length,
        };
        // SAFETY: the caller promises that `index` is below the count.
        unsafe { self.pointers.write(index, row) };
    }
}

// SAFETY: `sink` reserves room for the record count.
unsafe impl Target for Numbers {
    type Sink = NumberSink;
    const MAX_POSITION: usize = u32::MAX as usize;

    #[inline]
    fn sink(&mut self, header: &BatchHeader) -> NumberSink {
        self.reserve(header.record_count as u32 as usize);
        let (base_timestamp, delta_mask) = header.timestamp_base_and_mask();
        NumberSink {
            pointers: self.pointers(),
            base_offset: header.base_offset,
            base_timestamp,
            delta_mask,
            position_base: self.position_base,
        }
    }

    #[inline]
    #[allow(clippy::arithmetic_side_effects, reason = "memory holds fewer rows than 64 bits count")]
    unsafe fn done(&mut self, header: &BatchHeader) {
        self.rows += header.record_count as usize;
    }
}
