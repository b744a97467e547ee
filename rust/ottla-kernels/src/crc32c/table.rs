//! CRC-32C by tables, for any CPU.

use super::polynomial::after_zero_byte;
use crate::opaque::opaque;

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
