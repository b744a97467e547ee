//! Findings of lost bytes, whose lost offsets end where the next valid batch begins.

use crate::catalogue::finding::Finding;
use serde::{Deserialize, Serialize};

/// A finding whose last lost offset is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnboundedLoss {
    /// Index of the finding in its list.
    pub(crate) finding: usize,
    /// Whether the finding has offsets already: those of its header, not those that its neighbours
    /// leave.
    pub(crate) has_offsets: bool,
    /// First offset that may be lost.
    pub(crate) lowest: i64,
}

impl UnboundedLoss {
    /// Completes the finding: the next valid batch begins at `next_offset`.
    pub(crate) fn bound(&self, finding: &mut Finding, next_offset: i64) {
        finding.next_good_offset = Some(next_offset);
        let fits = self.has_offsets && finding.last_offset.is_some_and(|last| last < next_offset);
        if !fits {
            (finding.first_offset, finding.last_offset) = (None, None);
            if self.lowest < next_offset {
                finding.first_offset = Some(self.lowest);
                finding.last_offset = Some(next_offset.saturating_sub(1));
            }
        }
    }
}
