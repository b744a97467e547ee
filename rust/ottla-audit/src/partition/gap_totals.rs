//! The gaps between the batches of one segment, counted: too many lawful ones become one finding.

use crate::catalogue::causes::Cause;
use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::partition::gap_causes::GapExplainer;
use crate::partition::gaps::{Gap, Reader};
use crate::partition::scan::{PartitionScan, PlacedFinding};
use crate::segment::segment_scan::SegmentScan;
use ottla_format::words;
use std::collections::BTreeMap;

/// Lawful gaps of a segment up to which each is a finding; more become one finding.
const MAX_LAWFUL_FINDINGS: u64 = 8;

/// The gaps between the batches of one segment.
#[derive(Clone, Copy, Debug, Default)]
struct GapTotals {
    /// Ranges, including those that are no findings.
    ranges: u64,
    /// Offsets in them.
    offsets: u64,
    /// Findings.
    findings: u64,
    /// Findings whose cause is compaction.
    lawful: u64,
    first_offset: i64,
    last_offset: i64,
}

impl GapTotals {
    fn is_folded(&self) -> bool {
        self.lawful > MAX_LAWFUL_FINDINGS && self.lawful == self.findings
    }
}

/// The gaps between the batches of a partition, by segment.
#[derive(Clone, Debug, Default)]
pub(crate) struct GapCounts {
    by_segment: BTreeMap<usize, GapTotals>,
}

impl GapCounts {
    /// Counts a finding and its gap; one at the beginning of a file lies between two files.
    pub(crate) fn add(&mut self, placed: &PlacedFinding, gap: &Gap) {
        if placed.finding.kind != FindingKind::OffsetGap || placed.finding.position == Some(0) {
            return;
        }
        let totals = self.by_segment.entry(placed.segment).or_default();
        if totals.ranges == 0 {
            totals.first_offset = gap.first_offset;
        }
        totals.ranges = totals.ranges.saturating_add(1);
        totals.findings = totals.findings.saturating_add(1);
        totals.offsets = totals.offsets.saturating_add(gap.offsets);
        totals.lawful = totals.lawful.saturating_add(u64::from(gap.cause == Cause::Compaction));
        totals.last_offset = totals.last_offset.max(gap.last_offset);
    }

    /// Counts the `ranges` gaps after those that were kept as findings, and returns them as one.
    pub(crate) fn add_rest(
        &mut self,
        index: usize,
        segment: &SegmentScan,
        ranges: u64,
        explainer: &GapExplainer<'_>,
    ) -> Option<Gap> {
        let totals = self.by_segment.get_mut(&index)?;
        let first_offset = totals.last_offset.saturating_add(1);
        let last_offset = segment.next_offset.unwrap_or(first_offset).saturating_sub(1);
        let explained = explainer
            .compaction(first_offset, last_offset, Some(segment))
            .unwrap_or_else(|| explainer.unexplained(first_offset));
        let offsets = u64::try_from(segment.holes).unwrap_or(0).saturating_sub(totals.offsets);
        totals.ranges = totals.ranges.saturating_add(ranges);
        totals.offsets = totals.offsets.saturating_add(offsets);
        totals.last_offset = last_offset;
        Some(Gap {
            segment: index,
            position: None,
            first_offset,
            last_offset,
            ranges,
            offsets,
            reader: Reader::All,
            cause: explained.cause,
            confidence: explained.confidence,
            evidence: explained.evidence,
        })
    }

    /// Makes one finding of the many lawful gaps of a segment.
    pub(crate) fn fold(&self, scan: &mut PartitionScan, explainer: &GapExplainer<'_>) {
        let folded = |segment: usize| self.by_segment.get(&segment).filter(|own| own.is_folded());
        let segments = &scan.segments;
        let mut last_folded = None;
        scan.findings.retain_mut(|placed| {
            let is_lawful = placed.finding.kind == FindingKind::OffsetGap
                && placed.finding.cause == Some(Cause::Compaction)
                && placed.finding.position != Some(0);
            let Some(totals) = folded(placed.segment).filter(|_| is_lawful) else { return true };
            if last_folded == Some(placed.segment) {
                return false;
            }
            last_folded = Some(placed.segment);
            placed.finding = folded_finding(totals, segments.get(placed.segment), explainer);
            true
        });
        scan.suppressed.retain(|&(index, kind, _)| {
            !(kind == FindingKind::OffsetGap && folded(index).is_some())
        });
    }
}

fn folded_finding(
    totals: &GapTotals,
    segment: Option<&SegmentScan>,
    explainer: &GapExplainer<'_>,
) -> Finding {
    let (first, last) = (totals.first_offset, totals.last_offset);
    let evidence = explainer
        .compaction(first, last, segment)
        .map_or(String::new(), |explained| format!(": {}", explained.evidence));
    let message = format!(
        "{} with {} in total missing between batches, from offset {first} to {last} (compaction{evidence})",
        words::count(totals.ranges, "range"),
        words::count(totals.offsets, "offset")
    );
    Finding {
        cause: Some(Cause::Compaction),
        ..Finding::new(FindingKind::OffsetGap, message).offsets(first, last).graded(Severity::Info)
    }
}
