//! One batch from records or columns, byte for byte as Kafka's own builder writes it.
//!
//! What Kafka's builder refuses is refused: offsets that do not go up, negative timestamps other
//! than −1, headers below magic 2, producer fields that contradict each other. Everything else a
//! caller may ask for is written, also what a leader would not take.

use std::fmt;

use ottla_kernels::{Level, RecordColumns, RecordsPlan, crc32c};

use crate::attributes::{CONTROL, Compression, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL};
use crate::compression::{Codecs, levels};
use crate::error::ErrorKind;
use crate::header::{CRC_START, Header, LOG_OVERHEAD, NONE, RECORD_BATCH_OVERHEAD};
use crate::varint::{varint_size, varlong_size, write_varint, write_varlong};

/// The fields of a batch that its records do not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub struct BatchFields {
    pub base_offset: i64,
    pub partition_leader_epoch: i32,
    /// When the broker appended it, in ms: makes the batch one of LogAppendTime.
    pub log_append_time_ms: Option<i64>,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub is_transactional: bool,
    /// Whether its records are control records (KIP-98).
    pub is_control: bool,
    pub compression: Compression,
    /// The codec's own where there is none.
    pub compression_level: Option<i32>,
    /// When the cleaner may drop its tombstones and markers, in ms (KIP-534).
    pub delete_horizon_ms: Option<i64>,
}

impl Default for BatchFields {
    /// Offset 0, no producer, no compression, CreateTime.
    fn default() -> Self {
        Self {
            base_offset: 0,
            partition_leader_epoch: -1,
            log_append_time_ms: None,
            producer_id: NONE,
            producer_epoch: -1,
            base_sequence: -1,
            is_transactional: false,
            is_control: false,
            compression: Compression::None,
            compression_level: None,
            delete_horizon_ms: None,
        }
    }
}

/// A record to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub struct NewRecord<'a> {
    /// In ms; −1 for none.
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: Vec<(&'a [u8], Option<&'a [u8]>)>,
    /// Its offset above the base offset; one above the record before where it is not given.
    pub offset_delta: Option<i32>,
}

/// A control record to be written, in version 0 (`record-batch.md` §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub enum NewControlRecord<'a> {
    /// Ends a transaction: what it wrote is not read.
    Abort { coordinator_epoch: i32 },
    /// Ends a transaction: what it wrote counts.
    Commit { coordinator_epoch: i32 },
    /// A new leader of a KRaft quorum (KIP-595).
    LeaderChange { leader_id: i32, voters: &'a [i32], granting_voters: &'a [i32] },
}

/// Why a batch cannot be built. Where a record is to blame, `index` is its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields say what they are
pub enum BuildError {
    /// Kafka writes no batch without records.
    NoRecords,
    /// The record count has 31 bits.
    TooManyRecords { count: u64 },
    /// The size field has 31 bits.
    TooLarge { size: u64, limit: u64 },
    /// Offsets go up from the base offset.
    OffsetDelta { index: usize, delta: i64, minimum: i64 },
    /// Timestamps are 0 or more, or −1 for none.
    Timestamp { index: usize, timestamp: i64 },
    /// A delete horizon is 0 or more; −1 is none.
    DeleteHorizon { delete_horizon_ms: i64 },
    /// Columns have no place for a delete horizon: only the cleaner sets one.
    DeleteHorizonOfColumns,
    /// Headers came with magic 2.
    Headers { index: usize, magic: i8 },
    /// This builder writes magic 0 and 1.
    Magic { magic: i8 },
    /// A transaction has a producer.
    TransactionalWithoutProducer,
    /// An end-transaction marker has a producer.
    MarkerWithoutProducer,
    /// A producer has an epoch.
    ProducerEpoch { producer_id: i64, producer_epoch: i16 },
    /// Batches of a producer are numbered, unless they are control batches.
    BaseSequence { producer_id: i64, base_sequence: i32 },
    /// The codec has no such level.
    CompressionLevel { codec: Compression, level: i32 },
    /// The codec does not exist with this magic.
    Codec { codec: Compression, magic: i8 },
    /// The columns do not fit together.
    Columns(ottla_kernels::build::BuildError),
    /// The memory given is not of the batch's size.
    BufferSize { expected: usize, found: usize },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoRecords => f.write_str("no records; a batch holds at least one"),
            Self::TooManyRecords { count } => {
                write!(f, "{count} records, expected at most {}", i32::MAX)
            }
            Self::TooLarge { size, limit } => {
                write!(f, "batch of {size} bytes, expected at most {limit}")
            }
            Self::OffsetDelta { index, delta, minimum } => write!(
                f,
                "record {index}: offset delta {delta}, expected {minimum} to {}",
                i32::MAX
            ),
            Self::Timestamp { index, timestamp } => {
                write!(
                    f,
                    "record {index}: timestamp {timestamp}, expected 0 or more, or -1 for none"
                )
            }
            Self::DeleteHorizon { delete_horizon_ms } => {
                write!(f, "delete horizon {delete_horizon_ms}, expected 0 or more")
            }
            Self::DeleteHorizonOfColumns => {
                f.write_str("a delete horizon with columns; build the batch from records")
            }
            Self::Headers { index, magic } => {
                write!(f, "record {index}: headers with magic {magic}, which has none; use magic 2")
            }
            Self::Magic { magic } => write!(f, "magic {magic}, expected 0 or 1"),
            Self::TransactionalWithoutProducer => {
                f.write_str("a transactional batch without a producer id")
            }
            Self::MarkerWithoutProducer => {
                f.write_str("an end-transaction marker without a producer id")
            }
            Self::ProducerEpoch { producer_id, producer_epoch } => write!(
                f,
                "producer id {producer_id} with producer epoch {producer_epoch}, expected 0 or more"
            ),
            Self::BaseSequence { producer_id, base_sequence } => write!(
                f,
                "producer id {producer_id} with base sequence {base_sequence}, expected 0 or more"
            ),
            Self::CompressionLevel { codec, level } => match levels(codec) {
                None => write!(f, "level {level} for {}, which has no levels", codec.name()),
                Some((range, _)) => write!(
                    f,
                    "level {level} for {}, expected {} to {}",
                    codec.name(),
                    range.start(),
                    range.end()
                ),
            },
            Self::Codec { codec, magic } => {
                write!(f, "{} with magic {magic}, expected magic 2", codec.name())
            }
            Self::Columns(error) => error.fmt(f),
            Self::BufferSize { expected, found } => {
                write!(f, "memory of {found} bytes for a batch of {expected}")
            }
        }
    }
}

impl std::error::Error for BuildError {}

impl From<ottla_kernels::build::BuildError> for BuildError {
    fn from(error: ottla_kernels::build::BuildError) -> Self {
        match error {
            ottla_kernels::build::BuildError::RecordCount { count: 0 } => Self::NoRecords,
            ottla_kernels::build::BuildError::RecordCount { count } => {
                Self::TooManyRecords { count: count as u64 }
            }
            error => Self::Columns(error),
        }
    }
}

type Result<T> = std::result::Result<T, BuildError>;

/// The largest batch: what a size field can say, and the envelope before it. Kafka's own arithmetic
/// on the sum must not overflow.
const MAX_BATCH_BYTES: u64 = i32::MAX as u64;

/// Builds a batch of magic 2.
///
/// # Errors
/// [`BuildError`].
///
/// # Examples
/// ```
/// use ottla_format::builder::{BatchFields, NewRecord, build_batch};
/// use ottla_format::{compression::Codecs, limits::Limits};
///
/// let record = NewRecord { value: Some(b"hello"), ..NewRecord::default() };
/// let mut codecs = Codecs::new(Limits::default());
/// let batch = build_batch(&BatchFields::default(), &[record], &mut codecs)?;
/// assert_eq!(batch.len(), 61 + 12);
/// # Ok::<(), ottla_format::builder::BuildError>(())
/// ```
pub fn build_batch(
    fields: &BatchFields,
    records: &[NewRecord<'_>],
    codecs: &mut Codecs,
) -> Result<Vec<u8>> {
    check_fields(fields)?;
    let deltas = check_records(records)?;
    let Some(first) = records.first() else { return Err(BuildError::NoRecords) };
    let base_timestamp = fields.delete_horizon_ms.unwrap_or(first.timestamp);

    let mut size = RECORD_BATCH_OVERHEAD as u64;
    for (record, &delta) in records.iter().zip(&deltas) {
        let body = body_size(record, base_timestamp, delta);
        let prefix = varint_size(i32::try_from(body).unwrap_or(i32::MAX)) as u64;
        size = size.saturating_add(prefix).saturating_add(body);
    }
    if size > MAX_BATCH_BYTES {
        return Err(BuildError::TooLarge { size, limit: MAX_BATCH_BYTES });
    }

    let mut batch = Vec::with_capacity(size as usize);
    batch.resize(RECORD_BATCH_OVERHEAD, 0);
    for (record, &delta) in records.iter().zip(&deltas) {
        write_record(&mut batch, record, base_timestamp, delta);
    }
    if fields.compression != Compression::None {
        let codec = (fields.compression, fields.compression_level);
        let payload = compress(codecs, codec, 2, &batch[RECORD_BATCH_OVERHEAD..])?;
        batch.truncate(RECORD_BATCH_OVERHEAD);
        batch.extend_from_slice(&payload);
    }
    let summary = Summary {
        base_timestamp,
        max_timestamp: records.iter().map(|record| record.timestamp).max().unwrap_or(NONE),
        last_offset_delta: deltas.last().copied().unwrap_or(0),
        record_count: records.len() as i32,
    };
    finish(&mut batch, fields, &summary);
    Ok(batch)
}

/// A batch of magic 2 written record by record, with offset deltas 0, 1, 2, …: what a broker writes
/// that rebuilds one. It holds the bytes of the batch and no record.
#[derive(Clone, Debug)]
pub struct RecordsWriter {
    batch: Vec<u8>,
    summary: Summary,
    limit: u64,
}

impl RecordsWriter {
    /// With room for as many bytes of records, for a batch of at most `limit`.
    pub fn new(records_bytes: usize, limit: u64) -> Self {
        let summary = Summary {
            base_timestamp: NONE,
            max_timestamp: NONE,
            last_offset_delta: -1,
            record_count: 0,
        };
        let mut batch = Vec::with_capacity(RECORD_BATCH_OVERHEAD.saturating_add(records_bytes));
        batch.resize(RECORD_BATCH_OVERHEAD, 0);
        Self { batch, summary, limit }
    }

    /// Appends a record, whose offset delta does not count.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn push(&mut self, record: &NewRecord<'_>) -> Result<()> {
        let index = self.summary.record_count;
        if record.timestamp < NONE {
            let (index, timestamp) = (index as usize, record.timestamp);
            return Err(BuildError::Timestamp { index, timestamp });
        }
        if index == 0 {
            self.summary.base_timestamp = record.timestamp;
        }
        let body = body_size(record, self.summary.base_timestamp, index);
        let size = (self.batch.len() as u64).saturating_add(body);
        if size > self.limit || index == i32::MAX {
            return Err(BuildError::TooLarge { size, limit: self.limit });
        }
        write_record(&mut self.batch, record, self.summary.base_timestamp, index);
        self.summary.max_timestamp = self.summary.max_timestamp.max(record.timestamp);
        self.summary.last_offset_delta = index;
        self.summary.record_count = index + 1;
        Ok(())
    }

    /// The whole batch, its records compressed by `compress` where `fields` name a codec.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn finish(
        mut self,
        fields: &BatchFields,
        compress: impl FnOnce(&[u8]) -> std::result::Result<Vec<u8>, ErrorKind>,
    ) -> Result<Vec<u8>> {
        check_fields(fields)?;
        if self.summary.record_count == 0 {
            return Err(BuildError::NoRecords);
        }
        if fields.compression != Compression::None {
            let records = &self.batch[RECORD_BATCH_OVERHEAD..];
            let size = records.len() as u64;
            let too_large = |_| BuildError::TooLarge { size, limit: self.limit };
            let payload = compress(records).map_err(too_large)?;
            self.batch.truncate(RECORD_BATCH_OVERHEAD);
            self.batch.extend_from_slice(&payload);
        }
        finish(&mut self.batch, fields, &self.summary);
        Ok(self.batch)
    }
}

/// Builds a control batch of one record. Of the fields, the base offset, the leader epoch and (of
/// an end-transaction marker) producer id and epoch count; the rest is as Kafka writes it.
///
/// # Errors
/// [`BuildError`].
pub fn build_control_batch(
    fields: &BatchFields,
    timestamp: i64,
    record: NewControlRecord<'_>,
    codecs: &mut Codecs,
) -> Result<Vec<u8>> {
    let (kind, value): (i16, Vec<u8>) = match record {
        NewControlRecord::Abort { coordinator_epoch } => (0, marker(coordinator_epoch)),
        NewControlRecord::Commit { coordinator_epoch } => (1, marker(coordinator_epoch)),
        NewControlRecord::LeaderChange { leader_id, voters, granting_voters } => {
            (2, leader_change(leader_id, voters, granting_voters))
        }
    };
    let is_marker = kind < 2;
    if is_marker && fields.producer_id == NONE {
        return Err(BuildError::MarkerWithoutProducer);
    }
    let version = 0i16;
    let key = [version.to_be_bytes(), kind.to_be_bytes()].concat();
    let fields = BatchFields {
        base_offset: fields.base_offset,
        partition_leader_epoch: fields.partition_leader_epoch,
        producer_id: if is_marker { fields.producer_id } else { NONE },
        producer_epoch: if is_marker { fields.producer_epoch } else { -1 },
        is_transactional: is_marker,
        is_control: true,
        ..BatchFields::default()
    };
    let record =
        NewRecord { timestamp, key: Some(&key), value: Some(&value), ..NewRecord::default() };
    build_batch(&fields, &[record], codecs)
}

fn marker(coordinator_epoch: i32) -> Vec<u8> {
    let version = 0i16;
    [&version.to_be_bytes()[..], &coordinator_epoch.to_be_bytes()].concat()
}

/// A `LeaderChangeMessage` of version 0, in Kafka's flexible encoding: counts plus one, and an
/// empty set of tagged fields (KIP-482) after each voter and at the end.
fn leader_change(leader_id: i32, voters: &[i32], granting_voters: &[i32]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&0i16.to_be_bytes());
    out.extend_from_slice(&leader_id.to_be_bytes());
    for ids in [voters, granting_voters] {
        let mut count = ids.len() as u64 + 1;
        while count >= 0x80 {
            out.push(count as u8 | 0x80);
            count >>= 7;
        }
        out.push(count as u8);
        for id in ids {
            out.extend_from_slice(&id.to_be_bytes());
            out.push(0);
        }
    }
    out.push(0);
    out
}

/// A batch of magic 2 from columns, checked and measured before it is written. Record `i` gets
/// offset delta `i` and no headers.
///
/// # Examples
/// ```
/// use ottla_format::builder::{BatchFields, ColumnsPlan};
/// use ottla_kernels::{BinaryColumn, Offsets, RecordColumns, Validity};
///
/// let offsets = Offsets::I32(&[0, 5]);
/// let values = BinaryColumn { offsets, data: b"hello", validity: Validity::All };
/// let columns = RecordColumns { timestamps: &[0], keys: None, values: Some(values) };
/// let plan = ColumnsPlan::new(&BatchFields::default(), columns)?;
/// let mut batch = vec![0; plan.size().expect("not compressed")];
/// plan.write(&mut batch)?;
/// assert_eq!(batch.len(), 61 + 12);
/// # Ok::<(), ottla_format::builder::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ColumnsPlan<'a> {
    fields: BatchFields,
    records: RecordsPlan<'a>,
    summary: Summary,
}

impl<'a> ColumnsPlan<'a> {
    /// Checks fields and columns.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn new(fields: &BatchFields, columns: RecordColumns<'a>) -> Result<Self> {
        check_fields(fields)?;
        if fields.delete_horizon_ms.is_some() {
            return Err(BuildError::DeleteHorizonOfColumns);
        }
        let records = RecordsPlan::new(Level::best(), columns)?;
        let size = records.size() as u64 + RECORD_BATCH_OVERHEAD as u64;
        if size > MAX_BATCH_BYTES {
            return Err(BuildError::TooLarge { size, limit: MAX_BATCH_BYTES });
        }
        let timestamps = columns.timestamps;
        // Without a way out of the loop, so that it becomes vectors.
        let (least, most) = timestamps
            .iter()
            .fold((i64::MAX, NONE), |(least, most), &t| (least.min(t), most.max(t)));
        if least < NONE {
            let index = timestamps.iter().position(|&t| t < NONE).unwrap_or(0);
            return Err(BuildError::Timestamp { index, timestamp: timestamps[index] });
        }
        let summary = Summary {
            base_timestamp: timestamps[0],
            max_timestamp: most,
            last_offset_delta: timestamps.len() as i32 - 1,
            record_count: timestamps.len() as i32,
        };
        Ok(Self { fields: *fields, records, summary })
    }

    /// Bytes of the batch; unknown before it is built where it is compressed.
    pub fn size(&self) -> Option<usize> {
        (self.fields.compression == Compression::None)
            .then_some(RECORD_BATCH_OVERHEAD + self.records.size())
    }

    /// Writes a batch that is not compressed into memory of its size.
    ///
    /// # Errors
    /// [`BuildError::BufferSize`].
    pub fn write(&self, batch: &mut [u8]) -> Result<()> {
        let expected = self.size().unwrap_or(0);
        if batch.len() != expected || expected == 0 {
            return Err(BuildError::BufferSize { expected, found: batch.len() });
        }
        self.records.write(&mut batch[RECORD_BATCH_OVERHEAD..]);
        finish(batch, &self.fields, &self.summary);
        Ok(())
    }

    /// Builds the batch, compressed or not.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn build(&self, codecs: &mut Codecs) -> Result<Vec<u8>> {
        if let Some(size) = self.size() {
            let mut batch = vec![0; size];
            self.write(&mut batch)?;
            return Ok(batch);
        }
        let mut records = vec![0; self.records.size()];
        self.records.write(&mut records);
        let codec = (self.fields.compression, self.fields.compression_level);
        let payload = compress(codecs, codec, 2, &records)?;
        let mut batch = Vec::with_capacity(RECORD_BATCH_OVERHEAD + payload.len());
        batch.resize(RECORD_BATCH_OVERHEAD, 0);
        batch.extend_from_slice(&payload);
        finish(&mut batch, &self.fields, &self.summary);
        Ok(batch)
    }
}

/// Builds a batch of magic 2 from columns: [`ColumnsPlan`] in one call.
///
/// # Errors
/// [`BuildError`].
pub fn build_batch_from_columns(
    fields: &BatchFields,
    columns: RecordColumns<'_>,
    codecs: &mut Codecs,
) -> Result<Vec<u8>> {
    ColumnsPlan::new(fields, columns)?.build(codecs)
}

/// What a message set of magic 0 or 1 has beside its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub struct LegacyFields {
    /// 0 or 1.
    pub magic: i8,
    /// Offset of the first record.
    pub base_offset: i64,
    /// When the broker appended it, in ms: LogAppendTime. Magic 0 has no timestamps at all.
    pub log_append_time_ms: Option<i64>,
    /// With a codec the records become one wrapper.
    pub compression: Compression,
    /// The codec's own where there is none.
    pub compression_level: Option<i32>,
}

/// Builds a message set: one entry a record, or one compressed wrapper of all. Inner offsets are
/// absolute with magic 0 and relative with magic 1.
///
/// # Errors
/// [`BuildError`].
pub fn build_legacy(
    fields: &LegacyFields,
    records: &[NewRecord<'_>],
    codecs: &mut Codecs,
) -> Result<Vec<u8>> {
    let LegacyFields { magic, compression, .. } = *fields;
    if !(0..=1).contains(&magic) {
        return Err(BuildError::Magic { magic });
    }
    check_legacy_codec(fields)?;
    if let Some(index) = records.iter().position(|record| !record.headers.is_empty()) {
        return Err(BuildError::Headers { index, magic });
    }
    check_level(compression, fields.compression_level)?;
    let deltas = check_records(records)?;
    let size = records
        .iter()
        .map(|record| MessageSetWriter::entry_size(record))
        .fold(0, u64::saturating_add)
        .min(MAX_BATCH_BYTES);
    let mut writer = MessageSetWriter::new(*fields, size as usize, MAX_BATCH_BYTES);
    for (record, &delta) in records.iter().zip(&deltas) {
        writer.push(record, delta)?;
    }
    writer.finish(codecs)
}

fn check_legacy_codec(fields: &LegacyFields) -> Result<()> {
    let LegacyFields { magic, compression: codec, .. } = *fields;
    if codec == Compression::Zstd { Err(BuildError::Codec { codec, magic }) } else { Ok(()) }
}

/// A message set written record by record: it holds the bytes of the set and no record.
#[derive(Clone, Debug)]
pub struct MessageSetWriter {
    fields: LegacyFields,
    set: Vec<u8>,
    /// As if every entry were of magic 1.
    size: u64,
    max_timestamp: i64,
    last_offset_delta: Option<i32>,
    limit: u64,
}

impl MessageSetWriter {
    /// With room for as many bytes of records, for a set of at most `limit`.
    pub fn new(fields: LegacyFields, records_bytes: usize, limit: u64) -> Self {
        let set = Vec::with_capacity(records_bytes);
        Self { fields, set, size: 0, max_timestamp: NONE, last_offset_delta: None, limit }
    }

    /// Appends a record with an offset delta; headers do not count.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn push(&mut self, record: &NewRecord<'_>, offset_delta: i32) -> Result<()> {
        self.size = self.size.saturating_add(Self::entry_size(record));
        if self.size > self.limit {
            return Err(BuildError::TooLarge { size: self.size, limit: self.limit });
        }
        let LegacyFields { magic, base_offset, log_append_time_ms, .. } = self.fields;
        let is_wrapped = self.is_wrapped();
        let offset = if is_wrapped && magic > 0 { 0 } else { base_offset };
        LegacyEntry {
            offset: offset.wrapping_add(i64::from(offset_delta)),
            magic,
            attributes: self.time_bit(),
            timestamp: log_append_time_ms.filter(|_| !is_wrapped).unwrap_or(record.timestamp),
            key: record.key,
            value: record.value,
        }
        .write(&mut self.set);
        self.max_timestamp = self.max_timestamp.max(record.timestamp);
        self.last_offset_delta = Some(offset_delta);
        Ok(())
    }

    /// The whole set, in a wrapper where the fields name a codec.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn finish(self, codecs: &mut Codecs) -> Result<Vec<u8>> {
        check_legacy_codec(&self.fields)?;
        let Some(last) = self.last_offset_delta else { return Err(BuildError::NoRecords) };
        if !self.is_wrapped() {
            return Ok(self.set);
        }
        let LegacyFields { magic, base_offset, compression, compression_level, .. } = self.fields;
        let payload = compress(codecs, (compression, compression_level), magic, &self.set)?;
        let mut wrapper = Vec::with_capacity(payload.len() + LEGACY_OVERHEAD as usize);
        LegacyEntry {
            offset: base_offset.wrapping_add(i64::from(last)),
            magic,
            attributes: self.time_bit() | compression as u8,
            timestamp: self.fields.log_append_time_ms.unwrap_or(self.max_timestamp),
            key: None,
            value: Some(&payload),
        }
        .write(&mut wrapper);
        Ok(wrapper)
    }

    fn entry_size(record: &NewRecord<'_>) -> u64 {
        let bytes = |part: Option<&[u8]>| part.map_or(0, <[u8]>::len) as u64;
        LEGACY_OVERHEAD + bytes(record.key) + bytes(record.value)
    }

    fn is_wrapped(&self) -> bool {
        self.fields.compression != Compression::None
    }

    fn time_bit(&self) -> u8 {
        let is_stamped = self.fields.log_append_time_ms.is_some() && self.fields.magic > 0;
        if is_stamped { LOG_APPEND_TIME as u8 } else { 0 }
    }
}

/// Bytes of an entry of magic 1 beside key and value.
const LEGACY_OVERHEAD: u64 = LOG_OVERHEAD as u64 + 22;

struct LegacyEntry<'a> {
    offset: i64,
    magic: i8,
    attributes: u8,
    timestamp: i64,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
}

impl LegacyEntry<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let (size_at, crc_at, covered_at) = (start + 8, start + 12, start + 16);
        out.extend_from_slice(&self.offset.to_be_bytes());
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&self.magic.to_be_bytes());
        out.push(self.attributes);
        if self.magic > 0 {
            out.extend_from_slice(&self.timestamp.to_be_bytes());
        }
        for part in [self.key, self.value] {
            out.extend_from_slice(&part.map_or(-1, |bytes| bytes.len() as i32).to_be_bytes());
            out.extend_from_slice(part.unwrap_or_default());
        }
        let size = (out.len() - crc_at) as u32;
        let crc = crc32fast::hash(&out[covered_at..]);
        out[size_at..crc_at].copy_from_slice(&size.to_be_bytes());
        out[crc_at..covered_at].copy_from_slice(&crc.to_be_bytes());
    }
}

/// What the records decide of a header.
#[derive(Clone, Copy, Debug)]
struct Summary {
    base_timestamp: i64,
    max_timestamp: i64,
    last_offset_delta: i32,
    record_count: i32,
}

/// Writes the header over the first 61 bytes of a batch whose payload is in its place.
fn finish(batch: &mut [u8], fields: &BatchFields, summary: &Summary) {
    let bit = |is_set: bool, bit: u16| if is_set { bit } else { 0 };
    let mut header = Header {
        base_offset: fields.base_offset,
        batch_length: (batch.len() - LOG_OVERHEAD) as i32,
        partition_leader_epoch: fields.partition_leader_epoch,
        magic: 2,
        crc: 0,
        attributes: fields.compression as u16
            | bit(fields.log_append_time_ms.is_some(), LOG_APPEND_TIME)
            | bit(fields.is_transactional, TRANSACTIONAL)
            | bit(fields.is_control, CONTROL)
            | bit(fields.delete_horizon_ms.is_some(), DELETE_HORIZON),
        last_offset_delta: summary.last_offset_delta,
        base_timestamp: summary.base_timestamp,
        max_timestamp: fields.log_append_time_ms.unwrap_or(summary.max_timestamp),
        producer_id: fields.producer_id,
        producer_epoch: fields.producer_epoch,
        base_sequence: fields.base_sequence,
        record_count: summary.record_count,
    };
    batch[..RECORD_BATCH_OVERHEAD].copy_from_slice(&header.to_bytes());
    header.crc = crc32c(&batch[CRC_START..]);
    batch[..RECORD_BATCH_OVERHEAD].copy_from_slice(&header.to_bytes());
}

fn check_fields(fields: &BatchFields) -> Result<()> {
    let BatchFields { producer_id, producer_epoch, base_sequence, .. } = *fields;
    if fields.is_transactional && producer_id == NONE {
        return Err(BuildError::TransactionalWithoutProducer);
    }
    if producer_id != NONE && producer_epoch == -1 {
        return Err(BuildError::ProducerEpoch { producer_id, producer_epoch });
    }
    if producer_id != NONE && base_sequence < 0 && !fields.is_control {
        return Err(BuildError::BaseSequence { producer_id, base_sequence });
    }
    if let Some(delete_horizon_ms) = fields.delete_horizon_ms.filter(|&ms| ms < 0) {
        return Err(BuildError::DeleteHorizon { delete_horizon_ms });
    }
    check_level(fields.compression, fields.compression_level)
}

fn check_level(codec: Compression, level: Option<i32>) -> Result<()> {
    let Some(level) = level else { return Ok(()) };
    match levels(codec) {
        Some((range, _)) if range.contains(&level) => Ok(()),
        _ => Err(BuildError::CompressionLevel { codec, level }),
    }
}

/// The offset delta of each record.
fn check_records(records: &[NewRecord<'_>]) -> Result<Vec<i32>> {
    if i32::try_from(records.len()).is_err() {
        return Err(BuildError::TooManyRecords { count: records.len() as u64 });
    }
    let mut minimum = 0i64;
    let mut deltas = Vec::with_capacity(records.len());
    for (index, record) in records.iter().enumerate() {
        let delta = record.offset_delta.map_or(minimum, i64::from);
        let fits = i32::try_from(delta).ok().filter(|_| delta >= minimum);
        deltas.push(fits.ok_or(BuildError::OffsetDelta { index, delta, minimum })?);
        minimum = delta + 1;
        let timestamp = record.timestamp;
        if timestamp < NONE {
            return Err(BuildError::Timestamp { index, timestamp });
        }
    }
    Ok(deltas)
}

/// Codec, level and magic go together; what can be wrong is the size.
fn compress(
    codecs: &mut Codecs,
    (codec, level): (Compression, Option<i32>),
    magic: i8,
    records: &[u8],
) -> Result<Vec<u8>> {
    let too_large = |size: usize| BuildError::TooLarge {
        size: size as u64 + RECORD_BATCH_OVERHEAD as u64,
        limit: MAX_BATCH_BYTES,
    };
    let payload =
        codecs.compress(codec, level, magic, records).map_err(|_| too_large(records.len()))?;
    if payload.len() + RECORD_BATCH_OVERHEAD > MAX_BATCH_BYTES as usize {
        return Err(too_large(payload.len()));
    }
    Ok(payload)
}

/// Bytes of a record after its length. The sum is checked before anything is written.
fn body_size(record: &NewRecord<'_>, base_timestamp: i64, offset_delta: i32) -> u64 {
    let part = |bytes: Option<&[u8]>| {
        bytes.map_or(1, |bytes| varint_size(bytes.len() as i32) + bytes.len()) as u64
    };
    let headers: u64 =
        record.headers.iter().map(|&(key, value)| part(Some(key)) + part(value)).sum();
    let timestamp_delta = record.timestamp.wrapping_sub(base_timestamp);
    let numbers = varlong_size(timestamp_delta)
        + varint_size(offset_delta)
        + varint_size(record.headers.len() as i32);
    1 + numbers as u64 + part(record.key) + part(record.value) + headers
}

fn write_record(out: &mut Vec<u8>, record: &NewRecord<'_>, base_timestamp: i64, offset_delta: i32) {
    write_varint(out, body_size(record, base_timestamp, offset_delta) as i32);
    out.push(0);
    write_varlong(out, record.timestamp.wrapping_sub(base_timestamp));
    write_varint(out, offset_delta);
    write_bytes(out, record.key);
    write_bytes(out, record.value);
    write_varint(out, record.headers.len() as i32);
    for &(key, value) in &record.headers {
        write_bytes(out, Some(key));
        write_bytes(out, value);
    }
}

fn write_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else { return write_varint(out, -1) };
    write_varint(out, bytes.len() as i32);
    out.extend_from_slice(bytes);
}
