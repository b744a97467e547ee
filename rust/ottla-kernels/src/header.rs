//! The 61 bytes before the records of a batch of magic 2, and which batches the kernels accept.
//!
//! ```text
//! 0           8            12                     16    17    21         23
//! │base_offset│batch_length│partition_leader_epoch│magic│ crc │attributes│last_offset_delta│ …
//! 27             35            43          51             53            57           61
//! │base_timestamp│max_timestamp│producer_id│producer_epoch│base_sequence│record_count│ records …
//! ```
//!
//! `batch_length` counts the bytes after itself. The CRC covers the batch from `attributes` to its end.

/// Where each field of the header begins, in bytes from the start of the batch.
#[allow(missing_docs)] // Kafka's own names
pub mod field {
    pub const BASE_OFFSET: usize = 0;
    pub const BATCH_LENGTH: usize = 8;
    pub const PARTITION_LEADER_EPOCH: usize = 12;
    pub const MAGIC: usize = 16;
    pub const CRC: usize = 17;
    pub const ATTRIBUTES: usize = 21;
    pub const LAST_OFFSET_DELTA: usize = 23;
    pub const BASE_TIMESTAMP: usize = 27;
    pub const MAX_TIMESTAMP: usize = 35;
    pub const PRODUCER_ID: usize = 43;
    pub const PRODUCER_EPOCH: usize = 51;
    pub const BASE_SEQUENCE: usize = 53;
    pub const RECORD_COUNT: usize = 57;
}

/// Bytes before the records.
pub const HEADER_BYTES: usize = 61;
/// The CRC covers the batch from here to its end.
pub const CRC_START: usize = field::ATTRIBUTES;
/// Bytes of `base_offset` and `batch_length`, which `batch_length` does not count.
pub const LOG_OVERHEAD: usize = 12;
/// The largest ordinary batch: larger ones, which few brokers accept, are left to the complete rules.
pub const MAX_ORDINARY_BYTES: usize = 64 << 20;
/// The shortest record: length, attributes, timestamp delta, offset delta, null key, null value, no
/// headers.
pub const MIN_RECORD_BYTES: usize = 7;

/// Bits of `attributes`.
const CODEC: u16 = 7;
const LOG_APPEND_TIME: u16 = 8;
const TRANSACTIONAL: u16 = 16;

/// The fields of a batch header of magic 2, and where the batch lies in its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Where the batch begins in its buffer.
    pub position: usize,
    /// Where it ends.
    pub end: usize,
    /// Offset of the first record.
    pub base_offset: i64,
    /// Epoch of the leader that appended the batch, −1 if none.
    pub partition_leader_epoch: i32,
    /// The CRC the batch carries.
    pub crc: u32,
    /// Codec, timestamp type and flags.
    pub attributes: u16,
    /// Offset of the last record minus `base_offset`.
    pub last_offset_delta: i32,
    /// Timestamp the records' deltas refer to, in milliseconds.
    pub base_timestamp: i64,
    /// The largest timestamp, or the time of the append, in milliseconds.
    pub max_timestamp: i64,
    /// −1 if none.
    pub producer_id: i64,
    /// −1 if none.
    pub producer_epoch: i16,
    /// −1 if none.
    pub base_sequence: i32,
    /// How many records the batch says it has.
    pub record_count: i32,
}

impl BatchHeader {
    /// The header at `position`, if a batch of magic 2 with a possible length lies there wholly
    /// inside `data`.
    ///
    /// `None` says nothing more than that; neither the CRC nor any other field is judged.
    ///
    /// # Examples
    ///
    /// ```
    /// use ottla_kernels::BatchHeader;
    ///
    /// assert_eq!(BatchHeader::parse(b"too short", 0), None);
    /// ```
    #[inline]
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "61 bytes are there, so `position` and the sum with a length that fits are below the size"
    )]
    pub fn parse(data: &[u8], position: usize) -> Option<BatchHeader> {
        let head = data.get(position..)?.first_chunk::<HEADER_BYTES>()?;
        let batch_length = i32_at::<{ field::BATCH_LENGTH }>(head);
        let fits = batch_length >= (HEADER_BYTES - LOG_OVERHEAD) as i32
            && batch_length <= i32::MAX - LOG_OVERHEAD as i32
            && batch_length as usize <= data.len() - position - LOG_OVERHEAD;
        if head[field::MAGIC] != 2 || !fits {
            return None;
        }
        Some(Self::read(head, position, position + LOG_OVERHEAD + batch_length as usize))
    }

    /// The fields as they stand in the header of a batch from `position` to `end`; none is judged.
    #[inline]
    pub fn read(head: &[u8; HEADER_BYTES], position: usize, end: usize) -> BatchHeader {
        BatchHeader {
            position,
            end,
            base_offset: i64_at::<{ field::BASE_OFFSET }>(head),
            partition_leader_epoch: i32_at::<{ field::PARTITION_LEADER_EPOCH }>(head),
            crc: i32_at::<{ field::CRC }>(head) as u32,
            attributes: i16_at::<{ field::ATTRIBUTES }>(head) as u16,
            last_offset_delta: i32_at::<{ field::LAST_OFFSET_DELTA }>(head),
            base_timestamp: i64_at::<{ field::BASE_TIMESTAMP }>(head),
            max_timestamp: i64_at::<{ field::MAX_TIMESTAMP }>(head),
            producer_id: i64_at::<{ field::PRODUCER_ID }>(head),
            producer_epoch: i16_at::<{ field::PRODUCER_EPOCH }>(head),
            base_sequence: i32_at::<{ field::BASE_SEQUENCE }>(head),
            record_count: i32_at::<{ field::RECORD_COUNT }>(head),
        }
    }

    /// The header at `position`, if the batch there is whole and ordinary.
    #[inline]
    pub(crate) fn ordinary_at(data: &[u8], position: usize) -> Option<BatchHeader> {
        Self::parse(data, position).filter(BatchHeader::is_ordinary)
    }

    /// Whether the kernels accept this batch: everything that the header alone must show for the
    /// batch to be plain and correct.
    ///
    /// At most 64 MiB, uncompressed, no control batch, no delete horizon, no undefined attribute;
    /// offset deltas that fit the record count, and a count that fits the bytes; offsets of at least
    /// 0 without overflow; a leader epoch of at least −1; no producer id and no transaction, or
    /// producer fields of which none is negative; for `CreateTime`, timestamps of at least −1 and a
    /// maximum not before the base.
    #[inline(always)]
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "a parsed batch holds its header; the count is checked before it is reduced"
    )]
    pub fn is_ordinary(&self) -> bool {
        let idempotent =
            self.producer_id >= 0 && self.producer_epoch >= 0 && self.base_sequence >= 0;
        // Without a producer id the other two fields mean nothing: some clients leave a sequence of
        // 0 there.
        let anonymous = self.producer_id == -1 && self.attributes & TRANSACTIONAL == 0;
        let room = self.end - self.records_position();
        self.attributes & !(LOG_APPEND_TIME | TRANSACTIONAL) == 0
            && self.end - self.position <= MAX_ORDINARY_BYTES
            && self.record_count >= 1
            && self.record_count as usize * MIN_RECORD_BYTES <= room
            && self.last_offset_delta == self.record_count - 1
            && self.base_offset >= 0
            && self.base_offset <= i64::MAX - i64::from(self.last_offset_delta)
            && self.partition_leader_epoch >= -1
            && (anonymous || idempotent)
            && self.max_delta().is_some()
    }

    /// Where the records begin.
    #[inline]
    #[allow(clippy::arithmetic_side_effects, reason = "a parsed batch holds its header")]
    pub fn records_position(&self) -> usize {
        self.position + HEADER_BYTES
    }

    /// The codec: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
    #[inline]
    pub fn codec(&self) -> u8 {
        (self.attributes & CODEC) as u8
    }

    /// Whether every record has the timestamp of the append, `max_timestamp`.
    #[inline]
    pub fn is_log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_TIME != 0
    }

    /// The largest timestamp delta a record may have; `None` where no record could be correct or a
    /// sum could overflow: the complete rules decide then.
    #[inline]
    pub(crate) fn max_delta(&self) -> Option<i64> {
        if self.is_log_append_time() {
            return Some(i64::MAX);
        }
        if self.base_timestamp < -1 {
            return None;
        }
        self.max_timestamp.checked_sub(self.base_timestamp).filter(|delta| *delta >= 0)
    }

    /// The base and mask that turn a timestamp delta into a timestamp: `base + (delta & mask)`.
    #[inline]
    pub(crate) fn timestamp_base_and_mask(&self) -> (i64, i64) {
        if self.is_log_append_time() { (self.max_timestamp, 0) } else { (self.base_timestamp, -1) }
    }
}

/// An estimate of the records in `data`, scaled up from the headers of its first batches, for the
/// initial size of columns. Never more than the bytes allow; a compressed batch counts for what its
/// compressed bytes would allow.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "at most 64 batches inside `data`; the products have 128 bits"
)]
pub(crate) fn estimate_records(data: &[u8]) -> usize {
    const SAMPLE: usize = 64;
    let (mut position, mut records) = (0, 0);
    for _ in 0..SAMPLE {
        let Some(header) = BatchHeader::parse(data, position) else {
            break;
        };
        let possible = (header.end - header.records_position()) / MIN_RECORD_BYTES;
        records += usize::try_from(header.record_count).unwrap_or(0).min(possible);
        position = header.end;
    }
    if position == data.len() {
        return records;
    }
    // 3 % more, so that a sample slightly below the mean does not force a copy of everything.
    let scaled = records as u128 * data.len() as u128 * 103 / (position.max(1) as u128 * 100);
    (scaled as usize).min(data.len() / MIN_RECORD_BYTES)
}

#[inline(always)]
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "fields lie inside the header"
)]
fn i16_at<const AT: usize>(head: &[u8; HEADER_BYTES]) -> i16 {
    i16::from_be_bytes([head[AT], head[AT + 1]])
}

#[inline(always)]
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "fields lie inside the header"
)]
fn i32_at<const AT: usize>(head: &[u8; HEADER_BYTES]) -> i32 {
    i32::from_be_bytes(std::array::from_fn(|k| head[AT + k]))
}

#[inline(always)]
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "fields lie inside the header"
)]
fn i64_at<const AT: usize>(head: &[u8; HEADER_BYTES]) -> i64 {
    i64::from_be_bytes(std::array::from_fn(|k| head[AT + k]))
}
