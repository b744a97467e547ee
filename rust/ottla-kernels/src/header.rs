//! The 61 bytes before the records of a batch of magic 2, and which batches the kernels take.

/// Bytes before the records.
pub const HEADER_BYTES: usize = 61;
/// The CRC covers the batch from here to its end.
pub(crate) const CRC_FROM: usize = 21;
/// Bytes of `base_offset` and `batch_length`, which `batch_length` does not count.
const LENGTH_FROM: usize = 12;
/// The largest batch that is ordinary: what is larger than any broker takes is for the complete rules.
const MAX_ORDINARY_BYTES: usize = 64 << 20;
/// The shortest record: length, attributes, time delta, offset delta, null key, null value, no
/// headers.
pub(crate) const MIN_RECORD_BYTES: usize = 7;

/// Bits of `attributes`.
const CODEC: u16 = 7;
const LOG_APPEND_TIME: u16 = 8;
const TRANSACTIONAL: u16 = 16;

/// The fields of a batch header of magic 2, and where the batch lies in its buffer.
///
/// ```text
/// 0          8        12            16    17    21         23          27           35
/// │base_offset│length │leader epoch │magic│ crc │attributes│last offset│ base         │ max          │
/// │           │       │             │  2  │     │          │ delta     │ timestamp    │ timestamp    │
/// 43          51             53            57            61
/// │producer_id│producer_epoch│base_sequence│record_count │ records …     CRC covers 21..end
/// ```
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
    pub fn parse(data: &[u8], position: usize) -> Option<BatchHeader> {
        let head = data.get(position..)?.first_chunk::<HEADER_BYTES>()?;
        let batch_length = i32_at::<8>(head);
        let fits = batch_length >= (HEADER_BYTES - LENGTH_FROM) as i32
            && batch_length <= i32::MAX - LENGTH_FROM as i32
            && batch_length as usize <= data.len() - position - LENGTH_FROM;
        if head[16] != 2 || !fits {
            return None;
        }
        Some(BatchHeader {
            position,
            end: position + LENGTH_FROM + batch_length as usize,
            base_offset: i64_at::<0>(head),
            partition_leader_epoch: i32_at::<12>(head),
            crc: i32_at::<17>(head) as u32,
            attributes: u16::from_be_bytes([head[21], head[22]]),
            last_offset_delta: i32_at::<23>(head),
            base_timestamp: i64_at::<27>(head),
            max_timestamp: i64_at::<35>(head),
            producer_id: i64_at::<43>(head),
            producer_epoch: i16::from_be_bytes([head[51], head[52]]),
            base_sequence: i32_at::<53>(head),
            record_count: i32_at::<57>(head),
        })
    }

    /// The header at `position`, if the batch there is whole and ordinary.
    #[inline]
    pub(crate) fn ordinary_at(data: &[u8], position: usize) -> Option<BatchHeader> {
        Self::parse(data, position).filter(BatchHeader::is_ordinary)
    }

    /// Whether the kernels take this batch: everything the header alone must say for the batch to
    /// be right and plain.
    ///
    /// At most 64 MiB, uncompressed, not a control batch, no delete horizon, no undefined attribute; offset deltas
    /// that fit the record count, a count that fits the bytes; offsets of at least 0 without
    /// overflow; a leader epoch of at least −1; no producer id and no transaction, or producer
    /// fields of which none is negative; for `CreateTime`, timestamps of at least −1 and a maximum
    /// not before the base.
    #[inline]
    pub fn is_ordinary(&self) -> bool {
        let idempotent =
            self.producer_id >= 0 && self.producer_epoch >= 0 && self.base_sequence >= 0;
        // Without a producer id the other two mean nothing: some clients leave a sequence of 0
        // there.
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
    pub fn records_position(&self) -> usize {
        self.position + HEADER_BYTES
    }

    /// 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
    #[inline]
    pub fn codec(&self) -> u8 {
        (self.attributes & CODEC) as u8
    }

    /// Whether every record has the time of the append, `max_timestamp`.
    #[inline]
    pub fn is_log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_TIME != 0
    }

    /// The largest time delta a record may have; `None` where records could not be right or a sum
    /// could overflow: the complete rules decide there.
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

    /// What turns a time delta into a timestamp: `base + (delta & mask)`.
    #[inline]
    pub(crate) fn timestamp_base_and_mask(&self) -> (i64, i64) {
        if self.is_log_append_time() { (self.max_timestamp, 0) } else { (self.base_timestamp, -1) }
    }
}

/// How many records a run of batches holds, scaled up from the headers of the first: where to begin
/// with the size of columns. Never more than the bytes allow; a compressed batch counts as what its
/// own bytes would allow.
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
    // 3 % more, so that a sample slightly below the mean does not cost a copy of everything.
    let scaled = records as u128 * data.len() as u128 * 103 / (position.max(1) as u128 * 100);
    (scaled as usize).min(data.len() / MIN_RECORD_BYTES)
}

#[inline(always)]
fn i32_at<const AT: usize>(head: &[u8; HEADER_BYTES]) -> i32 {
    i32::from_be_bytes(std::array::from_fn(|k| head[AT + k]))
}

#[inline(always)]
fn i64_at<const AT: usize>(head: &[u8; HEADER_BYTES]) -> i64 {
    i64::from_be_bytes(std::array::from_fn(|k| head[AT + k]))
}
