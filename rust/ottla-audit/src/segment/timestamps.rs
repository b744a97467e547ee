//! The timestamps of a segment: their range, and those that no clock shows.

use crate::segment::growth::SharedFault;
use serde::{Deserialize, Serialize};

/// How far a clock may be ahead: the default of `message.timestamp.after.max.ms` since Kafka 4.
pub(crate) const TIMESTAMP_AFTER_MAX_MS: i64 = 3_600_000;

/// From here on a timestamp is taken for microseconds or nanoseconds: the year 5138 in milliseconds.
const MIN_MICROSECONDS: i64 = 100_000_000_000_000;

/// Seconds of the years 2000 to 2100; taken for milliseconds, January and February of 1970.
/// Before them is what a clock shows that began in 1970 when its machine started.
const SECONDS: std::ops::Range<i64> = 946_684_800..4_102_444_800;

/// Timestamps from here on can be milliseconds; `find_fault` has nothing against them up to the
/// latest time.
pub(crate) const MIN_MILLISECONDS: i64 = SECONDS.end;

/// Returns what is suspect about a timestamp, if anything is; `latest_ms` is the latest time that a
/// clock may show.
pub(crate) fn find_fault(timestamp: i64, latest_ms: i64) -> Option<SharedFault> {
    if timestamp < 0 {
        Some(SharedFault::Before1970)
    } else if timestamp < SECONDS.start {
        Some(SharedFault::ClockNotSet)
    } else if SECONDS.contains(&timestamp) {
        Some(SharedFault::Seconds)
    } else if timestamp <= latest_ms {
        None
    } else if timestamp >= MIN_MICROSECONDS {
        Some(SharedFault::Microseconds)
    } else {
        Some(SharedFault::Future)
    }
}

/// A timestamp and the batch it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimestampOffset {
    /// In milliseconds since 1970.
    pub timestamp: i64,
    /// Base offset of the batch.
    pub offset: i64,
    /// Position of the batch in the file.
    pub position: u64,
}

impl TimestampOffset {
    /// Returns the smaller timestamp; of equal ones the left.
    #[must_use]
    pub fn oldest(left: Option<Self>, right: Option<Self>) -> Option<Self> {
        match (left, right) {
            (Some(left), Some(right)) if right.timestamp < left.timestamp => Some(right),
            (left, right) => left.or(right),
        }
    }

    /// Returns the larger timestamp; of equal ones the left.
    #[must_use]
    pub fn newest(left: Option<Self>, right: Option<Self>) -> Option<Self> {
        match (left, right) {
            (Some(left), Some(right)) if right.timestamp > left.timestamp => Some(right),
            (left, right) => left.or(right),
        }
    }
}

/// The smallest and the largest timestamp so far. Both are real once `oldest` is not above `newest`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeRange {
    oldest: TimestampOffset,
    newest: TimestampOffset,
}

impl TimeRange {
    /// The range with these ends; without an end, any timestamp extends it.
    pub(crate) fn new(oldest: Option<TimestampOffset>, newest: Option<TimestampOffset>) -> Self {
        let none = |timestamp| TimestampOffset { timestamp, offset: 0, position: 0 };
        Self { oldest: oldest.unwrap_or(none(i64::MAX)), newest: newest.unwrap_or(none(i64::MIN)) }
    }

    /// Whether timestamps between these two, both included, leave the range as it is.
    #[inline]
    pub(crate) fn covers(&self, oldest: i64, newest: i64) -> bool {
        newest <= self.newest.timestamp && oldest >= self.oldest.timestamp
    }

    /// Extends the range by a timestamp, if it is outside.
    pub(crate) fn extend(&mut self, timestamp: i64, offset: i64, position: u64) {
        let found = TimestampOffset { timestamp, offset, position };
        if timestamp > self.newest.timestamp {
            self.newest = found;
        }
        if timestamp < self.oldest.timestamp {
            self.oldest = found;
        }
    }

    /// The smallest and the largest timestamp, if there was one.
    pub(crate) fn ends(&self) -> (Option<TimestampOffset>, Option<TimestampOffset>) {
        let is_real = self.oldest.timestamp <= self.newest.timestamp;
        (is_real.then_some(self.oldest), is_real.then_some(self.newest))
    }
}
