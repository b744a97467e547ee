//! What a scan has found in a segment or in a part of one, in a form that joins.

use crate::catalogue::list::{Findings, FirstFindings};
use crate::partition::gaps::Ranges;
use crate::partition::producers::Producers;
use crate::partition::transactions::EndedTransactions;
use crate::segment::context::SegmentContext;
use crate::segment::counters::{Counters, MAX_COUNT};
use crate::segment::encoding::{self, ChunkError, SCAN_VERSION};
use crate::segment::epochs::{EpochRun, MAX_EPOCHS, append_runs};
use crate::segment::fingerprint::Fingerprint;
use crate::segment::growth::Growth;
use crate::segment::index_check::{IndexCheck, Indexes};
use crate::segment::losses::UnboundedLoss;
use crate::segment::producer_events::VerdictSink;
use crate::segment::tail::{LostEntry, Tail};
use crate::segment::timestamps::TimestampOffset;
use serde::{Deserialize, Serialize};

/// What was found in one segment, or in a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentScan {
    /// What was known before.
    pub context: SegmentContext,
    /// What was counted.
    pub counters: Counters,
    /// Base offset of the first batch in order.
    pub first_offset: Option<i64>,
    /// The offset behind the last batch in order.
    pub next_offset: Option<i64>,
    /// Position where the last valid batch ends.
    pub valid_bytes: u64,
    /// Bytes of the largest valid batch.
    pub largest_batch: u64,
    /// The bytes behind the last batch, if they are no batch.
    pub tail: Option<Tail>,
    /// The last entry of the `.index`, if it is of a batch behind the last valid one.
    pub lost_entry: Option<LostEntry>,
    /// Smallest timestamp in the header of a batch; −1 (none) left out.
    pub oldest: Option<TimestampOffset>,
    /// Largest timestamp in the header of a batch; −1 (none) left out.
    pub newest: Option<TimestampOffset>,
    /// The leader epochs, in order; the first 4096 changes.
    pub leader_epochs: Vec<EpochRun>,
    /// Transactions that a marker in this segment ended.
    pub ended: EndedTransactions,
    /// Offsets of control batches.
    pub control: Ranges,
    /// What is wrong, or worth knowing.
    pub findings: Findings,
    /// Of the valid batches, where the context asks for it.
    pub fingerprint: Option<Fingerprint>,
    /// Offsets missing between the first and the last.
    pub(crate) holes: i64,
    /// The producers, in a form that merges.
    pub(crate) producers: Producers,
    /// The indexes, as far as they were checked against the batches.
    pub(crate) index_check: IndexCheck,
    /// Findings about producers, sorted once the segment is complete: ranges produce them in another
    /// order.
    pub(crate) producer_findings: FirstFindings,
    /// Lost bytes that no valid batch has followed yet.
    pub(crate) unbounded_losses: Vec<UnboundedLoss>,
}

impl SegmentScan {
    /// Adds the findings about the indexes that the segment was scanned with; once.
    pub fn judge_indexes(&mut self, indexes: &Indexes) {
        let check = std::mem::take(&mut self.index_check);
        self.lost_entry = indexes.last_entry_behind(self.valid_bytes);
        for finding in check.finish(indexes, &self.context, self.next_offset) {
            self.findings.push(finding);
        }
    }

    /// Completes the findings of lost bytes: the next valid batch begins at `next_offset`.
    pub(crate) fn bound_losses(&mut self, next_offset: i64) {
        for loss in std::mem::take(&mut self.unbounded_losses) {
            if let Some(finding) = self.findings.kept_mut().get_mut(loss.finding) {
                loss.bound(finding, next_offset);
            }
        }
    }

    /// Producers that are tracked.
    pub fn producer_count(&self) -> usize {
        self.producers.len()
    }

    /// A copy without the producers, by far the most of what a scan may hold.
    pub(crate) fn without_producers(&self) -> Self {
        Self {
            context: self.context,
            counters: self.counters,
            first_offset: self.first_offset,
            next_offset: self.next_offset,
            valid_bytes: self.valid_bytes,
            largest_batch: self.largest_batch,
            tail: self.tail,
            lost_entry: self.lost_entry,
            oldest: self.oldest,
            newest: self.newest,
            leader_epochs: self.leader_epochs.clone(),
            ended: self.ended.clone(),
            control: self.control.clone(),
            findings: self.findings.clone(),
            fingerprint: self.fingerprint.clone(),
            holes: self.holes,
            producers: Producers::default(),
            index_check: self.index_check.clone(),
            producer_findings: self.producer_findings.clone(),
            unbounded_losses: self.unbounded_losses.clone(),
        }
    }

    /// Whether the bounds on what is kept hold for this part and the part on the right together, so
    /// that joining them keeps what one pass keeps.
    pub(crate) fn has_room_for(&self, right: &Self) -> bool {
        let runs = self.leader_epochs.len().saturating_add(right.leader_epochs.len());
        let mut counters = self.counters;
        counters.add(&right.counters);
        runs < MAX_EPOCHS
            && self.producers.has_room_for(&right.producers)
            && counters.are_possible()
    }

    /// Whether a log can have all this; bytes from elsewhere may claim anything.
    pub(crate) fn is_possible(&self) -> bool {
        let runs = self.leader_epochs.iter().map(|run| run.batches);
        let mut counts = runs.chain([self.valid_bytes]);
        let mut offsets = self.first_offset.iter().chain(&self.next_offset);
        self.counters.are_possible()
            && counts.all(|count| count < MAX_COUNT)
            && offsets.all(|&offset| offset >= 0)
            && self.index_check.is_possible()
    }

    /// Appends the part on the right, which began where this one ends. `growth` and `right_growth`
    /// are the growing findings at the edges of both.
    pub(crate) fn append(&mut self, growth: &mut Growth, right: Self, mut right_growth: Growth) {
        let Self {
            context: _,
            counters,
            first_offset,
            next_offset: _,
            valid_bytes,
            largest_batch,
            tail,
            lost_entry: _,
            oldest,
            newest,
            leader_epochs,
            ended,
            control,
            findings,
            holes,
            producers,
            index_check,
            fingerprint,
            producer_findings,
            unbounded_losses,
        } = right;
        self.counters.add(&counters);
        self.first_offset = self.first_offset.or(first_offset);
        self.valid_bytes = self.valid_bytes.max(valid_bytes);
        self.largest_batch = self.largest_batch.max(largest_batch);
        self.tail = tail.or(self.tail);
        self.oldest = TimestampOffset::oldest(self.oldest, oldest);
        self.newest = TimestampOffset::newest(self.newest, newest);
        append_runs(&mut self.leader_epochs, leader_epochs);

        let continued = growth.continue_with(&right_growth, &mut self.findings);
        let indexes = self.findings.append(findings, continued.map(|first| first.kept_as()));
        let new_index = |index: usize| indexes.get(index).copied().flatten();
        right_growth.reindex(new_index);
        growth.append(&right_growth, continued);
        self.unbounded_losses.extend(
            unbounded_losses.into_iter().filter_map(|loss| {
                Some(UnboundedLoss { finding: new_index(loss.finding)?, ..loss })
            }),
        );

        self.producer_findings.append(producer_findings);
        self.index_check = std::mem::take(&mut self.index_check).join(index_check);
        if let (Some(left), Some(right)) = (&mut self.fingerprint, fingerprint) {
            left.append(right);
        }
        self.ended.append(ended);
        self.control.append(&control);
        let mut sink = VerdictSink {
            is_consumer_offsets: self.context.is_consumer_offsets,
            counters: &mut self.counters,
            producer_findings: &mut self.producer_findings,
            ended: &mut self.ended,
        };
        self.producers.append(&producers, self.holes, 0, &mut |id, verdict| {
            sink.take(id, &verdict);
        });
        self.holes = self.holes.saturating_add(holes);
        self.producer_findings.trim();
        self.ended.sort();
    }

    /// Returns the scan as bytes.
    ///
    /// # Examples
    /// ```
    /// use ottla_audit::SegmentScan;
    ///
    /// let scan = SegmentScan::default();
    /// assert_eq!(SegmentScan::from_bytes(&scan.to_bytes()), Ok(scan));
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        encoding::to_bytes(self, SCAN_VERSION)
    }

    /// Returns the scan that [`Self::to_bytes`] wrote. Other bytes are an error, and take no more
    /// memory than their number allows.
    ///
    /// # Errors
    /// [`ChunkError::Malformed`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ChunkError> {
        let scan: Self = encoding::from_bytes(bytes, SCAN_VERSION)?;
        if scan.is_possible() { Ok(scan) } else { Err(ChunkError::Malformed) }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::catalogue::finding::Finding;
    use crate::catalogue::kinds::FindingKind;
    use crate::{PartitionContext, merge_partition};

    /// A scan with the largest numbers that are accepted from bytes.
    fn largest_scan() -> SegmentScan {
        let batches = MAX_COUNT - 1;
        let counters = Counters {
            thin_batches: batches,
            empty_batches: batches,
            delete_horizon_batches: batches,
            removed_offsets: batches,
            committed: batches,
            aborted: batches,
            ..Counters::default()
        };
        let run = EpochRun {
            epoch: 3,
            start_offset: 0,
            batches,
            first_last_offset: 0,
            position: u64::MAX,
            size: u64::MAX,
        };
        let mut findings = Findings::default();
        findings.push(Finding::new(FindingKind::OutOfSegment, "somewhere").at(u64::MAX, u64::MAX));
        let loss = UnboundedLoss { finding: usize::MAX, has_offsets: true, lowest: i64::MIN };
        SegmentScan {
            counters,
            first_offset: Some(0),
            next_offset: Some(9),
            leader_epochs: vec![run; 20],
            findings,
            unbounded_losses: vec![loss],
            ..SegmentScan::default()
        }
    }

    #[test]
    fn the_largest_counts_that_come_through_bytes_can_be_merged() {
        let scan = SegmentScan::from_bytes(&largest_scan().to_bytes()).expect("none is too large");
        let log = merge_partition(vec![scan; 20], &PartitionContext::default());
        assert!(log.counters.shows_compaction());
        assert_eq!(log.transactions_left_out(), u64::MAX);
        assert_eq!(log.epochs.first().map(|epoch| epoch.batches), Some(u64::MAX));
        let inside = log.gaps.iter().find(|gap| gap.segment == 19).map(|gap| gap.ranges);
        assert_eq!(inside, Some(2 * (MAX_COUNT - 1)));
    }

    #[test]
    fn counts_that_no_log_has_are_refused_or_not_added() {
        let largest = largest_scan();
        assert!(largest.has_room_for(&SegmentScan::default()));
        assert!(!largest.has_room_for(&largest));
        let mut impossible = largest;
        impossible.counters.codecs[3] = MAX_COUNT;
        assert!(SegmentScan::from_bytes(&impossible.to_bytes()).is_err());
    }
}
