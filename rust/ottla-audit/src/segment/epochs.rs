//! The leader epochs of a segment, in the order of its batches. They never go back.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use ottla_format::batch::BatchInfo;
use serde::{Deserialize, Serialize};

/// Consecutive batches of one leader epoch that leave no doubt about it: a batch behind them with a
/// lower epoch is the wrong one.
pub(crate) const SETTLED_BATCHES: u64 = 2;

/// Changes of the leader epoch that a segment lists.
pub(crate) const MAX_EPOCHS: usize = 4096;

/// Consecutive batches of one leader epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochRun {
    /// The epoch.
    pub epoch: i32,
    /// Base offset of the first batch.
    pub start_offset: i64,
    /// How many batches.
    pub batches: u64,
    /// Last offset of the first batch.
    pub(crate) first_last_offset: i64,
    /// Position of the first batch.
    pub(crate) position: u64,
    /// Bytes of the first batch.
    pub(crate) size: u64,
}

impl EpochRun {
    /// The run that stands for the batches of an epoch before a part of a walk, which that part does
    /// not count.
    pub(crate) fn settled(epoch: i32) -> Self {
        Self {
            epoch,
            start_offset: -1,
            batches: SETTLED_BATCHES,
            first_last_offset: -1,
            position: 0,
            size: 0,
        }
    }

    fn of_batch(info: &BatchInfo, base_offset: i64) -> Self {
        Self {
            epoch: info.partition_leader_epoch,
            start_offset: base_offset,
            batches: 1,
            first_last_offset: info.last_offset,
            position: info.position,
            size: info.size,
        }
    }

    /// Adds batches to the run.
    pub(crate) fn extend(&mut self, batches: u64) {
        self.batches = self.batches.saturating_add(batches);
    }

    /// The finding of a run whose epoch does not fit to `other`, that of the batch beside it.
    pub(crate) fn fault(&self, other: i32) -> Finding {
        let message = format!(
            "the batch at position {} has leader epoch {}, next to one with {other}: epochs never go back",
            self.position, self.epoch
        );
        Finding::new(FindingKind::LeaderEpochFault, message)
            .at(self.position, self.size)
            .offsets(self.start_offset, self.first_last_offset)
            .values(other, self.epoch)
    }
}

/// Adds the epoch of a batch, which is not negative, to the runs of a segment. Returns a finding if
/// the epoch goes back: of this batch, or of the one before if that stands alone.
pub(crate) fn track_epoch(
    runs: &mut Vec<EpochRun>,
    info: &BatchInfo,
    base_offset: i64,
) -> Option<Finding> {
    let epoch = info.partition_leader_epoch;
    if let Some(run) = runs.last_mut().filter(|run| run.epoch == epoch) {
        run.extend(1);
        return None;
    }
    let new = EpochRun::of_batch(info, base_offset);
    let mut fault = None;
    if let Some(last) = runs.last().copied().filter(|last| last.epoch > epoch) {
        let before = runs.iter().rev().nth(1).copied();
        let is_last_wrong = last.batches == 1 && before.is_none_or(|before| before.epoch <= epoch);
        if is_last_wrong {
            fault = Some(last.fault(epoch));
            runs.pop();
            if let Some(run) = runs.last_mut().filter(|run| run.epoch == epoch) {
                run.extend(2);
                return fault;
            }
        } else {
            fault = Some(new.fault(last.epoch));
        }
    }
    if runs.len() < MAX_EPOCHS {
        runs.push(new);
    }
    fault
}

/// Appends the runs of the part on the right, which began with [`EpochRun::settled`] of the last
/// epoch on the left.
pub(crate) fn append_runs(left: &mut Vec<EpochRun>, right: Vec<EpochRun>) {
    let mut right = right.into_iter();
    if let Some(last) = left.last_mut()
        && let Some(same) = right.next()
    {
        last.extend(same.batches.saturating_sub(SETTLED_BATCHES));
    }
    left.extend(right);
}
