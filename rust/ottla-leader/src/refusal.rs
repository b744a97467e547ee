//! A decision against a record set: its error, its reason, the records to blame.

use crate::metrics::Metrics;
use crate::profiles::{Difference, Profile};
use crate::reason::Reason;
use ottla_format::error::ErrorKind;
use ottla_format::error_code::ErrorCode;
use ottla_format::limits::Limits;
use ottla_log::producers::ProducerRefusal;

/// Every error code that a verdict may carry, and that of [`OffsetOutOfRange`], ascending.
///
/// [`OffsetOutOfRange`]: crate::OffsetOutOfRange
pub const LEADER_ERRORS: &[ErrorCode] = &[
    ErrorCode::UnknownServerError,
    ErrorCode::None,
    ErrorCode::OffsetOutOfRange,
    ErrorCode::CorruptMessage,
    ErrorCode::MessageTooLarge,
    ErrorCode::RecordListTooLarge,
    ErrorCode::InvalidTimestamp,
    ErrorCode::UnsupportedForMessageFormat,
    ErrorCode::OutOfOrderSequenceNumber,
    ErrorCode::InvalidProducerEpoch,
    ErrorCode::InvalidTxnState,
    ErrorCode::InvalidProducerIdMapping,
    ErrorCode::TransactionCoordinatorFenced,
    ErrorCode::TransactionalIdAuthorizationFailed,
    ErrorCode::UnknownProducerId,
    ErrorCode::UnsupportedCompressionType,
    ErrorCode::InvalidRecord,
];

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
    /// The records to blame, ascending; the first
    /// [`MAX_CULPRITS`](ottla_format::limits::MAX_CULPRITS).
    pub record_errors: Vec<RecordError>,
    /// Whether Kafka fails every partition of the request with it.
    pub is_request_wide: bool,
    /// Whether the request gate refused it, before the log saw it.
    pub is_of_gate: bool,
    /// What was counted.
    pub metrics: Metrics,
}

/// A result, or the refusal that ends the judging of a set.
pub(crate) type Decision<T> = Result<T, Box<Refusal>>;

impl Refusal {
    /// A batch refused as a whole.
    pub(crate) fn new(error: ErrorCode, reason: Reason) -> Box<Self> {
        debug_assert!(LEADER_ERRORS.contains(&error), "{error:?} is not among LEADER_ERRORS");
        Box::new(Self {
            error,
            reason,
            record_errors: Vec::new(),
            is_request_wide: false,
            is_of_gate: false,
            metrics: Metrics::default(),
        })
    }

    /// Refused with `INVALID_RECORD` (87).
    pub(crate) fn invalid(reason: Reason) -> Box<Self> {
        Self::new(ErrorCode::InvalidRecord, reason)
    }

    /// Refused with `CORRUPT_MESSAGE` (2).
    pub(crate) fn corrupt(kind: ErrorKind) -> Box<Self> {
        Self::new(ErrorCode::CorruptMessage, Reason::Format(kind))
    }

    /// Where Kafka answers −1: a row of the table of differences says what strict does, which is 87
    /// throughout.
    pub(crate) fn leak(profile: Profile, row: Difference, reason: Reason) -> Box<Self> {
        let error = if profile.is_strict(row) {
            ErrorCode::InvalidRecord
        } else {
            ErrorCode::UnknownServerError
        };
        Self::new(error, reason)
    }

    /// Refused because of what the partition knows of the producer.
    pub(crate) fn producer(profile: Profile, refusal: ProducerRefusal) -> Box<Self> {
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

    /// The same for every partition of the request.
    pub(crate) fn request_wide(mut self: Box<Self>) -> Box<Self> {
        self.is_request_wide = true;
        self
    }

    /// Refused for its records.
    pub(crate) fn records(errors: RecordErrors) -> Box<Self> {
        let RecordErrors { named: record_errors, count, error } = errors;
        let reason = Reason::Records { count };
        Box::new(Self { record_errors, ..*Self::new(error, reason) })
    }

    /// Whether Kafka counts it as a failed request (docs/kafka/produce-validation.md §3).
    pub(crate) fn is_failure(&self) -> bool {
        let is_quiet = matches!(
            self.error,
            ErrorCode::CorruptMessage | ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge
        );
        !is_quiet && !self.is_of_gate
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

/// The records to blame, as they are found: all are counted, the first of them are named.
#[derive(Debug)]
pub(crate) struct RecordErrors {
    named: Vec<RecordError>,
    count: usize,
    /// The partition's error: 32 before 87, and both before any other.
    error: ErrorCode,
}

impl Default for RecordErrors {
    fn default() -> Self {
        Self { named: Vec::new(), count: 0, error: ErrorCode::None }
    }
}

impl RecordErrors {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn push(&mut self, found: RecordError, limits: &Limits) {
        let rank = |error| match error {
            ErrorCode::InvalidTimestamp => 3,
            ErrorCode::InvalidRecord => 2,
            ErrorCode::None => 0,
            _ => 1,
        };
        if rank(found.error) > rank(self.error) {
            self.error = found.error;
        }
        if self.named.len() < limits.culprits as usize {
            self.named.push(found);
        }
        self.count = self.count.saturating_add(1);
    }

    /// Those of a refusal, to which more may be added.
    pub(crate) fn of(refusal: Refusal) -> Self {
        let Refusal { error, reason, record_errors: named, .. } = refusal;
        let count = match reason {
            Reason::Records { count } => count,
            _ => named.len(),
        };
        Self { named, count, error }
    }
}
