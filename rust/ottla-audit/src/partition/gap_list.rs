//! Everything that consumers of a partition do not get: findings of gaps get their causes, and every
//! range becomes a [`Gap`].

use crate::catalogue::causes::{Cause, Confidence};
use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::row::RecordState;
use crate::catalogue::severity::Severity;
use crate::partition::gap_causes::{GapCause, GapExplainer};
use crate::partition::gap_sources::{add_aborted, add_deleted, add_within_segment};
use crate::partition::gap_totals::GapCounts;
use crate::partition::gaps::{Gap, Gaps, Reader, span};
use crate::partition::scan::{PartitionContext, PartitionScan, PlacedFinding};

/// Adds the causes to the findings of gaps, and lists what consumers do not get.
pub(crate) fn list_gaps(scan: &mut PartitionScan, context: &PartitionContext) {
    let mut gaps = Gaps::default();
    let explainer = GapExplainer::new(scan, context);
    let mut counts = GapCounts::default();
    let base = scan.segments.first().and_then(|segment| segment.context.base_offset);
    let lost = base.and_then(|base| context.lost_head(base));
    let start = lost.map_or(scan.log_start_offset, |lost| lost.first_offset);
    add_deleted(scan, context, &mut gaps);
    for placed in &mut scan.findings {
        let Some(segment) = scan.segments.get(placed.segment) else { continue };
        let Some(explained) = explainer.explain(placed, segment) else { continue };
        apply(&mut placed.finding, &explained);
        if let Some(gap) = gap_of(placed, explained) {
            counts.add(placed, &gap);
            gaps.push(gap, start);
        }
    }
    for (index, segment) in scan.segments.iter().enumerate() {
        add_within_segment(index, segment, &mut gaps, start);
    }
    for &(index, kind, ranges) in &scan.suppressed {
        if kind == FindingKind::OffsetGap
            && let Some(segment) = scan.segments.get(index)
            && let Some(gap) = counts.add_rest(index, segment, ranges, &explainer)
        {
            gaps.push(gap, start);
        }
    }
    add_aborted(scan, &mut gaps);
    counts.fold(scan, &explainer);
    (scan.gaps, scan.gaps_left_out) = gaps.finish();
}

/// Writes the cause into the finding of a gap; a lawful gap becomes milder.
fn apply(finding: &mut Finding, explained: &GapCause) {
    if finding.kind.row().records != RecordState::Missing {
        return;
    }
    match explained.cause {
        Cause::Compaction => {
            finding.kind = FindingKind::OffsetGap;
            finding.severity = Severity::Info;
        }
        // Of a log that begins after its name: what would explain it may be elsewhere.
        Cause::Unexplained if finding.severity == Severity::Info => return,
        // The file before may as well have been cut.
        Cause::MissingFile if explained.confidence < Confidence::Certain => return,
        _ => {}
    }
    finding.cause = Some(explained.cause);
    finding.message =
        format!("{} ({}: {})", finding.message, explained.cause.name(), explained.evidence).into();
}

/// Returns the gap that a finding is about.
fn gap_of(placed: &PlacedFinding, explained: GapCause) -> Option<Gap> {
    let finding = &placed.finding;
    let (first_offset, mut last_offset) = (finding.first_offset?, finding.last_offset?);
    if let (FindingKind::TruncatedTail, Some(next)) = (finding.kind, finding.next_good_offset) {
        // Whatever the file held after the batch that was cut is gone too.
        last_offset = last_offset.max(next.saturating_sub(1));
    }
    Some(Gap {
        segment: placed.segment,
        position: finding.position,
        first_offset,
        last_offset,
        ranges: 1,
        offsets: span(first_offset, last_offset),
        reader: Reader::All,
        cause: explained.cause,
        confidence: explained.confidence,
        evidence: explained.evidence,
    })
}
