//! Transactions that are open at the end of a log, and where they keep it from being stable.

use crate::catalogue::causes::Cause;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::row::RecordState;
use crate::catalogue::severity::Severity;
use crate::partition::bound::{MAX_FINDINGS_PER_PARTITION, count_left_out};
use crate::partition::producer_findings;
use crate::partition::scan::{LeftOut, PartitionScan, PlacedFinding};
use ottla_log::sidefiles::snapshot::{SnapshotEntry, read_snapshot};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

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
    let open = out.producers.iter().filter_map(|state| state.open_transaction.as_deref());
    let first_offsets = open.map(|open| open.first_offset);
    out.last_stable_offset = first_offsets.fold(out.log_end_offset, i64::min);
    let mut found = begun_inside(out);
    if !out.begun_below.is_empty() {
        out.last_stable_offset = start;
    }
    for entry in out.begun_below.iter().take(MAX_FINDINGS_PER_PARTITION) {
        let finding = producer_findings::begun_below(entry, start, out.newest_timestamp);
        found.push(PlacedFinding { segment: 0, finding });
    }
    let rest = out.begun_below.len().saturating_sub(MAX_FINDINGS_PER_PARTITION) as u64;
    if rest > 0 {
        let kind = FindingKind::OpenTransaction;
        count_left_out(&mut out.left_out, kind, rest, Severity::Warning);
    }
    out.last_stable_offset = out.last_stable_offset.max(start);
    out.findings.extend(found);
}

/// Returns findings about the transactions that began inside the log: of so many as a partition keeps,
/// the gravest first and then the first in the log. The others are counted.
fn begun_inside(out: &mut PartitionScan) -> Vec<PlacedFinding> {
    let below: BTreeSet<i64> = out.begun_below.iter().map(|entry| entry.producer_id).collect();
    let mut kept = BinaryHeap::new();
    let mut left_out = LeftOut::new();
    for (index, state) in out.producers.iter().enumerate() {
        let Some(open) = &state.open_transaction else { continue };
        if below.contains(&state.producer_id) {
            continue;
        }
        let is_old = open.is_old(out.newest_timestamp) && !out.may_have_lost_marker(open);
        let severity = if is_old { Severity::Warning } else { Severity::Info };
        kept.push((Reverse(severity), open.place.segment, open.place.position, index));
        if kept.len() > MAX_FINDINGS_PER_PARTITION
            && let Some((Reverse(severity), ..)) = kept.pop()
        {
            count_left_out(&mut left_out, FindingKind::OpenTransaction, 1, severity);
        }
    }
    let states = kept.into_sorted_vec().into_iter().filter_map(|(.., index)| {
        let state = out.producers.get(index)?;
        Some((state, state.open_transaction.as_deref()?))
    });
    let found = states.map(|(state, open)| PlacedFinding {
        segment: open.place.segment as usize,
        finding: producer_findings::open_transaction(
            state.producer_id,
            state.producer_epoch,
            open,
            out.newest_timestamp,
            out.may_have_lost_marker(open),
        ),
    });
    let found = found.collect();
    for (kind, (count, gravest)) in left_out {
        count_left_out(&mut out.left_out, kind, count, gravest);
    }
    found
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
