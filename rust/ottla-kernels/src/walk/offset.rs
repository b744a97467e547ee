//! The offset delta that the next record must have, as the bytes of its varint.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "shifts and sums of at most 5 bytes in a word of 8"
)]

use super::groups::CONTINUES;

/// Bytes of the largest offset delta.
const MAX_OFFSET_BYTES: u32 = 5;

/// The offset delta that the next record must have, as the bytes of its varint. All bits are shifted
/// up by one: they are compared with a word whose bit 0 is the last of the timestamp delta.
#[derive(Clone, Copy)]
pub(super) struct KnownOffset {
    pub(super) bytes: u32,
    pub(super) varint: u64,
    /// The bits of the varint, and those that say whether it continues.
    pub(super) mask: u64,
    /// The same, and the bits of the next byte, the key length, that say whether it is odd or continues.
    pub(super) mask_with_key: u64,
    /// The other bits of that byte: the key length, if it is one even byte.
    pub(super) key: u64,
    continues: u64,
    /// The highest place of the timestamp delta's last bit that leaves room for the offset delta and one
    /// byte of key length in a word.
    pub(super) last_stop: u32,
}

impl KnownOffset {
    /// The offset delta of record `index`.
    #[inline(always)]
    pub(super) fn of(index: usize) -> KnownOffset {
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

    /// The first index with a longer varint.
    #[inline(always)]
    pub(super) fn segment_end(self) -> usize {
        1_usize.checked_shl(7 * self.bytes - 1).unwrap_or(usize::MAX)
    }

    /// Adds one, which zigzag makes two. A carry runs through the bits that say "continues", which are
    /// then set again.
    #[inline(always)]
    pub(super) fn increment(&mut self) {
        self.varint = (self.varint + (2 << 1)) | self.continues;
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test may panic")]
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
}
