//! The stored checksum of a batch against its bytes.

use crate::error::{Error, ErrorKind, Result};
use crate::header::{CRC_START, LOG_OVERHEAD, MIN_SIZE_V2, RECORD_BATCH_OVERHEAD, field, read_i32};
use crate::legacy;

/// Compares the stored checksum with that of the bytes of one whole batch.
///
/// # Errors
/// [`ErrorKind::CrcMismatch`], [`ErrorKind::SizeTooSmall`], [`ErrorKind::LegacyTooShort`].
pub fn verify(batch: &[u8]) -> Result<()> {
    let body = batch.get(LOG_OVERHEAD..).unwrap_or_default();
    if legacy::magic_of(body) < 2 {
        return legacy::verify_body(body);
    }
    let (Some(stored), Some(covered)) = (
        read_i32(batch, field::CRC).filter(|_| batch.len() >= RECORD_BATCH_OVERHEAD),
        batch.get(CRC_START..),
    ) else {
        let declared = read_i32(batch, field::BATCH_LENGTH).unwrap_or(0);
        let kind = ErrorKind::SizeTooSmall { declared, minimum: MIN_SIZE_V2 };
        return Err(Error::new(kind, 0));
    };
    let (stored, computed) = (stored as u32, ottla_kernels::crc32c(covered));
    if stored == computed {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::CrcMismatch { stored, computed }, 0))
    }
}
