//! Markers that seem missing, and may be what was found damaged.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::partition::scan::PlacedFinding;
use std::collections::BTreeSet;

/// Drops findings about a missing marker where something else is wrong, which may have been the marker.
pub(crate) fn drop_doubtful(findings: &mut Vec<PlacedFinding>) {
    let is_missing = |finding: &Finding| finding.kind == FindingKind::MarkerMissing;
    if !findings.iter().any(|placed| is_missing(&placed.finding)) {
        return;
    }
    let errors = findings.iter().map(|placed| &placed.finding);
    let errors =
        errors.filter(|finding| finding.severity == Severity::Error && !is_missing(finding));
    let errors: BTreeSet<i64> = errors.filter_map(|finding| finding.first_offset).collect();
    findings.retain(|PlacedFinding { finding, .. }| {
        let (Some(first), Some(last)) = (finding.first_offset, finding.last_offset) else {
            return true;
        };
        !is_missing(finding) || errors.range(first..=last.max(first)).next().is_none()
    });
}
