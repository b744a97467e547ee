//! The levels of checking, from the checksum alone to every rule.
//!
//! | level | what is proved |
//! | --- | --- |
//! | `crc` | framing and checksum; nothing inside is looked at |
//! | `decode` | the payload inflates and every record parses, as Kafka's consumer would |
//! | `full` | every rule of the format: counts, offset deltas, timestamps within the header's maximum, producer fields, control records |
//!
//! Ordinary batches are proved by the kernels in one pass; whatever they do not say yes to is judged
//! here, record by record, with every fault named. A *thin* batch, one that compaction took records
//! from, keeps its first and last offset: its deltas go up, and have gaps.

use crate::attributes::{Compression, TimestampType};
use crate::batch::{self, BatchInfo, Payload, RecordCursor};
use crate::compression::Codecs;
use crate::error::{Error, ErrorKind, Result};
use crate::header::{CRC_START, Envelope, LOG_OVERHEAD, NONE, Next, read_i16, read_i32};
use crate::legacy;
use crate::limits::{Limits, MAX_FAULTS_PER_BATCH};
use ottla_kernels::{BatchHeader, Nothing, Timestamps};
use serde::{Deserialize, Serialize};

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Framing and checksum.
    Crc,
    /// And every record parses.
    Decode,
    /// And every rule holds.
    Full,
}

impl Level {
    /// The level of a name: `crc`, `decode` or `full`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "crc" => Some(Self::Crc),
            "decode" => Some(Self::Decode),
            "full" => Some(Self::Full),
            _ => None,
        }
    }
}

/// What a control record says (`record-batch.md` §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // Kafka's own names
pub enum ControlRecord {
    Abort {
        coordinator_epoch: i32,
    },
    Commit {
        coordinator_epoch: i32,
    },
    LeaderChange,
    SnapshotHeader,
    SnapshotFooter,
    KraftVersion,
    KraftVoters,
    /// A type this engine does not know; consumers ignore it.
    Unknown {
        kind: i16,
    },
}

impl ControlRecord {
    /// Reads key and value of record `index` of a control batch.
    ///
    /// # Errors
    /// [`ErrorKind::ControlKey`] and [`ErrorKind::ControlValue`].
    pub fn read(
        index: u32,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> std::result::Result<Self, ErrorKind> {
        let bytes = key.unwrap_or_default();
        let bad_key = ErrorKind::ControlKey { index, size: key.map_or(-1, |k| k.len() as i64) };
        let (Some(version), Some(kind)) = (read_i16(bytes, 0), read_i16(bytes, 2)) else {
            return Err(bad_key);
        };
        if version < 0 {
            return Err(bad_key);
        }
        let epoch = || {
            let bytes = value.unwrap_or_default();
            let size = value.map_or(-1, |v| v.len() as i64);
            match (read_i16(bytes, 0), read_i32(bytes, 2)) {
                (Some(version), Some(epoch)) if version >= 0 => Ok(epoch),
                _ => Err(ErrorKind::ControlValue { index, size }),
            }
        };
        Ok(match kind {
            0 => Self::Abort { coordinator_epoch: epoch()? },
            1 => Self::Commit { coordinator_epoch: epoch()? },
            2 => Self::LeaderChange,
            3 => Self::SnapshotHeader,
            4 => Self::SnapshotFooter,
            5 => Self::KraftVersion,
            6 => Self::KraftVoters,
            kind => Self::Unknown { kind },
        })
    }

    /// Kafka's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Abort { .. } => "ABORT",
            Self::Commit { .. } => "COMMIT",
            Self::LeaderChange => "LEADER_CHANGE",
            Self::SnapshotHeader => "SNAPSHOT_HEADER",
            Self::SnapshotFooter => "SNAPSHOT_FOOTER",
            Self::KraftVersion => "KRAFT_VERSION",
            Self::KraftVoters => "KRAFT_VOTERS",
            Self::Unknown { .. } => "UNKNOWN",
        }
    }
}

/// What checking one batch has shown beside faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The stored checksum is that of the bytes.
    pub crc_ok: bool,
    /// Records counted: those that parsed, or at level `crc` what the header says.
    pub records: u64,
    /// Offset of the first record of a legacy wrapper.
    pub base_offset: Option<i64>,
    /// The first control record of a control batch, where it could be read.
    pub control: Option<ControlRecord>,
    /// The header's maximum is above the timestamps of all records; known at level `full` where every
    /// record was read.
    pub maximum_unreached: bool,
}

/// Checks batches; holds the contexts and the arena of the codecs. One per thread.
pub struct Checker {
    level: Level,
    limits: Limits,
    codecs: Codecs,
    kernels: ottla_kernels::Level,
}

impl Checker {
    /// A checker that looks as deep as `level`, with the best kernels this machine has.
    pub fn new(level: Level, limits: Limits) -> Self {
        Self::with_kernels(level, limits, ottla_kernels::Level::best())
    }

    /// The same with other kernels, for tests and benchmarks.
    pub fn with_kernels(level: Level, limits: Limits, kernels: ottla_kernels::Level) -> Self {
        Self { level, limits, codecs: Codecs::new(limits), kernels }
    }

    /// How deep it looks.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Looks deeper or less deep from now on.
    pub fn set_level(&mut self, level: Level) {
        self.level = level;
    }

    /// The codecs, for other uses on the same thread.
    pub fn codecs(&mut self) -> &mut Codecs {
        &mut self.codecs
    }

    /// The bounds in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The kernels in use.
    pub fn kernels(&self) -> ottla_kernels::Level {
        self.kernels
    }

    /// Checks a buffer of batches up to its end: the number of records in it. Zeros to the end of
    /// the buffer are no batch and no fault.
    ///
    /// # Errors
    /// The first fault, and [`ErrorKind::TruncatedBatch`] when the buffer ends inside a batch.
    pub fn check_all(&mut self, data: &[u8]) -> Result<u64> {
        let (mut position, mut records) = (0, 0);
        let mut faults = Vec::new();
        while position < data.len() {
            let run = match self.level {
                Level::Crc => {
                    let limit = self.limits.batch_bytes;
                    ottla_kernels::crc_only_run(self.kernels, data, position, |header| {
                        (header.end - header.position) as u64 <= limit
                    })
                }
                _ => ottla_kernels::run(self.kernels, data, position, &mut Nothing),
            };
            records += run.records;
            position = run.position;
            if position >= data.len() {
                break;
            }
            let envelope = match Envelope::next(data, position) {
                Ok(Next::Batch(envelope)) => envelope,
                Ok(Next::End { left, needed }) => {
                    if crate::batches::is_zero_tail(data, position) {
                        break;
                    }
                    let (needed, left) = (needed as u64, left as u64);
                    let kind = ErrorKind::TruncatedBatch { needed, left };
                    return Err(Error::new(kind, position));
                }
                Err(error) => {
                    if crate::batches::is_zero_tail(data, position) {
                        break;
                    }
                    return Err(error);
                }
            };
            records += self.check(data, position, &envelope, &mut faults).records;
            if let Some(&fault) = faults.first() {
                return Err(fault);
            }
            position += envelope.total();
        }
        Ok(records)
    }

    /// Checks the batch at `at`, which lies whole in `data`. Faults are appended, at most
    /// [`MAX_FAULTS_PER_BATCH`]; positions count from the start of `data`.
    pub fn check(
        &mut self,
        data: &[u8],
        at: usize,
        envelope: &Envelope,
        faults: &mut Vec<Error>,
    ) -> Checked {
        let known = faults.len();
        let mut checked = Checked::default();
        let end = at.saturating_add(envelope.total()).min(data.len());
        let whole = data.get(at..end).unwrap_or_default();
        if let Err(error) = self.check_whole(whole, envelope, faults, &mut checked) {
            faults.push(error);
        }
        for fault in faults.iter_mut().skip(known) {
            *fault = fault.within(at);
        }
        checked
    }

    fn check_whole(
        &mut self,
        whole: &[u8],
        envelope: &Envelope,
        faults: &mut Vec<Error>,
        checked: &mut Checked,
    ) -> Result<()> {
        let (size, limit) = (whole.len() as u64, self.limits.batch_bytes);
        if size > limit {
            return Err(Error::new(ErrorKind::BatchTooLarge { declared: size, limit }, 0));
        }
        let info = BatchInfo::read(whole, 0, envelope)?;
        batch::verify(whole)?;
        checked.crc_ok = true;
        checked.records = info.record_count.map_or(1, |count| u64::from(count.max(0) as u32));
        if self.level == Level::Crc {
            return Ok(());
        }
        checked.records = 0;
        if self.level == Level::Full && info.magic >= 2 {
            header_rules(&info, faults);
        }
        let kernels = self.kernels;
        let (level, limits) = (self.level, self.limits);
        let found = batch::payload(&info, whole)?;
        let (records, start, inflated) = match found {
            // A plain legacy record is its own body; its checksum was the batch's.
            Payload::Plain { start } => (whole.get(start..).unwrap_or_default(), start, false),
            Payload::Compressed { codec, bytes, start } => {
                let inflated = self
                    .codecs
                    .decompress(codec, info.magic, bytes)
                    .map_err(|kind| Error::new(kind, start))?;
                (inflated, start, true)
            }
        };
        if inflated
            && !info.is_control()
            && let Some(header) = BatchHeader::parse(whole, 0)
            && i64::from(header.record_count) == i64::from(header.last_offset_delta) + 1
            && let Some(is_reached) = walk_payload(kernels, level, records, &header)
        {
            checked.records = u64::from(header.record_count as u32);
            checked.maximum_unreached = !is_reached;
            return Ok(());
        }
        let at = |position: u64| if inflated { start as u64 } else { position + start as u64 };
        walk_records(&info, records, level, limits, faults, checked)
            .map_err(|error| Error { position: at(error.position), ..error })
    }
}

/// Whether a record reaches the header's maximum, if the kernels find every record right; below level
/// `full` nobody asks.
fn walk_payload(
    kernels: ottla_kernels::Level,
    level: Level,
    records: &[u8],
    header: &BatchHeader,
) -> Option<bool> {
    if level < Level::Full {
        return ottla_kernels::walk_payload(kernels, records, header, &mut Nothing).then_some(true);
    }
    let mut timestamps = Timestamps::default();
    ottla_kernels::walk_payload(kernels, records, header, &mut timestamps)
        .then(|| reaches_maximum(header, &timestamps))
}

/// Whether a batch that was walked has a record with the header's maximum, or need not: Kafka begins
/// with −1, so records before that have no part in it.
#[inline]
pub fn reaches_maximum(header: &BatchHeader, timestamps: &Timestamps) -> bool {
    header.is_log_append_time()
        || header.max_timestamp == NONE
        || timestamps.index_of_max().is_some()
}

/// Rules about the header of magic 2 alone.
fn header_rules(info: &BatchInfo, faults: &mut Vec<Error>) {
    let mut fault = |kind, position| faults.push(Error::new(kind, position));
    let last_offset_delta = info.last_offset_delta();
    let count = info.record_count.unwrap_or(0);
    if last_offset_delta < 0 {
        fault(ErrorKind::LastOffsetDeltaNegative { last_offset_delta }, 23);
    } else if info.base_offset < 0
        || info.base_offset.checked_add(i64::from(last_offset_delta)).is_none()
    {
        let base_offset = info.base_offset;
        fault(ErrorKind::OffsetOutOfRange { base_offset, last_offset_delta }, 0);
    }
    if last_offset_delta >= 0 && i64::from(count) > i64::from(last_offset_delta) + 1 {
        fault(ErrorKind::CountAboveOffsets { count, last_offset_delta }, 57);
    }
    let producer_id = info.producer_id;
    // Without a producer id the other two mean nothing: some clients leave a sequence of 0 there.
    if info.has_producer_id() {
        let (producer_epoch, base_sequence) = (info.producer_epoch, info.base_sequence);
        let sequence_ok = base_sequence >= 0 || (base_sequence == -1 && info.is_control());
        if producer_epoch < 0 || !sequence_ok {
            fault(ErrorKind::ProducerFields { producer_id, producer_epoch, base_sequence }, 43);
        }
    } else if info.is_transactional() {
        fault(ErrorKind::TransactionalWithoutProducer { producer_id }, 43);
    }
}

/// Record by record: the parse, and at level `full` the rules between records and header.
fn walk_records(
    info: &BatchInfo,
    payload: &[u8],
    level: Level,
    limits: Limits,
    faults: &mut Vec<Error>,
    checked: &mut Checked,
) -> Result<()> {
    let full = level == Level::Full;
    let known = faults.len();
    let mut cursor = RecordCursor::start(info, payload, limits)?;
    let mut rules = RecordRules::new(info);
    loop {
        let index = cursor.index();
        let Some(record) = cursor.next(payload)? else { break };
        checked.records += 1;
        if index == 0 && info.magic < 2 {
            checked.base_offset = Some(record.offset);
        }
        let mut broken = None;
        if info.is_control() && index == 0 {
            match ControlRecord::read(index, record.key, record.value) {
                Ok(control) => checked.control = Some(control),
                Err(kind) => broken = Some(kind),
            }
        }
        if full {
            broken = broken.or_else(|| rules.broken_by(index, &record));
        } else {
            broken = None;
        }
        if let Some(kind) = broken
            && faults.len() - known < MAX_FAULTS_PER_BATCH
        {
            faults.push(Error::new(kind, 0));
        }
    }
    checked.maximum_unreached = full && rules.is_maximum_unreached();
    if full && info.is_control() && info.has_producer_id() {
        let count = info.record_count.unwrap_or(0);
        if count > 1 {
            faults.push(Error::new(ErrorKind::ControlBatch { count }, 57));
        }
    }
    if full && info.magic < 2 && info.compression()? != Compression::None {
        inner_magic(info, payload, faults)?;
    }
    Ok(())
}

/// Offset deltas and timestamps against the header.
struct RecordRules {
    is_dense: bool,
    previous: i64,
    last: i64,
    base_timestamp: i64,
    max_timestamp: i64,
    checks_timestamps: bool,
    /// The greatest timestamp so far.
    greatest: Option<i64>,
    is_legacy: bool,
}

impl RecordRules {
    fn new(info: &BatchInfo) -> Self {
        let last = i64::from(info.last_offset_delta());
        Self {
            is_dense: i64::from(info.record_count.unwrap_or(0)) == last + 1,
            previous: if info.magic < 2 { i64::MIN } else { -1 },
            last,
            base_timestamp: info.base_timestamp,
            max_timestamp: info.max_timestamp,
            checks_timestamps: info.magic >= 2
                && info.timestamp_type() == TimestampType::CreateTime,
            greatest: None,
            is_legacy: info.magic < 2,
        }
    }

    fn is_maximum_unreached(&self) -> bool {
        self.checks_timestamps
            && self.max_timestamp != NONE
            && self.greatest.is_some_and(|greatest| greatest < self.max_timestamp)
    }

    fn broken_by(&mut self, index: u32, record: &batch::Record<'_>) -> Option<ErrorKind> {
        if self.is_legacy {
            return None;
        }
        self.greatest = self.greatest.max(Some(record.timestamp));
        let delta = record.offset_delta;
        let wide = i64::from(delta);
        let (previous, last) = (self.previous, self.last);
        self.previous = wide;
        if self.is_dense && wide != i64::from(index) {
            return Some(ErrorKind::OffsetDeltaMismatch { index, delta, expected: index as i32 });
        }
        if wide <= previous || wide > last {
            let (previous, last) = (previous as i32, last as i32);
            return Some(ErrorKind::OffsetDeltaOutOfOrder { index, delta, previous, last });
        }
        // In exact arithmetic: Kafka writes deltas between the ends of 64 bits that wrap.
        let delta = i128::from(record.timestamp.wrapping_sub(self.base_timestamp));
        let timestamp = i128::from(self.base_timestamp) + delta;
        if self.checks_timestamps && timestamp > i128::from(self.max_timestamp) {
            let (timestamp, maximum) = (record.timestamp, self.max_timestamp);
            return Some(ErrorKind::TimestampAboveMaximum { index, timestamp, maximum });
        }
        None
    }
}

/// Every inner record carries its wrapper's magic; a conversion bug of old brokers mixed them
/// (KAFKA-4298). Inner offsets go up.
fn inner_magic(info: &BatchInfo, set: &[u8], faults: &mut Vec<Error>) -> Result<()> {
    let known = faults.len();
    let mut previous = None;
    for (index, entry) in legacy::entries(set)?.iter().enumerate() {
        let index = index as u32;
        let magic = set.get(entry.start + 4).map_or(0, |&byte| i8::from_be_bytes([byte]));
        let mut broken = None;
        if magic != info.magic {
            broken = Some(ErrorKind::InnerMagicMismatch { index, magic, wrapper: info.magic });
        } else if previous.is_some_and(|previous| entry.offset <= previous) {
            let delta = entry.offset as i32;
            let (previous, last) = (previous.unwrap_or(-1) as i32, info.last_offset as i32);
            broken = Some(ErrorKind::OffsetDeltaOutOfOrder { index, delta, previous, last });
        }
        previous = Some(entry.offset);
        if let Some(kind) = broken
            && faults.len() - known < MAX_FAULTS_PER_BATCH
        {
            faults.push(Error::new(kind, LOG_OVERHEAD));
        }
    }
    Ok(())
}

/// Where the CRC of a batch of this magic begins to cover, for messages.
pub fn crc_start(magic: i8) -> usize {
    if magic >= 2 { CRC_START } else { LOG_OVERHEAD + 4 }
}
