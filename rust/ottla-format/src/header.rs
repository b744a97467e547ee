//! The envelope all formats share, and the header of magic 2.
//!
//! ```text
//! 0           8      12        16   17    21    23        27         35        43        51    53       57     61
//! │base_offset│size  │leader   │magic│crc  │attr │last     │base      │max      │producer │epoch│base    │count │records…
//! │           │      │epoch    │     │     │     │off.delta│timestamp │timestamp│id       │     │sequence│      │
//!                                           └ the CRC-32C covers from here to the end
//! ```
//!
//! `size` counts the bytes after itself. Magic 0 and 1 share the first 12 bytes and the place of
//! the magic byte; bytes 12 to 16 hold their CRC-32.

use crate::attributes::{
    CODEC_MASK, CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL, TimestampType,
};
use crate::error::{Error, ErrorKind, Result};

/// Bytes before what `size` counts.
pub const LOG_OVERHEAD: usize = 12;
/// Bytes up to and with the magic byte.
pub const HEADER_UP_TO_MAGIC: usize = 17;
/// Bytes before the records of a magic 2 batch.
pub const RECORD_BATCH_OVERHEAD: usize = 61;
/// Where the CRC of a magic 2 batch begins to cover.
pub const CRC_START: usize = 21;
/// The smallest size field any format allows (a magic 0 record without key and value).
pub const MIN_SIZE: i32 = 14;
/// The smallest size field of magic 2.
pub const MIN_SIZE_V2: i32 = (RECORD_BATCH_OVERHEAD - LOG_OVERHEAD) as i32;

/// No producer id, epoch, sequence, timestamp or leader epoch.
pub const NONE: i64 = -1;

/// What the first 17 bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Magic 2: the base offset; below: the offset of the (last inner) record.
    pub offset: i64,
    /// Bytes after the size field.
    pub size: i32,
    /// Format version.
    pub magic: i8,
}

/// What stands at a position of a buffer, by the rules of Kafka's in-memory reader
/// (`record-batch.md` §1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, or a batch that the buffer cuts: the bytes needed for it and the bytes left.
    End {
        /// Bytes that are left, none of them a whole batch.
        left: usize,
        /// Bytes the batch needs, as far as is known.
        needed: usize,
    },
    /// A whole batch.
    Batch(Envelope),
}

fn array<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..)?.first_chunk::<N>().copied()
}

/// A big-endian i64 at a position, if the bytes are there.
pub fn read_i64(data: &[u8], at: usize) -> Option<i64> {
    array(data, at).map(i64::from_be_bytes)
}

/// A big-endian i32 at a position, if the bytes are there.
pub fn read_i32(data: &[u8], at: usize) -> Option<i32> {
    array(data, at).map(i32::from_be_bytes)
}

/// A big-endian i16 at a position, if the bytes are there.
pub fn read_i16(data: &[u8], at: usize) -> Option<i16> {
    array(data, at).map(i16::from_be_bytes)
}

impl Envelope {
    /// Reads 17 bytes at `at`, judging nothing.
    pub fn read(data: &[u8], at: usize) -> Option<Self> {
        let head = data.get(at..)?.first_chunk::<HEADER_UP_TO_MAGIC>()?;
        Some(Self {
            offset: read_i64(head, 0)?,
            size: read_i32(head, 8)?,
            magic: i8::from_be_bytes([head[16]]),
        })
    }

    /// Bytes of the whole batch, envelope included.
    pub fn total(&self) -> usize {
        LOG_OVERHEAD + usize::try_from(self.size).unwrap_or(0)
    }

    /// What stands at `at`, judged as Kafka judges a fetch response.
    ///
    /// # Errors
    /// [`ErrorKind::SizeTooSmall`], [`ErrorKind::UnknownMagic`] and [`ErrorKind::SizeTooLarge`],
    /// in the order in which Kafka finds them.
    pub fn next(data: &[u8], at: usize) -> Result<Next> {
        let left = data.len().saturating_sub(at);
        let Some(size) = read_i32(data, at.saturating_add(8)) else {
            return Ok(Next::End { left, needed: LOG_OVERHEAD });
        };
        if size < MIN_SIZE {
            return Err(Error::new(
                ErrorKind::SizeTooSmall { declared: size, minimum: MIN_SIZE },
                at,
            ));
        }
        let Some(envelope) = Self::read(data, at) else {
            return Ok(Next::End { left, needed: HEADER_UP_TO_MAGIC });
        };
        if !(0..=2).contains(&envelope.magic) {
            return Err(Error::new(ErrorKind::UnknownMagic { magic: envelope.magic }, at));
        }
        if size.checked_add(LOG_OVERHEAD as i32).is_none() {
            return Err(Error::new(ErrorKind::SizeTooLarge { declared: size }, at));
        }
        if left < envelope.total() {
            return Ok(Next::End { left, needed: envelope.total() });
        }
        Ok(Next::Batch(envelope))
    }
}

/// The header of a magic 2 batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub struct Header {
    pub base_offset: i64,
    /// Bytes after the size field.
    pub batch_length: i32,
    pub partition_leader_epoch: i32,
    pub magic: i8,
    pub crc: u32,
    pub attributes: u16,
    pub last_offset_delta: i32,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub record_count: i32,
}

impl Header {
    /// Reads 61 bytes at `at`, judging nothing.
    #[inline]
    pub fn read(data: &[u8], at: usize) -> Option<Self> {
        let head = data.get(at..)?.first_chunk::<RECORD_BATCH_OVERHEAD>()?;
        Some(Self {
            base_offset: read_i64(head, 0)?,
            batch_length: read_i32(head, 8)?,
            partition_leader_epoch: read_i32(head, 12)?,
            magic: i8::from_be_bytes([head[16]]),
            crc: read_i32(head, 17)? as u32,
            attributes: read_i16(head, 21)? as u16,
            last_offset_delta: read_i32(head, 23)?,
            base_timestamp: read_i64(head, 27)?,
            max_timestamp: read_i64(head, 35)?,
            producer_id: read_i64(head, 43)?,
            producer_epoch: read_i16(head, 51)?,
            base_sequence: read_i32(head, 53)?,
            record_count: read_i32(head, 57)?,
        })
    }

    /// The 61 bytes.
    pub fn to_bytes(&self) -> [u8; RECORD_BATCH_OVERHEAD] {
        let mut out = [0; RECORD_BATCH_OVERHEAD];
        out[0..8].copy_from_slice(&self.base_offset.to_be_bytes());
        out[8..12].copy_from_slice(&self.batch_length.to_be_bytes());
        out[12..16].copy_from_slice(&self.partition_leader_epoch.to_be_bytes());
        out[16..17].copy_from_slice(&self.magic.to_be_bytes());
        out[17..21].copy_from_slice(&self.crc.to_be_bytes());
        out[21..23].copy_from_slice(&self.attributes.to_be_bytes());
        out[23..27].copy_from_slice(&self.last_offset_delta.to_be_bytes());
        out[27..35].copy_from_slice(&self.base_timestamp.to_be_bytes());
        out[35..43].copy_from_slice(&self.max_timestamp.to_be_bytes());
        out[43..51].copy_from_slice(&self.producer_id.to_be_bytes());
        out[51..53].copy_from_slice(&self.producer_epoch.to_be_bytes());
        out[53..57].copy_from_slice(&self.base_sequence.to_be_bytes());
        out[57..61].copy_from_slice(&self.record_count.to_be_bytes());
        out
    }

    /// Number of the codec; 5 to 7 do not exist.
    pub fn codec(&self) -> u8 {
        (self.attributes & CODEC_MASK) as u8
    }

    /// Base offset plus last offset delta, wrapping as in Kafka.
    pub fn last_offset(&self) -> i64 {
        self.base_offset.wrapping_add(i64::from(self.last_offset_delta))
    }

    /// The last sequence number, or −1 where there is none.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence == -1 {
            -1
        } else {
            increment_sequence(self.base_sequence, self.last_offset_delta)
        }
    }

    /// Who gave the timestamps.
    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes & LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Part of a transaction (KIP-98).
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// Holds control records (KIP-98).
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// When the cleaner may drop the batch's tombstones and markers (KIP-534).
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        (self.attributes & DELETE_HORIZON != 0).then_some(self.base_timestamp)
    }

    /// Kafka counts a producer id of zero or more as one.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > NONE
    }
}

/// Batches of one epoch that a partition knows again when they come twice (`ProducerStateEntry`).
pub const REMEMBERED_BATCHES: usize = 5;

/// The sequence `n` steps on: sequences wrap from 2^31−1 to 0 (KIP-98). Wrapping as Kafka's own
/// arithmetic on hostile input.
pub fn increment_sequence(sequence: i32, n: i32) -> i32 {
    if sequence > i32::MAX.wrapping_sub(n) {
        n.wrapping_sub(i32::MAX.wrapping_sub(sequence)).wrapping_sub(1)
    } else {
        sequence.wrapping_add(n)
    }
}

/// The sequence `n` steps back, over 0 to 2^31−1: the other way of [`increment_sequence`].
pub fn decrement_sequence(sequence: i32, n: i32) -> i32 {
    if sequence < n {
        i32::MAX.wrapping_sub(n.wrapping_sub(sequence)).wrapping_add(1)
    } else {
        sequence.wrapping_sub(n)
    }
}
