//! One batch of any magic: its fields, its checksum, its payload and the records in it.

use crate::attributes::{Compression, TimestampType};
use crate::error::{Error, ErrorKind, Result};
use crate::header::{
    CRC_START, Envelope, Header, LOG_OVERHEAD, RECORD_BATCH_OVERHEAD, increment_sequence, read_i32,
};
use crate::legacy::{self, Entry};
use crate::limits::Limits;
use crate::record::{Headers, MIN_RECORD_BYTES, read_record};
use ottla_kernels::BatchHeader;
use serde::{Deserialize, Serialize};

/// The fields of a batch. For magic 0 and 1 a batch is one record or one compressed wrapper; what
/// these formats lack reads as −1, as in Kafka.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // Kafka's own names
pub struct BatchInfo {
    /// Where it begins, in bytes of the buffer or file.
    pub position: u64,
    /// Bytes, envelope included.
    pub size: u64,
    pub magic: i8,
    /// Of a compressed wrapper: that of its last record, until its records are read.
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
    /// As the header counts; magic 0 and 1 do not.
    pub record_count: Option<i32>,
}

impl BatchInfo {
    /// Reads the fields of the batch that begins at `at` and whose envelope was read there.
    ///
    /// # Errors
    /// [`ErrorKind::SizeTooSmall`] for a magic 2 batch whose timestamps are cut, and
    /// [`ErrorKind::LegacyTooShort`] for a magic 1 record without room for its fields.
    pub fn read(data: &[u8], at: usize, envelope: &Envelope) -> Result<Self> {
        if envelope.magic >= 2 {
            let header = short_header(data, at, envelope.total()).ok_or_else(|| {
                let minimum = crate::header::MIN_SIZE_V2;
                Error::new(ErrorKind::SizeTooSmall { declared: envelope.size, minimum }, at)
            })?;
            return Ok(Self::from_header(&header, at as u64));
        }
        let body = data.get(at + LOG_OVERHEAD..at + envelope.total()).unwrap_or_default();
        let short = |minimum: usize| {
            let size = body.len() as u64;
            Error::new(ErrorKind::LegacyTooShort { size, minimum: minimum as u64 }, at)
        };
        let (Some(crc), Some(&attributes)) = (read_i32(body, 0), body.get(5)) else {
            return Err(short(legacy::MIN_BODY));
        };
        let timestamp = if envelope.magic == 0 {
            -1
        } else {
            crate::header::read_i64(body, 6).ok_or_else(|| short(22))?
        };
        Ok(Self {
            position: at as u64,
            size: envelope.total() as u64,
            magic: envelope.magic,
            base_offset: envelope.offset,
            last_offset: envelope.offset,
            partition_leader_epoch: -1,
            crc: crc as u32,
            attributes: u16::from(attributes),
            base_timestamp: timestamp,
            max_timestamp: timestamp,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: None,
        })
    }

    /// The fields of a magic 2 header that stands at `position`.
    #[inline]
    pub fn from_header(header: &Header, position: u64) -> Self {
        Self {
            position,
            size: u64::from(header.batch_length.max(0) as u32) + LOG_OVERHEAD as u64,
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

    /// The fields of a magic 2 header that a kernel has walked over, in bytes that begin at `base`.
    #[inline]
    pub fn walked(header: &BatchHeader, base: u64) -> Self {
        Self {
            position: base + header.position as u64,
            size: (header.end - header.position) as u64,
            magic: 2,
            base_offset: header.base_offset,
            last_offset: header.base_offset.wrapping_add(i64::from(header.last_offset_delta)),
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

    /// Last offset delta of magic 2; 0 below.
    pub fn last_offset_delta(&self) -> i32 {
        self.last_offset.wrapping_sub(self.base_offset) as i32
    }

    /// The last sequence number, or −1.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence == -1 {
            -1
        } else {
            increment_sequence(self.base_sequence, self.last_offset_delta())
        }
    }

    /// Number of the codec.
    pub fn codec(&self) -> u8 {
        (self.attributes & 7) as u8
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

    /// Who gave the timestamps.
    pub fn timestamp_type(&self) -> TimestampType {
        legacy::timestamp_type(self.magic, self.attributes as u8)
    }

    /// Part of a transaction (KIP-98).
    pub fn is_transactional(&self) -> bool {
        self.magic >= 2 && self.attributes & crate::attributes::TRANSACTIONAL != 0
    }

    /// Holds control records (KIP-98).
    pub fn is_control(&self) -> bool {
        self.magic >= 2 && self.attributes & crate::attributes::CONTROL != 0
    }

    /// When the cleaner may drop the batch's tombstones and markers (KIP-534).
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        (self.magic >= 2 && self.attributes & crate::attributes::DELETE_HORIZON != 0)
            .then_some(self.base_timestamp)
    }

    /// Kafka counts a producer id of zero or more as one.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > -1
    }
}

/// Up to here a magic 2 header has to be there before anything can be said of its batch.
const MAX_TIMESTAMP_END: usize = 43;

/// A magic 2 header of which the last fields may be missing, as in a batch of 43 to 60 bytes: Kafka
/// reads what is there and refuses the batch by its checksum. Missing bytes read as −1.
fn short_header(data: &[u8], at: usize, total: usize) -> Option<Header> {
    if total >= RECORD_BATCH_OVERHEAD {
        return Header::read(data, at);
    }
    let mut padded = [0xff; RECORD_BATCH_OVERHEAD];
    let there = data.get(at..at.checked_add(total)?).filter(|_| total >= MAX_TIMESTAMP_END)?;
    padded.get_mut(..total)?.copy_from_slice(there);
    Header::read(&padded, 0)
}

/// Holds the stored checksum against the bytes of one whole batch.
///
/// # Errors
/// [`ErrorKind::CrcMismatch`], [`ErrorKind::SizeTooSmall`], [`ErrorKind::LegacyTooShort`].
pub fn verify(batch: &[u8]) -> Result<()> {
    let magic = batch.get(16).copied().map_or(0, |byte| i8::from_be_bytes([byte]));
    if magic >= 2 {
        let (Some(stored), Some(covered)) = (
            read_i32(batch, 17).filter(|_| batch.len() >= RECORD_BATCH_OVERHEAD),
            batch.get(CRC_START..),
        ) else {
            let (declared, minimum) = (read_i32(batch, 8).unwrap_or(0), crate::header::MIN_SIZE_V2);
            return Err(Error::new(ErrorKind::SizeTooSmall { declared, minimum }, 0));
        };
        let (stored, computed) = (stored as u32, ottla_kernels::crc32c(covered));
        return if stored == computed {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::CrcMismatch { stored, computed }, 0))
        };
    }
    verify_legacy_body(batch.get(LOG_OVERHEAD..).unwrap_or_default()).map_err(|mut error| {
        error.position = 0;
        error
    })
}

fn verify_legacy_body(body: &[u8]) -> Result<()> {
    let size = body.len() as u64;
    let short =
        || Error::new(ErrorKind::LegacyTooShort { size, minimum: legacy::MIN_BODY as u64 }, 0);
    if body.len() < legacy::MIN_BODY {
        return Err(short());
    }
    let (stored, computed) = legacy::checksums(body).ok_or_else(short)?;
    if stored == computed {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::CrcMismatch { stored, computed }, 0))
    }
}

/// Where the records of a batch are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// In the batch itself, from this position on.
    Plain {
        /// Bytes from the start of the batch.
        start: usize,
    },
    /// Compressed: these bytes, by this codec.
    Compressed {
        /// Which one.
        codec: Compression,
        /// What to inflate.
        bytes: &'a [u8],
        /// Bytes from the start of the batch.
        start: usize,
    },
}

/// Finds the records section of one whole batch.
///
/// # Errors
/// [`ErrorKind::UnknownCodec`], [`ErrorKind::WrapperWithoutValue`] and what a wrapper's own fields
/// break.
pub fn payload<'a>(info: &BatchInfo, batch: &'a [u8]) -> Result<Payload<'a>> {
    let codec = info.compression()?;
    if info.magic >= 2 {
        let start = RECORD_BATCH_OVERHEAD;
        return Ok(match codec {
            Compression::None => Payload::Plain { start },
            // Of an emptied batch Kafka opens the decompressor and reads nothing. That of zstd does
            // not look at the payload then.
            Compression::Zstd if info.record_count == Some(0) => Payload::Plain { start },
            codec => {
                Payload::Compressed { codec, bytes: batch.get(start..).unwrap_or_default(), start }
            }
        });
    }
    if codec == Compression::None {
        return Ok(Payload::Plain { start: LOG_OVERHEAD });
    }
    let body = batch.get(LOG_OVERHEAD..).unwrap_or_default();
    let wrapper = legacy::read_body(body).map_err(|error| error.within(LOG_OVERHEAD))?;
    let bytes =
        wrapper.value.ok_or_else(|| Error::new(ErrorKind::WrapperWithoutValue, LOG_OVERHEAD))?;
    // Everything before the value has a known size: the fixed fields and the key.
    let fixed = if info.magic == 0 { 14 } else { 22 };
    let start = LOG_OVERHEAD + fixed + wrapper.key.map_or(0, <[u8]>::len);
    Ok(Payload::Compressed { codec, bytes, start })
}

/// One record of any magic, as a consumer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub struct Record<'a> {
    pub offset: i64,
    /// LogAppendTime: the batch's. Magic 0: −1.
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: Headers<'a>,
    /// −1 without a producer.
    pub sequence: i32,
    /// Offset minus base offset as stored (magic 2), for rules about it.
    pub offset_delta: i32,
}

/// Walks the records of one batch over its payload: for magic 2 the bytes of the records section
/// (in place or inflated), for a plain legacy record its body, for a wrapper the inflated set.
#[derive(Clone, Debug)]
pub struct RecordCursor {
    info: BatchInfo,
    limits: Limits,
    index: u32,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    V2 { position: usize, count: u32 },
    Legacy { entries: Vec<Entry>, base: i64, relative: bool, is_wrapper: bool },
    Done,
}

impl RecordCursor {
    /// Starts before the first record.
    ///
    /// # Errors
    /// [`ErrorKind::RecordCountNegative`] and what a wrapper breaks as a whole.
    pub fn start(info: &BatchInfo, payload: &[u8], limits: Limits) -> Result<Self> {
        let state = match info.record_count {
            Some(count) => {
                let count = u32::try_from(count)
                    .map_err(|_| Error::new(ErrorKind::RecordCountNegative { count }, 0))?;
                State::V2 { position: 0, count }
            }
            None if info.compression()? == Compression::None => {
                let whole = Entry { offset: info.last_offset, start: 0, end: payload.len() };
                let entries = vec![whole];
                State::Legacy { entries, base: 0, relative: false, is_wrapper: false }
            }
            None => {
                let entries = legacy::entries(payload)?;
                let base = legacy::absolute_base(info.magic, info.last_offset, &entries)?;
                for (index, entry) in entries.iter().enumerate() {
                    let attributes = payload.get(entry.start + 5).copied().unwrap_or(0);
                    if attributes & 7 != 0 {
                        let kind = ErrorKind::WrapperNested { index: index as u32 };
                        return Err(Error::new(kind, entry.start));
                    }
                }
                State::Legacy { entries, base, relative: info.magic == 1, is_wrapper: true }
            }
        };
        Ok(Self { info: *info, limits, index: 0, state })
    }

    /// Index of the record that comes next.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// How many records are known to be left.
    pub fn remaining(&self) -> usize {
        match &self.state {
            State::V2 { count, .. } => count.saturating_sub(self.index) as usize,
            State::Legacy { entries, .. } => entries.len().saturating_sub(self.index as usize),
            State::Done => 0,
        }
    }

    /// The next record, or `None` after the last. After an error there is nothing more.
    ///
    /// # Errors
    /// What Kafka's consumer refuses; positions count from the payload.
    pub fn next<'a>(&mut self, payload: &'a [u8]) -> Result<Option<Record<'a>>> {
        let result = match self.state {
            State::V2 { position, count } => self.next_v2(payload, position, count),
            State::Legacy { .. } => self.next_legacy(payload),
            State::Done => Ok(None),
        };
        if !matches!(result, Ok(Some(_))) {
            self.state = State::Done;
        }
        result
    }

    fn next_v2<'a>(
        &mut self,
        payload: &'a [u8],
        position: usize,
        count: u32,
    ) -> Result<Option<Record<'a>>> {
        if self.index >= count {
            // An emptied batch (count 0) is not looked into, as in Kafka.
            let left = payload.len().saturating_sub(position) as u64;
            return if left == 0 || count == 0 {
                Ok(None)
            } else {
                Err(Error::new(ErrorKind::TrailingBytes { left }, position))
            };
        }
        if payload.len().saturating_sub(position) < MIN_RECORD_BYTES && position == payload.len() {
            let kind = ErrorKind::RecordsMissing { index: self.index, count };
            return Err(Error::new(kind, position));
        }
        let (raw, end) = read_record(payload, position, self.index, &self.limits)?;
        let info = &self.info;
        let timestamp = if info.timestamp_type() == TimestampType::LogAppendTime {
            info.max_timestamp
        } else {
            info.base_timestamp.wrapping_add(raw.timestamp_delta)
        };
        let sequence = if info.base_sequence >= 0 {
            increment_sequence(info.base_sequence, raw.offset_delta)
        } else {
            -1
        };
        let record = Record {
            offset: info.base_offset.wrapping_add(i64::from(raw.offset_delta)),
            timestamp,
            key: raw.key,
            value: raw.value,
            headers: raw.headers,
            sequence,
            offset_delta: raw.offset_delta,
        };
        self.index += 1;
        // Bytes behind the last record make Kafka refuse that record already.
        if self.index == count && end != payload.len() {
            let left = payload.len().saturating_sub(end) as u64;
            return Err(Error::new(ErrorKind::TrailingBytes { left }, end));
        }
        self.state = State::V2 { position: end, count };
        Ok(Some(record))
    }

    fn next_legacy<'a>(&mut self, payload: &'a [u8]) -> Result<Option<Record<'a>>> {
        let State::Legacy { ref entries, base, relative, is_wrapper } = self.state else {
            return Ok(None);
        };
        let index = self.index;
        let Some(&entry) = entries.get(index as usize) else { return Ok(None) };
        let body = payload.get(entry.start..entry.end).unwrap_or_default();
        verify_legacy_body(body).map_err(|error| match error.kind {
            ErrorKind::CrcMismatch { stored, computed } if is_wrapper => {
                Error::new(ErrorKind::InnerCrcMismatch { index, stored, computed }, entry.start)
            }
            _ => error.within(entry.start),
        })?;
        let record = legacy::read_body(body).map_err(|error| error.within(entry.start))?;
        let wrapped_append_time =
            is_wrapper && self.info.timestamp_type() == TimestampType::LogAppendTime;
        let timestamp = if record.magic != 0 && wrapped_append_time {
            self.info.max_timestamp
        } else {
            record.timestamp
        };
        let offset = if relative { base.wrapping_add(entry.offset) } else { entry.offset };
        self.index += 1;
        Ok(Some(Record {
            offset,
            timestamp,
            key: record.key,
            value: record.value,
            headers: Headers::default(),
            sequence: -1,
            offset_delta: offset.wrapping_sub(self.info.base_offset) as i32,
        }))
    }
}
