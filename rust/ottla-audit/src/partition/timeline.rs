//! How the timestamps of a segment affect retention by time.
//!
//! Kafka uses the largest timestamp of a segment, or the modification time of its file if that is
//! negative (`LogSegment.largestTimestamp`), and deletes from the oldest segment on until one is too
//! young (`UnifiedLog.deletableSegments`): a timestamp in the future holds back its own segment and
//! every later one.

use crate::segment::segment_scan::SegmentScan;
use crate::segment::timestamps::TIMESTAMP_AFTER_MAX_MS;

/// The year 2000. Earlier timestamps are seconds taken for milliseconds, or of a clock that was never
/// set.
const PLAUSIBLE_FROM: i64 = 946_684_800_000;

/// An effect of a segment's timestamps on retention by time that is not the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetentionEffect {
    /// The largest timestamp is in the future: neither this segment nor a later one is deleted before
    /// it has passed.
    HeldBack,
    /// Every timestamp is before the year 2000: the segment is deleted at the next check.
    ExpiresAtOnce,
    /// Every timestamp is negative: Kafka uses the modification time of the file, which a copy or a
    /// restored backup changes.
    ByFileTime,
}

impl RetentionEffect {
    /// Stable kebab-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::HeldBack => "held-back",
            Self::ExpiresAtOnce => "expires-at-once",
            Self::ByFileTime => "by-file-time",
        }
    }

    /// Returns the effect of a segment's timestamps; `None` is the usual one.
    pub fn of(scan: &SegmentScan) -> Option<Self> {
        let newest = scan.newest?.timestamp;
        if newest > scan.context.now_ms.saturating_add(TIMESTAMP_AFTER_MAX_MS) {
            Some(Self::HeldBack)
        } else if newest < 0 {
            Some(Self::ByFileTime)
        } else {
            (newest < PLAUSIBLE_FROM).then_some(Self::ExpiresAtOnce)
        }
    }
}
