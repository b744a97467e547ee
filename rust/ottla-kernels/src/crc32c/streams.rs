//! Three streams of a CRC instruction. The instruction takes eight bytes a cycle but returns its
//! result three cycles later, so one stream would leave it idle two thirds of the time. The streams
//! have fixed lengths, so that the factors that join them are constants.

use super::polynomial::{times_x, x_to_the};

/// Bytes of one stream: long streams while the data last, then short ones.
const LONG: usize = 4096;
const SHORT: usize = 256;

/// A CRC instruction: the register after one word, after one byte, and moved by a constant number
/// of zero bytes.
pub(super) trait Instruction: Copy {
    /// # Safety
    /// The CPU has the instruction.
    unsafe fn word(self, crc: u32, word: u64) -> u32;
    /// # Safety
    /// The CPU has the instruction.
    unsafe fn byte(self, crc: u32, byte: u8) -> u32;
    /// # Safety
    /// The CPU has the instructions used.
    unsafe fn shift(self, crc: u32, by: Shift) -> u32;
}

/// A number of zero bytes as factors, one for each way to multiply.
#[derive(Clone, Copy)]
pub(super) struct Shift {
    /// For a carry-less multiplication whose product an instruction reduces, which adds 33 bits.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for x86-64 alone"))]
    pub(super) for_clmul: u32,
    /// For [`multiply`].
    #[cfg_attr(
        all(target_arch = "x86_64", not(test)),
        allow(dead_code, reason = "x86-64 has an instruction for it")
    )]
    pub(super) for_multiply: u32,
}

#[allow(clippy::arithmetic_side_effects, reason = "at compile time, of at least 256 bytes")]
const fn shift_by(bytes: usize) -> Shift {
    let bits = bytes as u64 * 8;
    Shift { for_clmul: x_to_the(bits - 33), for_multiply: x_to_the(bits) }
}

/// `a * b mod P`, bits reflected, without special instructions: 32 steps, for use once in 12 KiB.
#[cfg_attr(
    all(target_arch = "x86_64", not(test)),
    allow(dead_code, reason = "x86-64 has an instruction for it")
)]
pub(super) fn multiply(mut a: u32, b: u32) -> u32 {
    let mut product = 0;
    for bit in (0..32).rev() {
        product ^= a & (b >> bit & 1).wrapping_neg();
        a = times_x(a);
    }
    product
}

/// # Safety
/// The CPU has the instructions of `cpu`.
#[inline(always)]
#[allow(clippy::arithmetic_side_effects, reason = "sizes of 256 and 4096 bytes")]
pub(super) unsafe fn three_streams<I: Instruction>(cpu: I, data: &[u8], shortest: usize) -> u32 {
    const SHIFTS: [(usize, Shift, Shift); 2] =
        [(LONG, shift_by(LONG), shift_by(2 * LONG)), (SHORT, shift_by(SHORT), shift_by(2 * SHORT))];
    let (mut crc, mut rest) = (!0, data);
    for (size, once, twice) in SHIFTS {
        while size >= shortest && rest.len() >= 3 * size {
            let (now, later) = rest.split_at(3 * size);
            let (first, more) = now.split_at(size);
            let (second, third) = more.split_at(size);
            let (mut b, mut c) = (0, 0);
            let words = first
                .as_chunks::<8>()
                .0
                .iter()
                .zip(second.as_chunks::<8>().0)
                .zip(third.as_chunks::<8>().0);
            for ((x, y), z) in words {
                // SAFETY: the caller promises the instructions.
                unsafe {
                    crc = cpu.word(crc, u64::from_le_bytes(*x));
                    b = cpu.word(b, u64::from_le_bytes(*y));
                    c = cpu.word(c, u64::from_le_bytes(*z));
                }
            }
            // SAFETY: the caller promises the instructions.
            crc = unsafe { cpu.shift(crc, twice) ^ cpu.shift(b, once) } ^ c;
            rest = later;
        }
    }
    // SAFETY: the caller promises the instructions.
    !unsafe { odd_bytes_first(cpu, crc, rest) }
}

/// [`one_stream`], aligned to its end: one word instead of up to seven odd bytes, whose number varies
/// from one small batch to the next and so costs a misprediction as well.
///
/// Zeros in front of a message leave a register of 0 as it is. So the first word is the first 1 to 8
/// bytes behind zeros, summed from 0, and the register so far is `XORed` into the first four bytes of
/// the message instead.
///
/// # Safety
/// The CPU has the instructions of `cpu`.
#[inline(always)]
#[allow(clippy::arithmetic_side_effects, reason = "`first` is 1 to 8, and 16 bytes are there")]
unsafe fn odd_bytes_first<I: Instruction>(cpu: I, crc: u32, data: &[u8]) -> u32 {
    let first = data.len().wrapping_sub(1) % 8 + 1;
    let (Some(head), Some((second, words))) = (
        data.first_chunk::<8>(),
        data.get(first..).and_then(|rest| rest.as_chunks::<8>().0.split_first()),
    ) else {
        // SAFETY: the caller promises the instructions.
        return unsafe { one_stream(cpu, crc, data) };
    };
    let crc = u64::from(crc);
    let padded = (u64::from_le_bytes(*head) ^ crc) << (64 - 8 * first);
    // What of the register goes beyond the first bytes: in two steps, since all 64 bits may.
    let beyond = crc >> (8 * (first - 1)) >> 8;
    // SAFETY: the caller promises the instructions.
    unsafe {
        let mut sum = cpu.word(0, padded);
        sum = cpu.word(sum, u64::from_le_bytes(*second) ^ beyond);
        for word in words {
            sum = cpu.word(sum, u64::from_le_bytes(*word));
        }
        sum
    }
}

/// # Safety
/// The CPU has the instructions of `cpu`.
#[inline(always)]
pub(super) unsafe fn one_stream<I: Instruction>(cpu: I, mut crc: u32, data: &[u8]) -> u32 {
    let (words, tail) = data.as_chunks::<8>();
    for word in words {
        // SAFETY: the caller promises the instructions.
        crc = unsafe { cpu.word(crc, u64::from_le_bytes(*word)) };
    }
    for &byte in tail {
        // SAFETY: the caller promises the instructions.
        crc = unsafe { cpu.byte(crc, byte) };
    }
    crc
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::crc32c::naive;
    use crate::crc32c::polynomial::POLYNOMIAL;
    use crate::crc32c::table::table;

    /// The instruction spelled out, so that the joining by [`multiply`] is tested on any CPU.
    #[derive(Clone, Copy)]
    struct Spelled;

    impl Instruction for Spelled {
        unsafe fn word(self, crc: u32, word: u64) -> u32 {
            word.to_le_bytes().into_iter().fold(crc, |crc, byte| unsafe { self.byte(crc, byte) })
        }
        unsafe fn byte(self, crc: u32, byte: u8) -> u32 {
            (0..8).fold(crc ^ u32::from(byte), |crc, _| {
                (crc >> 1) ^ (POLYNOMIAL & (crc & 1).wrapping_neg())
            })
        }
        unsafe fn shift(self, crc: u32, by: Shift) -> u32 {
            multiply(crc, by.for_multiply)
        }
    }

    #[test]
    fn streams_joined_by_plain_multiplication_equal_naive() {
        let data: Vec<u8> =
            (0..40_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for size in (0..64).chain([767, 768, 769, 1536, 12_287, 12_288, 13_060, 40_000]) {
            let found = unsafe { three_streams(Spelled, &data[..size], 0) };
            assert_eq!(found, naive(&data[..size]), "{size} bytes");
            assert_eq!(found, table(&data[..size]), "{size} bytes");
        }
    }
}
