//! The fields of a batch.

use crate::attributes::{
    CODEC_MASK, CONTROL, Compression, DELETE_HORIZON, TRANSACTIONAL, TimestampType,
};
use crate::error::{Error, ErrorKind, Result};
use crate::header::{
    CRC_START, Envelope, Header, LOG_OVERHEAD, MIN_SIZE_V2, NONE, RECORD_BATCH_OVERHEAD, field,
};
use crate::legacy::{self, LegacyHeader};
use crate::sequence::increment_sequence;
use ottla_kernels::BatchHeader;
use serde::{Deserialize, Serialize};

/// The fields of a batch. For magic 0 and 1 a batch is one record or one compressed wrapper; fields
/// that these formats lack read as −1, as in Kafka.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // Kafka's own names
pub struct BatchInfo {
    /// Where the batch begins, in bytes of the buffer or file.
    pub position: u64,
    /// Bytes of the batch, envelope included.
    pub size: u64,
    pub magic: i8,
    /// For a compressed wrapper the offset of its last record, until its records are read.
    pub base_offset: i64,
    pub last_offset: i64,
    pub partition_leader_epoch: i32,
    pub crc: u32,
    pub attributes: u16,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    /// As the header counts; `None` for magic 0 and 1, which do not count.
    pub record_count: Option<i32>,
}

impl BatchInfo {
    /// Reads the fields of the batch that begins at `at`, where `envelope` was read.
    ///
    /// # Errors
    /// [`ErrorKind::SizeTooSmall`] for a magic 2 batch that ends before or inside its timestamps, and
    /// [`ErrorKind::LegacyTooShort`] for a magic 1 record without room for its fields.
    pub fn read(data: &[u8], at: usize, envelope: &Envelope) -> Result<Self> {
        if envelope.magic >= 2 {
            let header = short_header(data, at, envelope.total()).ok_or_else(|| {
                let minimum = MIN_SIZE_V2;
                Error::new(ErrorKind::SizeTooSmall { declared: envelope.size, minimum }, at)
            })?;
            return Ok(Self::from_header(&header, at as u64));
        }
        let (start, end) = (at.saturating_add(LOG_OVERHEAD), at.saturating_add(envelope.total()));
        let body = data.get(start..end).unwrap_or_default();
        let LegacyHeader { crc, attributes, timestamp } =
            legacy::read_header(envelope.magic, body).map_err(|error| error.within(at))?;
        Ok(Self {
            position: at as u64,
            size: envelope.total() as u64,
            magic: envelope.magic,
            base_offset: envelope.offset,
            last_offset: envelope.offset,
            partition_leader_epoch: -1,
            crc,
            attributes: u16::from(attributes),
            base_timestamp: timestamp,
            max_timestamp: timestamp,
            producer_id: NONE,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: None,
        })
    }

    /// The fields of a magic 2 header at `position`.
    #[inline]
    pub fn from_header(header: &Header, position: u64) -> Self {
        Self {
            position,
            size: u64::from(header.batch_length.max(0) as u32).saturating_add(LOG_OVERHEAD as u64),
            magic: header.magic,
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            partition_leader_epoch: header.partition_leader_epoch,
            crc: header.crc,
            attributes: header.attributes,
            base_timestamp: header.base_timestamp,
            max_timestamp: header.max_timestamp,
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            record_count: Some(header.record_count),
        }
    }

    /// The fields of a header that a kernel has parsed from bytes that begin at `base`.
    #[inline]
    pub fn from_kernel(header: &BatchHeader, base: u64) -> Self {
        let position = base.saturating_add(header.position as u64);
        Self::from_header(&Header::from_kernel(header), position)
    }

    /// The last offset delta of magic 2; 0 for magic 0 and 1.
    #[inline]
    pub fn last_offset_delta(&self) -> i32 {
        self.last_offset.wrapping_sub(self.base_offset) as i32
    }

    /// The last sequence number, or −1.
    #[inline]
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence == -1 {
            -1
        } else {
            increment_sequence(self.base_sequence, self.last_offset_delta())
        }
    }

    /// The number of the codec.
    pub fn codec(&self) -> u8 {
        (self.attributes & CODEC_MASK) as u8
    }

    /// The codec.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownCodec`].
    pub fn compression(&self) -> Result<Compression> {
        if self.magic < 2 {
            return legacy::compression(self.magic, self.attributes as u8);
        }
        let (codec, magic) = (self.codec(), self.magic);
        Compression::from_id(codec)
            .ok_or_else(|| Error::new(ErrorKind::UnknownCodec { codec, magic }, CRC_START))
    }

    /// Who set the timestamps.
    pub fn timestamp_type(&self) -> TimestampType {
        legacy::timestamp_type(self.magic, self.attributes as u8)
    }

    /// Whether the batch is part of a transaction (KIP-98).
    #[inline]
    pub fn is_transactional(&self) -> bool {
        self.magic >= 2 && self.attributes & TRANSACTIONAL != 0
    }

    /// Whether the batch holds control records (KIP-98).
    #[inline]
    pub fn is_control(&self) -> bool {
        self.magic >= 2 && self.attributes & CONTROL != 0
    }

    /// When the cleaner may remove the batch's tombstones and markers, in ms (KIP-534).
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        (self.magic >= 2 && self.attributes & DELETE_HORIZON != 0).then_some(self.base_timestamp)
    }

    /// Whether there is a producer id: to Kafka, one of zero or more.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > -1
    }
}

/// Bytes of a magic 2 header that must be there before anything can be said about its batch: up to
/// the end of the maximum timestamp.
const MIN_HEADER_BYTES: usize = field::PRODUCER_ID;

/// A magic 2 header whose last fields may be missing, as in a batch of 43 to 60 bytes: Kafka reads
/// what is there and refuses the batch by its checksum. Missing bytes read as −1.
fn short_header(data: &[u8], at: usize, total: usize) -> Option<Header> {
    if total >= RECORD_BATCH_OVERHEAD {
        return Header::read(data, at);
    }
    let mut padded = [0xff; RECORD_BATCH_OVERHEAD];
    let there = data.get(at..at.checked_add(total)?).filter(|_| total >= MIN_HEADER_BYTES)?;
    padded.get_mut(..total)?.copy_from_slice(there);
    Header::read(&padded, 0)
}
