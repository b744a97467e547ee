//! Why offsets are missing.

use crate::catalogue::causes::{Cause, Confidence};
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::row::RecordState;
use crate::partition::epochs::Epoch;
use crate::partition::lost_head::LostHead;
use crate::partition::scan::{PartitionContext, PartitionScan, PlacedFinding};
use crate::segment::counters::Counters;
use crate::segment::segment_scan::SegmentScan;
use std::collections::BTreeMap;

/// A cause, how sure it is, and the evidence for it.
pub(crate) struct GapCause {
    pub(crate) cause: Cause,
    pub(crate) confidence: Confidence,
    pub(crate) evidence: String,
}

impl GapCause {
    fn new(cause: Cause, confidence: Confidence, evidence: impl Into<String>) -> Self {
        Self { cause, confidence, evidence: evidence.into() }
    }
}

/// Explains the gaps of one partition.
pub(crate) struct GapExplainer<'a> {
    context: &'a PartitionContext,
    counters: Counters,
    epochs: Vec<Epoch>,
    /// By start offset: the index of the first epoch that begins there.
    epochs_by_start: BTreeMap<i64, usize>,
    /// By start offset: the first epoch of `leader-epoch-checkpoint` that begins there.
    checkpoint_epochs: BTreeMap<i64, i32>,
    /// By segment: the last offset beyond its end that an index of it names.
    indexed_beyond: BTreeMap<usize, i64>,
}

impl<'a> GapExplainer<'a> {
    /// Prepares to explain the gaps of a partition.
    pub(crate) fn new(scan: &PartitionScan, context: &'a PartitionContext) -> Self {
        let mut epochs_by_start = BTreeMap::new();
        for (index, epoch) in scan.epochs.iter().enumerate() {
            if let Some(start) = epoch.start_offset {
                epochs_by_start.entry(start).or_insert(index);
            }
        }
        let mut checkpoint_epochs = BTreeMap::new();
        for &(epoch, start) in &context.leader_epochs {
            checkpoint_epochs.entry(start).or_insert(epoch);
        }
        Self {
            context,
            counters: scan.counters,
            epochs: scan.epochs.clone(),
            epochs_by_start,
            checkpoint_epochs,
            indexed_beyond: indexed_beyond_end(scan),
        }
    }

    /// Returns why the offsets of a finding are missing; `None` when none are.
    pub(crate) fn explain(
        &self,
        placed: &PlacedFinding,
        segment: &SegmentScan,
    ) -> Option<GapCause> {
        let finding = &placed.finding;
        let (first, last) = (finding.first_offset?, finding.last_offset?);
        match finding.kind.row().records {
            RecordState::Missing => {}
            RecordState::Unreadable => {
                let is_cut = finding.kind == FindingKind::TruncatedTail;
                let cause = if is_cut { Cause::TruncatedTail } else { Cause::Damage };
                let evidence = format!("{}: {}", finding.kind, finding.message);
                return Some(GapCause::new(cause, Confidence::Certain, evidence));
            }
            RecordState::AsWritten | RecordState::Altered | RecordState::Unknown => return None,
        }
        if finding.cause == Some(Cause::MissingFile) {
            let at_head = self.context.lost_head(last.saturating_add(1));
            let evidence = at_head.map_or_else(
                || "index files of a segment in the gap exist, the segment does not".to_owned(),
                LostHead::evidence,
            );
            return Some(GapCause::new(Cause::MissingFile, Confidence::Certain, evidence));
        }
        if let Some(explained) = self.compaction(first, last, Some(segment)) {
            return Some(explained);
        }
        if finding.kind == FindingKind::MissingSegment {
            return Some(self.missing_file(placed.segment, first, last));
        }
        Some(self.epoch_change(last).unwrap_or_else(|| self.unexplained(first)))
    }

    /// Returns why a file between two others is missing.
    fn missing_file(&self, segment: usize, first: i64, last: i64) -> GapCause {
        let before = segment.checked_sub(1).and_then(|before| self.indexed_beyond.get(&before));
        if let Some(offset) = before.filter(|offset| (first..=last).contains(offset)) {
            let evidence = format!("an index of the previous file has offset {offset}");
            return GapCause::new(Cause::TruncatedTail, Confidence::Likely, evidence);
        }
        let evidence = "the gap is exactly between the end of one file and the name of the next";
        GapCause::new(Cause::MissingFile, Confidence::Likely, evidence)
    }

    /// Returns compaction as the cause, if the cleaner can have made the gap.
    pub(crate) fn compaction(
        &self,
        first: i64,
        last: i64,
        segment: Option<&SegmentScan>,
    ) -> Option<GapCause> {
        let traces = traces(&self.counters);
        let has_traces_here = segment.is_none_or(|segment| segment.counters.shows_compaction());
        compaction(self.context, &traces, has_traces_here, first, last)
    }

    /// Returns a change of leader as the cause, if the batch after the gap is the first of an epoch.
    fn epoch_change(&self, last: i64) -> Option<GapCause> {
        let next = last.checked_add(1)?;
        let index = *self.epochs_by_start.get(&next)?;
        let epoch = self.epochs.get(index)?;
        let before = self.epochs.get(index.checked_sub(1)?)?;
        let (evidence, sure) = match epoch.checkpoint_start_offset {
            Some(start) if start == next => (
                format!("; leader-epoch-checkpoint agrees: epoch {} starts at {next}", epoch.epoch),
                Confidence::Likely,
            ),
            Some(_) => return None,
            None => (String::new(), Confidence::Possible),
        };
        let evidence = format!(
            "epoch {} ends before the gap, epoch {} begins after it{evidence}",
            before.epoch, epoch.epoch
        );
        Some(GapCause::new(Cause::EpochChange, sure, evidence))
    }

    /// Returns that nothing explains the gap, with what was considered.
    pub(crate) fn unexplained(&self, first: i64) -> GapCause {
        let mut evidence = vec!["the cleaner removed records from no batch of the log".to_owned()];
        match self.context.first_dirty_offset {
            Some(dirty) => evidence.push(format!("the cleaner has only reached offset {dirty}")),
            None => evidence.push("cleaner-offset-checkpoint has no entry".to_owned()),
        }
        if let Some(policy) = cleanup_policy(self.context) {
            evidence.push(format!("cleanup.policy is {policy}"));
        }
        if let Some(epoch) = self.checkpoint_epochs.get(&first) {
            evidence.push(format!(
                "leader-epoch-checkpoint says that epoch {epoch} starts at {first}, in the gap: there were batches of it"
            ));
        }
        GapCause::new(Cause::Unexplained, Confidence::Likely, evidence.join("; "))
    }
}

/// Returns compaction as the cause, if the cleaner can have made the gap. `traces` are the marks that it
/// left in the batches of the log, in words.
fn compaction(
    context: &PartitionContext,
    traces: &str,
    has_traces_here: bool,
    first: i64,
    last: i64,
) -> Option<GapCause> {
    let policy = cleanup_policy(context);
    let is_compacted = policy.is_some_and(|policy| policy.contains("compact"));
    let dirty = context.first_dirty_offset;
    if let Some(dirty) = dirty.filter(|&dirty| last < dirty) {
        let evidence = format!("cleaner-offset-checkpoint: cleaned up to offset {dirty}");
        return Some(GapCause::new(Cause::Compaction, Confidence::Certain, evidence));
    }
    let beyond = match dirty {
        Some(dirty) if first >= dirty => format!(
            "; this broker's cleaner has only reached offset {dirty}, so another broker cleaned the log before the batches were copied here"
        ),
        _ => String::new(),
    };
    let sure = if beyond.is_empty() { Confidence::Likely } else { Confidence::Possible };
    if !traces.is_empty() && (beyond.is_empty() || has_traces_here || is_compacted) {
        let evidence = format!("{traces}{beyond}");
        return Some(GapCause::new(Cause::Compaction, sure, evidence));
    }
    let policy = policy.filter(|_| is_compacted)?;
    let evidence = format!("cleanup.policy is {policy}{beyond}");
    Some(GapCause::new(Cause::Compaction, sure, evidence))
}

fn cleanup_policy(context: &PartitionContext) -> Option<&str> {
    let internal = match context.topic.as_deref() {
        Some("__consumer_offsets" | "__transaction_state") => Some("compact"),
        _ => None,
    };
    context.cleanup_policy.as_deref().or(internal)
}

/// Returns what explains that a reader finds no batch of these offsets though the log goes on behind
/// them, in words: records were deleted below the log start, or the cleaner removed them.
/// `rewritten_batches` around them have marks of the cleaner. `None` where nothing explains it.
///
/// # Examples
/// ```
/// use ottla_audit::{PartitionContext, lawful_hole};
///
/// let context = PartitionContext { first_dirty_offset: Some(40), ..Default::default() };
/// let why = lawful_hole(&context, 0, 10, 19);
/// assert_eq!(why.as_deref(), Some("cleaner-offset-checkpoint: cleaned up to offset 40"));
/// assert_eq!(lawful_hole(&context, 0, 50, 59), None);
/// ```
pub fn lawful_hole(
    context: &PartitionContext,
    rewritten_batches: u64,
    first: i64,
    last: i64,
) -> Option<String> {
    if let Some(start) = context.log_start_offset.filter(|&start| last < start) {
        return Some(format!("the log starts at offset {start}"));
    }
    let traces = match rewritten_batches {
        0 => String::new(),
        count => format!("batches around it that the cleaner rewrote: {count}"),
    };
    compaction(context, &traces, true, first, last).map(|cause| cause.evidence)
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
    format!("batches of the log that the cleaner rewrote: {}", said.join(", "))
}

/// Returns the offsets that indexes name beyond the end of their segment: the file was longer once.
fn indexed_beyond_end(scan: &PartitionScan) -> BTreeMap<usize, i64> {
    let mut beyond = BTreeMap::new();
    for placed in &scan.findings {
        let finding = &placed.finding;
        let is_index =
            matches!(finding.kind, FindingKind::IndexMismatch | FindingKind::TimeindexMismatch);
        let next = scan.segments.get(placed.segment).and_then(|segment| segment.next_offset);
        if let (true, Some(offset), Some(next)) = (is_index, finding.last_offset, next)
            && offset >= next
        {
            let last = beyond.entry(placed.segment).or_insert(offset);
            *last = offset.max(*last);
        }
    }
    beyond
}
