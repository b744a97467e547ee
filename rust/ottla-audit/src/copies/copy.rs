//! What the audit of one copy leaves behind for a comparison.

use crate::catalogue::finding::Finding;
use crate::catalogue::row::{ByteState, RecordState, Row};
use crate::catalogue::severity::Severity;
use crate::partition::scan::{PartitionContext, PartitionScan};
use crate::segment::fingerprint::{Fingerprint, LogPosition};
use crate::segment::segment_scan::SegmentScan;
use ottla_log::sorting::{sort_by, sort_by_key};
use std::ops::RangeInclusive;

/// Offsets that a copy has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) place: LogPosition,
    pub(crate) size: u64,
}

impl Loss {
    pub(crate) fn overlaps(&self, offsets: &RangeInclusive<i64>) -> bool {
        self.first <= *offsets.end() && self.last >= *offsets.start()
    }
}

/// One copy of a partition.
#[derive(Clone, Debug, Default)]
pub struct Copy {
    pub(crate) fingerprint: Fingerprint,
    /// First offset that each segment may hold.
    segments: Vec<i64>,
    /// Log start offset.
    pub(crate) start: i64,
    /// Log end offset.
    pub(crate) end: i64,
    pub(crate) high_watermark: Option<i64>,
    /// By first and last offset.
    pub(crate) lost: Vec<Loss>,
    /// Batches that are left out of the comparison, with their sizes.
    left_out: Vec<(LogPosition, u64)>,
    pub(crate) is_compacted: bool,
    /// Whether it has message sets: only from their records is known where one begins.
    pub(crate) has_old_formats: bool,
}

impl Copy {
    /// Returns what a comparison needs of a partition that was scanned for it; `high_watermark` is
    /// that of `replication-offset-checkpoint`.
    pub fn of(
        scan: &PartitionScan,
        context: &PartitionContext,
        high_watermark: Option<i64>,
    ) -> Self {
        let is_compacted = context.first_dirty_offset.is_some()
            || context.is_compacted()
            || scan.counters.shows_compaction();
        let first = |segment: &SegmentScan| {
            segment.context.base_offset.or(segment.first_offset).unwrap_or(scan.log_start_offset)
        };
        let mut copy = Self {
            fingerprint: scan.fingerprint.clone().unwrap_or_default(),
            segments: scan.segments.iter().map(first).collect(),
            start: scan.log_start_offset,
            end: scan.log_end_offset,
            high_watermark,
            is_compacted,
            has_old_formats: matches!(scan.counters.magics, [magic_0, magic_1, _] if magic_0 > 0 || magic_1 > 0),
            ..Self::default()
        };
        for placed in &scan.findings {
            let finding = &placed.finding;
            let position = finding.position.unwrap_or(0);
            let place = LogPosition { segment: placed.segment as u32, position };
            let size = finding.size.unwrap_or(0);
            let traits = finding.kind.row();
            if is_left_out(traits) {
                copy.left_out.push((place, size));
            }
            if let (true, Some(first), Some(last)) =
                (is_lost(finding), finding.first_offset, finding.last_offset)
                && finding.severity > Severity::Info
            {
                copy.lost.push(Loss { first, last, place, size });
            }
        }
        sort_by_key(&mut copy.lost, |loss| (loss.first, loss.last));
        sort_by(&mut copy.left_out, Ord::cmp);
        copy
    }

    /// Returns the segment that should hold an offset.
    pub fn segment_of(&self, offset: i64) -> usize {
        self.segments.partition_point(|&first| first <= offset).saturating_sub(1)
    }

    /// Returns the loss that covers an offset.
    pub(crate) fn loss_at(&self, offset: i64) -> Option<&Loss> {
        // Losses overlap only where their offsets were guessed, and never by many.
        let before = self.lost.partition_point(|loss| loss.first <= offset);
        let mut near = self.lost.iter().take(before).skip(before.saturating_sub(8));
        near.find(|loss| loss.last >= offset)
    }

    /// Whether the batch at a place is left out of the comparison.
    pub(crate) fn is_left_out(&self, place: LogPosition) -> bool {
        let after = self.left_out.partition_point(|(start, _)| *start <= place);
        after.checked_sub(1).and_then(|index| self.left_out.get(index)).is_some_and(
            |(start, size)| {
                start.segment == place.segment
                    && place.position < start.position.saturating_add((*size).max(1))
            },
        )
    }

    /// Whether its log holds an offset, if nothing is lost.
    pub(crate) fn holds(&self, offset: i64) -> bool {
        (self.start..self.end).contains(&offset)
    }

    /// Whether a block of offsets may hold batches of it.
    pub(crate) fn reaches(&self, offsets: &RangeInclusive<i64>) -> bool {
        *offsets.end() >= self.start && *offsets.start() < self.end
    }
}

/// Whether this copy does not have the records as they were written.
fn is_lost(finding: &Finding) -> bool {
    let traits = finding.kind.row();
    match traits.records {
        RecordState::Unreadable | RecordState::Altered => true,
        // A tail is an error where something proves that records were there.
        RecordState::AsWritten => traits.has_no_batch() && finding.severity == Severity::Error,
        RecordState::Missing | RecordState::Unknown => false,
    }
}

/// Whether the batch at the position of such a finding is left out of the comparison.
fn is_left_out(traits: &Row) -> bool {
    traits.bytes == ByteState::MisplacedBatch || traits.records == RecordState::Altered
}
