//! The segments of one partition put together: what only shows between files, and what a producer
//! or a transaction does across them.

use crate::catalogue::finding::{Finding, SideFile};
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::row::{ByteState, RecordState};
use crate::catalogue::severity::Severity;
use crate::partition::border::Border;
use crate::partition::bound::bound_findings;
use crate::partition::epochs::join_epochs;
use crate::partition::gap_list::list_gaps;
use crate::partition::limits_met::find_limits_met;
use crate::partition::log_end;
use crate::partition::log_start;
use crate::partition::missing_markers;
use crate::partition::open_transactions::{begun_below, find_open_transactions};
use crate::partition::producer_findings;
use crate::partition::producers::{ProducerVerdict, Producers};
use crate::partition::scan::{PartitionContext, PartitionScan, PlacedFinding};
use crate::partition::side_check::proof::Proof;
use crate::partition::side_check::{
    NoSideFiles, SideFiles, leader_epochs, snapshots, transaction_indexes,
};
use crate::partition::transactions::EndedTransactions;
use crate::segment::counters::Counters;
use crate::segment::losses::UnboundedLoss;
use crate::segment::producer_events::count_ended;
use crate::segment::segment_scan::SegmentScan;
use ottla_log::sidefiles::snapshot::SnapshotEntry;
use ottla_log::sorting::sort_by_key;
use std::borrow::Cow;

/// Puts the segments of a partition together, in the order of their base offsets.
#[expect(clippy::needless_pass_by_value, reason = "who merges them has no other use for them")]
pub fn merge_partition(segments: Vec<SegmentScan>, context: &PartitionContext) -> PartitionScan {
    merge_partition_with(&segments, context, &NoSideFiles)
}

/// Does the same, and compares the files beside the segments with them. Scans are not copied with their
/// producers, of which there may be many.
pub fn merge_partition_with<'a>(
    segments: impl IntoIterator<Item = &'a SegmentScan>,
    context: &PartitionContext,
    side_files: &dyn SideFiles,
) -> PartitionScan {
    let mut merge = Merge {
        context,
        side_files,
        snapshots_compared: 0,
        findings: Vec::new(),
        damage: DamageState::default(),
        previous_findings: 0,
        producers: Cow::Owned(Producers::default()),
        left_out_of_segments: 0,
        counters: Counters::default(),
        ended: EndedTransactions::default(),
        first_offset: None,
        base_offset: None,
        next_offset: None,
        holes: 0,
        epoch: None,
        unbounded_losses: Vec::new(),
        begun_below: Vec::new(),
        previous_was_empty: false,
        newest_timestamp: i64::MIN,
    };
    let mut out = PartitionScan::default();
    for (index, whole) in segments.into_iter().enumerate() {
        let mut scan = whole.without_producers();
        if index == 0 {
            merge.base_offset = scan.context.base_offset;
        }
        out.suppressed
            .extend(scan.findings.suppressed().into_iter().map(|(kind, n)| (index, kind, n)));
        merge.add(index, &mut scan, &whole.producers);
        if let Some(fingerprint) = scan.fingerprint.take() {
            let fingerprint = fingerprint.in_segment(index as u32);
            out.fingerprint.get_or_insert_default().append(fingerprint);
        }
        out.segments.push(scan);
    }
    merge.finish(out)
}

/// The segments so far.
struct Merge<'a> {
    context: &'a PartitionContext,
    side_files: &'a dyn SideFiles,
    /// How many snapshots have been compared with the log.
    snapshots_compared: usize,
    findings: Vec<PlacedFinding>,
    damage: DamageState,
    /// Index of the first finding of the segment before.
    previous_findings: usize,
    /// Those of the first segment until there are others: the usual log of many producers has them in
    /// one segment, and they are not copied.
    producers: Cow<'a, Producers>,
    /// Batches of producers beyond the bound that the segments have reported.
    left_out_of_segments: u64,
    counters: Counters,
    ended: EndedTransactions,
    first_offset: Option<i64>,
    /// The offset that the name of the first file states.
    base_offset: Option<i64>,
    next_offset: Option<i64>,
    holes: i64,
    epoch: Option<i32>,
    /// Losses that end where a later segment begins.
    unbounded_losses: Vec<UnboundedLoss>,
    /// Of the newest snapshot: producers whose transaction began below the log.
    begun_below: Vec<SnapshotEntry>,
    previous_was_empty: bool,
    newest_timestamp: i64,
}

impl<'a> Merge<'a> {
    fn add(&mut self, index: usize, scan: &mut SegmentScan, producers: &'a Producers) {
        if let Some(base) = scan.context.base_offset {
            self.compare_snapshots_up_to(base, index.saturating_sub(1));
        }
        self.counters.add(&scan.counters);
        let newest = scan.newest.map_or(i64::MIN, |newest| newest.timestamp);
        self.newest_timestamp = self.newest_timestamp.max(newest);
        let mut ended = std::mem::take(&mut scan.ended);
        ended.shift(index as u32);
        self.ended.extend(ended);
        if let Some(first) = scan.first_offset.or(scan.context.base_offset) {
            self.bound_losses(first);
        }
        self.compare_epochs(index, scan);
        let is_repeated = self.check_border(index, scan);
        self.take_findings(index, scan);
        self.left_out_of_segments = self.left_out_of_segments.saturating_add(producers.left_out());
        if is_repeated {
            return;
        }
        let (Some(first), Some(next)) = (scan.first_offset, scan.next_offset) else {
            self.previous_was_empty = true;
            self.end_at_name(scan);
            return;
        };
        self.previous_was_empty = false;
        let before = self.next_offset.filter(|_| self.first_offset.is_some());
        let missing = before.map_or(0, |before| first.saturating_sub(before).max(0));
        self.holes = self.holes.saturating_add(missing);
        let holes = self.holes;
        let mut sink = PartitionSink {
            is_consumer_offsets: self.context.is_consumer_offsets,
            findings: &mut self.findings,
            counters: &mut self.counters,
            ended: &mut self.ended,
        };
        if index == 0 && holes == 0 {
            self.producers = Cow::Borrowed(producers);
        } else if !producers.is_empty() {
            self.producers.to_mut().append(producers, holes, index as u32, &mut |id, verdict| {
                sink.take(id, &verdict);
            });
        }
        self.holes = self.holes.saturating_add(scan.holes);
        self.first_offset = self.first_offset.or(Some(first));
        self.next_offset = Some(next);
    }

    /// A segment without a batch in its place: by its name, the log reached that offset.
    fn end_at_name(&mut self, scan: &SegmentScan) {
        let Some(base) = scan.context.base_offset else { return };
        match self.next_offset {
            Some(before) if scan.valid_bytes == 0 && before < base => {
                let missing = base.saturating_sub(before);
                let is_inside = self.first_offset.is_some();
                self.holes = self.holes.saturating_add(if is_inside { missing } else { 0 });
                self.next_offset = Some(base);
            }
            before => self.next_offset = before.or(Some(base)),
        }
    }

    /// Takes over the findings of a segment, and the losses among them that are not bounded yet.
    fn take_findings(&mut self, index: usize, scan: &mut SegmentScan) {
        let known = self.findings.len();
        self.previous_findings = known;
        let kept = std::mem::take(scan.findings.kept_mut());
        self.findings
            .extend(kept.into_iter().map(|finding| PlacedFinding { segment: index, finding }));
        for loss in std::mem::take(&mut scan.unbounded_losses) {
            let finding = known.saturating_add(loss.finding);
            self.unbounded_losses.push(UnboundedLoss { finding, ..loss });
        }
    }

    /// Damage that reached the end of a file ends at this offset, the next good one.
    fn bound_losses(&mut self, offset: i64) {
        for loss in std::mem::take(&mut self.unbounded_losses) {
            if let Some(placed) = self.findings.get_mut(loss.finding) {
                loss.bound(&mut placed.finding, offset);
            }
        }
    }

    /// Compares the beginning of a segment with the end of the one before; returns whether all of
    /// it was there already.
    fn check_border(&mut self, index: usize, scan: &SegmentScan) -> bool {
        // Without a batch, its name says where it begins.
        let named = scan.context.base_offset.filter(|_| scan.valid_bytes == 0);
        let named = named.filter(|&base| self.next_offset < Some(base));
        let Some(first) = scan.first_offset.or(named) else { return false };
        let border = Border {
            scan,
            context: self.context,
            first_offset: first,
            previous_findings: self
                .findings
                .get(self.previous_findings..)
                .unwrap_or(&self.findings),
            previous_was_empty: self.previous_was_empty,
        };
        let lost = self.next_offset.is_none().then(|| border.before_first()).flatten();
        let (finding, is_repeated) = match self.next_offset {
            Some(next) => {
                let ends_before = scan.next_offset.is_none_or(|end| end <= next);
                (border.after(next), first < next && ends_before)
            }
            None => (border.at_head(), false),
        };
        let found = lost.into_iter().chain(finding);
        self.findings.extend(found.map(|finding| PlacedFinding { segment: index, finding }));
        is_repeated
    }

    /// Compares the first leader epoch of a segment with the last one before.
    fn compare_epochs(&mut self, index: usize, scan: &SegmentScan) {
        if scan.first_offset.is_none() {
            return;
        }
        if let (Some(before), Some(run)) = (self.epoch, scan.leader_epochs.first())
            && run.epoch < before
        {
            let finding = run.fault(before);
            self.findings.push(PlacedFinding { segment: index, finding });
        }
        self.epoch = scan.leader_epochs.last().map(|run| run.epoch).or(self.epoch);
    }

    /// Returns how much the log up to here proves.
    fn proof(&mut self) -> Proof {
        let first_offset = self.first_offset.or(self.base_offset).unwrap_or(0);
        // Whole segments may be gone, so that no batch up to here shows it.
        let is_passed = self.context.first_dirty_offset.is_some_and(|dirty| dirty > first_offset);
        let is_compacted = is_passed || self.counters.shows_compaction();
        self.damage.observe(&self.findings);
        let is_damaged = self.damage.is_damaged(is_compacted);
        Proof { first_offset, is_compacted, is_damaged }
    }

    /// Compares the snapshots up to an offset with the producers so far.
    fn compare_snapshots_up_to(&mut self, offset: i64, segment: usize) {
        let known = self.side_files.snapshots();
        let from = self.snapshots_compared;
        self.snapshots_compared = known.partition_point(|&snapshot| snapshot <= offset).max(from);
        if self.snapshots_compared == from {
            return;
        }
        let proof = self.proof();
        for &snapshot in known.iter().take(self.snapshots_compared).skip(from) {
            let side_file = SideFile::Snapshot(snapshot);
            let finding = match self.side_files.read(side_file, segment) {
                Ok(Some(data)) => {
                    self.begun_below = begun_below(&data, proof.first_offset);
                    snapshots::compare(snapshot, &data, &self.producers, proof)
                }
                Ok(None) => None,
                Err(error) => {
                    let message = format!("the snapshot cannot be read: {error}");
                    let finding = Finding::new(FindingKind::SnapshotMismatch, message);
                    Some(finding.beside(side_file).values("a readable file", "none"))
                }
            };
            self.findings.extend(finding.map(|finding| PlacedFinding { segment, finding }));
        }
    }

    /// Compares what lies beside the segments with them, now that all of them are known.
    fn compare_side_files(&mut self, out: &PartitionScan, proof: Proof) {
        if !self.side_files.is_known() {
            return;
        }
        let mut found = transaction_indexes::compare(out, proof, self.side_files);
        found.extend(leader_epochs::compare(out, &self.context.leader_epochs, proof));
        let placed = found.into_iter().map(|(segment, finding)| PlacedFinding { segment, finding });
        self.findings.extend(placed);
    }

    /// Adds findings about snapshots of offsets that the log does not reach.
    fn find_snapshots_beyond(&mut self, segments: &[SegmentScan], end: i64) {
        let segment = segments.len().saturating_sub(1);
        let rest = self.side_files.snapshots().iter().skip(self.snapshots_compared);
        self.findings.extend(rest.map(|&offset| {
            let finding = snapshots::beyond_end(offset, end);
            PlacedFinding { segment, finding }
        }));
    }

    fn finish(mut self, mut out: PartitionScan) -> PartitionScan {
        let end = self.next_offset.unwrap_or(0);
        self.compare_snapshots_up_to(end, out.segments.len().saturating_sub(1));
        self.find_snapshots_beyond(&out.segments, end);
        let mut sink = PartitionSink {
            is_consumer_offsets: self.context.is_consumer_offsets,
            findings: &mut self.findings,
            counters: &mut self.counters,
            ended: &mut self.ended,
        };
        let left_out = self.producers.left_out();
        let holes = self.first_offset.unwrap_or(0);
        let out_of = &mut |id, verdict| sink.take(id, &verdict);
        out.producers = match std::mem::take(&mut self.producers) {
            Cow::Borrowed(producers) => producers.finish_copy(holes, out_of),
            Cow::Owned(producers) => producers.finish(holes, out_of),
        };
        let start = out.segments.first().and_then(|scan| scan.context.base_offset);
        let start = start.or(self.first_offset).or(self.next_offset).unwrap_or(0);
        out.log_start_offset = self.context.log_start_offset.unwrap_or(start).max(start);
        out.log_end_offset = end;
        out.holes = self.holes;
        let proof = self.proof();
        self.ended.sort();
        out.ended = std::mem::take(&mut self.ended);
        out.counters = self.counters;
        out.newest_timestamp = self.newest_timestamp.max(-1);
        out.epochs = join_epochs(&out.segments, &self.context.leader_epochs);
        self.compare_side_files(&out, proof);
        out.findings = self.findings;
        missing_markers::drop_doubtful(&mut out.findings);
        let last = out.segments.len().saturating_sub(1);
        let met = find_limits_met(&out, left_out.saturating_sub(self.left_out_of_segments));
        let met = met.into_iter().map(|finding| PlacedFinding { segment: last, finding });
        out.findings.extend(met);
        log_start::judge(&mut out, self.context);
        log_end::judge(&mut out, self.context, self.side_files.snapshots());
        list_gaps(&mut out, self.context);
        find_open_transactions(&mut out, self.begun_below);
        sort_by_key(&mut out.findings, |placed| {
            (placed.segment, placed.finding.position, placed.finding.kind)
        });
        bound_findings(&mut out.findings, &mut out.left_out);
        out
    }
}

/// Whether the findings so far let the log prove anything.
#[derive(Clone, Copy, Debug, Default)]
struct DamageState {
    /// How many findings were looked at.
    observed: usize,
    is_damaged: bool,
    /// Records are missing, which the cleaner may have removed.
    is_missing_records: bool,
}

impl DamageState {
    /// Looks at the findings that were added.
    fn observe(&mut self, findings: &[PlacedFinding]) {
        for placed in findings.iter().skip(self.observed) {
            let traits = placed.finding.kind.row();
            let is_grave = placed.finding.severity > Severity::Info;
            self.is_damaged |= traits.bytes == ByteState::MisplacedBatch;
            match traits.records {
                RecordState::Unknown => self.is_damaged = true,
                RecordState::Unreadable => self.is_damaged |= is_grave,
                RecordState::Missing => self.is_missing_records |= is_grave,
                RecordState::AsWritten | RecordState::Altered => {}
            }
        }
        self.observed = findings.len();
    }

    fn is_damaged(self, is_compacted: bool) -> bool {
        self.is_damaged || (self.is_missing_records && !is_compacted)
    }
}

/// Takes what producers show across segments.
struct PartitionSink<'a> {
    is_consumer_offsets: bool,
    findings: &'a mut Vec<PlacedFinding>,
    counters: &'a mut Counters,
    ended: &'a mut EndedTransactions,
}

impl PartitionSink<'_> {
    fn take(&mut self, producer_id: i64, verdict: &ProducerVerdict) {
        count_ended(producer_id, verdict, self.counters, self.ended);
        if let Some((segment, finding)) =
            producer_findings::finding(producer_id, verdict, self.is_consumer_offsets)
        {
            self.findings.push(PlacedFinding { segment: segment as usize, finding });
        }
    }
}
