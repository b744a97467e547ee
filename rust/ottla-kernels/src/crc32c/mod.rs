//! CRC-32C (Castagnoli): the checksum of a record batch.
//!
//! [`naive`] is the definition and the oracle; the others are equal to it at every length: tables
//! for any CPU (`table`), three streams of the CPU's own CRC instruction (`streams`), and folding by
//! carry-less multiplication (`x86`).

#[cfg(target_arch = "aarch64")]
mod arm;
mod polynomial;
mod streams;
mod table;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

use crate::level::Level;
use polynomial::after_zero_byte;
use table::table;

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
