//! A bound on the findings of a partition.

use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::partition::scan::{LeftOut, PlacedFinding};
use ottla_log::sorting::sort_by_key;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Findings of one kind that a partition keeps, the gravest first; the others are counted. A log of
/// ten thousand short segments, or of as many producers, has no end of them.
pub const MAX_FINDINGS_PER_PARTITION: usize = 1 << 12;

/// Drops findings beyond the bound, and counts them. Those that are kept stay in their order.
pub(crate) fn bound_findings(findings: &mut Vec<PlacedFinding>, left_out: &mut LeftOut) {
    let mut by_kind: BTreeMap<FindingKind, Vec<usize>> = BTreeMap::new();
    for (index, placed) in findings.iter().enumerate() {
        by_kind.entry(placed.finding.kind).or_default().push(index);
    }
    by_kind.retain(|_, places| places.len() > MAX_FINDINGS_PER_PARTITION);
    if by_kind.is_empty() {
        return;
    }
    let mut dropped = Vec::new();
    for (kind, mut places) in by_kind {
        let severity = |index: &usize| findings.get(*index).map(|placed| placed.finding.severity);
        sort_by_key(&mut places, |index| Reverse(severity(index)));
        let rest = places.split_off(MAX_FINDINGS_PER_PARTITION);
        let gravest = rest.first().and_then(severity).unwrap_or(Severity::Info);
        count_left_out(left_out, kind, rest.len() as u64, gravest);
        dropped.extend(rest);
    }
    dropped.sort_unstable();
    let mut dropped = dropped.into_iter().peekable();
    let mut index: usize = 0;
    findings.retain(|_| {
        let is_dropped = dropped.next_if_eq(&index).is_some();
        index = index.saturating_add(1);
        !is_dropped
    });
}

/// Counts findings of a kind that are not kept.
pub(crate) fn count_left_out(
    left_out: &mut LeftOut,
    kind: FindingKind,
    count: u64,
    gravest: Severity,
) {
    let (known, severity) = left_out.entry(kind).or_insert((0, gravest));
    *known = known.saturating_add(count);
    *severity = gravest.max(*severity);
}
