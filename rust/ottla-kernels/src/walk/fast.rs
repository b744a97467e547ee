//! The fast walk. What makes it fast:
//!
//! * The only serial chain is *record length → next record*. The length is decoded by a branch on its size: guessing right
//!   takes the load out of the chain. `opaque` hides from LLVM that the end of the headers equals the next record, or it may
//!   chain the whole parse into the hop.
//! * Time delta, offset delta and key length stand side by side: one 8-byte load serves all of them.
//! * The offset delta of record i must be i, so its bytes are known: they are compared, not decoded.
//! * Every check is a compare and a branch that is never taken: one micro-operation, where collecting flags costs three.
//! * What is unusual goes to the rules, record by record and out of line: a length below −1, a key length of three bytes,
//!   a varint that is longer than it need be, the last bytes of the buffer.
//! * No load leaves the buffer: wide loads happen only where so many bytes are left.

use super::{Record, Shape, Sink, rules};

/// The seven payload bits of each byte, and the bits that say whether a varint goes on.
const PAYLOAD: u64 = 0x7f7f_7f7f_7f7f_7f7f;
const CONTINUES: u64 = 0x8080_8080_8080_8080;

/// A record that begins this many bytes before the end of the buffer can be read without looking: 3 bytes of length,
/// attributes, and loads of 8 and 4 bytes.
const REACH: usize = 24;

/// How seven-bit groups are joined and parted: by one instruction, or by shifts.
pub(crate) trait Groups: Copy {
    /// The payload bits of `word` under `mask`, which is `PAYLOAD` up to some byte, side by side.
    ///
    /// # Safety
    /// The CPU has the instructions used.
    unsafe fn join(self, word: u64, mask: u64) -> u64;
    /// The same of four bytes.
    ///
    /// # Safety
    /// The CPU has the instructions used.
    unsafe fn join32(self, word: u32, mask: u32) -> u32;
    /// The inverse: seven bits of `value` a byte.
    ///
    /// # Safety
    /// The CPU has the instructions used.
    unsafe fn part(self, value: u64) -> u64;
}

/// By shifts and masks: any CPU.
#[derive(Clone, Copy)]
pub(crate) struct Shifts;

impl Groups for Shifts {
    #[inline(always)]
    unsafe fn join(self, word: u64, mask: u64) -> u64 {
        let x = word & mask;
        let x = (x & 0x007f_007f_007f_007f) | (x & 0x7f00_7f00_7f00_7f00) >> 1;
        let x = (x & 0x0000_3fff_0000_3fff) | (x & 0x3fff_0000_3fff_0000) >> 2;
        (x & 0x0fff_ffff) | (x & 0x0fff_ffff_0000_0000) >> 4
    }
    #[inline(always)]
    unsafe fn join32(self, word: u32, mask: u32) -> u32 {
        let x = word & mask;
        let x = (x & 0x007f_007f) | (x & 0x7f00_7f00) >> 1;
        (x & 0x3fff) | (x & 0x3fff_0000) >> 2
    }
    #[inline(always)]
    unsafe fn part(self, value: u64) -> u64 {
        let x = (value & 0x0fff_ffff) | (value & 0x00ff_ffff_f000_0000) << 4;
        let x = (x & 0x0000_3fff_0000_3fff) | (x & 0x0fff_c000_0fff_c000) << 2;
        (x & 0x007f_007f_007f_007f) | (x & 0x3f80_3f80_3f80_3f80) << 1
    }
}

/// By `pext` and `pdep`.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Bmi2;

#[cfg(target_arch = "x86_64")]
impl Groups for Bmi2 {
    #[inline]
    #[target_feature(enable = "bmi2")]
    unsafe fn join(self, word: u64, mask: u64) -> u64 {
        std::arch::x86_64::_pext_u64(word, mask)
    }
    #[inline]
    #[target_feature(enable = "bmi2")]
    unsafe fn join32(self, word: u32, mask: u32) -> u32 {
        std::arch::x86_64::_pext_u32(word, mask)
    }
    #[inline]
    #[target_feature(enable = "bmi2")]
    unsafe fn part(self, value: u64) -> u64 {
        std::arch::x86_64::_pdep_u64(value, PAYLOAD)
    }
}

/// A copy the optimiser knows nothing about; no instruction.
#[inline(always)]
fn opaque(value: usize) -> usize {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let mut copy = value;
        // SAFETY: the assembly is a comment.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) copy, options(pure, nomem, nostack, preserves_flags));
        };
        copy
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    value
}

/// # Safety
/// 4 bytes at `from` are readable.
#[inline(always)]
unsafe fn load4(from: *const u8) -> u32 {
    // SAFETY: the caller promises the bytes.
    u32::from_le(unsafe { from.cast::<u32>().read_unaligned() })
}

/// # Safety
/// 8 bytes at `from` are readable.
#[inline(always)]
unsafe fn load8(from: *const u8) -> u64 {
    // SAFETY: the caller promises the bytes.
    u64::from_le(unsafe { from.cast::<u64>().read_unaligned() })
}

#[inline(always)]
fn unzigzag(value: u32) -> i32 {
    (value >> 1) as i32 ^ -((value & 1) as i32)
}

/// A length of one or two bytes at `position`, not beyond `end`, and the position after what it counts; `None` for what is
/// unusual.
///
/// # Safety
/// The bytes of `data` before `end` are readable.
#[inline(always)]
unsafe fn skip_header_part<const NULLABLE: bool>(
    data: *const u8,
    position: usize,
    end: usize,
) -> Option<usize> {
    if position >= end {
        return None;
    }
    // SAFETY: `position` is below `end`.
    let mut zigzag = usize::from(unsafe { *data.add(position) });
    let mut after = position + 1;
    if zigzag >= 0x80 {
        if after >= end {
            return None;
        }
        // SAFETY: `after` is below `end`.
        let second = usize::from(unsafe { *data.add(after) });
        if second >= 0x80 {
            return None;
        }
        zigzag = zigzag & 0x7f | second << 7;
        after += 1;
    }
    if zigzag & 1 != 0 && !(NULLABLE && zigzag == 1) {
        return None;
    }
    Some(after + (zigzag >> 1))
}

/// Whether the header count at `position` and the headers behind it end exactly at `end`, and nothing in them is unusual.
///
/// # Safety
/// `position` is below `end`, and the bytes of `data` before `end` are readable.
#[inline(always)]
unsafe fn headers_end_at(data: *const u8, position: usize, end: usize) -> bool {
    // SAFETY: `position` is below `end`.
    let count = unsafe { *data.add(position) };
    if count & 0x81 != 0 {
        return false;
    }
    let mut next = position + 1;
    for _ in 0..count >> 1 {
        // SAFETY: the caller promises the bytes before `end`.
        let Some(value) = (unsafe { skip_header_part::<false>(data, next, end) }) else {
            return false;
        };
        // SAFETY: as above.
        let Some(after) = (unsafe { skip_header_part::<true>(data, value, end) }) else {
            return false;
        };
        next = after;
    }
    next == end
}

/// Offset deltas whose varints have the same size: below 64, below 8192, below 2^20 ….
#[derive(Clone, Copy)]
struct OffsetSegment {
    bytes: u32,
    /// The bits of the varint, one bit up: in a word whose bit 0 is the last of the time delta.
    mask: u64,
    /// The continuation bits of the varint.
    continues: u64,
    /// The highest place of the time delta's last bit that leaves room for the offset delta and one byte of key length in
    /// a word.
    last_stop: u32,
}

impl OffsetSegment {
    #[inline(always)]
    fn new(bytes: u32) -> OffsetSegment {
        let bits = 8 * bytes;
        OffsetSegment {
            bytes,
            mask: ((1 << bits) - 1) << 1,
            continues: CONTINUES & ((1 << (bits - 8)) - 1),
            last_stop: 55 - bits,
        }
    }
}

/// Record `index` at `position`, if it is usual and right.
///
/// # Safety
/// `position + REACH` and `end` are at most the size of `data`; the CPU has the instructions of `groups`.
#[inline(always)]
unsafe fn usual_record<G: Groups>(
    groups: G,
    data: &[u8],
    position: usize,
    end: usize,
    index: usize,
    segment: OffsetSegment,
    max_zigzag: u64,
) -> Option<Record> {
    let bytes = data.as_ptr();
    // SAFETY: 4 bytes at `position` are inside, by `REACH`.
    let word = unsafe { load4(bytes.add(position)) };
    let (length, attributes);
    if word & 0x80 == 0 {
        length = word & 0x7f;
        attributes = opaque(position + 1);
    } else if word & 0x8000 == 0 {
        length = word & 0x7f | word >> 1 & 0x3f80;
        attributes = opaque(position + 2);
    } else if word & 0x80_0000 == 0 {
        length = word & 0x7f | word >> 1 & 0x3f80 | word >> 2 & 0x1f_c000;
        attributes = opaque(position + 3);
    } else {
        return None;
    }
    let record_end = attributes + (length >> 1) as usize;
    let next = opaque(record_end);

    // SAFETY: the 8 bytes begin at most 4 after `position`.
    let word = unsafe { load8(bytes.add(attributes + 1)) };
    let stops = !word & CONTINUES;
    let stop = stops.trailing_zeros();
    // SAFETY: the caller promises the instructions.
    let timestamp = unsafe { groups.join(word, (stops ^ stops.wrapping_sub(1)) & PAYLOAD) };
    let after_timestamp = word >> (stop & 63);
    // SAFETY: the caller promises the instructions.
    let known_offset = (unsafe { groups.part((index as u64) << 1) } | segment.continues) << 1;
    let key_length = (after_timestamp >> (8 * segment.bytes + 1)) as u32 & 0xff;
    let key_position = attributes + (stop >> 3) as usize + segment.bytes as usize + 3;
    let value = key_position + (key_length >> 1) as usize;
    if record_end > end
        || stop > segment.last_stop
        || (after_timestamp ^ known_offset) & segment.mask != 0
        || timestamp > max_zigzag
    {
        return None;
    }
    // A negative record length; a key length that is negative, but for null, or has two bytes.
    if (length | key_length) & 0x81 != 0 && (length & 1 != 0 || key_length != 1) {
        return None;
    }
    // Room for the value length. It takes less than 4 bytes when the value is short.
    if value + 4 > record_end && (value >= record_end || value + 4 > data.len()) {
        return None;
    }
    // SAFETY: `value + 4` is at most `record_end`, which is at most `end`, or at most the size of `data`.
    let word = unsafe { load4(bytes.add(value)) };
    let stops = !word & CONTINUES as u32;
    // SAFETY: the caller promises the instructions.
    let value_length =
        unsafe { groups.join32(word, (stops ^ stops.wrapping_sub(1)) & PAYLOAD as u32) };
    let value_position = value + (stops.trailing_zeros() >> 3) as usize + 1;
    let headers_position = value_position + (value_length >> 1) as usize;
    if stops == 0 || (value_length & 1 != 0 && value_length != 1) {
        return None;
    }
    if headers_position + 1 == record_end {
        // SAFETY: the byte is inside the record.
        if unsafe { *bytes.add(headers_position) } != 0 {
            return None;
        }
    } else if headers_position >= record_end
        // SAFETY: `headers_position` is inside the record, and the record inside `data`.
        || !unsafe { headers_end_at(bytes, headers_position, record_end) }
    {
        return None;
    }
    Some(Record {
        timestamp_delta: (timestamp >> 1) as i64 ^ -((timestamp & 1) as i64),
        key_position,
        key_length: unzigzag(key_length),
        value_position,
        value_length: unzigzag(value_length),
        headers_position,
        end: next,
    })
}

/// Whether every record of `shape` is right and nothing is left; `before_each` runs once a record, before it.
///
/// # Safety
/// `shape` lies inside `data`; the sink was made for its count; the CPU has the instructions of `groups`.
#[inline(always)]
pub(crate) unsafe fn walk<G: Groups, S: Sink>(
    groups: G,
    data: &[u8],
    shape: Shape,
    sink: S,
    mut before_each: impl FnMut(),
) -> bool {
    let Shape {
        records,
        end,
        count,
        max_delta,
    } = shape;
    let max_zigzag = if max_delta == i64::MAX {
        u64::MAX
    } else {
        (max_delta as u64) << 1
    };
    let size = data.len();
    let (mut position, mut index, mut offset_bytes) = (records, 0, 1);
    while index < count {
        let segment = OffsetSegment::new(offset_bytes);
        let segment_end = count.min(1 << (7 * offset_bytes - 1));
        while index < segment_end {
            before_each();
            let usual = if position + REACH > size {
                None
            } else {
                // SAFETY: just compared; the rest is promised by the caller.
                unsafe { usual_record(groups, data, position, end, index, segment, max_zigzag) }
            };
            let record = match usual {
                Some(record) => record,
                None => {
                    match rules::read_unusual_record(&data[..end], position, index, max_delta) {
                        Some(record) => record,
                        None => return false,
                    }
                }
            };
            // SAFETY: `index` is below the count.
            unsafe { sink.put(data, index, record) };
            position = record.end;
            index += 1;
        }
        offset_bytes += 1;
    }
    position == end
}
