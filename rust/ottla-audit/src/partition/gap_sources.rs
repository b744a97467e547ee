//! Offsets that consumers do not get although nothing is wrong: what lies below the log start,
//! control batches, records that compaction removed from batches, and data of aborted transactions.

use crate::catalogue::causes::{Cause, Confidence};
use crate::partition::gaps::{Gap, Gaps, RangeSum, Reader, span};
use crate::partition::scan::{PartitionContext, PartitionScan};
use crate::segment::segment_scan::SegmentScan;

/// Adds what lies below the log start.
pub(crate) fn add_deleted(scan: &PartitionScan, context: &PartitionContext, gaps: &mut Gaps) {
    let base = scan.segments.first().and_then(|segment| segment.context.base_offset);
    let Some(base) = base.filter(|_| context.is_head) else { return };
    let base = context.lost_head(base).map_or(base, |lost| lost.first_offset);
    let mut push = |first_offset: i64, end: i64, cause, confidence, evidence: String| {
        let last_offset = end.saturating_sub(1);
        gaps.push_head(Gap {
            segment: 0,
            position: None,
            first_offset,
            last_offset,
            ranges: 1,
            offsets: span(first_offset, last_offset),
            reader: Reader::All,
            cause,
            confidence,
            evidence,
        });
    };
    let start = context.log_start_offset;
    let in_tier = start
        .filter(|&start| start < base)
        .or_else(|| (context.remote_storage == Some(true)).then_some(0));
    let local = in_tier.unwrap_or(base);
    if local > 0 {
        let evidence = format!("the first file begins at offset {base}");
        push(0, local, Cause::Retention, Confidence::Likely, evidence);
    }
    if let Some(start) = in_tier.filter(|_| base > 0 && context.remote_storage != Some(false)) {
        let (evidence, sure) = if context.remote_storage == Some(true) {
            (
                format!("remote.storage.enable, and the first local file begins at {base}"),
                Confidence::Certain,
            )
        } else {
            (
                format!(
                    "log-start-offset-checkpoint has {start}, the first local file begins at {base}"
                ),
                Confidence::Possible,
            )
        };
        push(start, base, Cause::TierBoundary, sure, evidence);
    }
    if let Some(start) = start.filter(|&start| start > base) {
        let (cause, evidence) = match context.unexplained_start() {
            Some(unexplained) => (Cause::WrongCheckpoint, unexplained.evidence()),
            None => (
                Cause::DeleteRecords,
                format!("log-start-offset-checkpoint has {start}, the first file begins at {base}"),
            ),
        };
        let end = start.min(scan.log_end_offset);
        push(base, end, cause, Confidence::Likely, evidence);
    }
}

/// Adds what the batches of one segment hold that consumers do not get.
pub(crate) fn add_within_segment(
    segment: usize,
    scan: &SegmentScan,
    gaps: &mut Gaps,
    log_start_offset: i64,
) {
    let control =
        scan.control.listed().iter().map(RangeSum::of).chain(scan.control.rest().copied());
    for sum in control {
        gaps.push(control_gap(segment, &sum), log_start_offset);
    }
    if let Some(gap) = removed_records(segment, scan) {
        gaps.push(gap, log_start_offset);
    }
}

fn control_gap(segment: usize, sum: &RangeSum) -> Gap {
    Gap {
        segment,
        position: Some(sum.position),
        first_offset: sum.first_offset,
        last_offset: sum.last_offset,
        ranges: sum.ranges,
        offsets: sum.offsets,
        reader: Reader::All,
        cause: Cause::ControlRecords,
        confidence: Confidence::Certain,
        evidence: "control batches".to_owned(),
    }
}

/// Returns the gap of the records that compaction removed from batches.
fn removed_records(segment: usize, scan: &SegmentScan) -> Option<Gap> {
    let counters = &scan.counters;
    let (first_offset, next) = (scan.first_offset?, scan.next_offset?);
    (counters.removed_offsets > 0).then(|| Gap {
        segment,
        position: None,
        first_offset,
        last_offset: next.saturating_sub(1),
        ranges: counters.thin_batches.saturating_add(counters.empty_batches),
        offsets: counters.removed_offsets,
        reader: Reader::All,
        cause: Cause::Compaction,
        confidence: Confidence::Certain,
        evidence: "inside batches: fewer records than offsets".to_owned(),
    })
}

/// Adds the data of aborted transactions.
pub(crate) fn add_aborted(scan: &PartitionScan, gaps: &mut Gaps) {
    for (producer_id, done) in &scan.ended.aborted {
        let evidence = format!(
            "producer {producer_id} epoch {}: ABORT marker at offset {}",
            done.producer_epoch, done.marker_offset
        );
        let gap = Gap {
            segment: done.place.segment as usize,
            position: Some(done.place.position),
            first_offset: done.first_offset,
            last_offset: done.last_offset,
            ranges: done.batches,
            offsets: done.records,
            reader: Reader::ReadCommitted,
            cause: Cause::AbortedData,
            confidence: Confidence::Certain,
            evidence,
        };
        gaps.push(gap, scan.log_start_offset);
    }
}
