//! The envelope that all formats share, and the header of magic 2.
//!
//! ```text
//! 0           8      12        16   17    21    23        27         35        43        51    53       57     61
//! │base_offset│size  │leader   │magic│crc  │attr │last     │base      │max      │producer │epoch│base    │count │records…
//! │           │      │epoch    │     │     │     │off.delta│timestamp │timestamp│id       │     │sequence│      │
//!                                           └ the CRC-32C covers from here to the end
//! ```
//!
//! `size` counts the bytes after itself. Magic 0 and 1 share the first 12 bytes and the place of
//! the magic byte; bytes 12 to 16 hold their CRC-32. Positions of fields are [`field`]'s, whose
//! parser is [`ottla_kernels::BatchHeader::read`].

use crate::attributes::{CODEC_MASK, CONTROL, TRANSACTIONAL};
use crate::error::{Error, ErrorKind, Result};
use ottla_kernels::BatchHeader;

pub use ottla_kernels::header::{CRC_START, LOG_OVERHEAD, field};

/// Bytes up to and including the magic byte.
pub const HEADER_UP_TO_MAGIC: usize = field::MAGIC + 1;
/// Bytes before the records of a magic 2 batch.
pub const RECORD_BATCH_OVERHEAD: usize = ottla_kernels::HEADER_BYTES;
/// The smallest size field any format allows (a magic 0 record without key and value).
pub const MIN_SIZE: i32 = 14;
/// The smallest size field of magic 2.
pub const MIN_SIZE_V2: i32 = (RECORD_BATCH_OVERHEAD - LOG_OVERHEAD) as i32;

/// The value of a producer id, producer epoch, sequence, timestamp or leader epoch that is absent.
pub const NONE: i64 = -1;

/// The fields in the first 17 bytes, which every format has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Magic 2: the base offset; below: the offset of the (last inner) record.
    pub offset: i64,
    /// Bytes after the size field.
    pub size: i32,
    /// Format version.
    pub magic: i8,
}

/// What begins at a position of a buffer, by the rules of Kafka's in-memory reader
/// (`docs/kafka/record-batch.md` §1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, or a batch that the end of the buffer truncates.
    End {
        /// Bytes left in the buffer, which hold no whole batch.
        left: usize,
        /// Bytes the batch needs, as far as they are known.
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
    /// Reads the 17 bytes at `at` and judges none of them.
    pub fn read(data: &[u8], at: usize) -> Option<Self> {
        let head = data.get(at..)?.first_chunk::<HEADER_UP_TO_MAGIC>()?;
        Some(Self {
            offset: read_i64(head, field::BASE_OFFSET)?,
            size: read_i32(head, field::BATCH_LENGTH)?,
            magic: i8::from_be_bytes([head[field::MAGIC]]),
        })
    }

    /// Bytes of the whole batch, envelope included.
    pub fn total(&self) -> usize {
        LOG_OVERHEAD.saturating_add(usize::try_from(self.size).unwrap_or(0))
    }

    /// The bytes of the batch at `at`.
    ///
    /// # Errors
    /// [`ErrorKind::TruncatedBatch`] if `data` ends before it does.
    pub fn batch<'a>(&self, data: &'a [u8], at: usize) -> Result<&'a [u8]> {
        data.get(at..at.saturating_add(self.total())).ok_or_else(|| {
            let (needed, left) = (self.total() as u64, data.len().saturating_sub(at) as u64);
            Error::new(ErrorKind::TruncatedBatch { needed, left }, at)
        })
    }

    /// What begins at `at`, judged as Kafka's consumer judges a fetch response.
    ///
    /// # Errors
    /// [`ErrorKind::SizeTooSmall`], [`ErrorKind::UnknownMagic`] and [`ErrorKind::SizeTooLarge`],
    /// in the order in which Kafka checks them.
    pub fn next(data: &[u8], at: usize) -> Result<Next> {
        let left = data.len().saturating_sub(at);
        let Some(size) = read_i32(data, at.saturating_add(field::BATCH_LENGTH)) else {
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
    /// Reads the 61 bytes at `at` and judges none of them.
    #[inline]
    pub fn read(data: &[u8], at: usize) -> Option<Self> {
        let head = data.get(at..)?.first_chunk::<RECORD_BATCH_OVERHEAD>()?;
        let Envelope { size, magic, .. } = Envelope::read(head, 0)?;
        Some(Self::from_fields(&BatchHeader::read(head, at, at), size, magic))
    }

    /// The header of a batch that a kernel has parsed.
    #[inline]
    pub fn from_kernel(header: &BatchHeader) -> Self {
        let size = header.end.saturating_sub(header.position).saturating_sub(LOG_OVERHEAD);
        Self::from_fields(header, size as i32, 2)
    }

    #[inline]
    fn from_fields(fields: &BatchHeader, batch_length: i32, magic: i8) -> Self {
        Self {
            base_offset: fields.base_offset,
            batch_length,
            partition_leader_epoch: fields.partition_leader_epoch,
            magic,
            crc: fields.crc,
            attributes: fields.attributes,
            last_offset_delta: fields.last_offset_delta,
            base_timestamp: fields.base_timestamp,
            max_timestamp: fields.max_timestamp,
            producer_id: fields.producer_id,
            producer_epoch: fields.producer_epoch,
            base_sequence: fields.base_sequence,
            record_count: fields.record_count,
        }
    }

    /// The 61 bytes.
    pub fn to_bytes(&self) -> [u8; RECORD_BATCH_OVERHEAD] {
        let mut out = [0; RECORD_BATCH_OVERHEAD];
        out[field::BASE_OFFSET..field::BATCH_LENGTH]
            .copy_from_slice(&self.base_offset.to_be_bytes());
        out[field::BATCH_LENGTH..field::PARTITION_LEADER_EPOCH]
            .copy_from_slice(&self.batch_length.to_be_bytes());
        out[field::PARTITION_LEADER_EPOCH..field::MAGIC]
            .copy_from_slice(&self.partition_leader_epoch.to_be_bytes());
        out[field::MAGIC..field::CRC].copy_from_slice(&self.magic.to_be_bytes());
        out[field::CRC..field::ATTRIBUTES].copy_from_slice(&self.crc.to_be_bytes());
        out[field::ATTRIBUTES..field::LAST_OFFSET_DELTA]
            .copy_from_slice(&self.attributes.to_be_bytes());
        out[field::LAST_OFFSET_DELTA..field::BASE_TIMESTAMP]
            .copy_from_slice(&self.last_offset_delta.to_be_bytes());
        out[field::BASE_TIMESTAMP..field::MAX_TIMESTAMP]
            .copy_from_slice(&self.base_timestamp.to_be_bytes());
        out[field::MAX_TIMESTAMP..field::PRODUCER_ID]
            .copy_from_slice(&self.max_timestamp.to_be_bytes());
        out[field::PRODUCER_ID..field::PRODUCER_EPOCH]
            .copy_from_slice(&self.producer_id.to_be_bytes());
        out[field::PRODUCER_EPOCH..field::BASE_SEQUENCE]
            .copy_from_slice(&self.producer_epoch.to_be_bytes());
        out[field::BASE_SEQUENCE..field::RECORD_COUNT]
            .copy_from_slice(&self.base_sequence.to_be_bytes());
        out[field::RECORD_COUNT..].copy_from_slice(&self.record_count.to_be_bytes());
        out
    }

    /// Base offset plus last offset delta, wrapping as in Kafka.
    #[inline]
    pub fn last_offset(&self) -> i64 {
        self.base_offset.wrapping_add(i64::from(self.last_offset_delta))
    }

    /// The number of the codec; 5 to 7 do not exist.
    pub fn codec(&self) -> u8 {
        (self.attributes & CODEC_MASK) as u8
    }

    /// Whether the batch is part of a transaction (KIP-98).
    #[inline]
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// Whether the batch holds control records (KIP-98).
    #[inline]
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// Whether there is a producer id: to Kafka, one of zero or more.
    #[inline]
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > NONE
    }
}
