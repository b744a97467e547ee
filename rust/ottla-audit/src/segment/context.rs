//! What is known about a segment before it is read.

use serde::{Deserialize, Serialize};

/// Largest distance of an offset from the base offset of its segment: relative offsets have 31 bits
/// (`LogSegment`).
pub(crate) const MAX_RELATIVE_OFFSET: i64 = i32::MAX as i64;

/// What is known about a segment before it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub struct SegmentContext {
    /// Base offset in its file name, if it has such a name.
    pub base_offset: Option<i64>,
    /// Base offset in the file name of the next segment, if there is one.
    pub next_base_offset: Option<i64>,
    /// Whether it is the last of its partition, the one a broker writes to.
    pub is_active: bool,
    /// Whether the broker stopped cleanly: then even the active segment must end with a batch.
    pub stopped_cleanly: bool,
    /// Whether it belongs to `__consumer_offsets`, whose coordinator writes transactional offsets
    /// with sequence 0 every time.
    pub is_consumer_offsets: bool,
    /// The time of the audit, in milliseconds since 1970.
    pub now_ms: i64,
    /// Whether it will be compared with other copies of the partition: the scan takes a fingerprint.
    pub is_compared: bool,
}
