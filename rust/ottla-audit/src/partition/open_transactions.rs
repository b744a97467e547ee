//! Transactions that are open at the end of a log, and where they keep it from being stable.

use crate::catalogue::causes::Cause;
use crate::catalogue::row::RecordState;
use crate::catalogue::severity::Severity;
use crate::partition::bound::{MAX_FINDINGS_PER_PARTITION, bound_findings};
use crate::partition::producer_findings;
use crate::partition::scan::{PartitionScan, PlacedFinding};
use ottla_log::sidefiles::snapshot::{SnapshotEntry, read_snapshot};
use std::collections::BTreeSet;

/// Returns the producers of a snapshot whose transaction began below `first_offset`. A snapshot that
/// cannot be read has none; that it cannot be read is a finding of its own.
pub(crate) fn begun_below(snapshot: &[u8], first_offset: i64) -> Vec<SnapshotEntry> {
    let mut entries = read_snapshot(snapshot).unwrap_or_default();
    entries.retain(|entry| entry.transaction_first_offset.is_some_and(|at| at < first_offset));
    entries
}

/// Finds the transactions that are open at the end of the log, and with them the last stable offset.
/// `begun_below` are those of the newest snapshot that began below the log.
pub(crate) fn find_open_transactions(out: &mut PartitionScan, begun_below: Vec<SnapshotEntry>) {
    out.last_lost_offset = last_lost_offset(&out.findings);
    let start = out.log_start_offset;
    out.begun_below = begun_below
        .into_iter()
        .filter(|entry| {
            let id = entry.producer_id;
            let index = out.producers.binary_search_by_key(&id, |producer| producer.producer_id);
            let known = index.ok().and_then(|index| out.producers.get(index));
            // A marker in the log ended it.
            known.is_none_or(|producer| producer.coordinator_epoch < 0)
        })
        .filter(|entry| entry.transaction_first_offset.is_some_and(|first| first < start))
        .collect();
    out.last_stable_offset = out.log_end_offset;
    let mut found = Vec::new();
    let below: BTreeSet<i64> = out.begun_below.iter().map(|entry| entry.producer_id).collect();
    for state in &out.producers {
        let Some(open) = &state.open_transaction else { continue };
        out.last_stable_offset = out.last_stable_offset.min(open.first_offset);
        if below.contains(&state.producer_id) {
            continue;
        }
        let finding = producer_findings::open_transaction(
            state.producer_id,
            state.producer_epoch,
            open,
            out.newest_timestamp,
            out.may_have_lost_marker(open),
        );
        found.push(PlacedFinding { segment: open.place.segment as usize, finding });
        if found.len() > MAX_FINDINGS_PER_PARTITION.saturating_mul(2) {
            bound_findings(&mut found, &mut out.left_out);
        }
    }
    for entry in &out.begun_below {
        out.last_stable_offset = start;
        let finding = producer_findings::begun_below(entry, start, out.newest_timestamp);
        found.push(PlacedFinding { segment: 0, finding });
    }
    out.last_stable_offset = out.last_stable_offset.max(start);
    out.findings.extend(found);
}

/// Returns the last offset lost to damage; what was lost at the end of the log has no last offset.
fn last_lost_offset(findings: &[PlacedFinding]) -> Option<i64> {
    let losses = findings.iter().map(|placed| &placed.finding).filter(|finding| {
        let traits = finding.kind.row();
        let is_lawful = finding.cause == Some(Cause::Compaction);
        // A tail is an error where something proves that records were there.
        let is_lost_tail = traits.has_no_batch() && finding.severity == Severity::Error;
        (traits.loses_records() && !is_lawful)
            || traits.records == RecordState::Unknown
            || is_lost_tail
    });
    losses.map(|finding| finding.last_offset.unwrap_or(i64::MAX)).max()
}
