//! Segments that were before the first one, and that no broker has deleted.

use crate::partition::scan::PartitionContext;

/// Offsets below the first segment that no broker has deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LostHead {
    /// The first of them.
    pub(crate) first_offset: i64,
    evidence: HeadEvidence,
}

/// What shows that a head is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadEvidence {
    /// An index whose segment, of this offset, is not there.
    Index(i64),
    /// An epoch that begins with the first of them.
    LeaderEpoch(i32),
}

impl LostHead {
    /// What shows it, in words.
    pub(crate) fn evidence(self) -> String {
        match self.evidence {
            HeadEvidence::Index(base) => {
                format!("the index of a segment of offset {base} is there, the segment is not")
            }
            HeadEvidence::LeaderEpoch(epoch) => {
                let first = self.first_offset;
                format!(
                    "leader-epoch-checkpoint has epoch {epoch} from offset {first} on, and a broker that deletes segments moves that up"
                )
            }
        }
    }
}

impl PartitionContext {
    /// Where a log began that now begins with the segment of `base`, if files beside it show that no
    /// broker has deleted what was before. A broker deletes a segment with its indexes, and moves the
    /// start of the first leader epoch up to the next one.
    pub(crate) fn lost_head(&self, base: i64) -> Option<LostHead> {
        if !self.is_head || self.remote_storage == Some(true) {
            return None;
        }
        let start = self.log_start_offset;
        let orphan = self.orphans.first().map(|&orphan| LostHead {
            first_offset: orphan.max(start.unwrap_or(0)),
            evidence: HeadEvidence::Index(orphan),
        });
        // Without its entry in a log directory that was read, a log begins with its first segment, and
        // nothing of it is on remote storage.
        let has_checkpoints = self.recovery_point.is_some() || self.high_watermark.is_some();
        let epoch = self.leader_epochs.first().filter(|_| has_checkpoints && start.is_none());
        let epoch = epoch.map(|&(epoch, first_offset)| LostHead {
            first_offset,
            evidence: HeadEvidence::LeaderEpoch(epoch),
        });
        let lost = [orphan, epoch].into_iter().flatten();
        lost.filter(|lost| (0..base).contains(&lost.first_offset))
            .min_by_key(|lost| lost.first_offset)
    }
}
