//! The fast walk. What makes it fast:
//!
//! * The only serial chain is *record length → next record*. The length is decoded by a branch on
//!   its size: guessing right takes the load out of the chain. `opaque` hides from LLVM that the
//!   end of the headers equals the next record, or it may chain the whole parse into the hop.
//! * Time delta, offset delta and key length stand side by side: one 8-byte load serves all of
//!   them.
//! * The offset delta of record i must be i, so its bytes are known: they are compared, not
//!   decoded.
//! * Every check is a compare and a branch that is never taken: one micro-operation, where
//!   collecting flags costs three.
//! * What is unusual goes to the rules, record by record and out of line: a length below −1, a key
//!   length of three bytes, a varint that is longer than it need be, the last bytes of the buffer.
//! * No load leaves the buffer: wide loads happen only where so many bytes are left.

use super::{Record, Shape, Sink, rules};
use crate::opaque::{opaque, opaque64};

/// The seven payload bits of each byte, and the bits that say whether a varint goes on.
const PAYLOAD: u64 = 0x7f7f_7f7f_7f7f_7f7f;
const CONTINUES: u64 = 0x8080_8080_8080_8080;

/// A record that begins this many bytes before the end of the buffer can be read without looking: 3
/// bytes of length, attributes, and loads of 8 and 4 bytes.
const REACH: usize = 24;

/// How seven-bit groups are joined and parted: by one instruction, or by shifts.
pub(crate) trait Groups: Copy {
    /// The payload bits of `word` under `mask`, which is `PAYLOAD` up to some byte, side by side.
    ///
    /// # Safety
    /// The CPU has the instructions used.
    unsafe fn join(self, word: u64, mask: u64) -> u64;
    /// The same of four bytes, halved: what a zigzag number that is not negative stands for.
    ///
    /// # Safety
    /// The CPU has the instructions used.
    unsafe fn join_half(self, word: u32, mask: u32) -> u32;
    /// The bits of `word` under `mask`, which are side by side already.
    ///
    /// # Safety
    /// The CPU has the instructions used.
    unsafe fn pick(self, word: u64, mask: u64) -> u64;
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
    unsafe fn join_half(self, word: u32, mask: u32) -> u32 {
        let x = word & mask;
        let x = (x & 0x007f_007f) | (x & 0x7f00_7f00) >> 1;
        ((x & 0x3fff) | (x & 0x3fff_0000) >> 2) >> 1
    }
    #[inline(always)]
    unsafe fn pick(self, word: u64, mask: u64) -> u64 {
        (word & mask) >> (mask.trailing_zeros() & 63)
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
    unsafe fn join_half(self, word: u32, mask: u32) -> u32 {
        std::arch::x86_64::_pext_u32(word, mask & !1)
    }
    #[inline]
    #[target_feature(enable = "bmi2")]
    unsafe fn pick(self, word: u64, mask: u64) -> u64 {
        std::arch::x86_64::_pext_u64(word, mask)
    }
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

/// A length of one or two bytes at `position`, not beyond `end`, and the position after what it
/// counts; `None` for what is unusual.
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

/// [`CONTINUES`] and [`PAYLOAD`] as the optimiser does not know them: it would load them anew into
/// registers for every record.
#[derive(Clone, Copy)]
struct Masks {
    continues: u64,
    payload: u64,
}

impl Masks {
    #[inline(always)]
    fn new() -> Masks {
        Masks { continues: opaque64(CONTINUES), payload: opaque64(PAYLOAD) }
    }
}

/// Bytes of the largest offset delta.
const MAX_OFFSET_BYTES: u32 = 5;

/// The offset delta that the next record must have, as the bytes of its varint. All bits are one
/// up: they are compared with a word whose bit 0 is the last of the time delta.
#[derive(Clone, Copy)]
struct KnownOffset {
    bytes: u32,
    varint: u64,
    /// The bits of the varint, and those that say whether it goes on.
    mask: u64,
    /// Those, and of the byte after it, the key length, the bits that say whether it is odd or goes
    /// on.
    mask_with_key: u64,
    /// The other bits of that byte: the key length, if it is one byte and even.
    key: u64,
    continues: u64,
    /// The highest place of the time delta's last bit that leaves room for the offset delta and one
    /// byte of key length in a word.
    last_stop: u32,
}

impl KnownOffset {
    /// The offset delta of record `index`.
    #[inline(always)]
    fn of(index: usize) -> KnownOffset {
        let zigzag = (index as u64) << 1;
        let bytes = (u64::BITS - (zigzag | 1).leading_zeros()).div_ceil(7);
        let bits = 8 * bytes;
        let continues = (CONTINUES & ((1 << (bits - 8)) - 1)) << 1;
        let groups = (0..MAX_OFFSET_BYTES).map(|k| (zigzag >> (7 * k) & 0x7f) << (8 * k));
        let varint = groups.fold(0, |varint, group| varint | group) << 1;
        KnownOffset {
            bytes,
            varint: varint | continues,
            mask: ((1 << bits) - 1) << 1,
            mask_with_key: (((1 << bits) - 1) | 0x81 << bits) << 1,
            key: 0x7e << bits << 1,
            continues,
            last_stop: 55 - bits,
        }
    }

    /// The first index whose varint is longer.
    #[inline(always)]
    fn segment_end(self) -> usize {
        1_usize.checked_shl(7 * self.bytes - 1).unwrap_or(usize::MAX)
    }

    /// One more: zigzag makes it two. A carry runs through the bits that say "goes on", which then
    /// are set again.
    #[inline(always)]
    fn increment(&mut self) {
        self.varint = (self.varint + (2 << 1)) | self.continues;
    }
}

/// The record at `position`, if it is usual and right. A key length of two bytes is usual for
/// `LONG_KEY` only: looking for it costs all others 7 %.
///
/// # Safety
/// `position + REACH` and `end` are at most the size of `data`; the CPU has the instructions of
/// `groups`.
#[inline(always)]
unsafe fn usual_record<G: Groups, const LONG_KEY: bool>(
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
    // A length that is odd is negative.
    let (length, attributes);
    if word & 0x8081 == 0x80 {
        // SAFETY: the caller promises the instructions.
        length = unsafe { groups.join_half(word, 0x7f7f) };
        attributes = opaque(position + 2);
    } else if word & 0x81 == 0 {
        length = word >> 1 & 0x3f;
        attributes = opaque(position + 1);
    } else if word & 0x80_8081 == 0x8080 {
        // SAFETY: the caller promises the instructions.
        length = unsafe { groups.join_half(word, 0x7f_7f7f) };
        attributes = opaque(position + 3);
    } else {
        return None;
    }
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
        let first = (after_timestamp >> (8 * offset.bytes + 1)) as u32 & 0xff;
        let second = (after_timestamp >> (8 * offset.bytes + 9)) as u32 & 0xff;
        if first == 1 {
            key_length = -1;
        } else if LONG_KEY && first & 1 == 0 && second < 0x80 && stop + 8 <= offset.last_stop {
            key_size = (first & 0x7f | second << 7) as usize >> 1;
            key_length = key_size as i32;
            key_position += 1;
        } else {
            return None;
        }
    }
    let value = key_position + key_size;
    // Room for the value length. It takes less than 4 bytes when the value is short.
    if value + 4 > record_end && (value >= record_end || value + 4 > data.len()) {
        return None;
    }
    // SAFETY: `value + 4` is at most `record_end`, which is at most `end`, or at most the size of
    // `data`.
    let word = unsafe { load4(bytes.add(value)) };
    let stops = !word & masks.continues as u32;
    if stops == 0 {
        return None;
    }
    // SAFETY: the caller promises the instructions.
    let value_size =
        unsafe { groups.join_half(word, (stops ^ stops.wrapping_sub(1)) & masks.payload as u32) };
    let mut value_length = value_size as i32;
    if word & 1 != 0 {
        if word & 0xff != 1 {
            return None;
        }
        value_length = -1;
    }
    let value_position = value + (stops.trailing_zeros() >> 3) as usize + 1;
    let headers_position = value_position + value_size as usize;
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
        key_length,
        value_position,
        value_length,
        headers_position,
        end: next,
    })
}

/// Records up to here have an offset delta of one byte.
const FEW: usize = 64;

/// Whether every record of `shape` is right and nothing is left; `before_each` runs once a record,
/// before it.
///
/// # Safety
/// `shape` lies inside `data`; the sink was made for its count; the CPU has the instructions of
/// `groups`.
#[inline(always)]
pub(crate) unsafe fn walk<G: Groups, S: Sink>(
    groups: G,
    data: &[u8],
    shape: Shape,
    sink: S,
    mut before_each: impl FnMut(),
) -> bool {
    let (mut position, mut index) = (shape.records, 0);
    while index < shape.count {
        let offset = KnownOffset::of(index);
        let until = shape.count.min(offset.segment_end());
        let first = Next { position, index, offset };
        // SAFETY: `until` is at most the count; the rest is promised by the caller.
        let end = unsafe { walk_until(groups, data, shape, sink, first, until, &mut before_each) };
        let Some(end) = end else { return false };
        position = end;
        index = until;
    }
    position == shape.end
}

/// [`walk`] with nothing beside it.
///
/// # Safety
/// As [`walk`].
#[inline(always)]
pub(crate) unsafe fn walk_alone<G: Groups, S: Sink>(
    groups: G,
    data: &[u8],
    shape: Shape,
    sink: S,
) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        if shape.count <= FEW {
            walk_few(groups, data, shape, sink)
        } else {
            walk(groups, data, shape, sink, || {})
        }
    }
}

/// [`walk`] for small batches: without what only many records need.
///
/// # Safety
/// As [`walk`], and the count is at most [`FEW`].
#[inline(always)]
unsafe fn walk_few<G: Groups, S: Sink>(groups: G, data: &[u8], shape: Shape, sink: S) -> bool {
    debug_assert!(shape.count <= FEW);
    let first = Next { position: shape.records, index: 0, offset: KnownOffset::of(0) };
    // SAFETY: as the caller promises.
    let end = unsafe { walk_until(groups, data, shape, sink, first, shape.count, || {}) };
    end == Some(shape.end)
}

/// The record at `position` of `data`, which ends where the batch ends, if it is right: out of the
/// way of the others.
#[cold]
#[inline(never)]
fn unusual_record(data: &[u8], position: usize, index: usize, max_delta: i64) -> Option<Record> {
    if position.saturating_add(REACH) <= data.len() {
        let (offset, max_zigzag) = (KnownOffset::of(index), (max_delta as u64) << 1);
        // SAFETY: just compared; `data` ends where the batch ends; shifts need no instruction.
        let usual = unsafe {
            let (end, masks) = (data.len(), Masks::new());
            usual_record::<_, true>(Shifts, masks, data, position, end, offset, max_zigzag)
        };
        if usual.is_some() {
            return usual;
        }
    }
    rules::read_record(data, position, index, max_delta)
}

/// Which record comes next, and where.
#[derive(Clone, Copy)]
struct Next {
    position: usize,
    index: usize,
    offset: KnownOffset,
}

/// Walks the records before index `until`, whose offset deltas all have varints of the same size;
/// where the last ends.
///
/// # Safety
/// As [`walk`], and `until` is at most the count.
#[inline(always)]
unsafe fn walk_until<G: Groups, S: Sink>(
    groups: G,
    data: &[u8],
    shape: Shape,
    sink: S,
    first: Next,
    until: usize,
    mut before_each: impl FnMut(),
) -> Option<usize> {
    let Next { mut position, mut index, mut offset } = first;
    let max_zigzag = (shape.max_delta as u64) << 1;
    let masks = Masks::new();
    let last_usual = data.len().checked_sub(REACH);
    while index < until {
        before_each();
        let usual = if last_usual.is_none_or(|last| position > last) {
            None
        } else {
            // SAFETY: just compared; the rest is promised by the caller.
            unsafe {
                let end = shape.end;
                usual_record::<G, false>(groups, masks, data, position, end, offset, max_zigzag)
            }
        };
        let record = match usual {
            Some(record) => record,
            None => unusual_record(data.get(..shape.end)?, position, index, shape.max_delta)?,
        };
        // SAFETY: `index` is below the count.
        unsafe { sink.put(data, index, record) };
        position = record.end;
        index += 1;
        offset.increment();
    }
    Some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint(value: u64) -> Vec<u8> {
        let (mut bytes, mut rest) = (vec![], value << 1);
        while rest > 0x7f {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes
    }

    #[test]
    fn the_known_offset_is_the_varint_of_every_index() {
        let mut index = 0;
        while index < 1 << 27 {
            let mut offset = KnownOffset::of(index);
            let first = index;
            while index < offset.segment_end() && index < first + 20_000 {
                let wanted = varint(index as u64);
                let found = (offset.varint >> 1).to_le_bytes();
                assert_eq!(found[..offset.bytes as usize], wanted, "index {index}");
                assert_eq!(offset.varint & !offset.mask, 0, "index {index}");
                offset.increment();
                index += 1;
            }
            // On to the last indices before the varint grows.
            index = index.max(offset.segment_end().saturating_sub(100));
        }
    }

    #[test]
    fn groups_are_joined_alike_by_shifts_and_by_pext() {
        let mut word = 1u64;
        for _ in 0..10_000 {
            word = word
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            for bytes in 1..=8 {
                let mask = PAYLOAD >> (64 - 8 * bytes);
                let groups = (0..bytes).map(|k| (word >> (8 * k) & 0x7f) << (7 * k));
                let wanted = groups.fold(0, |joined, group| joined | group);
                // SAFETY: shifts need no instruction.
                assert_eq!(unsafe { Shifts.join(word, mask) }, wanted);
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("bmi2") {
                    // SAFETY: just asked for.
                    assert_eq!(unsafe { Bmi2.join(word, mask) }, wanted);
                }
                if bytes <= 4 {
                    // SAFETY: shifts need no instruction.
                    let found = unsafe { Shifts.join_half(word as u32, mask as u32) };
                    assert_eq!(u64::from(found), wanted >> 1);
                    #[cfg(target_arch = "x86_64")]
                    if is_x86_feature_detected!("bmi2") {
                        // SAFETY: just asked for.
                        let found = unsafe { Bmi2.join_half(word as u32, mask as u32) };
                        assert_eq!(u64::from(found), wanted >> 1);
                    }
                }
            }
        }
    }
}
