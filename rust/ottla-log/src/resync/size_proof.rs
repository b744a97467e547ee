//! The end of a batch whose size field is wrong: where its CRC is that of the bytes so far.

use crate::source::Window;
use ottla_format::header::{CRC_START, LOG_OVERHEAD, RECORD_BATCH_OVERHEAD, field, read_i32};
use ottla_format::legacy;
use ottla_kernels::gzip::crc32;

/// How far the end of such a batch is searched for.
const MAX_BYTES: u64 = 8 << 20;

/// Bytes that the CRC of an empty legacy message covers.
const MIN_LEGACY_BYTES: u64 = 10;

/// The CRC that a batch stores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredCrc {
    value: u32,
    /// Where it begins to cover.
    start: u64,
    is_legacy: bool,
}

impl StoredCrc {
    /// Reads the CRC of a batch at `position`, of which `head` are the first bytes.
    pub(crate) fn read(head: &[u8], position: u64, is_legacy: bool) -> Option<Self> {
        let (at, start) = if is_legacy {
            (LOG_OVERHEAD + legacy::CRC, LOG_OVERHEAD + legacy::MAGIC)
        } else {
            (field::CRC, CRC_START)
        };
        let value = read_i32(head, at)? as u32;
        Some(Self { value, start: position.saturating_add(start as u64), is_legacy })
    }

    /// The fewest bytes that it can cover.
    fn min_bytes(&self) -> u64 {
        let v2 = RECORD_BATCH_OVERHEAD.saturating_sub(CRC_START) as u64;
        if self.is_legacy { MIN_LEGACY_BYTES } else { v2 }
    }
}

/// The CRC of a batch over more and more bytes, each of them hashed once.
pub(crate) struct SizeProof {
    stored: Option<StoredCrc>,
    /// Bytes up to here are hashed.
    hashed_to: u64,
    crc: RunningCrc,
}

enum RunningCrc {
    Castagnoli(u32),
    Legacy(u32),
}

impl SizeProof {
    pub(crate) fn new(stored: Option<StoredCrc>) -> Self {
        let is_legacy = stored.is_some_and(|stored| stored.is_legacy);
        let crc = if is_legacy { RunningCrc::Legacy(0) } else { RunningCrc::Castagnoli(0) };
        Self { stored, hashed_to: stored.map_or(0, |stored| stored.start), crc }
    }

    /// Whether the CRC is that of the bytes up to `end`, which goes up from call to call.
    pub(crate) fn ends_at(&mut self, window: &mut Window<'_>, end: u64) -> bool {
        let Some(stored) = self.stored else { return false };
        let covered_bytes = end.saturating_sub(stored.start);
        if covered_bytes == 0 || covered_bytes > MAX_BYTES {
            return false;
        }
        let size = end.saturating_sub(self.hashed_to) as usize;
        let Some(covered) = window.hold(self.hashed_to, size).get(..size) else { return false };
        let computed = match &mut self.crc {
            RunningCrc::Legacy(crc) => {
                *crc = crc32(*crc, covered);
                *crc
            }
            RunningCrc::Castagnoli(crc) => {
                *crc = join_crc32c(*crc, ottla_kernels::crc32c(covered), size as u64);
                *crc
            }
        };
        self.hashed_to = end;
        covered_bytes >= stored.min_bytes() && computed == stored.value
    }
}

/// Returns the CRC-32C of two stretches of bytes together, from the CRC of each and the size of the
/// second: the first times `x` to the power of the second's bits, modulo the polynomial.
fn join_crc32c(first: u32, second: u32, second_size: u64) -> u32 {
    let mut shifted = first;
    for (bit, &power) in POWERS.iter().enumerate() {
        if second_size >> bit & 1 == 1 {
            shifted = multiply(shifted, power);
        }
    }
    shifted ^ second
}

/// `x` to the power of 8, 16, 32 and so on: one byte, two bytes, four bytes.
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "evaluated by the compiler, which would refuse a place outside"
)]
const POWERS: [u32; 32] = {
    let mut powers = [0x0080_0000; 32];
    let mut bit = 1;
    while bit < 32 {
        powers[bit] = multiply(powers[bit - 1], powers[bit - 1]);
        bit += 1;
    }
    powers
};

/// The product of two polynomials modulo that of CRC-32C; bits are reflected.
#[allow(clippy::arithmetic_side_effects, reason = "the bit counts down from 32 to 0")]
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 32;
    while bit > 0 {
        bit -= 1;
        product ^= b & (a >> bit & 1).wrapping_neg();
        b = (b >> 1) ^ (0x82f6_3b78 & (b & 1).wrapping_neg());
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_of_two_stretches_is_that_of_both_together() {
        let bytes: Vec<u8> = (0..5000u32).map(|i| (i * 31 % 251) as u8).collect();
        for cut in [0, 1, 7, 8, 61, 255, 256, 4095, 5000] {
            let (first, second) = bytes.split_at(cut);
            let (a, b) = (ottla_kernels::crc32c(first), ottla_kernels::crc32c(second));
            assert_eq!(join_crc32c(a, b, second.len() as u64), ottla_kernels::crc32c(&bytes));
        }
    }
}
