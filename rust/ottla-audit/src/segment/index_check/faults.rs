//! What can be wrong with an entry of an index.

use serde::{Deserialize, Serialize};

/// What is wrong with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum EntryFault {
    /// It points into the batch that begins at `start`.
    NoBatch { start: u64 },
    /// The batch there begins above the offset of the entry.
    Above { base_offset: i64 },
    /// The batch of the next entry begins at or below the offset of this one.
    Far { base_offset: i64 },
    /// It is not above the entry before.
    Order,
    /// It names what lies behind the end of the log.
    Beyond { end: i64 },
    /// The greatest timestamp up to its offset is another.
    Timestamp { greatest: i64 },
}

/// The number of the first wrong entry of a file, and what is wrong with it.
pub(super) type FirstFault = Option<(usize, EntryFault)>;

/// The earlier of two faults; of the same entry the left.
pub(super) fn earlier(left: FirstFault, right: FirstFault) -> FirstFault {
    match (left, right) {
        (Some(left), Some(right)) if right.0 < left.0 => Some(right),
        (left, right) => left.or(right),
    }
}
