//! Where a segment begins, compared with where the one before ends.

use crate::catalogue::causes::Cause;
use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::row::RecordState;
use crate::catalogue::severity::Severity;
use crate::partition::scan::{PartitionContext, PlacedFinding};
use crate::segment::segment_scan::SegmentScan;
use ottla_format::words;

/// The beginning of a segment.
pub(crate) struct Border<'a> {
    /// The segment.
    pub(crate) scan: &'a SegmentScan,
    /// What is known about the partition.
    pub(crate) context: &'a PartitionContext,
    /// Offset of its first batch, or in its name if it has none.
    pub(crate) first_offset: i64,
    /// Findings of the segment before.
    pub(crate) previous_findings: &'a [PlacedFinding],
    /// Whether the segment before has no batch.
    pub(crate) previous_was_empty: bool,
}

impl Border<'_> {
    /// Returns the finding about a segment before which the log ends at `next`.
    pub(crate) fn after(&self, next: i64) -> Option<Finding> {
        let first = self.first_offset;
        if first < next {
            return Some(self.repeat(next));
        }
        if first == next || self.is_lost(next) {
            return None;
        }
        let last = first.saturating_sub(1);
        let missing = words::offsets_are(next, last, "missing");
        let is_file = self.scan.context.base_offset.is_none_or(|base| base > next);
        let (kind, message) = if self.previous_was_empty {
            (FindingKind::MissingSegment, format!("the previous file holds no batch: {missing}"))
        } else if is_file {
            (
                FindingKind::MissingSegment,
                format!("{missing} between the previous file and this one"),
            )
        } else {
            (FindingKind::OffsetGap, format!("{missing} at the beginning of the file"))
        };
        let orphans = &self.context.orphans;
        let orphan = orphans.get(orphans.partition_point(|&base| base < next));
        let is_orphan = orphan.is_some_and(|&base| base < first);
        Some(Finding {
            next_good_offset: Some(first),
            cause: is_orphan.then_some(Cause::MissingFile),
            ..Finding::new(kind, message).at(0, 0).offsets(next, last).values(next, first)
        })
    }

    fn repeat(&self, next: i64) -> Finding {
        let first = self.first_offset;
        let last = self.scan.next_offset.map_or(first, |end| end.saturating_sub(1));
        let last = last.min(next.saturating_sub(1));
        let message = words::offsets_are(first, last, "already in the files before this one");
        Finding::new(FindingKind::OffsetRepeat, message)
            .at(0, self.scan.valid_bytes)
            .offsets(first, last)
            .values(format!("at least {next}"), first)
    }

    /// Returns the finding about segments that were before the first one, and that no broker deleted.
    pub(crate) fn before_first(&self) -> Option<Finding> {
        let base = self.scan.context.base_offset?;
        let first = self.context.lost_head(base)?.first_offset;
        let last = base.saturating_sub(1);
        let message =
            format!("{} before the first file", words::offsets_are(first, last, "missing"));
        Some(Finding {
            next_good_offset: Some(self.first_offset),
            cause: Some(Cause::MissingFile),
            ..Finding::new(FindingKind::MissingSegment, message)
                .at(0, 0)
                .offsets(first, last)
                .values(first, base)
        })
    }

    /// Returns the finding about offsets that are missing at the head of the first segment.
    pub(crate) fn at_head(&self) -> Option<Finding> {
        let first = self.first_offset;
        let base = self.scan.context.base_offset.filter(|&base| base < first)?;
        let was_deleted = self.context.log_start_offset.is_some_and(|start| start >= first);
        if was_deleted || self.is_lost(base) {
            return None;
        }
        let message = format!(
            "the first file is named after offset {base} but begins with {first}, and no log start offset explains it"
        );
        let finding = Finding::new(FindingKind::OffsetGap, message)
            .at(0, 0)
            .offsets(base, first.saturating_sub(1))
            .values(base, first)
            .graded(Severity::Info);
        Some(Finding { next_good_offset: Some(first), ..finding })
    }

    /// Whether damage in this segment, or in the one before, explains that `offset` is missing; what
    /// could not be read may hold anything.
    fn is_lost(&self, offset: i64) -> bool {
        let explains = |finding: &Finding| {
            finding.kind.row().loses_records()
                && finding.first_offset.is_some_and(|first| first <= offset)
                && finding.last_offset.is_some_and(|last| last >= offset)
        };
        self.scan.findings.kept().iter().any(explains)
            || self.previous_findings.iter().any(|placed| {
                let records = placed.finding.kind.row().records;
                records == RecordState::Unknown || explains(&placed.finding)
            })
    }
}
