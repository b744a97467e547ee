//! Both indexes against a part of a segment.

use super::index_findings::IndexFindings;
use super::indexes::Indexes;
use super::offset_entries::OffsetEntries;
use super::time_entries::TimeEntries;
use crate::catalogue::finding::Finding;
use crate::segment::context::SegmentContext;
use serde::{Deserialize, Serialize};

/// A batch as the indexes see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedBatch {
    /// Where it begins.
    pub position: u64,
    /// Where it ends.
    pub end: u64,
    /// Its base offset.
    pub base_offset: i64,
    /// Its max timestamp; `None` where the format has none.
    pub timestamp: Option<i64>,
}

/// The entries of both indexes that fall into one part of a segment, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexCheck {
    offsets: OffsetEntries,
    times: TimeEntries,
    /// Whether the bytes behind the last batch cannot be read.
    is_end_lost: bool,
    /// Position of the next entry of the `.index`; `u64::MAX` without one.
    next_position: u64,
    /// Offset of the next entry of the `.timeindex`; `None` before the first batch.
    next_offset: Option<i64>,
}

impl IndexCheck {
    /// Whether an entry waits for a batch here; if not, [`pass`](Self::pass) is enough.
    #[inline]
    pub fn is_due(&self, position: u64, base_offset: i64) -> bool {
        position >= self.next_position
            || self.next_offset.is_none_or(|next_offset| base_offset > next_offset)
    }

    /// A batch that no entry waits for.
    #[inline]
    pub fn pass(&mut self, position: u64, end: u64, timestamp: i64) {
        self.offsets.last_batch = (position, end);
        let greatest = &mut self.times.greatest;
        greatest.timestamp = greatest.timestamp.max(timestamp);
    }

    /// The next valid batch in its place.
    pub fn at(&mut self, indexes: &Indexes, batch: &IndexedBatch) {
        self.offsets.at(indexes, batch.position, batch.end, Some(batch.base_offset));
        self.times.at(indexes, batch.base_offset, batch.timestamp);
        self.aim(indexes);
    }

    /// A valid batch that is out of its place in the log.
    pub fn stray(&mut self, indexes: &Indexes, position: u64, end: u64) {
        self.offsets.at(indexes, position, end, None);
        self.times.greatest.is_partial = true;
        self.aim(indexes);
    }

    /// Bytes are lost: they may have held anything.
    pub fn lost(&mut self) {
        self.times.greatest.is_partial = true;
    }

    /// The bytes behind the last batch of the segment cannot be read.
    pub fn lost_end(&mut self) {
        self.is_end_lost = true;
    }

    fn aim(&mut self, indexes: &Indexes) {
        let entry = indexes.ordered_offsets().get(self.offsets.next);
        self.next_position = entry.map_or(u64::MAX, |e| u64::try_from(e.position).unwrap_or(0));
        let entry =
            indexes.ordered_times().get(self.times.next).filter(|_| self.times.start.is_some());
        let none = self.times.start.map(|_| i64::MAX);
        self.next_offset = entry.map(|entry| entry.offset(indexes.base_offset)).or(none);
    }

    /// Whether it can come from a scan; bytes from elsewhere may claim anything.
    pub(crate) fn is_possible(&self) -> bool {
        self.offsets.is_possible() && self.times.is_possible()
    }

    /// A part ends here: what points into its last batch points to no other.
    pub fn suspend(&mut self, indexes: &Indexes) {
        let (_, end) = self.offsets.last_batch;
        self.offsets.judge_up_to(indexes, indexes.offset_entry_at(end));
    }

    /// Goes on behind parts that were joined.
    pub fn resume(&mut self, indexes: &Indexes) {
        self.aim(indexes);
    }

    /// Joins the part on the right; both were [suspended](Self::suspend). Parts join in any grouping.
    #[must_use]
    pub fn join(self, right: Self) -> Self {
        Self {
            offsets: self.offsets.join(right.offsets),
            times: self.times.join(right.times),
            ..Self::default()
        }
    }

    /// Returns the findings. The segment ends with the batch before `next_offset`, or with
    /// [lost](Self::lost_end) bytes behind it.
    pub fn finish(
        self,
        indexes: &Indexes,
        context: &SegmentContext,
        next_offset: Option<i64>,
    ) -> Vec<Finding> {
        // Entries behind the end of a log that a kill cut short go when it is loaded.
        let is_rebuilt = context.is_active && !context.stopped_cleanly;
        let end = next_offset.unwrap_or(indexes.base_offset);
        let end = Some(end).filter(|_| !self.is_end_lost && !is_rebuilt);
        let mut times = self.times;
        times.greatest.is_partial |= self.is_end_lost || is_rebuilt;
        let words = IndexFindings { indexes, context, is_rebuilt };
        let mut findings = Vec::new();
        findings.extend(self.offsets.finish(indexes, end).map(|fault| words.of_offset(fault)));
        findings.extend(times.finish(indexes, end).map(|fault| words.of_time(fault)));
        findings.extend(indexes.is_cut.then(IndexFindings::of_cut));
        findings.extend(words.of_sizes());
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::index_check::faults::EntryFault;
    use crate::segment::index_check::indexes::MAX_ENTRIES;
    use crate::segment::index_check::time_entries::{EntryRun, MaxTimestamp};
    use crate::{ChunkError, SegmentScan};

    fn through_bytes(index_check: IndexCheck) -> Result<SegmentScan, ChunkError> {
        let scan = SegmentScan { index_check, ..SegmentScan::default() };
        SegmentScan::from_bytes(&scan.to_bytes())
    }

    #[test]
    fn numbers_of_entries_that_no_index_has_are_refused() {
        let run = |start, stop| EntryRun { start, stop, greatest: MaxTimestamp::default() };
        let times = |times| IndexCheck { times, ..IndexCheck::default() };
        let offsets = |offsets| IndexCheck { offsets, ..IndexCheck::default() };
        let possible =
            TimeEntries { runs: vec![run(0, 2), run(2, 5)], next: 5, ..TimeEntries::default() };
        assert!(through_bytes(times(possible.clone())).is_ok());
        let far = MAX_ENTRIES + 1;
        let greatest = MaxTimestamp::default();
        for impossible in [
            // A join and a judgement go through all numbers up to those.
            times(TimeEntries { start: Some((usize::MAX, greatest)), ..TimeEntries::default() }),
            times(TimeEntries { next: far, ..TimeEntries::default() }),
            times(TimeEntries { runs: vec![run(0, far)], next: far, ..TimeEntries::default() }),
            times(TimeEntries { runs: vec![run(2, 5), run(0, 2)], ..possible.clone() }),
            times(TimeEntries { runs: vec![run(0, 2), run(1, 5)], ..possible }),
            offsets(OffsetEntries { start: Some(far), ..OffsetEntries::default() }),
            offsets(OffsetEntries { next: far, ..OffsetEntries::default() }),
            // Where in the file it is would have no place in a number.
            offsets(OffsetEntries {
                first_fault: Some((usize::MAX, EntryFault::Order)),
                ..OffsetEntries::default()
            }),
        ] {
            assert_eq!(
                through_bytes(impossible.clone()),
                Err(ChunkError::Malformed),
                "{impossible:?}"
            );
        }
    }
}
