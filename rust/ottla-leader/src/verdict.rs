//! What a leader decides: the verdict, its reasons, the records to blame, the bytes to store.

use std::borrow::Cow;
use std::fmt;

use crate::metrics::Metrics;
use crate::profiles::{Difference, Profile};
use crate::validate::Request;
use ottla_format::attributes::Compression;
use ottla_format::error::ErrorKind;
use ottla_format::error_code::ErrorCode;
use ottla_format::header::Header;
use ottla_format::limits::Limits;
use ottla_log::producers::ProducerRefusal;

/// Why a batch or a record is refused: what was found and what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields say what they are
pub enum Reason {
    /// The format itself.
    Format(ErrorKind),
    /// A request holds exactly one batch a partition.
    NoBatch,
    SecondBatch,
    MagicTooOld {
        magic: i8,
    },
    ZstdTooEarly {
        api_version: i16,
    },
    TransactionalIdMissing,
    SeveralProducers,
    BaseOffsetNotZero {
        base_offset: i64,
    },
    BatchTooLarge {
        size: u64,
        limit: i32,
    },
    RebuiltBatchTooLarge {
        size: u64,
        limit: i32,
    },
    SetTooLarge {
        size: u64,
        limit: i32,
    },
    MagicDiffers {
        magic: i8,
        first: i8,
    },
    OffsetRange {
        base_offset: i64,
        last_offset: i64,
    },
    RecordCount {
        count: i32,
    },
    CountDiffers {
        count: i32,
        offsets: i64,
    },
    ControlFromClient,
    SequenceMissing {
        producer_id: i64,
        base_sequence: i32,
    },
    ProducerInOldFormat {
        magic: i8,
    },
    TransactionInOldFormat {
        magic: i8,
    },
    HeadersInOldFormat {
        magic: i8,
    },
    CodecInOldFormat {
        codec: Compression,
        magic: i8,
    },
    /// Records with an error each: how many, and the first of them.
    Records {
        count: usize,
    },
    KeyMissing,
    RecordMagic {
        magic: i8,
        batch: i8,
    },
    TimestampOutOfRange {
        timestamp: i64,
        earliest: i64,
        latest: i64,
    },
    TimestampType,
    TimestampNegative {
        timestamp: i64,
    },
    TimestampOverflow {
        base_timestamp: i64,
        delta: i64,
    },
    TransactionalWithoutProducer,
    ProducerEpoch {
        producer_id: i64,
        producer_epoch: i16,
    },
    ProducerSequence {
        producer_id: i64,
        base_sequence: i32,
    },
    /// A record was skipped that is needed to rebuild the batch: offset deltas with gaps.
    SkippedRecords,
    /// What the partition knows of the producer.
    Producer(ProducerRefusal),
    OffsetNegative {
        base_offset: i64,
    },
    ReplicaOffsets {
        previous: i64,
        last_offset: i64,
    },
    OffsetBelowEnd {
        offset: i64,
        log_end_offset: i64,
    },
}

impl fmt::Display for Reason {
    #[expect(clippy::too_many_lines, reason = "one sentence a reason")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Format(kind) => kind.fmt(f),
            Self::NoBatch => f.write_str("no whole record batch, expected one"),
            Self::SecondBatch => f.write_str("more than one record batch, expected one"),
            Self::MagicTooOld { magic } => write!(f, "record batch of magic {magic}, expected 2"),
            Self::ZstdTooEarly { api_version } => {
                write!(f, "zstd in Produce version {api_version}, expected 7 or newer")
            }
            Self::TransactionalIdMissing => {
                f.write_str("transactional batch in a request without a transactional id")
            }
            Self::SeveralProducers => {
                f.write_str("transactional batches of more than one producer id and epoch")
            }
            Self::BaseOffsetNotZero { base_offset } => {
                write!(f, "base offset {base_offset} from a client, expected 0")
            }
            Self::BatchTooLarge { size, limit } => {
                write!(f, "batch of {size} bytes, expected at most {limit} (max.message.bytes)")
            }
            Self::RebuiltBatchTooLarge { size, limit } => write!(
                f,
                "batch of {size} bytes once rebuilt, expected at most {limit} (max.message.bytes)"
            ),
            Self::SetTooLarge { size, limit } => {
                write!(f, "record set of {size} bytes, expected at most {limit} (segment.bytes)")
            }
            Self::MagicDiffers { magic, first } => {
                write!(f, "batch of magic {magic}, expected {first} as the first batch")
            }
            Self::OffsetRange { base_offset, last_offset } => {
                write!(f, "offsets {base_offset} to {last_offset}, expected at least one")
            }
            Self::RecordCount { count } => write!(f, "record count {count}, expected 1 or more"),
            Self::CountDiffers { count, offsets } => {
                write!(f, "record count {count}, but the last offset delta says {offsets}")
            }
            Self::ControlFromClient => {
                f.write_str("control batch from a client; only brokers write them")
            }
            Self::SequenceMissing { producer_id, base_sequence } => write!(
                f,
                "base sequence {base_sequence} with producer id {producer_id}, expected 0 or more"
            ),
            Self::ProducerInOldFormat { magic } => {
                write!(f, "producer id in a log of format {magic}, which has none")
            }
            Self::TransactionInOldFormat { magic } => {
                write!(f, "transactional batch in a log of format {magic}, which has none")
            }
            Self::HeadersInOldFormat { magic } => {
                write!(f, "headers in a log of format {magic}, which has none")
            }
            Self::CodecInOldFormat { codec, magic } => {
                write!(f, "{} in a log of format {magic}, which has no such codec", codec.name())
            }
            Self::Records { count: 1 } => f.write_str("1 record refused"),
            Self::Records { count } => write!(f, "{count} records refused"),
            Self::KeyMissing => f.write_str("no key, which a compacted topic needs"),
            Self::RecordMagic { magic, batch } => {
                write!(f, "magic {magic}, expected {batch} as its batch")
            }
            Self::TimestampOutOfRange { timestamp, earliest, latest } => {
                write!(f, "timestamp {timestamp}, expected {earliest} to {latest}")
            }
            Self::TimestampType => {
                f.write_str("timestamp type LogAppendTime, which only brokers may set")
            }
            Self::TimestampNegative { timestamp } => write!(
                f,
                "timestamp {timestamp}, expected 0 or more, or -1 for none, to rebuild the batch"
            ),
            Self::TimestampOverflow { base_timestamp, delta } => write!(
                f,
                "timestamp delta {delta} on base timestamp {base_timestamp} leaves 64 bits"
            ),
            Self::TransactionalWithoutProducer => {
                f.write_str("transactional batch without a producer id")
            }
            Self::ProducerEpoch { producer_id, producer_epoch } => write!(
                f,
                "producer epoch {producer_epoch} with producer id {producer_id}, expected 0 or more"
            ),
            Self::ProducerSequence { producer_id, base_sequence } => write!(
                f,
                "base sequence {base_sequence} with producer id {producer_id}, expected 0 or \
                 more to rebuild the batch"
            ),
            Self::SkippedRecords => {
                f.write_str("offset deltas that are not 0, 1, 2, … in a compressed batch")
            }
            Self::Producer(refusal) => refusal.fmt(f),
            Self::OffsetNegative { base_offset } => {
                write!(f, "base offset {base_offset} once assigned, expected 0 or more")
            }
            Self::ReplicaOffsets { previous, last_offset } => {
                write!(f, "last offset {last_offset} after {previous}, expected more")
            }
            Self::OffsetBelowEnd { offset, log_end_offset } => {
                write!(f, "offset {offset}, expected the log end offset {log_end_offset} or more")
            }
        }
    }
}

/// A record to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// Its position in the batch, from 0.
    pub batch_index: u32,
    /// Its own error.
    pub error: ErrorCode,
    /// Why.
    pub reason: Reason,
}

impl RecordError {
    /// What was found and what was expected.
    pub fn message(&self) -> String {
        match self.reason {
            // A format error names its record itself.
            Reason::Format(kind) if kind.record_index().is_some() => kind.to_string(),
            reason => format!("record {}: {reason}", self.batch_index),
        }
    }
}

/// A decision against a record set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The partition's error.
    pub error: ErrorCode,
    /// What is wrong.
    pub reason: Reason,
    /// The records to blame, ascending; the first [`MAX_CULPRITS`](ottla_format::limits::MAX_CULPRITS).
    pub record_errors: Vec<RecordError>,
    /// Whether Kafka fails every partition of the request with it.
    pub is_request_wide: bool,
    /// Whether the request gate refused it, before the log saw it.
    pub is_of_gate: bool,
    /// What was counted.
    pub metrics: Metrics,
}

pub(super) type Decision<T> = Result<T, Box<Refusal>>;

impl Refusal {
    /// A batch refused as a whole.
    pub(super) fn new(error: ErrorCode, reason: Reason) -> Box<Self> {
        Box::new(Self {
            error,
            reason,
            record_errors: Vec::new(),
            is_request_wide: false,
            is_of_gate: false,
            metrics: Metrics::default(),
        })
    }

    pub(super) fn invalid(reason: Reason) -> Box<Self> {
        Self::new(ErrorCode::InvalidRecord, reason)
    }

    pub(super) fn corrupt(kind: ErrorKind) -> Box<Self> {
        Self::new(ErrorCode::CorruptMessage, Reason::Format(kind))
    }

    /// Where Kafka answers −1: a row of the table says what strict does, which is 87 throughout.
    pub(super) fn leak(profile: Profile, row: Difference, reason: Reason) -> Box<Self> {
        let error = if profile.is_strict(row) {
            ErrorCode::InvalidRecord
        } else {
            ErrorCode::UnknownServerError
        };
        Self::new(error, reason)
    }

    /// What the partition knows of the producer stands against it.
    pub(super) fn producer(profile: Profile, refusal: ProducerRefusal) -> Box<Self> {
        let reason = Reason::Producer(refusal);
        match refusal {
            ProducerRefusal::NotBegun(_) => Self::leak(profile, Difference::ControlRecord, reason),
            ProducerRefusal::UnreadableMarker(error) => match error.kind {
                // Kafka has checks for these; the rest is an internal error.
                ErrorKind::ControlKey { size: 0.., .. }
                | ErrorKind::ControlValue { size: 6.., .. } => Self::invalid(reason),
                _ => Self::leak(profile, Difference::ControlRecord, reason),
            },
            refusal => Self::new(refusal.error(), reason),
        }
    }

    pub(super) fn request_wide(mut self: Box<Self>) -> Box<Self> {
        self.is_request_wide = true;
        self
    }

    /// Records with an error each.
    pub(super) fn records(culprits: Culprits) -> Box<Self> {
        let Culprits { named: record_errors, count, error } = culprits;
        let reason = Reason::Records { count };
        Box::new(Self { record_errors, ..*Self::new(error, reason) })
    }

    /// Whether Kafka counts it as a failed request, and whether the answer tells the log start
    /// offset (`produce-validation.md` §3).
    fn is_told(&self, profile: Profile) -> (bool, bool) {
        let is_quiet = matches!(
            self.error,
            ErrorCode::CorruptMessage | ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge
        );
        let is_answered_by_log = !is_quiet && !self.is_of_gate;
        (is_answered_by_log, is_answered_by_log || profile.is_strict(Difference::LogStartOffset))
    }

    /// What was found, what was expected, and at which records.
    pub fn message(&self) -> String {
        const SHOWN: usize = 3;
        let mut message = self.reason.to_string();
        if matches!(self.reason, Reason::Records { .. }) {
            let shown: Vec<_> =
                self.record_errors.iter().take(SHOWN).map(RecordError::message).collect();
            message = format!("{message}: {}", shown.join("; "));
            if self.record_errors.len() > SHOWN {
                message.push_str("; …");
            }
        }
        message
    }
}

/// The records to blame, as they are found: all count, the first of them are named.
#[derive(Debug)]
pub(super) struct Culprits {
    named: Vec<RecordError>,
    count: usize,
    /// 32 wins over 87, and both over 2.
    error: ErrorCode,
}

impl Default for Culprits {
    fn default() -> Self {
        Self { named: Vec::new(), count: 0, error: ErrorCode::None }
    }
}

impl Culprits {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn push(&mut self, culprit: RecordError, limits: &Limits) {
        let rank = |error| match error {
            ErrorCode::InvalidTimestamp => 3,
            ErrorCode::InvalidRecord => 2,
            ErrorCode::None => 0,
            _ => 1,
        };
        if rank(culprit.error) > rank(self.error) {
            self.error = culprit.error;
        }
        if self.named.len() < limits.culprits as usize {
            self.named.push(culprit);
        }
        self.count += 1;
    }

    /// Those of a refusal, to find more.
    pub(super) fn of(refusal: Refusal) -> Self {
        let Refusal { error, reason, record_errors: named, .. } = refusal;
        let count = match reason {
            Reason::Records { count } => count,
            _ => named.len(),
        };
        Self { named, count, error }
    }
}

/// The bytes a leader stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored<'a> {
    /// Nothing is appended.
    Nothing,
    /// As received.
    AsReceived(&'a [u8]),
    /// One batch as received, but for some fields of its header.
    Patched {
        /// The batch as received.
        batch: &'a [u8],
        /// The fields.
        patch: Patch,
    },
    /// Written anew.
    Owned(Vec<u8>),
}

/// What a leader changes in the header of a batch that it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub struct Patch {
    pub base_offset: i64,
    pub max_timestamp: i64,
    pub partition_leader_epoch: i32,
    pub crc: u32,
    pub attributes: u16,
}

impl Patch {
    /// The header with the changes.
    #[inline]
    pub fn applied_to(&self, header: &Header) -> Header {
        let Self { base_offset, max_timestamp, partition_leader_epoch, crc, attributes } = *self;
        Header { base_offset, partition_leader_epoch, crc, attributes, max_timestamp, ..*header }
    }

    /// The new header of a received batch; `None` of one without a whole header.
    #[inline]
    pub fn header_of(&self, batch: &[u8]) -> Option<Header> {
        Header::read(batch, 0).map(|header| self.applied_to(&header))
    }
}

impl Stored<'_> {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::AsReceived(bytes) => bytes.len(),
            Self::Patched { batch, .. } => batch.len(),
            Self::Owned(bytes) => bytes.len(),
        }
    }

    /// The same, owned.
    pub fn into_owned(self) -> Stored<'static> {
        match self {
            Self::Nothing => Stored::Nothing,
            Self::Owned(bytes) => Stored::Owned(bytes),
            borrowed => Stored::Owned(borrowed.to_vec()),
        }
    }

    /// Whether nothing is appended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes in one piece, copied only where the header is another.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Nothing => Cow::Borrowed(&[]),
            Self::AsReceived(bytes) => Cow::Borrowed(bytes),
            Self::Patched { batch, patch } => {
                let mut stored = batch.to_vec();
                if let Some(header) = patch.header_of(batch)
                    && let Some(head) = stored.first_chunk_mut()
                {
                    *head = header.to_bytes();
                }
                stored.into()
            }
            Self::Owned(bytes) => Cow::Borrowed(bytes),
        }
    }

    /// How many bytes they are.
    pub fn size(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::AsReceived(bytes) => bytes.len(),
            Self::Patched { batch, .. } => batch.len(),
            Self::Owned(bytes) => bytes.len(),
        }
    }

    /// The bytes in one piece, copied.
    pub fn to_vec(&self) -> Vec<u8> {
        self.bytes().into_owned()
    }

    /// The header of the (first) batch, where it is of magic 2.
    #[inline]
    pub fn header(&self) -> Option<Header> {
        let header = match self {
            Self::Patched { batch, patch } => patch.header_of(batch),
            Self::Nothing => None,
            Self::AsReceived(bytes) => Header::read(bytes, 0),
            Self::Owned(bytes) => Header::read(bytes, 0),
        };
        header.filter(|header| header.magic >= 2)
    }
}

/// What is appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted<'a> {
    /// Offset of the first record, −1 where nothing is appended.
    pub base_offset: i64,
    /// Offset of the last record.
    pub last_offset: i64,
    /// The largest timestamp, −1 for none.
    pub max_timestamp_ms: i64,
    /// Offset of the first record that has it, −1 for none.
    pub offset_of_max_timestamp: i64,
    /// The time of the append, −1 where the topic keeps the producer's.
    pub log_append_time_ms: i64,
    /// The bytes to append.
    pub stored: Stored<'a>,
    /// Whether records were written anew.
    pub is_rebuilt: bool,
    /// Whether it is in the log already, at these offsets: nothing is appended.
    pub is_duplicate: bool,
    /// Records written anew.
    pub converted: u64,
}

impl Accepted<'_> {
    /// How many offsets the set takes.
    #[inline]
    pub fn message_count(&self) -> u64 {
        if self.base_offset < 0 {
            return 0;
        }
        self.last_offset.wrapping_sub(self.base_offset).wrapping_add(1).max(0) as u64
    }

    /// The same, its bytes owned.
    pub fn into_owned(self) -> Accepted<'static> {
        let Self {
            base_offset,
            last_offset,
            max_timestamp_ms,
            offset_of_max_timestamp,
            log_append_time_ms,
            stored,
            is_rebuilt,
            is_duplicate,
            converted,
        } = self;
        Accepted {
            base_offset,
            last_offset,
            max_timestamp_ms,
            offset_of_max_timestamp,
            log_append_time_ms,
            stored: stored.into_owned(),
            is_rebuilt,
            is_duplicate,
            converted,
        }
    }

    /// Taken without an append: a set without a whole batch, where no gate asks for one.
    pub(super) fn nothing() -> Self {
        Self {
            base_offset: -1,
            last_offset: -1,
            max_timestamp_ms: -1,
            offset_of_max_timestamp: -1,
            log_append_time_ms: -1,
            stored: Stored::Nothing,
            is_rebuilt: false,
            is_duplicate: false,
            converted: 0,
        }
    }
}

/// A leader's decision on the record set of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict<'a> {
    /// What is appended, or why nothing is.
    pub outcome: Result<Accepted<'a>, Box<Refusal>>,
    /// Log start offset of the answer, −1 where it is not told.
    pub log_start_offset: i64,
    /// Bytes of the set, as received.
    pub set_bytes: usize,
}

impl<'a> Verdict<'a> {
    /// What is appended of a set.
    #[inline]
    pub(super) fn accepted(accepted: Accepted<'a>, set_bytes: usize, request: &Request) -> Self {
        let log_start_offset = request.log_start_offset;
        Self { outcome: Ok(accepted), log_start_offset, set_bytes }
    }

    /// Why nothing is, and what the validator has counted about faults.
    pub(super) fn refused(
        mut refusal: Box<Refusal>,
        set_bytes: usize,
        request: &Request,
        metrics: Metrics,
    ) -> Self {
        let (is_failure, is_told) = refusal.is_told(request.profile);
        let log_start_offset = if is_told { request.log_start_offset } else { -1 };
        refusal.metrics = Metrics {
            total_produce_requests: 1,
            failed_produce_requests: u64::from(is_failure),
            ..metrics
        };
        Self { outcome: Err(refusal), log_start_offset, set_bytes }
    }

    /// Refuses what the validator had taken: nothing is appended, and nothing came in.
    pub(super) fn refuse(&mut self, mut refusal: Box<Refusal>) {
        refusal.metrics =
            Metrics { total_produce_requests: 1, failed_produce_requests: 1, ..Metrics::default() };
        self.outcome = Err(refusal);
    }

    /// What was counted.
    #[inline]
    pub fn metrics(&self) -> Metrics {
        match &self.outcome {
            Ok(accepted) => {
                Metrics::accepted(self.set_bytes, accepted.message_count(), accepted.converted)
            }
            Err(refusal) => refusal.metrics,
        }
    }

    /// The same, its bytes owned.
    pub fn into_owned(self) -> Verdict<'static> {
        let Self { outcome, log_start_offset, set_bytes } = self;
        Verdict { outcome: outcome.map(Accepted::into_owned), log_start_offset, set_bytes }
    }

    /// The partition's error; [`ErrorCode::None`] where the set is taken.
    pub fn error(&self) -> ErrorCode {
        self.outcome.as_ref().map_or_else(|refusal| refusal.error, |_| ErrorCode::None)
    }

    /// The records to blame.
    pub fn record_errors(&self) -> &[RecordError] {
        self.outcome.as_ref().map_or_else(|refusal| &refusal.record_errors[..], |_| &[])
    }
}
