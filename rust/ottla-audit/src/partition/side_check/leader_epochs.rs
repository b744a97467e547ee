//! `leader-epoch-checkpoint` compared with the epochs of the batches.

use crate::catalogue::finding::{Finding, SideFile};
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::partition::scan::PartitionScan;
use crate::partition::side_check::proof::Proof;
use crate::segment::epochs::EpochRun;
use std::collections::BTreeSet;

/// Compares `leader-epoch-checkpoint` with the epochs of the batches; returns findings with the index
/// of their segment.
pub(crate) fn compare(
    scan: &PartitionScan,
    entries: &[(i32, i64)],
    proof: Proof,
) -> Vec<(usize, Finding)> {
    let runs: Vec<_> = scan
        .segments
        .iter()
        .enumerate()
        .flat_map(|(index, segment)| segment.leader_epochs.iter().map(move |run| (index, run)))
        .collect();
    let check = EpochCheck {
        entries,
        listed: entries.iter().map(|&(epoch, _)| epoch).collect(),
        stopped_cleanly: scan.segments.last().is_some_and(|s| s.context.stopped_cleanly),
        // In a log without missing offsets every offset has a batch, and so an epoch.
        is_whole: !proof.is_compacted && !proof.is_damaged && scan.holes == 0,
    };
    let ends = runs.iter().skip(1).map(|(_, run)| run.start_offset).chain([scan.log_end_offset]);
    let found = runs
        .iter()
        .zip(ends)
        .filter_map(|((index, run), end)| Some((*index, check.compare_run(run, end)?)));
    found.collect()
}

/// The entries of `leader-epoch-checkpoint`, to be compared with batches.
struct EpochCheck<'a> {
    entries: &'a [(i32, i64)],
    /// Their epochs.
    listed: BTreeSet<i32>,
    stopped_cleanly: bool,
    is_whole: bool,
}

impl EpochCheck<'_> {
    /// Compares batches of one epoch, after which another one starts at `end`.
    fn compare_run(&self, run: &EpochRun, end: i64) -> Option<Finding> {
        let covering = self.entries.partition_point(|&(_, start)| start <= run.start_offset);
        // A broker drops the epochs of records that it deletes, and has none of before it kept any.
        let &(epoch, start) = self.entries.get(covering.checked_sub(1)?)?;
        if epoch != run.epoch {
            let is_newer = run.epoch > epoch && covering == self.entries.len();
            let is_unwritten = is_newer && !self.stopped_cleanly;
            return (!is_unwritten).then(|| self.other_epoch(run, epoch, start));
        }
        let &(next_epoch, next_start) = self.entries.get(covering)?;
        if next_start >= end || !self.is_whole {
            return None;
        }
        let last = end.saturating_sub(1);
        let message = format!(
            "according to leader-epoch-checkpoint epoch {next_epoch} starts at offset {next_start}, but the batches up to offset {last} have epoch {}",
            run.epoch
        );
        Some(contradicts(&message).offsets(next_start, last).values(run.epoch, next_epoch))
    }

    /// Returns the finding about batches for which the checkpoint has another epoch.
    fn other_epoch(&self, run: &EpochRun, epoch: i32, start: i64) -> Finding {
        let is_listed = self.listed.contains(&run.epoch);
        let message = format!(
            "the batches from offset {} on have leader epoch {}, but according to leader-epoch-checkpoint epoch {epoch}, which starts at {start}, continues there",
            run.start_offset, run.epoch
        );
        let finding = if run.batches == 1 && !is_listed {
            Finding::new(FindingKind::LeaderEpochFault, message).at(run.position, run.size)
        } else {
            contradicts(&message).offsets(run.start_offset, run.start_offset)
        };
        finding.values(epoch, run.epoch)
    }
}

/// Returns the finding about the last entry of `leader-epoch-checkpoint`, if it starts beyond the end
/// of the log.
pub fn epoch_beyond_end(entries: &[(i32, i64)], log_end_offset: i64) -> Option<Finding> {
    let &(epoch, start_offset) = entries.last()?;
    let message = format!(
        "epoch {epoch} starts at {start_offset}, beyond the end of the log at {log_end_offset}; Kafka drops it when it loads the log"
    );
    (start_offset > log_end_offset).then(|| {
        let finding = Finding::new(FindingKind::EpochCheckpointMismatch, message)
            .graded(Severity::Info)
            .values(format!("at most {log_end_offset}"), start_offset);
        Finding { first_offset: Some(start_offset), ..finding }
    })
}

fn contradicts(message: &str) -> Finding {
    let then =
        "a follower that asks for the end of an epoch would truncate its log at a wrong offset";
    Finding::new(FindingKind::EpochCheckpointMismatch, format!("{message}; {then}"))
        .beside(SideFile::LeaderEpochs)
}
