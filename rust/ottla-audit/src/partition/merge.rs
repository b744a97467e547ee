//! The segments of one partition put together: what only shows between files, and what a producer or
//! a transaction does across them.

use crate::catalogue::causes::Cause;
use crate::catalogue::finding::{Finding, SideFile};
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::row::{ByteState, RecordState};
use crate::catalogue::severity::Severity;
use crate::partition::causes;
use crate::partition::gaps::Gap;
use crate::partition::producers::{ProducerState, Producers, Verdict};
use crate::partition::side_check::{self, NoSideFiles, Proof, SideFiles};
use crate::partition::transactions::{Ended, OpenTransaction};
use crate::partition::verdicts;
use crate::segment::counters::Counters;
use crate::segment::fingerprint::Fingerprint;
use crate::segment::losses::UnboundedLoss;
use crate::segment::producer_events::count_ended;
use crate::segment::segment_scan::SegmentScan;
use ottla_log::sidefiles::snapshot::{SnapshotEntry, read_snapshot};

/// What is known about a partition beside its segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionContext {
    /// Its topic.
    pub topic: Option<String>,
    /// Log start offset of `log-start-offset-checkpoint`, if it has an entry.
    pub log_start_offset: Option<i64>,
    /// First dirty offset of `cleaner-offset-checkpoint`, if it has an entry.
    pub first_dirty_offset: Option<i64>,
    /// Epochs and their start offsets, of `leader-epoch-checkpoint`.
    pub leader_epochs: Vec<(i32, i64)>,
    /// `cleanup.policy` of the topic, where somebody said it.
    pub cleanup_policy: Option<String>,
    /// `remote.storage.enable` of the topic, where somebody said it.
    pub remote_storage: Option<bool>,
    /// Whether the first segment is the first of the partition.
    pub is_head: bool,
    /// Whether it is a partition of `__consumer_offsets`.
    pub is_consumer_offsets: bool,
    /// Base offsets of index files whose `.log` is not there.
    pub orphans: Vec<i64>,
}

/// A finding and the segment it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedFinding {
    /// Index of the segment among those merged.
    pub segment: usize,
    /// The finding; its position counts from the start of that segment's file.
    pub finding: Finding,
}

/// What was found in a partition.
#[derive(Clone, Debug, Default)]
pub struct PartitionScan {
    /// The segments; their findings have moved to `findings`.
    pub segments: Vec<SegmentScan>,
    /// All findings, by segment and position.
    pub findings: Vec<PlacedFinding>,
    /// Findings that were counted and not kept: segment, kind, count.
    pub suppressed: Vec<(usize, FindingKind, u64)>,
    /// Sums over the segments.
    pub counters: Counters,
    /// First offset a consumer can get: the checkpoint's, or the first in the files.
    pub log_start_offset: i64,
    /// The offset behind the last.
    pub log_end_offset: i64,
    /// First offset of the first open transaction, or the log end offset: where `read_committed`
    /// consumers stop at the latest.
    pub last_stable_offset: i64,
    /// Offsets missing inside the log.
    pub holes: i64,
    /// The producers at the end of the log, by id; `open_transaction` tells what is not ended.
    pub producers: Vec<ProducerState>,
    /// Transactions that have ended, by offset of their marker.
    pub ended: Ended,
    /// The leader epochs in the order of the log.
    pub epochs: Vec<Epoch>,
    /// Offsets that consumers do not get, and why.
    pub gaps: Vec<Gap>,
    /// Gaps that were not kept.
    pub gaps_left_out: u64,
    /// Largest timestamp of the log, −1 without one.
    pub newest_timestamp: i64,
    /// The last offset that damage took; what was lost at the end has none, so `i64::MAX`.
    pub last_lost_offset: Option<i64>,
    /// Of all sound batches, where the segments have one.
    pub fingerprint: Option<Fingerprint>,
    /// Producers whose open transaction began below the log, by the newest snapshot: retention or
    /// `DeleteRecords` took its data, or the beginning of it.
    pub begun_below: Vec<SnapshotEntry>,
}

/// A leader epoch of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// The epoch.
    pub epoch: i32,
    /// Offset of its first batch, if there is one.
    pub start_offset: Option<i64>,
    /// Its batches, one after the other.
    pub batches: u64,
    /// What `leader-epoch-checkpoint` says of it.
    pub checkpoint_start_offset: Option<i64>,
}

impl PartitionScan {
    /// Whether an open transaction is older, by the newest timestamp of the log, than a coordinator
    /// lets one become, and its marker cannot be among what damage took.
    pub fn is_hanging(&self, open: &OpenTransaction) -> bool {
        let damage = self.last_lost_offset.is_some_and(|last| last >= open.first_offset);
        !damage && verdicts::is_hanging(open, self.newest_timestamp)
    }

    /// Ended transactions that were counted and not kept.
    pub fn transactions_left_out(&self) -> u64 {
        let kept = self.ended.aborted.len() + self.ended.committed.len();
        let ended = self.counters.aborted.saturating_add(self.counters.committed);
        ended.saturating_sub(kept as u64)
    }
}

/// Puts the segments of a partition together, in the order of their base offsets.
pub fn merge_partition(segments: Vec<SegmentScan>, context: &PartitionContext) -> PartitionScan {
    merge_partition_with(segments, context, &NoSideFiles)
}

/// The same, with the files beside the segments held against them.
pub fn merge_partition_with(
    segments: Vec<SegmentScan>,
    context: &PartitionContext,
    side_files: &dyn SideFiles,
) -> PartitionScan {
    let mut merge = Merge {
        context,
        side_files,
        snapshots: 0,
        findings: Vec::new(),
        before: 0,
        producers: Producers::default(),
        counters: Counters::default(),
        ended: Ended::default(),
        first: None,
        base: segments.first().and_then(|scan| scan.context.base_offset),
        next: None,
        holes: 0,
        epoch: None,
        unbounded_losses: Vec::new(),
        begun_below: Vec::new(),
        previous_was_empty: false,
        newest_timestamp: i64::MIN,
    };
    let mut out = PartitionScan::default();
    for (index, mut scan) in segments.into_iter().enumerate() {
        out.suppressed
            .extend(scan.findings.suppressed().into_iter().map(|(kind, n)| (index, kind, n)));
        merge.add(index, &mut scan);
        if let Some(fingerprint) = scan.fingerprint.take() {
            let fingerprint = fingerprint.in_segment(index as u32);
            out.fingerprint.get_or_insert_default().append(fingerprint);
        }
        out.segments.push(scan);
    }
    merge.finish(out)
}

struct Merge<'a> {
    context: &'a PartitionContext,
    side_files: &'a dyn SideFiles,
    /// How many snapshots have been held against the log.
    snapshots: usize,
    findings: Vec<PlacedFinding>,
    /// Where the findings of the segment before begin.
    before: usize,
    producers: Producers,
    counters: Counters,
    ended: Ended,
    first: Option<i64>,
    /// The offset that the name of the first file gives.
    base: Option<i64>,
    next: Option<i64>,
    holes: i64,
    epoch: Option<i32>,
    /// Findings whose lost offsets end in a later segment.
    unbounded_losses: Vec<UnboundedLoss>,
    /// Of the newest snapshot: producers whose transaction began below the log.
    begun_below: Vec<SnapshotEntry>,
    previous_was_empty: bool,
    newest_timestamp: i64,
}

impl Merge<'_> {
    fn add(&mut self, index: usize, scan: &mut SegmentScan) {
        if let Some(base) = scan.context.base_offset {
            self.snapshots_up_to(base, index.saturating_sub(1));
        }
        self.counters.add(&scan.counters);
        let newest = scan.newest.map_or(i64::MIN, |newest| newest.timestamp);
        self.newest_timestamp = self.newest_timestamp.max(newest);
        let mut ended = std::mem::take(&mut scan.ended);
        ended.shift(index as u32);
        self.ended.append(ended);
        let first = scan.first_offset;
        if let Some(first) = first.or(scan.context.base_offset) {
            self.settle_waiting(first);
        }
        let is_repeated = self.border(index, scan);
        let known = self.findings.len();
        self.before = known;
        let kept = std::mem::take(scan.findings.kept_mut());
        self.findings
            .extend(kept.into_iter().map(|finding| PlacedFinding { segment: index, finding }));
        for loss in std::mem::take(&mut scan.unbounded_losses) {
            let finding = known.saturating_add(loss.finding);
            self.unbounded_losses.push(UnboundedLoss { finding, ..loss });
        }
        let producers = std::mem::take(&mut scan.producers);
        if is_repeated {
            return;
        }
        let (Some(first), Some(next)) = (first, scan.next_offset) else {
            self.previous_was_empty = true;
            if self.next.is_none() {
                self.next = scan.context.base_offset;
            }
            return;
        };
        self.previous_was_empty = false;
        let missing = self
            .next
            .filter(|_| self.first.is_some())
            .map_or(0, |before| first.saturating_sub(before).max(0));
        self.holes = self.holes.saturating_add(missing);
        let holes = self.holes;
        let mut sink = Sink {
            is_consumer_offsets: self.context.is_consumer_offsets,
            findings: &mut self.findings,
            counters: &mut self.counters,
            ended: &mut self.ended,
        };
        self.producers.append(producers, holes, index as u32, &mut |id, verdict| {
            sink.take(id, &verdict);
        });
        self.holes = self.holes.saturating_add(scan.holes);
        self.first = self.first.or(Some(first));
        self.next = Some(next);
    }

    /// The next good offset of damage that reached the end of a file.
    fn settle_waiting(&mut self, offset: i64) {
        for loss in std::mem::take(&mut self.unbounded_losses) {
            if let Some(placed) = self.findings.get_mut(loss.finding) {
                loss.bound(&mut placed.finding, offset);
            }
        }
    }

    /// Holds the beginning of a segment against the end of the one before: whether all of it was
    /// there already.
    fn border(&mut self, index: usize, scan: &SegmentScan) -> bool {
        let base = scan.context.base_offset;
        let Some(first) = scan.first_offset else { return false };
        self.epochs(index, scan);
        let Some(before) = self.next else {
            self.head(index, scan, first);
            return false;
        };
        let size = scan.valid_bytes;
        if first < before {
            let last = scan.next_offset.map_or(first, |next| next - 1);
            let message = format!(
                "offsets {first} to {} of this file are in the files before it already",
                last.min(before - 1)
            );
            let finding = Finding::new(FindingKind::OffsetRepeat, message)
                .at(0, size)
                .offsets(first, last.min(before - 1))
                .values(format!("at least {before}"), first);
            self.findings.push(PlacedFinding { segment: index, finding });
            return last < before;
        }
        if first == before || self.is_lost(scan, before) {
            return false;
        }
        let is_file = base.is_none_or(|base| base > before);
        let (kind, message) = if self.previous_was_empty {
            (
                FindingKind::MissingSegment,
                format!(
                    "the file before this one is empty: offsets {before} to {} are missing",
                    first - 1
                ),
            )
        } else if is_file {
            (
                FindingKind::MissingSegment,
                format!(
                    "offsets {before} to {} are missing between the file before and this one",
                    first - 1
                ),
            )
        } else {
            (
                FindingKind::OffsetGap,
                format!(
                    "offsets {before} to {} are missing at the beginning of the file",
                    first - 1
                ),
            )
        };
        let is_orphan = self.context.orphans.iter().any(|base| (before..first).contains(base));
        let finding = Finding {
            next_good_offset: Some(first),
            cause: is_orphan.then_some(Cause::MissingFile),
            ..Finding::new(kind, message).at(0, 0).offsets(before, first - 1).values(before, first)
        };
        self.findings.push(PlacedFinding { segment: index, finding });
        false
    }

    /// Whether damage in this segment, or in the one before, explains that `offset` is missing; what
    /// could not be read may hold anything.
    fn is_lost(&self, scan: &SegmentScan, offset: i64) -> bool {
        let explains = |finding: &Finding| {
            finding.kind.row().loses_records()
                && finding.first_offset.is_some_and(|first| first <= offset)
                && finding.last_offset.is_some_and(|last| last >= offset)
        };
        let before = self.findings.get(self.before..).unwrap_or_default();
        scan.findings.kept().iter().any(explains)
            || before.iter().any(|placed| {
                let records = placed.finding.kind.row().records;
                records == RecordState::Unknown || explains(&placed.finding)
            })
    }

    /// The first segment: offsets missing before its first batch.
    fn head(&mut self, index: usize, scan: &SegmentScan, first: i64) {
        let Some(base) = scan.context.base_offset.filter(|&base| base < first) else { return };
        let was_deleted = self.context.log_start_offset.is_some_and(|start| start >= first);
        if was_deleted || self.is_lost(scan, base) {
            return;
        }
        let message = format!(
            "the first file is named for offset {base} and begins with {first}; no log start offset says why"
        );
        let finding = Finding {
            next_good_offset: Some(first),
            ..Finding::new(FindingKind::OffsetGap, message)
                .at(0, 0)
                .offsets(base, first - 1)
                .values(base, first)
                .graded(Severity::Info)
        };
        self.findings.push(PlacedFinding { segment: index, finding });
    }

    fn epochs(&mut self, index: usize, scan: &SegmentScan) {
        if let (Some(before), Some(run)) = (self.epoch, scan.leader_epochs.first())
            && run.epoch < before
        {
            let finding = run.fault(before);
            self.findings.push(PlacedFinding { segment: index, finding });
        }
        self.epoch = scan.leader_epochs.last().map(|run| run.epoch).or(self.epoch);
    }

    /// How much the log up to here proves.
    fn proof(&self) -> Proof {
        let is_compacted = self.counters.shows_compaction();
        let is_damaged = self.findings.iter().any(|placed| {
            let traits = placed.finding.kind.row();
            let is_grave = placed.finding.severity > Severity::Info;
            traits.bytes == ByteState::MisplacedBatch
                || match traits.records {
                    RecordState::Unknown => true,
                    RecordState::Unreadable => is_grave,
                    RecordState::Missing => is_grave && !is_compacted,
                    RecordState::AsWritten | RecordState::Altered => false,
                }
        });
        Proof { first: self.first.or(self.base).unwrap_or(0), is_compacted, is_damaged }
    }

    /// Holds the snapshots up to an offset against the producers so far.
    fn snapshots_up_to(&mut self, offset: i64, segment: usize) {
        let known = self.side_files.snapshots();
        let from = self.snapshots;
        self.snapshots = known.partition_point(|&snapshot| snapshot <= offset).max(from);
        let due = known.get(from..self.snapshots).unwrap_or_default();
        if due.is_empty() {
            return;
        }
        let proof = self.proof();
        for &snapshot in due {
            let side = SideFile::Snapshot(snapshot);
            let finding = match self.side_files.read(side, segment) {
                Ok(Some(data)) => {
                    self.begun_below = begun_below(&data, proof.first);
                    side_check::snapshot(snapshot, &data, &self.producers, proof)
                }
                Ok(None) => None,
                Err(error) => Some(
                    Finding::new(
                        FindingKind::SnapshotMismatch,
                        format!("the snapshot cannot be read: {error}"),
                    )
                    .beside(side)
                    .values("a readable file", "none"),
                ),
            };
            self.findings.extend(finding.map(|finding| PlacedFinding { segment, finding }));
        }
    }

    /// Holds what lies beside the segments against them, now that all of them are known.
    fn beside(&mut self, out: &PartitionScan, proof: Proof) {
        if !self.side_files.is_known() {
            return;
        }
        let mut found = side_check::transaction_indexes(out, proof, self.side_files);
        found.extend(side_check::leader_epochs(out, &self.context.leader_epochs, proof));
        let placed = found.into_iter().map(|(segment, finding)| PlacedFinding { segment, finding });
        self.findings.extend(placed);
    }

    fn finish(mut self, mut out: PartitionScan) -> PartitionScan {
        let last = out.segments.len().saturating_sub(1);
        let end = self.next.unwrap_or(0);
        self.snapshots_up_to(end, last);
        let stopped_cleanly = out.segments.last().is_some_and(|scan| scan.context.stopped_cleanly);
        for &offset in self.side_files.snapshots().get(self.snapshots..).unwrap_or_default() {
            let finding = side_check::snapshot_behind(offset, end, stopped_cleanly);
            self.findings.push(PlacedFinding { segment: last, finding });
        }
        let mut sink = Sink {
            is_consumer_offsets: self.context.is_consumer_offsets,
            findings: &mut self.findings,
            counters: &mut self.counters,
            ended: &mut self.ended,
        };
        out.producers = std::mem::take(&mut self.producers).finish(
            self.first.unwrap_or(0),
            &mut |id, verdict| {
                sink.take(id, &verdict);
            },
        );
        let start = out.segments.first().and_then(|scan| scan.context.base_offset);
        let start = start.or(self.first).or(self.next).unwrap_or(0);
        out.log_start_offset = self.context.log_start_offset.unwrap_or(start).max(start);
        out.log_end_offset = end;
        out.holes = self.holes;
        let proof = self.proof();
        self.ended.sort();
        out.ended = std::mem::take(&mut self.ended);
        out.counters = self.counters;
        out.newest_timestamp = self.newest_timestamp.max(-1);
        out.epochs = epochs(&out.segments, &self.context.leader_epochs);
        self.beside(&out, proof);
        out.findings = self.findings;
        causes::explain(&mut out, self.context);
        let begun_below = std::mem::take(&mut self.begun_below);
        open_transactions(&mut out, begun_below);
        out.findings
            .sort_by_key(|placed| (placed.segment, placed.finding.position, placed.finding.kind));
        out
    }
}

/// Producers of a snapshot whose transaction began below the log.
fn begun_below(data: &[u8], first: i64) -> Vec<SnapshotEntry> {
    let entries = read_snapshot(data).unwrap_or_default().into_iter();
    entries.filter(|entry| entry.transaction_first_offset.is_some_and(|at| at < first)).collect()
}

/// Finds the transactions that are open at the end of the log, and with them where it is stable.
/// `begun_below` are those of the newest snapshot that began below the log.
fn open_transactions(out: &mut PartitionScan, begun_below: Vec<SnapshotEntry>) {
    for placed in &out.findings {
        let finding = &placed.finding;
        let is_lawful = finding.cause == Some(Cause::Compaction);
        let traits = finding.kind.row();
        if (traits.loses_records() && !is_lawful) || traits.records == RecordState::Unknown {
            // What was lost at the end of the log has no last offset.
            let last = finding.last_offset.unwrap_or(i64::MAX);
            out.last_lost_offset = out.last_lost_offset.max(Some(last));
        }
    }
    let start = out.log_start_offset;
    out.begun_below = begun_below
        .into_iter()
        .filter(|entry| {
            let id = entry.producer_id;
            let place = out.producers.binary_search_by_key(&id, |producer| producer.producer_id);
            let known = place.ok().and_then(|place| out.producers.get(place));
            // A marker in the log ended it.
            known.is_none_or(|producer| producer.coordinator_epoch < 0)
        })
        .filter(|entry| entry.transaction_first_offset.is_some_and(|first| first < start))
        .collect();
    out.last_stable_offset = out.log_end_offset;
    let mut found = Vec::new();
    for state in &out.producers {
        let Some(open) = &state.open_transaction else { continue };
        out.last_stable_offset = out.last_stable_offset.min(open.first_offset);
        let damage = out.last_lost_offset.is_some_and(|last| last >= open.first_offset);
        if out.begun_below.iter().any(|entry| entry.producer_id == state.producer_id) {
            continue;
        }
        let finding = verdicts::open_transaction(
            state.producer_id,
            state.producer_epoch,
            open,
            out.newest_timestamp,
            damage,
        );
        found.push(PlacedFinding { segment: open.place.segment as usize, finding });
    }
    for entry in &out.begun_below {
        out.last_stable_offset = start;
        let finding = verdicts::begun_below(entry, start, out.newest_timestamp);
        found.push(PlacedFinding { segment: 0, finding });
    }
    out.last_stable_offset = out.last_stable_offset.max(start);
    out.findings.extend(found);
}

/// The epochs of the segments put together, each with what the checkpoint says of it.
fn epochs(segments: &[SegmentScan], checkpoint: &[(i32, i64)]) -> Vec<Epoch> {
    let mut epochs: Vec<Epoch> = Vec::new();
    for run in segments.iter().flat_map(|scan| &scan.leader_epochs) {
        match epochs.last_mut() {
            Some(last) if last.epoch == run.epoch => {
                last.batches = last.batches.saturating_add(run.batches);
            }
            _ => epochs.push(Epoch {
                epoch: run.epoch,
                start_offset: Some(run.start_offset),
                batches: run.batches,
                checkpoint_start_offset: None,
            }),
        }
    }
    for &(epoch, start_offset) in checkpoint {
        let place = epochs.partition_point(|known| known.epoch < epoch);
        match epochs.get_mut(place).filter(|known| known.epoch == epoch) {
            Some(known) => known.checkpoint_start_offset = Some(start_offset),
            None => epochs.insert(
                place,
                Epoch {
                    epoch,
                    start_offset: None,
                    batches: 0,
                    checkpoint_start_offset: Some(start_offset),
                },
            ),
        }
    }
    epochs
}

struct Sink<'a> {
    is_consumer_offsets: bool,
    findings: &'a mut Vec<PlacedFinding>,
    counters: &'a mut Counters,
    ended: &'a mut Ended,
}

impl Sink<'_> {
    fn take(&mut self, producer_id: i64, verdict: &Verdict) {
        count_ended(producer_id, verdict, self.counters, self.ended);
        if let Some((segment, finding)) =
            verdicts::finding(producer_id, verdict, self.is_consumer_offsets)
        {
            self.findings.push(PlacedFinding { segment: segment as usize, finding });
        }
    }
}
