//! `leader-epoch-checkpoint` compared with the epochs of the batches.

use crate::catalogue::finding::{Finding, SideFile};
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::partition::scan::PartitionScan;
use crate::partition::side_check::proof::Proof;

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
    let stopped_cleanly = scan.segments.last().is_some_and(|s| s.context.stopped_cleanly);
    let mut findings = Vec::new();
    let ends = runs.iter().skip(1).map(|(_, run)| run.start_offset).chain([scan.log_end_offset]);
    for ((index, run), following) in runs.iter().zip(ends) {
        let covering = entries.partition_point(|&(_, start)| start <= run.start_offset);
        let entry = covering.checked_sub(1).and_then(|last| entries.get(last));
        let Some(&(epoch, start)) = entry else {
            // A broker drops the epochs of records that it deletes, and has none of before it kept any.
            continue;
        };
        if epoch != run.epoch {
            let is_listed = entries.iter().any(|&(listed, _)| listed == run.epoch);
            let is_newer = run.epoch > epoch && covering == entries.len();
            if is_newer && !stopped_cleanly {
                continue;
            }
            let message = format!(
                "the batches from offset {} on have leader epoch {}, but according to leader-epoch-checkpoint epoch {epoch}, which starts at {start}, continues there",
                run.start_offset, run.epoch
            );
            let finding = if run.batches == 1 && !is_listed {
                Finding::new(FindingKind::LeaderEpochFault, message).at(run.position, run.size)
            } else {
                contradicts(&message).offsets(run.start_offset, run.start_offset)
            };
            findings.push((*index, finding.values(epoch, run.epoch)));
            continue;
        }
        // In a log without missing offsets every offset has a batch, and so an epoch.
        let inside = entries.get(covering).filter(|&&(_, start)| start < following);
        if let Some(&(epoch, start)) = inside
            && !proof.is_compacted
            && !proof.is_damaged
            && scan.holes == 0
        {
            let message = format!(
                "according to leader-epoch-checkpoint epoch {epoch} starts at offset {start}, but the batches up to offset {} have epoch {}",
                following.saturating_sub(1),
                run.epoch
            );
            let finding = contradicts(&message).offsets(start, following.saturating_sub(1));
            findings.push((*index, finding.values(run.epoch, epoch)));
        }
    }
    findings
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
