//! The segments of one partition put together: what only shows between files, and what a producer or
//! a transaction does across them.

use super::findings::{Cause, Finding, FindingKind, Severity};
use super::producers::{ProducerState, Producers, Verdict};
use super::tally::{Counters, MAX_TRANSACTIONS, SegmentScan, absorb, epoch_fault};
use super::transactions::CompletedTransaction;
use super::verdicts;

/// What is known about a partition beside its segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionContext {
    /// Log start offset of `log-start-offset-checkpoint`, if it has an entry.
    pub log_start_offset: Option<i64>,
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
    /// Aborted transactions by offset of their marker, with their producer; the first 65,536.
    pub aborted: Vec<(i64, CompletedTransaction)>,
}

/// Puts the segments of a partition together, in the order of their base offsets.
pub fn merge_partition(segments: Vec<SegmentScan>, context: &PartitionContext) -> PartitionScan {
    let mut merge = Merge {
        context,
        findings: Vec::new(),
        before: 0,
        producers: Producers::default(),
        counters: Counters::default(),
        aborted: Vec::new(),
        first: None,
        next: None,
        holes: 0,
        epoch: None,
        waiting: Vec::new(),
        lost: None,
        previous_was_empty: false,
        newest_timestamp: i64::MIN,
    };
    let mut out = PartitionScan::default();
    for (index, mut scan) in segments.into_iter().enumerate() {
        out.suppressed
            .extend(scan.findings.suppressed().into_iter().map(|(kind, n)| (index, kind, n)));
        merge.add(index, &mut scan);
        out.segments.push(scan);
    }
    merge.finish(out)
}

struct Merge<'a> {
    context: &'a PartitionContext,
    findings: Vec<PlacedFinding>,
    /// Where the findings of the segment before begin.
    before: usize,
    producers: Producers,
    counters: Counters,
    aborted: Vec<(i64, CompletedTransaction)>,
    first: Option<i64>,
    next: Option<i64>,
    holes: i64,
    epoch: Option<i32>,
    /// Findings whose lost offsets end in a later segment, with the first offset lost.
    waiting: Vec<(usize, bool, i64)>,
    /// The last offset that was lost or is missing.
    lost: Option<i64>,
    previous_was_empty: bool,
    newest_timestamp: i64,
}

impl Merge<'_> {
    fn add(&mut self, index: usize, scan: &mut SegmentScan) {
        self.counters.add(&scan.counters);
        self.newest_timestamp = self.newest_timestamp.max(scan.max_timestamp.unwrap_or(i64::MIN));
        let room = MAX_TRANSACTIONS.saturating_sub(self.aborted.len());
        self.aborted.extend(std::mem::take(&mut scan.aborted).into_iter().take(room));
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
        for waiting in std::mem::take(&mut scan.waiting) {
            self.waiting.push((known + waiting.finding, waiting.has_offsets, waiting.lowest));
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
            aborted: &mut self.aborted,
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
        for (place, has_offsets, lowest) in std::mem::take(&mut self.waiting) {
            let Some(placed) = self.findings.get_mut(place) else { continue };
            let finding = &mut placed.finding;
            finding.next_good_offset = Some(offset);
            if !(has_offsets && finding.last_offset.is_some_and(|last| last < offset)) {
                (finding.first_offset, finding.last_offset) = (None, None);
                if lowest < offset {
                    finding.first_offset = Some(lowest);
                    finding.last_offset = Some(offset - 1);
                }
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
            is_loss(finding.kind)
                && finding.first_offset.is_some_and(|first| first <= offset)
                && finding.last_offset.is_some_and(|last| last >= offset)
        };
        let before = self.findings.get(self.before..).unwrap_or_default();
        scan.findings.kept().iter().any(explains)
            || before.iter().any(|placed| {
                placed.finding.kind == FindingKind::Unreadable || explains(&placed.finding)
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
            let finding = epoch_fault(run, before);
            self.findings.push(PlacedFinding { segment: index, finding });
        }
        self.epoch = scan.leader_epochs.last().map(|run| run.epoch).or(self.epoch);
    }

    fn finish(mut self, mut out: PartitionScan) -> PartitionScan {
        let mut sink = Sink {
            is_consumer_offsets: self.context.is_consumer_offsets,
            findings: &mut self.findings,
            counters: &mut self.counters,
            aborted: &mut self.aborted,
        };
        out.producers = self.producers.finish(self.first.unwrap_or(0), &mut |id, verdict| {
            sink.take(id, &verdict);
        });
        for placed in &self.findings {
            let finding = &placed.finding;
            if is_loss(finding.kind) || finding.kind == FindingKind::Unreadable {
                // What was lost at the end of the log has no last offset.
                self.lost = self.lost.max(Some(finding.last_offset.unwrap_or(i64::MAX)));
            }
        }
        let end = self.next.unwrap_or(0);
        out.last_stable_offset = end;
        for state in &out.producers {
            let Some(open) = &state.open_transaction else { continue };
            let first = open.first_offset;
            out.last_stable_offset = out.last_stable_offset.min(first);
            let damage = self.lost.is_some_and(|last| last >= first);
            let finding = verdicts::open_transaction(
                state.producer_id,
                state.producer_epoch,
                open,
                self.newest_timestamp,
                damage,
            );
            self.findings.push(PlacedFinding { segment: open.place.segment as usize, finding });
        }
        let is_compacted = self.counters.shows_compaction();
        for placed in &mut self.findings {
            explain_gap(&mut placed.finding, is_compacted);
        }
        self.findings
            .sort_by_key(|placed| (placed.segment, placed.finding.position, placed.finding.kind));
        self.aborted.sort_by_key(|(_, completed)| completed.marker_offset);
        let start = self.first.or(self.next).unwrap_or(0);
        out.log_start_offset = self.context.log_start_offset.unwrap_or(start).max(start);
        out.log_end_offset = end;
        out.holes = self.holes;
        out.findings = self.findings;
        out.counters = self.counters;
        out.aborted = self.aborted;
        out
    }
}

/// Whether a finding of this kind says that the records of its offsets cannot be read.
fn is_loss(kind: FindingKind) -> bool {
    matches!(
        kind,
        FindingKind::CrcMismatch
            | FindingKind::DamagedRange
            | FindingKind::TruncatedTail
            | FindingKind::MissingSegment
            | FindingKind::OffsetGap
    )
}

/// In a log that the cleaner was at, missing offsets are no news.
fn explain_gap(finding: &mut Finding, is_compacted: bool) {
    let is_gap = matches!(finding.kind, FindingKind::OffsetGap | FindingKind::MissingSegment);
    if !is_gap || finding.cause.is_some() {
        return;
    }
    if is_compacted {
        finding.kind = FindingKind::OffsetGap;
        finding.cause = Some(Cause::Compaction);
        finding.severity = Severity::Info;
    } else if finding.kind == FindingKind::OffsetGap && finding.severity > Severity::Info {
        finding.cause = Some(Cause::Unexplained);
    }
}

struct Sink<'a> {
    is_consumer_offsets: bool,
    findings: &'a mut Vec<PlacedFinding>,
    counters: &'a mut Counters,
    aborted: &'a mut Vec<(i64, CompletedTransaction)>,
}

impl Sink<'_> {
    fn take(&mut self, producer_id: i64, verdict: &Verdict) {
        absorb(producer_id, verdict, self.counters, self.aborted);
        if let Some((segment, finding)) =
            verdicts::finding(producer_id, verdict, self.is_consumer_offsets)
        {
            self.findings.push(PlacedFinding { segment: segment as usize, finding });
        }
    }
}
