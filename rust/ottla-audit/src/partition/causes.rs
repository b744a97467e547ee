//! Why offsets are missing: the findings of a partition get their causes, and every range that
//! consumers do not get becomes a [`Gap`].

use crate::catalogue::causes::{Cause, Confidence};
use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::row::RecordState;
use crate::catalogue::severity::Severity;
use crate::partition::gaps::{Gap, Gaps, RangeSum, Reader, span};
use crate::partition::merge::{Epoch, PartitionContext, PartitionScan, PlacedFinding};
use crate::segment::counters::Counters;
use crate::segment::segment_scan::SegmentScan;
use std::collections::BTreeMap;

/// Lawful gaps of a segment that are findings each; more become one that counts them.
const TOLD_ONE_BY_ONE: u64 = 8;

/// A cause, how sure it is, and what speaks for it.
struct Verdict {
    cause: Cause,
    confidence: Confidence,
    evidence: String,
}

impl Verdict {
    fn new(cause: Cause, confidence: Confidence, evidence: impl Into<String>) -> Self {
        Self { cause, confidence, evidence: evidence.into() }
    }
}

/// Gives the gaps among the findings their causes, and lists what consumers do not get.
pub(crate) fn explain(scan: &mut PartitionScan, context: &PartitionContext) {
    let mut gaps = Gaps::default();
    let named = named_by_indexes(scan);
    let judge = Judge { context, counters: scan.counters, epochs: scan.epochs.clone(), named };
    let mut told = BTreeMap::new();
    head(scan, context, &mut gaps);
    for placed in &mut scan.findings {
        let Some(segment) = scan.segments.get(placed.segment) else { continue };
        let Some(verdict) = judge.judge(placed, segment) else { continue };
        apply(&mut placed.finding, &verdict);
        if let Some(gap) = gap_of(placed, verdict) {
            Told::add(&mut told, placed, &gap);
            gaps.push(gap, scan.log_start_offset);
        }
    }
    for (index, segment) in scan.segments.iter().enumerate() {
        let mut push = |gap| gaps.push(gap, scan.log_start_offset);
        control(index, segment, &mut push);
        inside(index, segment, &mut push);
    }
    for &(index, kind, ranges) in &scan.suppressed {
        let (Some(segment), Some(told)) = (scan.segments.get(index), told.get_mut(&index)) else {
            continue;
        };
        if kind == FindingKind::OffsetGap {
            let gap = told.rest(index, segment, ranges, &judge);
            gaps.push(gap, scan.log_start_offset);
        }
    }
    aborted(scan, &mut gaps);
    fold(scan, &told, &judge);
    (scan.gaps, scan.gaps_left_out) = gaps.finish();
}

/// The gaps between the batches of one segment.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    /// Ranges, those included that are no findings.
    ranges: u64,
    /// Offsets in them.
    offsets: u64,
    /// Findings.
    kept: u64,
    /// Findings that say compaction.
    lawful: u64,
    first_offset: i64,
    last_offset: i64,
}

impl Told {
    fn add(told: &mut BTreeMap<usize, Self>, placed: &PlacedFinding, gap: &Gap) {
        if placed.finding.kind != FindingKind::OffsetGap || placed.finding.position == Some(0) {
            return;
        }
        let own = told.entry(placed.segment).or_default();
        if own.ranges == 0 {
            own.first_offset = gap.first_offset;
        }
        own.ranges += 1;
        own.kept += 1;
        own.offsets = own.offsets.saturating_add(gap.offsets);
        own.lawful += u64::from(gap.cause == Cause::Compaction);
        own.last_offset = own.last_offset.max(gap.last_offset);
    }

    /// The gaps behind those that were kept, of which there are `ranges`.
    fn rest(&mut self, index: usize, segment: &SegmentScan, ranges: u64, judge: &Judge<'_>) -> Gap {
        let first_offset = self.last_offset.saturating_add(1);
        let last_offset = segment.next_offset.unwrap_or(first_offset) - 1;
        let verdict = judge
            .compaction(first_offset, last_offset, Some(segment))
            .unwrap_or_else(|| judge.unexplained(first_offset));
        let offsets = u64::try_from(segment.holes).unwrap_or(0).saturating_sub(self.offsets);
        self.ranges = self.ranges.saturating_add(ranges);
        self.offsets = self.offsets.saturating_add(offsets);
        self.last_offset = last_offset;
        Gap {
            segment: index,
            position: None,
            first_offset,
            last_offset,
            ranges,
            offsets,
            reader: Reader::All,
            cause: verdict.cause,
            confidence: verdict.confidence,
            evidence: verdict.evidence,
        }
    }
}

/// What a gap is held against.
struct Judge<'a> {
    context: &'a PartitionContext,
    counters: Counters,
    epochs: Vec<Epoch>,
    /// By segment: the last offset behind its end that an index of it names.
    named: BTreeMap<usize, i64>,
}

/// Offsets that indexes name behind the end of their segment: the file was longer once.
fn named_by_indexes(scan: &PartitionScan) -> BTreeMap<usize, i64> {
    let mut named = BTreeMap::new();
    for placed in &scan.findings {
        let finding = &placed.finding;
        let is_index =
            matches!(finding.kind, FindingKind::IndexMismatch | FindingKind::TimeindexMismatch);
        let next = scan.segments.get(placed.segment).and_then(|segment| segment.next_offset);
        if let (true, Some(offset), Some(next)) = (is_index, finding.last_offset, next)
            && offset >= next
        {
            let last = named.entry(placed.segment).or_insert(offset);
            *last = offset.max(*last);
        }
    }
    named
}

impl Judge<'_> {
    /// The cause of what a finding says is missing, `None` when nothing is.
    fn judge(&self, placed: &PlacedFinding, segment: &SegmentScan) -> Option<Verdict> {
        let finding = &placed.finding;
        let (first, last) = (finding.first_offset?, finding.last_offset?);
        match finding.kind {
            FindingKind::OffsetGap | FindingKind::MissingSegment => {}
            FindingKind::CrcMismatch | FindingKind::DamagedRange => {
                let evidence = format!("{}: {}", finding.kind, finding.message);
                return Some(Verdict::new(Cause::Damage, Confidence::Certain, evidence));
            }
            FindingKind::TruncatedTail => {
                let evidence = format!("{}: {}", finding.kind, finding.message);
                return Some(Verdict::new(Cause::TruncatedTail, Confidence::Certain, evidence));
            }
            _ => return None,
        }
        if finding.cause == Some(Cause::MissingFile) {
            let evidence = "index files of a segment in the gap are there, the segment is not";
            return Some(Verdict::new(Cause::MissingFile, Confidence::Certain, evidence));
        }
        if let Some(verdict) = self.compaction(first, last, Some(segment)) {
            return Some(verdict);
        }
        if finding.kind == FindingKind::MissingSegment {
            let before = placed.segment.checked_sub(1).and_then(|before| self.named.get(&before));
            if let Some(offset) = before.filter(|offset| (first..=last).contains(offset)) {
                let evidence = format!("an index of the file before names offset {offset}");
                return Some(Verdict::new(Cause::TruncatedTail, Confidence::Likely, evidence));
            }
            let evidence =
                "the gap lies exactly between the end of one file and the name of the next";
            return Some(Verdict::new(Cause::MissingFile, Confidence::Likely, evidence));
        }
        Some(self.epoch_change(last).unwrap_or_else(|| self.unexplained(first)))
    }

    /// Whether the cleaner can have made the gap.
    fn compaction(&self, first: i64, last: i64, segment: Option<&SegmentScan>) -> Option<Verdict> {
        let policy = self.cleanup_policy();
        let is_compacted = policy.is_some_and(|policy| policy.contains("compact"));
        let traces = traces(&self.counters);
        let dirty = self.context.first_dirty_offset;
        if let Some(dirty) = dirty.filter(|&dirty| last < dirty) {
            let evidence = format!("cleaner-offset-checkpoint: cleaned up to offset {dirty}");
            return Some(Verdict::new(Cause::Compaction, Confidence::Certain, evidence));
        }
        let beyond = match dirty {
            Some(dirty) if first >= dirty => format!(
                "; this broker's cleaner has only come to offset {dirty}, so another one cleaned before the batches were copied here"
            ),
            _ => String::new(),
        };
        let has_traces_here = segment.is_none_or(|segment| segment.counters.shows_compaction());
        if !traces.is_empty() && (beyond.is_empty() || has_traces_here || is_compacted) {
            let evidence = format!("{traces}{beyond}");
            let sure = if beyond.is_empty() { Confidence::Likely } else { Confidence::Possible };
            return Some(Verdict::new(Cause::Compaction, sure, evidence));
        }
        is_compacted.then(|| {
            let evidence = format!("cleanup.policy is {}{beyond}", policy.unwrap_or_default());
            let sure = if beyond.is_empty() { Confidence::Likely } else { Confidence::Possible };
            Verdict::new(Cause::Compaction, sure, evidence)
        })
    }

    fn cleanup_policy(&self) -> Option<&str> {
        let internal = match self.context.topic.as_deref() {
            Some("__consumer_offsets" | "__transaction_state") => Some("compact"),
            _ => None,
        };
        self.context.cleanup_policy.as_deref().or(internal)
    }

    /// Whether the batch behind the gap is the first of a leader epoch.
    fn epoch_change(&self, last: i64) -> Option<Verdict> {
        let next = last.checked_add(1)?;
        let place = self.epochs.iter().position(|epoch| epoch.start_offset == Some(next))?;
        let epoch = self.epochs.get(place)?;
        let before = self.epochs.get(place.checked_sub(1)?)?;
        let (evidence, sure) = match epoch.checkpoint_start_offset {
            Some(start) if start == next => (
                format!(
                    "; leader-epoch-checkpoint says so, too: epoch {} starts at {next}",
                    epoch.epoch
                ),
                Confidence::Likely,
            ),
            Some(_) => return None,
            None => (String::new(), Confidence::Possible),
        };
        let evidence = format!(
            "epoch {} ends before the gap, epoch {} begins behind it{evidence}",
            before.epoch, epoch.epoch
        );
        Some(Verdict::new(Cause::EpochChange, sure, evidence))
    }

    /// Nothing explains it: what was looked at.
    fn unexplained(&self, first: i64) -> Verdict {
        let mut evidence = vec!["no batch of the log was thinned by the cleaner".to_owned()];
        match self.context.first_dirty_offset {
            Some(dirty) => evidence.push(format!("the cleaner has only come to offset {dirty}")),
            None => evidence.push("cleaner-offset-checkpoint has no entry".to_owned()),
        }
        if let Some(policy) = self.cleanup_policy() {
            evidence.push(format!("cleanup.policy is {policy}"));
        }
        let inside = self.context.leader_epochs.iter().find(|(_, start)| *start == first);
        if let Some((epoch, start)) = inside {
            evidence.push(format!(
                "leader-epoch-checkpoint has epoch {epoch} start at {start}, in the gap: batches of it were there"
            ));
        }
        Verdict::new(Cause::Unexplained, Confidence::Likely, evidence.join("; "))
    }
}

/// The marks that the cleaner leaves in batches, in words; empty without any.
fn traces(counters: &Counters) -> String {
    let counts = [
        (counters.thin_batches, "with fewer records than offsets"),
        (counters.empty_batches, "without a record"),
        (counters.delete_horizon_batches, "with a delete horizon"),
    ];
    let said: Vec<_> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if said.is_empty() {
        return String::new();
    }
    format!("batches of the log that the cleaner has been at: {}", said.join(", "))
}

/// Writes the cause into a finding, and makes a lawful gap milder.
fn apply(finding: &mut Finding, verdict: &Verdict) {
    if finding.kind.row().records != RecordState::Missing {
        return;
    }
    let was_told = finding.severity == Severity::Info;
    match verdict.cause {
        Cause::Compaction => {
            finding.kind = FindingKind::OffsetGap;
            finding.severity = Severity::Info;
        }
        // What begins later than its name is told mildly: what would explain it may be elsewhere.
        Cause::Unexplained if was_told => return,
        // The file before may as well have been cut.
        Cause::MissingFile if verdict.confidence < Confidence::Certain => return,
        _ => {}
    }
    finding.cause = Some(verdict.cause);
    finding.message =
        format!("{} ({}: {})", finding.message, verdict.cause.name(), verdict.evidence);
}

/// The gap that a finding tells of.
fn gap_of(placed: &PlacedFinding, verdict: Verdict) -> Option<Gap> {
    let finding = &placed.finding;
    let (first_offset, mut last_offset) = (finding.first_offset?, finding.last_offset?);
    if let (FindingKind::TruncatedTail, Some(next)) = (finding.kind, finding.next_good_offset) {
        // With the batch that was cut went whatever the file held behind it.
        last_offset = last_offset.max(next.saturating_sub(1));
    }
    Some(Gap {
        segment: placed.segment,
        position: finding.position,
        first_offset,
        last_offset,
        ranges: 1,
        offsets: span(first_offset, last_offset),
        reader: Reader::All,
        cause: verdict.cause,
        confidence: verdict.confidence,
        evidence: verdict.evidence,
    })
}

/// What lies below the log start.
fn head(scan: &PartitionScan, context: &PartitionContext, gaps: &mut Gaps) {
    let base = scan.segments.first().and_then(|segment| segment.context.base_offset);
    let Some(base) = base.filter(|_| context.is_head) else { return };
    let mut push = |first_offset: i64, end: i64, cause, confidence, evidence: String| {
        let last_offset = end - 1;
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
                    "log-start-offset-checkpoint says {start}, the first local file begins at {base}"
                ),
                Confidence::Possible,
            )
        };
        push(start, base, Cause::TierBoundary, sure, evidence);
    }
    if let Some(start) = start.filter(|&start| start > base) {
        let evidence =
            format!("log-start-offset-checkpoint says {start}, the first file begins at {base}");
        let end = start.min(scan.log_end_offset);
        push(base, end, Cause::DeleteRecords, Confidence::Likely, evidence);
    }
}

/// Control batches, which no consumer gets.
fn control(segment: usize, scan: &SegmentScan, push: &mut dyn FnMut(Gap)) {
    let mut tell = |sum: &RangeSum| {
        push(Gap {
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
        });
    };
    for range in scan.control.listed() {
        tell(&RangeSum::of(range));
    }
    if let Some(rest) = scan.control.rest() {
        tell(rest);
    }
}

/// Records that compaction took out of batches.
fn inside(segment: usize, scan: &SegmentScan, push: &mut dyn FnMut(Gap)) {
    let counters = &scan.counters;
    let (Some(first_offset), Some(next)) = (scan.first_offset, scan.next_offset) else { return };
    if counters.removed_offsets == 0 {
        return;
    }
    push(Gap {
        segment,
        position: None,
        first_offset,
        last_offset: next - 1,
        ranges: counters.thin_batches.saturating_add(counters.empty_batches),
        offsets: counters.removed_offsets,
        reader: Reader::All,
        cause: Cause::Compaction,
        confidence: Confidence::Certain,
        evidence: "inside batches: fewer records than offsets".to_owned(),
    });
}

/// Data of aborted transactions.
fn aborted(scan: &PartitionScan, gaps: &mut Gaps) {
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

/// Makes one finding of the many lawful gaps of a segment.
fn fold(scan: &mut PartitionScan, told: &BTreeMap<usize, Told>, judge: &Judge<'_>) {
    let many = |segment: usize| {
        told.get(&segment).filter(|own| own.lawful > TOLD_ONE_BY_ONE && own.lawful == own.kept)
    };
    let is_lawful = |placed: &PlacedFinding| {
        placed.finding.kind == FindingKind::OffsetGap
            && placed.finding.cause == Some(Cause::Compaction)
            && placed.finding.position != Some(0)
            && many(placed.segment).is_some()
    };
    let mut last_folded = None;
    scan.findings.retain_mut(|placed| {
        if !is_lawful(placed) {
            return true;
        }
        if last_folded == Some(placed.segment) {
            return false;
        }
        last_folded = Some(placed.segment);
        let (Some(own), Some(segment)) =
            (many(placed.segment), scan.segments.get(placed.segment))
        else {
            return true;
        };
        let (first, last) = (own.first_offset, own.last_offset);
        let evidence = judge
            .compaction(first, last, Some(segment))
            .map_or(String::new(), |verdict| format!(": {}", verdict.evidence));
        let message = format!(
            "{} ranges with {} offsets in all are missing between batches, from offset {first} to {last} (compaction{evidence})",
            own.ranges, own.offsets
        );
        placed.finding = Finding {
            cause: Some(Cause::Compaction),
            ..Finding::new(FindingKind::OffsetGap, message)
                .offsets(first, last)
                .graded(Severity::Info)
        };
        true
    });
    scan.suppressed
        .retain(|&(index, kind, _)| !(kind == FindingKind::OffsetGap && many(index).is_some()));
}
