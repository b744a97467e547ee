//! The end of a log: what the bytes behind its last batch mean, and what beside it proves that it
//! went on.
//!
//! A broker that is killed leaves at most one batch that was not wholly written, and a preallocated
//! segment ends with zeros: nothing is lost. Where there is more, or something beside the log knows
//! later offsets, records are.

use crate::catalogue::causes::Cause;
use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::partition::scan::{PartitionContext, PartitionScan};
use crate::segment::segment_scan::SegmentScan;
use crate::segment::tail::{Tail, more_than_one_batch};

/// Something that knows of offsets behind the end of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Witness {
    /// It in words, with its offset.
    text: String,
    /// Where the log ended at least.
    end_offset: i64,
}

/// Judges what stands behind the last batch of each segment. `snapshots` are the offsets of the
/// partition's snapshots, in order.
pub(crate) fn judge(out: &mut PartitionScan, context: &PartitionContext, snapshots: &[i64]) {
    for segment in 0..out.segments.len() {
        let Some(scan) = out.segments.get(segment) else { break };
        let Some(tail) = scan.tail else { continue };
        let verdict = TailVerdict::of(scan, tail, out, context, snapshots);
        let mut placed = out.findings.iter_mut().filter(|placed| placed.segment == segment);
        if let Some(placed) = placed.find(|placed| tail.is_told_by(&placed.finding)) {
            verdict.apply(&mut placed.finding, out.log_end_offset);
        }
    }
}

/// Returns the finding about a partition without a segment. `orphans` are the base offsets of index
/// files, `snapshots` the offsets of snapshots.
pub fn missing_log(context: &PartitionContext, snapshots: &[i64]) -> Finding {
    let start = context.log_start_offset.unwrap_or(0).max(0);
    let mut witnesses = witnesses_beside(context, snapshots, start);
    if let Some(&base) = context.orphans.iter().max()
        && base > start
    {
        witnesses
            .push(Witness { text: format!("an index of base offset {base}"), end_offset: base });
    }
    let message = "there is no segment file, although Kafka keeps one in every partition";
    let finding = Finding::new(FindingKind::MissingSegment, message).values("a segment", "none");
    match proved_end(&witnesses) {
        Some(end) => Finding {
            cause: Some(Cause::LostEnd),
            ..lose(finding, start, Some(end), &prove(&witnesses, start, end))
        },
        None => finding,
    }
}

/// Returns what others than the log's own broker prove of a log that ends at `end`, with the offsets
/// lost: what groups have committed, or other copies hold. `witnesses` are in words, each with where
/// the log ended at least.
pub fn proved_by_others(end: i64, witnesses: Vec<(String, i64)>) -> Option<Finding> {
    let beyond = witnesses.into_iter().filter(|&(_, end_offset)| end_offset > end);
    let witnesses: Vec<_> = beyond.map(|(text, end_offset)| Witness { text, end_offset }).collect();
    let proved = proved_end(&witnesses)?;
    let finding = Finding::new(FindingKind::TruncatedTail, prove(&witnesses, end, proved));
    Some(finding.graded(Severity::Error).offsets(end, proved.saturating_sub(1)))
}

/// What the bytes behind the last batch of a segment mean.
#[derive(Debug)]
struct TailVerdict {
    /// Who knows that the log went on.
    witnesses: Vec<Witness>,
    /// The largest batch that there may be, if there is more than one of those.
    exceeded: Option<u64>,
    /// Whether the file has no batch at all, and nothing explains it.
    is_all: bool,
}

impl TailVerdict {
    fn of(
        scan: &SegmentScan,
        tail: Tail,
        out: &PartitionScan,
        context: &PartitionContext,
        snapshots: &[i64],
    ) -> Self {
        let is_preallocated = tail.written_bytes == 0 && context.is_preallocated == Some(true);
        let is_explained = is_preallocated || context.is_growing;
        let is_all = scan.valid_bytes == 0 && !(scan.context.is_active && is_explained);
        if !scan.context.is_active {
            return Self { witnesses: Vec::new(), exceeded: None, is_all };
        }
        let end = out.log_end_offset;
        let mut witnesses = witnesses_beside(context, snapshots, end);
        // The torn batch itself may have an entry; one behind it shows that it was not the last.
        if let Some(entry) = scan.lost_entry
            && entry.position > tail.position
            && entry.offset >= end
        {
            witnesses.push(Witness {
                text: format!(
                    "an entry of the .index for offset {} at position {}",
                    entry.offset, entry.position
                ),
                end_offset: entry.offset.saturating_add(1),
            });
        }
        if let Some(&(epoch, start)) = context.leader_epochs.last()
            && start > end
        {
            let text = format!("leader epoch {epoch}, which begins at {start},");
            witnesses.push(Witness { text, end_offset: start });
        }
        let largest = out.segments.iter().map(|segment| segment.largest_batch).max().unwrap_or(0);
        let exceeded = tail.exceeds_batch(largest, context.max_message_bytes);
        Self { witnesses, exceeded, is_all }
    }

    fn apply(&self, finding: &mut Finding, end: i64) {
        let proved = proved_end(&self.witnesses);
        let reason = match (proved, self.exceeded) {
            (Some(proved), _) => prove(&self.witnesses, end, proved),
            (None, Some(limit)) => format!(
                "that is {}, so records from offset {end} on are lost, and nothing beside the log shows how many",
                more_than_one_batch(limit)
            ),
            (None, None) => {
                if self.is_all && finding.severity <= Severity::Warning {
                    finding.severity = Severity::Warning;
                    let doubt =
                        "the file holds no batch at all, and nothing shows whether it ever did";
                    finding.message = format!("{}; {doubt}", finding.message).into();
                }
                return;
            }
        };
        let known = std::mem::replace(finding, Finding::new(finding.kind, ""));
        *finding = lose(known, end, proved, &reason);
    }
}

/// Makes a finding one of records that are lost from `first` up to `end`, as far as that is known.
fn lose(finding: Finding, first: i64, end: Option<i64>, reason: &str) -> Finding {
    Finding {
        severity: Severity::Error,
        first_offset: Some(first),
        last_offset: end.map(|end| end.saturating_sub(1)),
        message: format!("{}; {reason}", finding.message).into(),
        ..finding
    }
}

/// What a checkpoint of the log directory or a snapshot knows beyond `end`.
fn witnesses_beside(context: &PartitionContext, snapshots: &[i64], end: i64) -> Vec<Witness> {
    let named = [
        ("the recovery point", context.recovery_point),
        ("the high watermark", context.high_watermark),
        ("the snapshot of offset", snapshots.last().copied()),
    ];
    let beyond = named.into_iter().filter_map(|(name, offset)| {
        let end_offset = offset.filter(|&offset| offset > end)?;
        Some(Witness { text: format!("{name} {end_offset}"), end_offset })
    });
    beyond.collect()
}

/// Where the log ended at least.
fn proved_end(witnesses: &[Witness]) -> Option<i64> {
    witnesses.iter().map(|witness| witness.end_offset).max()
}

/// Says what proves that offsets are lost.
fn prove(witnesses: &[Witness], first: i64, end: i64) -> String {
    let texts: Vec<&str> = witnesses.iter().map(|witness| witness.text.as_str()).collect();
    let (verb, list) = match texts.split_last() {
        Some((last, [])) => ("proves", (*last).to_owned()),
        Some((last, rest)) => ("prove", format!("{} and {last}", rest.join(", "))),
        None => ("proves", String::new()),
    };
    let last = end.saturating_sub(1);
    let lost = if first == last {
        format!("offset {first} was there and is lost")
    } else {
        format!("offsets {first} to {last} were there and are lost")
    };
    format!("{list} {verb} that {lost}")
}
