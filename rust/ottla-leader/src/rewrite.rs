//! What a leader changes of a batch it keeps: offsets, leader epoch, timestamp and what covers it.
//!
//! Offset and leader epoch stand before what the CRC of magic 2 covers. Attributes and maximum
//! timestamp do not; the new CRC follows from the old one, without the records, because a CRC is
//! linear: the two differ by the CRC of the changed bytes, moved past the bytes behind them.

use crate::stored::{Patch, Stored};
use ottla_format::attributes::{
    CODEC_MASK, CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL, TimestampType,
};
use ottla_format::header::{
    CRC_START, Header, LOG_OVERHEAD, RECORD_BATCH_OVERHEAD, field, read_i64,
};
use ottla_format::legacy;
use ottla_kernels::BatchHeader;
use ottla_kernels::gzip::crc32;

/// Attribute bits with a meaning; Kafka drops the others where it writes attributes anew.
const KNOWN_ATTRIBUTES: u16 =
    CODEC_MASK | LOG_APPEND_TIME | TRANSACTIONAL | CONTROL | DELETE_HORIZON;
/// Where the header's bytes end that the CRC covers and a patch changes.
const MAX_TIMESTAMP_END: usize = field::PRODUCER_ID;
/// Up to this many bytes the CRC is computed anew: as fast, and simpler to trust.
const SHORT_BATCH: usize = 4096;

/// What is written into a batch that is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) last_offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) timestamp_type: TimestampType,
    pub(crate) max_timestamp: i64,
}

/// One batch of magic 2 with its new header.
#[inline]
pub(crate) fn patched<'a>(batch: &'a [u8], header: &BatchHeader, stamp: &Stamp) -> Stored<'a> {
    let mut patch = Patch {
        base_offset: stamp.last_offset.wrapping_sub(i64::from(header.last_offset_delta)),
        partition_leader_epoch: stamp.leader_epoch,
        max_timestamp: stamp.max_timestamp,
        attributes: header.attributes,
        crc: header.crc,
    };
    let is_stamped = stamp.timestamp_type == TimestampType::LogAppendTime;
    if header.is_log_append_time() != is_stamped || header.max_timestamp != stamp.max_timestamp {
        patch.attributes = with_type(header.attributes & KNOWN_ATTRIBUTES, stamp.timestamp_type);
        patch.crc = crc_after(batch, &patch).unwrap_or(header.crc);
    }
    Stored::Patched { batch, patch }
}

fn with_type(attributes: u16, timestamp_type: TimestampType) -> u16 {
    match timestamp_type {
        TimestampType::LogAppendTime => attributes | LOG_APPEND_TIME,
        _ => attributes & !LOG_APPEND_TIME,
    }
}

/// The CRC of a batch with the header of a patch, where the CRC it has covers its bytes.
#[inline(never)]
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "the ranges are constants within 61 bytes, and the batch is longer than SHORT_BATCH"
)]
fn crc_after(batch: &[u8], patch: &Patch) -> Option<u32> {
    let old = Header::read(batch, 0)?;
    let (old_bytes, new_bytes) = (old.to_bytes(), patch.applied_to(&old).to_bytes());
    if batch.len() <= SHORT_BATCH {
        let covered = [&new_bytes[CRC_START..], batch.get(RECORD_BATCH_OVERHEAD..)?];
        return Some(ottla_kernels::crc32c(&covered.concat()));
    }
    let changed = CRC_START..MAX_TIMESTAMP_END;
    let difference = ottla_kernels::crc32c(&old_bytes[changed.clone()])
        ^ ottla_kernels::crc32c(&new_bytes[changed]);
    Some(old.crc ^ past_zeros(difference, (batch.len() - MAX_TIMESTAMP_END) as u64))
}

/// The CRC-32C polynomial, bits reflected.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// `x^0`, bits reflected.
const ONE: u32 = 1 << 31;

/// The product of two polynomials, modulo that of CRC-32C; bits reflected.
const fn product(a: u32, mut b: u32) -> u32 {
    let (mut sum, mut bit) = (0, ONE);
    while bit != 0 {
        if a & bit != 0 {
            sum ^= b;
        }
        b = (b >> 1) ^ (POLYNOMIAL & (b & 1).wrapping_neg());
        bit >>= 1;
    }
    sum
}

/// `x^(8 * 2^k)`: what `2^k` zero bytes multiply a register with.
#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const ZEROS: [u32; 40] = {
    let mut powers = [ONE >> 8; 40];
    let mut k = 1;
    while k < powers.len() {
        powers[k] = product(powers[k - 1], powers[k - 1]);
        k += 1;
    }
    powers
};

/// The difference of two registers after `count` more bytes, the same in both.
fn past_zeros(difference: u32, count: u64) -> u32 {
    let is_set = |&(k, _): &(usize, &u32)| count >> k & 1 != 0;
    ZEROS.iter().enumerate().filter(is_set).fold(difference, |sum, (_, &power)| product(sum, power))
}

/// Stamps one entry of magic 0 or 1 that was analysed, a plain record or a wrapper.
#[allow(clippy::indexing_slicing, reason = "an entry that was analysed has at least 26 bytes")]
pub(crate) fn stamp_legacy(entry: &mut [u8], stamp: &Stamp) {
    const CRC: usize = LOG_OVERHEAD + legacy::CRC;
    const MAGIC: usize = LOG_OVERHEAD + legacy::MAGIC;
    const ATTRIBUTES: usize = LOG_OVERHEAD + legacy::ATTRIBUTES;
    const TIMESTAMP: usize = LOG_OVERHEAD + legacy::TIMESTAMP;
    const TIMESTAMP_END: usize = LOG_OVERHEAD + legacy::TIMESTAMP_END;
    entry[..field::BATCH_LENGTH].copy_from_slice(&stamp.last_offset.to_be_bytes());
    let (magic, attributes) = (entry[MAGIC] as i8, entry[ATTRIBUTES]);
    let is_same = legacy::timestamp_type(magic, attributes) == stamp.timestamp_type
        && read_i64(entry, TIMESTAMP) == Some(stamp.max_timestamp);
    if magic == 0 || is_same {
        return;
    }
    let attributes = u16::from(attributes) & CODEC_MASK;
    entry[ATTRIBUTES] = with_type(attributes, stamp.timestamp_type) as u8;
    entry[TIMESTAMP..TIMESTAMP_END].copy_from_slice(&stamp.max_timestamp.to_be_bytes());
    let crc = crc32(0, &entry[MAGIC..]);
    entry[CRC..MAGIC].copy_from_slice(&crc.to_be_bytes());
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_crc_moved_by_linearity_is_the_one_computed_anew() {
        let bytes: Vec<u8> = (0..10_000u32).map(|i| ((i * i) >> 3) as u8).collect();
        for size in [61, 100, SHORT_BATCH, SHORT_BATCH + 1, 5000, 9999, 10_000] {
            let mut batch = bytes[..size].to_vec();
            let crc = ottla_kernels::crc32c(&batch[CRC_START..]);
            batch[17..CRC_START].copy_from_slice(&crc.to_be_bytes());
            let patch = Patch {
                base_offset: 7,
                max_timestamp: 1_700_000_000_000,
                partition_leader_epoch: 3,
                crc,
                attributes: 8,
            };
            let mut changed = batch.clone();
            let header = patch.header_of(&batch).unwrap();
            changed[..RECORD_BATCH_OVERHEAD].copy_from_slice(&header.to_bytes());
            let anew = ottla_kernels::crc32c(&changed[CRC_START..]);
            assert_eq!(crc_after(&batch, &patch), Some(anew), "{size}");
        }
    }
}
