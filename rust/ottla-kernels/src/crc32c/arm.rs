//! CRC-32C by the instructions of `AArch64`.

use super::streams::{self, Instruction, Shift};
use std::arch::aarch64::{__crc32cb, __crc32cd};

/// Shorter streams cost more to join by plain multiplication than they save.
const MIN_STREAM_BYTES: usize = 4096;

#[derive(Clone, Copy)]
struct Crc32cd;

impl Instruction for Crc32cd {
    #[inline]
    #[target_feature(enable = "crc")]
    unsafe fn word(self, crc: u32, word: u64) -> u32 {
        __crc32cd(crc, word)
    }
    #[inline]
    #[target_feature(enable = "crc")]
    unsafe fn byte(self, crc: u32, byte: u8) -> u32 {
        __crc32cb(crc, byte)
    }
    #[inline(always)]
    unsafe fn shift(self, crc: u32, by: Shift) -> u32 {
        streams::multiply(crc, by.for_multiply)
    }
}

/// The CRC-32C of `data`.
#[target_feature(enable = "crc")]
pub(super) fn crc32cd(data: &[u8]) -> u32 {
    // SAFETY: this function has the feature.
    unsafe { streams::three_streams(Crc32cd, data, MIN_STREAM_BYTES) }
}
