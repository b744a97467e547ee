//! The parse of a usual record: wide loads and few branches.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "positions inside `data` plus the bytes of a record, whose parts have at most 31 bits"
)]

use super::Record;
use super::groups::{CONTINUES, Groups, PAYLOAD};
use super::offset::KnownOffset;
use crate::opaque::{opaque, opaque64};

/// A record that begins this many bytes before the end of the buffer can be read without a check: 3
/// bytes of length, attributes, and loads of 8 and 4 bytes.
pub(super) const REACH: usize = 24;

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

/// Moves over a length of one or two bytes at `position`, not beyond `end`, and over as many bytes.
/// `None` for what is unusual.
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
    let first = usize::from(unsafe { *data.add(position) });
    let after = position + 1;
    // One byte, and even: not negative.
    if first & 0x81 == 0 {
        return Some(after + (first >> 1));
    }
    if first < 0x80 {
        return (NULLABLE && first == 1).then_some(after);
    }
    if after >= end {
        return None;
    }
    // SAFETY: `after` is below `end`.
    let second = usize::from(unsafe { *data.add(after) });
    if second >= 0x80 || first & 1 != 0 {
        return None;
    }
    Some(after + 1 + ((first & 0x7f | second << 7) >> 1))
}

/// Whether the bytes from `position` to `end` are ASCII, at least 16: as the headers of a record are as
/// a rule, with their lengths.
///
/// # Safety
/// The bytes of `data` before `end` are readable.
#[inline(always)]
unsafe fn is_ascii(data: *const u8, position: usize, end: usize) -> bool {
    if end - position < 16 {
        return false;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of x86-64; every load ends at `end` at the latest.
    unsafe {
        use std::arch::x86_64::{_mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128};
        let one = |at: usize| _mm_loadu_si128(data.add(at).cast());
        let two = |at: usize| _mm_or_si128(one(at), one(at + 16));
        let four = |at: usize| _mm_or_si128(two(at), two(at + 32));
        // The last load may overlap those before.
        let (mut next, mut bits) = (position, one(end - 16));
        if end - position >= 64 {
            bits = four(end - 64);
            while next + 64 < end {
                bits = _mm_or_si128(bits, four(next));
                next += 64;
            }
        } else {
            while next + 16 < end {
                bits = _mm_or_si128(bits, one(next));
                next += 16;
            }
        }
        _mm_movemask_epi8(bits) == 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: every load ends at `end` at the latest.
    unsafe {
        let mut bits = load8(data.add(end - 8));
        let mut next = position;
        while next + 8 < end {
            bits |= load8(data.add(next));
            next += 8;
        }
        bits & CONTINUES == 0
    }
}

/// Whether the header count at `position` and the headers behind it end exactly at `end`, and
/// nothing in them is unusual.
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

/// Whether the keys of headers are UTF-8: some clients cannot read the others.
///
/// # Safety
/// [`headers_end_at`] accepts the headers.
#[cold]
#[inline(never)]
unsafe fn has_text_keys(data: *const u8, position: usize, end: usize) -> bool {
    // SAFETY: the headers lie before `end`, and begin with their count, in one byte.
    let count = unsafe { *data.add(position) } >> 1;
    let mut next = position + 1;
    for _ in 0..count {
        // SAFETY: a key begins below `end`, with a length of one or two bytes.
        let from = next + 1 + usize::from(unsafe { *data.add(next) } >= 0x80);
        // SAFETY: as above; what follows was accepted.
        let Some(value) = (unsafe { skip_header_part::<false>(data, next, end) }) else {
            return false;
        };
        // SAFETY: the key ends where its value begins, before `end`.
        let key = unsafe { std::slice::from_raw_parts(data.add(from), value - from) };
        // SAFETY: as above.
        let after = unsafe { skip_header_part::<true>(data, value, end) };
        let (Ok(_), Some(after)) = (std::str::from_utf8(key), after) else { return false };
        next = after;
    }
    true
}

/// [`CONTINUES`] and [`PAYLOAD`], hidden from the optimiser, which would load them into registers again
/// for every record.
#[derive(Clone, Copy)]
pub(super) struct Masks {
    continues: u64,
    payload: u64,
}

impl Masks {
    #[inline(always)]
    pub(super) fn new() -> Masks {
        Masks { continues: opaque64(CONTINUES), payload: opaque64(PAYLOAD) }
    }
}

/// The length of a record that begins with `word`, and where its attributes are; `None` for what is
/// unusual.
///
/// # Safety
/// The CPU has the instructions of `groups`.
#[inline(always)]
unsafe fn record_length<G: Groups>(groups: G, word: u32, position: usize) -> Option<(u32, usize)> {
    // A length that is odd is negative. The byte behind the length is the attributes, whose high bit
    // is usually 0.
    if word & 0x80_8081 == 0x80 {
        // SAFETY: the caller promises the instructions.
        let length = unsafe { groups.join_half(word, 0x7f7f) };
        Some((length, opaque(position + 2)))
    } else if word & 0x8081 == 0 {
        Some((word >> 1 & 0x3f, opaque(position + 1)))
    } else if word & 0x8080_8081 == 0x8080 {
        // SAFETY: the caller promises the instructions.
        let length = unsafe { groups.join_half(word, 0x7f_7f7f) };
        Some((length, opaque(position + 3)))
    } else {
        None
    }
}

/// A key length that is not one even byte: −1 for null, or with `LONG_KEY` two bytes; `None` for what is
/// unusual.
#[inline(always)]
fn other_key_length<const LONG_KEY: bool>(
    after_timestamp: u64,
    offset: KnownOffset,
    stop: u32,
) -> Option<i32> {
    let first = (after_timestamp >> (8 * offset.bytes + 1)) as u32 & 0xff;
    let second = (after_timestamp >> (8 * offset.bytes + 9)) as u32 & 0xff;
    if first == 1 {
        return Some(-1);
    }
    let is_long = LONG_KEY && first & 1 == 0 && second < 0x80 && stop + 8 <= offset.last_stop;
    is_long.then_some(((first & 0x7f | second << 7) >> 1) as i32)
}

/// The value whose length `word` begins with, at `position`: where it is, its bytes, and its length,
/// −1 for null. `None` for what is unusual.
///
/// # Safety
/// The CPU has the instructions of `groups`.
#[inline(always)]
unsafe fn value_length<G: Groups>(
    groups: G,
    masks: Masks,
    word: u32,
    position: usize,
) -> Option<(usize, usize, i32)> {
    let stops = !word & masks.continues as u32;
    if stops == 0 {
        return None;
    }
    // SAFETY: the caller promises the instructions.
    let size =
        unsafe { groups.join_half(word, (stops ^ stops.wrapping_sub(1)) & masks.payload as u32) };
    let mut length = size as i32;
    if word & 1 != 0 {
        if word & 0xff != 1 {
            return None;
        }
        length = -1;
    }
    Some((position + (stops.trailing_zeros() >> 3) as usize + 1, size as usize, length))
}

/// Whether the headers at `position` end where the record ends, and nothing in them is unusual.
///
/// # Safety
/// The bytes of `data` before `record_end` are readable.
#[inline(always)]
unsafe fn ends_with_headers(data: *const u8, position: usize, record_end: usize) -> bool {
    if position + 1 == record_end {
        // SAFETY: the byte is inside the record.
        unsafe { *data.add(position) == 0 }
    } else {
        // SAFETY: `position` is inside the record.
        position < record_end && unsafe { has_usual_headers(data, position, record_end) }
    }
}

/// Whether headers end at `end`, and nothing in them is unusual. Out of line: within the walk it would
/// cost records without headers 4 to 9 %, and here it costs those with headers 3 %.
///
/// # Safety
/// As [`headers_end_at`].
#[inline(never)]
unsafe fn has_usual_headers(data: *const u8, position: usize, end: usize) -> bool {
    // SAFETY: as the caller promises; the keys are looked at where the headers are accepted.
    unsafe {
        headers_end_at(data, position, end)
            && (is_ascii(data, position, end) || has_text_keys(data, position, end))
    }
}

/// The record at `position`, if it is usual and correct. A key length of two bytes is usual only with
/// `LONG_KEY`: to check for it would cost all others 7 %.
///
/// # Safety
/// `position + REACH` and `end` are at most the size of `data`; the CPU has the instructions of
/// `groups`.
#[inline(always)]
pub(super) unsafe fn usual_record<G: Groups, const LONG_KEY: bool>(
    groups: G,
    masks: Masks,
    data: &[u8],
    position: usize,
    end: usize,
    offset: KnownOffset,
    max_zigzag: u64,
) -> Option<Record> {
    let bytes = data.as_ptr();
    // SAFETY: 4 bytes at `position` are inside, by `REACH`.
    let word = unsafe { load4(bytes.add(position)) };
    // SAFETY: the caller promises the instructions.
    let (length, attributes) = unsafe { record_length(groups, word, position) }?;
    let record_end = attributes + length as usize;
    let next = opaque(record_end);

    // SAFETY: the 8 bytes begin at most 4 after `position`.
    let word = unsafe { load8(bytes.add(attributes + 1)) };
    let stops = !word & masks.continues;
    let stop = stops.trailing_zeros();
    // SAFETY: the caller promises the instructions.
    let timestamp = unsafe { groups.join(word, (stops ^ stops.wrapping_sub(1)) & masks.payload) };
    let after_timestamp = word >> (stop & 63);
    let mut key_position = attributes + (stop >> 3) as usize + offset.bytes as usize + 3;
    if record_end > end || stop > offset.last_stop || timestamp > max_zigzag {
        return None;
    }
    // SAFETY: the caller promises the instructions.
    let mut key_size = unsafe { groups.pick(after_timestamp, offset.key) } as usize;
    let mut key_length = key_size as i32;
    let difference = after_timestamp ^ offset.varint;
    if difference & offset.mask_with_key != 0 {
        if difference & offset.mask != 0 {
            return None;
        }
        key_length = other_key_length::<LONG_KEY>(after_timestamp, offset, stop)?;
        if key_length >= 0 {
            key_size = key_length as usize;
            key_position += 1;
        }
    }
    let value = key_position + key_size;
    // Room for the value length. It takes less than 4 bytes when the value is short.
    if value + 4 > record_end && (value >= record_end || value + 4 > data.len()) {
        return None;
    }
    // SAFETY: `value + 4` is at most `record_end`, which is at most `end`, or at most the size of
    // `data`; the caller promises the instructions.
    let (value_position, value_size, value_length) =
        unsafe { value_length(groups, masks, load4(bytes.add(value)), value) }?;
    let headers_position = value_position + value_size;
    // SAFETY: `record_end` is inside `data`.
    if !unsafe { ends_with_headers(bytes, headers_position, record_end) } {
        return None;
    }
    Some(Record {
        timestamp_delta: (timestamp >> 1) as i64 ^ -((timestamp & 1) as i64),
        key_position,
        key_length,
        value_position,
        value_length,
        headers_position,
        end: next,
    })
}
