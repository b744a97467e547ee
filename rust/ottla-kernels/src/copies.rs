//! Records as columns whose keys and values are copied side by side, as Arrow lays out `Binary`, so
//! that the source need not outlive them.
//!
//! Most values are short: they are copied 32 bytes at a time where as many can be read and written,
//! which is cheaper than an exact copy. The next value overwrites what was written past the last.

use crate::header::BatchHeader;
use crate::target::Target;
use crate::views::Nulls;
use crate::walk::{Record, Sink};

/// Bits of a row's flags.
const NULL_KEY: u8 = 1;
const NULL_VALUE: u8 = 2;

/// Bytes copied at a time.
const STEP: usize = 32;
/// Longer values are left to `memcpy`.
const MAX_STEPPED_BYTES: usize = 8 * STEP;

/// The columns to fill beside offsets and timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedParts {
    /// Keys.
    pub keys: bool,
    /// Values.
    pub values: bool,
}

/// About how much there will be; as much room is made at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Rows.
    pub rows: usize,
    /// Bytes of keys.
    pub key_bytes: usize,
    /// Bytes of values.
    pub value_bytes: usize,
}

/// Values side by side.
///
/// # Examples
///
/// ```
/// use ottla_kernels::copies::{CopiedParts, Copies, Room};
///
/// let mut copies = Copies::new(CopiedParts { keys: true, values: true }, Room::default());
/// copies.push(7, 1_500, None, Some(b"value"));
/// let columns = copies.finish();
/// assert_eq!((columns.offsets, columns.timestamps), (vec![7], vec![1_500]));
/// assert_eq!((columns.values.ends, columns.values.data), (vec![0, 5], b"value".to_vec()));
/// assert_eq!(columns.keys.nulls.count, 1);
/// ```
#[derive(Debug)]
pub struct Copies {
    parts: CopiedParts,
    offsets: Vec<i64>,
    timestamps: Vec<i64>,
    flags: Vec<u8>,
    headers: Vec<HeaderPlace>,
    keys: ValueBuffer,
    values: ValueBuffer,
}

/// Where the headers of a record are in the data it came from: their count, a varint, is at
/// `position`, and the record ends at `end`. Both are 0 for a row added by [`Copies::push`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderPlace {
    /// Position of the count.
    pub position: u32,
    /// Position after the record.
    pub end: u32,
}

/// Bytes of values, and where each ends.
#[derive(Debug)]
struct ValueBuffer {
    /// One more than there are values; the first is 0.
    ends: Vec<i32>,
    data: Vec<u8>,
}

/// A finished column of keys or values, as Arrow lays out `Binary`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryValues {
    /// Value `i` is `data[ends[i]..ends[i + 1]]`.
    pub ends: Vec<i32>,
    /// The bytes of all values.
    pub data: Vec<u8>,
    /// Which values are null.
    pub nulls: Nulls,
}

/// The finished columns of [`Copies`]. Those that were not requested are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedColumns {
    /// Offsets in the log.
    pub offsets: Vec<i64>,
    /// Milliseconds.
    pub timestamps: Vec<i64>,
    /// Keys.
    pub keys: BinaryValues,
    /// Values.
    pub values: BinaryValues,
}

impl Copies {
    /// No rows, with room for some; more is made when needed.
    pub fn new(parts: CopiedParts, room: Room) -> Copies {
        let values = |is_wanted: bool, bytes: usize| {
            if is_wanted { ValueBuffer::new(room.rows, bytes) } else { ValueBuffer::new(0, 0) }
        };
        Copies {
            parts,
            offsets: Vec::with_capacity(room.rows),
            timestamps: Vec::with_capacity(room.rows),
            flags: Vec::with_capacity(room.rows),
            headers: Vec::with_capacity(room.rows),
            keys: values(parts.keys, room.key_bytes),
            values: values(parts.values, room.value_bytes),
        }
    }

    /// What the rows occupy.
    pub fn taken(&self) -> Room {
        Room {
            rows: self.offsets.len(),
            key_bytes: self.keys.data.len(),
            value_bytes: self.values.data.len(),
        }
    }

    /// The number of rows.
    pub fn row_count(&self) -> usize {
        self.offsets.len()
    }

    /// Bytes of the keys and values.
    #[allow(clippy::arithmetic_side_effects, reason = "both are below 2 GiB")]
    pub fn data_size(&self) -> usize {
        self.keys.data.len() + self.values.data.len()
    }

    /// Offsets of the rows.
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// Where the headers of each row are.
    pub fn headers(&self) -> &[HeaderPlace] {
        &self.headers
    }

    /// Adds a row.
    ///
    /// # Panics
    ///
    /// If keys or values reach 2 GiB.
    pub fn push(&mut self, offset: i64, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>) {
        self.offsets.push(offset);
        self.timestamps.push(timestamp);
        self.flags.push(flags(key.is_none(), value.is_none()));
        self.headers.push(HeaderPlace::default());
        if self.parts.keys {
            self.keys.push(key.unwrap_or_default());
        }
        if self.parts.values {
            self.values.push(value.unwrap_or_default());
        }
    }

    /// Removes the rows from index `from` for whose offset and timestamp `keep` returns `false`.
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "rows are below their number, and `kept` is at most the row"
    )]
    pub fn retain(&mut self, from: usize, mut keep: impl FnMut(i64, i64) -> bool) {
        let mut kept = from.min(self.row_count());
        let rows = kept..self.row_count();
        for row in rows {
            if !keep(self.offsets[row], self.timestamps[row]) {
                continue;
            }
            if row != kept {
                self.offsets[kept] = self.offsets[row];
                self.timestamps[kept] = self.timestamps[row];
                self.flags[kept] = self.flags[row];
                self.headers[kept] = self.headers[row];
                if self.parts.keys {
                    self.keys.move_down(row, kept);
                }
                if self.parts.values {
                    self.values.move_down(row, kept);
                }
            }
            kept += 1;
        }
        self.offsets.truncate(kept);
        self.timestamps.truncate(kept);
        self.flags.truncate(kept);
        self.headers.truncate(kept);
        if self.parts.keys {
            self.keys.truncate(kept);
        }
        if self.parts.values {
            self.values.truncate(kept);
        }
    }

    /// The columns.
    pub fn finish(self) -> CopiedColumns {
        let nulls = |is_wanted: bool, bit| {
            if is_wanted { Nulls::of(&self.flags, bit) } else { Nulls::default() }
        };
        let (key_nulls, value_nulls) =
            (nulls(self.parts.keys, NULL_KEY), nulls(self.parts.values, NULL_VALUE));
        CopiedColumns {
            offsets: self.offsets,
            timestamps: self.timestamps,
            keys: self.keys.finish(key_nulls),
            values: self.values.finish(value_nulls),
        }
    }
}

#[inline(always)]
#[allow(clippy::arithmetic_side_effects, reason = "sums two bits")]
fn flags(is_key_null: bool, is_value_null: bool) -> u8 {
    u8::from(is_key_null) * NULL_KEY + u8::from(is_value_null) * NULL_VALUE
}

#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "ends are below 2 GiB, and there is one more than rows"
)]
impl ValueBuffer {
    fn new(rows: usize, bytes: usize) -> ValueBuffer {
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(0);
        // A batch is copied with a step to spare.
        let data = if bytes == 0 { Vec::new() } else { Vec::with_capacity(bytes + STEP) };
        ValueBuffer { ends, data }
    }

    fn push(&mut self, value: &[u8]) {
        self.data.extend_from_slice(value);
        self.ends.push(end_of(self.data.len()));
    }

    /// Makes room for `rows` more values of `bytes` bytes in all.
    #[inline]
    fn reserve(&mut self, rows: usize, bytes: usize) {
        end_of(self.data.len().saturating_add(bytes));
        self.ends.reserve(rows);
        self.data.reserve(bytes + STEP);
    }

    /// Moves value `row` behind the first `kept`, which are fewer.
    fn move_down(&mut self, row: usize, kept: usize) {
        let (start, end) = (self.ends[row] as usize, self.ends[row + 1] as usize);
        let to = self.ends[kept] as usize;
        self.data.copy_within(start..end, to);
        self.ends[kept + 1] = end_of(to + (end - start));
    }

    fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows + 1);
        self.data.truncate(self.ends[rows] as usize);
    }

    fn finish(self, nulls: Nulls) -> BinaryValues {
        BinaryValues { ends: self.ends, data: self.data, nulls }
    }
}

/// Where a value ends, as Arrow counts it.
fn end_of(position: usize) -> i32 {
    assert!(i32::try_from(position).is_ok(), "a column of Arrow's Binary ends below 2 GiB");
    position as i32
}

/// Where the rows of one batch go.
#[derive(Clone, Copy, Debug)]
pub struct CopySink {
    offset: *mut i64,
    timestamp: *mut i64,
    flags: *mut u8,
    headers: *mut HeaderPlace,
    keys: ValueSink,
    values: ValueSink,
    base_offset: i64,
    base_timestamp: i64,
    delta_mask: i64,
}

#[derive(Clone, Copy, Debug)]
struct ValueSink {
    /// The end of the row before the first, where the first begins.
    end: *mut i32,
    data: *mut u8,
    is_wanted: bool,
}

#[allow(
    clippy::arithmetic_side_effects,
    reason = "positions lie inside `data` and ends below 2 GiB, as `begin` asserts"
)]
impl ValueSink {
    /// # Safety
    /// There is room for value `index` of a batch that lies in `data`, all before it are written, and
    /// `size` bytes at `position` are inside `data`.
    #[inline(always)]
    unsafe fn put(self, data: &[u8], index: usize, position: usize, size: usize) {
        if !self.is_wanted {
            return;
        }
        // SAFETY: the ends have room for one more than there are rows, and the data for what all
        // records of the batch have together, which do not overlap, and for one step more.
        unsafe {
            let start = *self.end.add(index);
            let (from, to) = (data.as_ptr().add(position), self.data.add(start as usize));
            if size <= MAX_STEPPED_BYTES && position + size + STEP <= data.len() {
                let mut done = 0;
                while done < size {
                    std::ptr::copy_nonoverlapping(from.add(done), to.add(done), STEP);
                    done += STEP;
                }
            } else {
                std::ptr::copy_nonoverlapping(from, to, size);
            }
            self.end.add(index + 1).write(start + size as i32);
        }
    }
}

// SAFETY: it writes row `index` of columns with room for the count it was made for.
unsafe impl Sink for CopySink {
    #[inline(always)]
    unsafe fn put(self, data: &[u8], index: usize, record: Record) {
        let (key_size, value_size) =
            (record.key_length.max(0) as usize, record.value_length.max(0) as usize);
        let delta = record.timestamp_delta & self.delta_mask;
        let place =
            HeaderPlace { position: record.headers_position as u32, end: record.end as u32 };
        // SAFETY: the caller promises that `index` is below the count, for which there is room, and
        // puts the records one after the other; a record that was walked lies inside `data`.
        unsafe {
            self.keys.put(data, index, record.key_position, key_size);
            self.values.put(data, index, record.value_position, value_size);
            self.offset.add(index).write(self.base_offset.wrapping_add(index as i64));
            self.timestamp.add(index).write(self.base_timestamp.wrapping_add(delta));
            self.flags.add(index).write(flags(record.key_length < 0, record.value_length < 0));
            self.headers.add(index).write(place);
        }
    }
}

// SAFETY: `begin` reserves room for all bytes of the data, `sink` for the record count.
unsafe impl Target for Copies {
    type Sink = CopySink;
    const MAX_POSITION: usize = i32::MAX as usize;

    #[inline]
    fn begin(&mut self, data: &[u8]) {
        for (is_wanted, values) in
            [(self.parts.keys, &mut self.keys), (self.parts.values, &mut self.values)]
        {
            if is_wanted {
                values.reserve(0, data.len());
            }
        }
    }

    #[inline]
    fn sink(&mut self, header: &BatchHeader) -> CopySink {
        let rows = header.record_count as u32 as usize;
        self.offsets.reserve(rows);
        self.timestamps.reserve(rows);
        self.flags.reserve(rows);
        self.headers.reserve(rows);
        let (base_timestamp, delta_mask) = header.timestamp_base_and_mask();
        let row_count = self.offsets.len();
        let part = |is_wanted: bool, values: &mut ValueBuffer| {
            if is_wanted {
                values.ends.reserve(rows);
            }
            let end = values.ends.as_mut_ptr().wrapping_add(row_count);
            ValueSink { end, data: values.data.as_mut_ptr(), is_wanted }
        };
        CopySink {
            keys: part(self.parts.keys, &mut self.keys),
            values: part(self.parts.values, &mut self.values),
            offset: self.offsets.as_mut_ptr().wrapping_add(row_count),
            timestamp: self.timestamps.as_mut_ptr().wrapping_add(row_count),
            flags: self.flags.as_mut_ptr().wrapping_add(row_count),
            headers: self.headers.as_mut_ptr().wrapping_add(row_count),
            base_offset: header.base_offset,
            base_timestamp,
            delta_mask,
        }
    }

    #[inline]
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "a vector has as many rows as are counted"
    )]
    unsafe fn done(&mut self, header: &BatchHeader) {
        let rows = self.offsets.len() + header.record_count as usize;
        // SAFETY: the caller promises that the sink has received every record, so every row is written,
        // and the last end is that of the bytes written.
        unsafe {
            self.offsets.set_len(rows);
            self.timestamps.set_len(rows);
            self.flags.set_len(rows);
            self.headers.set_len(rows);
            for (is_wanted, values) in
                [(self.parts.keys, &mut self.keys), (self.parts.values, &mut self.values)]
            {
                if is_wanted {
                    values.ends.set_len(rows + 1);
                    values.data.set_len(values.ends[rows] as usize);
                }
            }
        }
    }
}
