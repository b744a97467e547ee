//! The verdict: what is appended of a record set, or why nothing is.

use crate::metrics::Metrics;
use crate::profiles::Difference;
use crate::refusal::{RecordError, Refusal};
use crate::request::Request;
use crate::stored::Stored;
use ottla_format::error_code::ErrorCode;

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
    /// The time of the append, −1 where the topic keeps the producer's timestamps.
    pub log_append_time_ms: i64,
    /// The bytes to append.
    pub stored: Stored<'a>,
    /// Whether records were written anew.
    pub is_rebuilt: bool,
    /// Whether it is in the log already, at these offsets; nothing is appended then.
    pub is_duplicate: bool,
    /// Records written anew.
    pub converted: u64,
}

impl Accepted<'_> {
    /// How many offsets the set takes.
    #[inline]
    pub fn message_count(&self) -> u64 {
        count_offsets(self.base_offset, self.last_offset)
    }

    /// The same with its bytes owned.
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

    /// Accepted without an append: a set without a whole batch, where no gate asks for one.
    pub(crate) fn nothing() -> Self {
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

/// How many offsets a set takes: none where nothing is appended.
#[inline]
pub fn count_offsets(base_offset: i64, last_offset: i64) -> u64 {
    if base_offset < 0 {
        return 0;
    }
    last_offset.wrapping_sub(base_offset).wrapping_add(1).max(0) as u64
}

/// A leader's decision on the record set of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict<'a> {
    /// What is appended, or why nothing is.
    pub outcome: Result<Accepted<'a>, Box<Refusal>>,
    /// Log start offset of the answer, −1 where the answer leaves it out.
    pub log_start_offset: i64,
    /// Bytes of the set, as received.
    pub set_bytes: usize,
}

impl<'a> Verdict<'a> {
    /// A set that is accepted.
    #[inline]
    pub(crate) fn accepted(accepted: Accepted<'a>, set_bytes: usize, request: &Request) -> Self {
        let log_start_offset = request.log_start_offset;
        Self { outcome: Ok(accepted), log_start_offset, set_bytes }
    }

    /// A set that is refused, with the faults that the validator has counted.
    pub(crate) fn refused(
        mut refusal: Box<Refusal>,
        set_bytes: usize,
        request: &Request,
        metrics: Metrics,
    ) -> Self {
        let is_failure = refusal.is_failure();
        let has_log_start = is_failure || request.is_strict(Difference::LogStartOffset);
        let log_start_offset = if has_log_start { request.log_start_offset } else { -1 };
        refusal.metrics = Metrics {
            total_produce_requests: 1,
            failed_produce_requests: u64::from(is_failure),
            ..metrics
        };
        Self { outcome: Err(refusal), log_start_offset, set_bytes }
    }

    /// Refuses what the validator has accepted: nothing is appended, and nothing came in.
    pub(crate) fn refuse(&mut self, mut refusal: Box<Refusal>) {
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

    /// The same with its bytes owned.
    pub fn into_owned(self) -> Verdict<'static> {
        let Self { outcome, log_start_offset, set_bytes } = self;
        Verdict { outcome: outcome.map(Accepted::into_owned), log_start_offset, set_bytes }
    }

    /// The partition's error; [`ErrorCode::None`] where the set is accepted.
    pub fn error(&self) -> ErrorCode {
        self.outcome.as_ref().map_or_else(|refusal| refusal.error, |_| ErrorCode::None)
    }

    /// The records to blame.
    pub fn record_errors(&self) -> &[RecordError] {
        self.outcome.as_ref().map_or_else(|refusal| &refusal.record_errors[..], |_| &[])
    }
}
