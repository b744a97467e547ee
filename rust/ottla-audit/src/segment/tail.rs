//! What a segment has behind its last batch, and what its `.index` says of it.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use serde::{Deserialize, Serialize};

/// Bytes behind the last batch of a segment that are no batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// Where they begin.
    pub position: u64,
    /// How many there are up to the zeros at the end of the file; 0 if there are only zeros.
    pub written_bytes: u64,
}

/// The largest batch that a broker accepts by default (`max.message.bytes`).
const DEFAULT_MAX_MESSAGE_BYTES: u64 = 1_048_588;

impl Tail {
    /// Whether a finding is about these bytes.
    pub(crate) fn is_told_by(self, finding: &Finding) -> bool {
        finding.position == Some(self.position)
            && matches!(
                finding.kind,
                FindingKind::TruncatedTail | FindingKind::GarbageTail | FindingKind::ZeroTail
            )
    }

    /// The largest batch that there may be, if these are more bytes than that: a broker that is killed
    /// leaves at most one. `largest_batch` is the largest that was seen.
    pub(crate) fn exceeds_batch(
        self,
        largest_batch: u64,
        max_message_bytes: Option<u64>,
    ) -> Option<u64> {
        let limit = max_message_bytes.unwrap_or(DEFAULT_MAX_MESSAGE_BYTES).max(largest_batch);
        (self.written_bytes > limit).then_some(limit)
    }
}

/// What bytes that exceed the largest batch are.
pub(crate) fn more_than_one_batch(limit: u64) -> String {
    format!("more than one batch of at most {limit} bytes")
}

/// An entry of the `.index` for a batch that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostEntry {
    /// The offset in it.
    pub offset: i64,
    /// The position in it, behind the last valid batch.
    pub position: u64,
}
