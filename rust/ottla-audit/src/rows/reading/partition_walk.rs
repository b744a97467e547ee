//! A walk over the batches of a partition, each judged with the one behind it in sight.

use super::whole_batch::is_wrapper;
use crate::catalogue::finding::Finding;
use crate::catalogue::severity::Severity;
use crate::segment::context::SegmentContext;
use crate::segment::order::{OffsetOrder, Placement};
use crate::segment::scanner::Scanner;
use crate::segment::tail::more_than_one_batch;
use ottla_format::batch::BatchInfo;
use ottla_log::source::Source;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Where a walk over the batches of a partition is.
#[derive(Clone, Debug)]
pub(super) struct PartitionWalk {
    /// Base offsets of the segments, by name.
    segments: Arc<[Option<i64>]>,
    /// The segment that is read; the number of segments at the end.
    segment: usize,
    /// Where to list on in the segment; `None` when all of it was.
    next_position: Option<u64>,
    /// Batches that were listed, and whether their CRC is correct.
    batches: VecDeque<(BatchInfo, bool)>,
    /// Bytes of the largest batch that was listed.
    largest_batch: u64,
    /// The offset behind the last batch in its place.
    pub(super) expected: Option<i64>,
}

impl PartitionWalk {
    /// A walk from a position of a segment on.
    pub(super) fn new(segments: Vec<Option<i64>>, segment: usize, position: u64) -> Self {
        Self {
            segments: segments.into(),
            segment,
            next_position: Some(position),
            batches: VecDeque::new(),
            largest_batch: 0,
            expected: None,
        }
    }

    /// The segment that is read.
    pub(super) fn segment(&self) -> usize {
        self.segment
    }

    /// Base offsets of the segments, by name.
    pub(super) fn segments(&self) -> &[Option<i64>] {
        &self.segments
    }

    /// Whether all segments were read.
    pub(super) fn is_at_end(&self) -> bool {
        self.segment >= self.segments.len()
    }

    /// Goes on at the beginning of a segment.
    pub(super) fn go_to(&mut self, segment: usize) {
        self.batches.clear();
        self.segment = segment;
        self.next_position = Some(0);
    }

    /// Where batches have to be listed before the next one can be judged.
    pub(super) fn unlisted(&self) -> Option<u64> {
        self.next_position.filter(|_| self.batches.len() < 2)
    }

    /// Lists more batches of the segment. Returns what was found on the way.
    pub(super) fn list(
        &mut self,
        position: u64,
        stopped_cleanly: bool,
        scanner: &mut Scanner,
        source: &dyn Source,
    ) -> io::Result<Vec<Finding>> {
        let listing = scanner.list(source, self.context(stopped_cleanly), position, 1)?;
        let sizes = listing.batches.iter().map(|(info, _)| info.size);
        self.largest_batch = sizes.fold(self.largest_batch, u64::max);
        self.batches.extend(listing.batches);
        self.next_position = listing.next_position;
        let mut findings = listing.findings;
        if let Some(tail) = listing.tail
            && let Some(limit) = tail.exceeds_batch(self.largest_batch, None)
            && let Some(finding) = findings.iter_mut().find(|found| tail.is_told_by(found))
        {
            finding.severity = Severity::Error;
            finding.message =
                format!("{}; that is {}", finding.message, more_than_one_batch(limit)).into();
        }
        Ok(findings)
    }

    /// The next batch of the segment, and whether its CRC is correct.
    pub(super) fn next(&self) -> Option<(BatchInfo, bool)> {
        self.batches.front().copied()
    }

    /// Passes over the next batch.
    pub(super) fn pass(&mut self) {
        self.batches.pop_front();
    }

    /// Passes over the next batch, which is in its place.
    pub(super) fn accept(&mut self, info: &BatchInfo) {
        self.pass();
        self.expected = Some(info.last_offset.saturating_add(1));
    }

    /// Where in the order of offsets the next batch is, if its CRC is correct.
    pub(super) fn judge(&self, info: &BatchInfo) -> Placement {
        let behind = self.batches.get(1).filter(|(_, is_valid)| *is_valid);
        let behind = behind.map(|(info, _)| info.base_offset);
        self.order().judge(self.base_offset(info), info.last_offset, behind)
    }

    /// The base offset of a batch; of a legacy wrapper, whose header does not have it, all that is
    /// left for it.
    pub(super) fn base_offset(&self, info: &BatchInfo) -> i64 {
        if is_wrapper(info) {
            info.last_offset.min(self.order().first_unseen())
        } else {
            info.base_offset
        }
    }

    /// Base offset in the name of a segment.
    pub(super) fn base_offset_of(&self, segment: usize) -> Option<i64> {
        self.segments.get(segment).copied().flatten()
    }

    fn order(&self) -> OffsetOrder {
        let context = SegmentContext {
            base_offset: self.base_offset_of(self.segment),
            next_base_offset: self.base_offset_of(self.segment.saturating_add(1)),
            ..SegmentContext::default()
        };
        OffsetOrder {
            has_first: self.expected.is_some(),
            ..OffsetOrder::new(&context, self.expected.unwrap_or(i64::MIN))
        }
    }

    fn context(&self, stopped_cleanly: bool) -> SegmentContext {
        let next = self.segment.saturating_add(1);
        SegmentContext {
            base_offset: self.expected.max(self.base_offset_of(self.segment)),
            next_base_offset: self.base_offset_of(next),
            is_active: next == self.segments.len(),
            stopped_cleanly,
            is_consumer_offsets: false,
            // Timestamps are not judged here.
            now_ms: i64::MAX,
            is_compared: false,
        }
    }
}
