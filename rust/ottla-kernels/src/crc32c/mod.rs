//! CRC-32C (Castagnoli): the checksum of a record batch.
//!
//! [`naive`] is the definition and the oracle; the others are equal to it at every length: a table
//! for any CPU, three streams of the CPU's own CRC instruction (`streams`), and folding by
//! carry-less multiplication (`x86`).

#[cfg(target_arch = "aarch64")]
mod arm;
mod streams;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

use crate::level::Level;
use crate::opaque::opaque;

/// The polynomial, bits reflected.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// The CRC-32C of `data`, by the fastest kernel of this CPU.
///
/// # Examples
///
/// ```
/// assert_eq!(ottla_kernels::crc32c(b"123456789"), 0xe306_9283);
/// ```
pub fn crc32c(data: &[u8]) -> u32 {
    crc32c_at(Level::best(), data)
}

/// The CRC-32C of `data`, by the kernel of `level`.
#[inline]
pub fn crc32c_at(level: Level, data: &[u8]) -> u32 {
    match level.usable() {
        // SAFETY: `usable` says that the CPU has the instructions of the level.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { x86::folded(data) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Bmi2 | Level::Sse42 => unsafe { x86::crc32q(data) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Level::Arm64 => unsafe { arm::crc32cd(data) },
        _ => table(data),
    }
}

/// The definition, one bit at a time: the oracle of the tests.
pub fn naive(data: &[u8]) -> u32 {
    !data.iter().fold(!0, |crc, &byte| after_zero_byte(crc ^ u32::from(byte)))
}

/// The register after eight zero bits.
#[allow(clippy::arithmetic_side_effects, reason = "counts to 8")]
const fn after_zero_byte(mut crc: u32) -> u32 {
    let mut bit = 0;
    while bit < 8 {
        crc = times_x(crc);
        bit += 1;
    }
    crc
}

/// `a * x mod P`, bits reflected: one more zero bit.
const fn times_x(a: u32) -> u32 {
    (a >> 1) ^ (POLYNOMIAL & (a & 1).wrapping_neg())
}

/// `x^n mod P`, bits reflected.
#[allow(clippy::arithmetic_side_effects, reason = "counts to `n`")]
const fn x_to_the(n: u64) -> u32 {
    let (mut power, mut i) = (0x8000_0000, 0);
    while i < n {
        power = times_x(power);
        i += 1;
    }
    power
}

/// `TABLES[k][b]`: the register after byte `b` and `k` zero bytes.
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "indexes that are counted to the size of the tables, at compile time"
)]
static TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = after_zero_byte(byte as u32);
        let mut zeros = 0;
        while zeros < 8 {
            tables[zeros][byte] = crc;
            crc = after_zero_byte(crc);
            zeros += 1;
        }
        byte += 1;
    }
    tables
};

/// Eight bytes a step through eight tables, for any CPU.
///
/// Pairs of loads are joined behind `opaque`; otherwise LLVM turns all eight into gathers, which are
/// four times slower on Zen.
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "eight tables of 256 entries, and indexes of 3 and 8 bits"
)]
pub(crate) fn table(data: &[u8]) -> u32 {
    let (words, tail) = data.as_chunks::<8>();
    let mut crc = !0;
    for word in words {
        let x = u64::from_le_bytes(*word) ^ u64::from(crc);
        let after = |zeros: usize| TABLES[zeros][(x >> (56 - 8 * zeros) & 255) as usize];
        let pair = |zeros: usize| opaque((after(zeros) ^ after(zeros - 1)) as usize) as u32;
        crc = (pair(7) ^ pair(5)) ^ (pair(3) ^ pair(1));
    }
    let byte_by_byte =
        |crc: u32, byte: &u8| TABLES[0][((crc ^ u32::from(*byte)) & 255) as usize] ^ (crc >> 8);
    !tail.iter().fold(crc, byte_by_byte)
}
