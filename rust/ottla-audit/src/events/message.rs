//! What happened in a sentence: the cause, and where else it shows.

use super::told::{EventLog, Told};
use crate::catalogue::causes::Cause;
use crate::traces::{Fault, Group, base_name};
use ottla_format::words::{self, thousands};
use ottla_log::names::{FileKind, HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS};
use std::fmt::Write;

/// Files that the sentence names; the rest is counted.
const TRACES_SHOWN: usize = 6;

/// The sentence; `None` if it is that of the head.
pub(super) fn message(
    head: &Told<'_>,
    members: &[&Told<'_>],
    group: &Group,
    log: Option<&EventLog<'_>>,
) -> Option<String> {
    let others = members.get(1..).unwrap_or_default();
    if others.is_empty() && group.lost_end.is_none() {
        return None;
    }
    let mut witnesses: Vec<&Told<'_>> =
        others.iter().copied().filter(|told| told.fault.kind != head.fault.kind).collect();
    let mut is_seen = false;
    let said = head.message.text();
    let mut text = said.to_string();
    if let Some((first, last)) = group.lost_end {
        text = lost_end(&head.fault, (first, last), log);
        if head.fault.file_kind() == Some(FileKind::Segment) {
            // What proves it stands behind its first clause, and is named below.
            let clause = said.split_once("; ").map_or(&*said, |(clause, _)| clause);
            text = format!("{text}: {clause}");
        } else {
            is_seen = true;
            witnesses = members.to_vec();
        }
    } else if head.fault.cause == Some(Cause::TruncatedTail)
        && witnesses.iter().any(|told| told.fault.is_of_index())
    {
        // The index that proves it stands in brackets, and is named below.
        let before = said.rsplit_once(" (").map_or("", |(before, _)| before);
        text = format!("{before}: the previous file was cut short");
    } else if others.len() > witnesses.len() {
        let more = others.len().saturating_sub(witnesses.len());
        let findings = if more == 1 { "finding" } else { "findings" };
        text = format!("{text} ({} more {findings} like it)", thousands(more));
    }
    let places = places(&witnesses);
    if !places.is_empty() {
        let seen = if is_seen { "seen" } else { "also seen" };
        text = format!("{text}; {seen} in {}", listed(&places));
    }
    Some(text)
}

/// That a log lost its end, and with which segment.
fn lost_end(head: &Fault<'_>, offsets: (i64, i64), log: Option<&EventLog<'_>>) -> String {
    let (first, last) = offsets;
    let mut text = "the log".to_owned();
    // A checkpoint beside the partition does not tell which one it is about.
    if let Some(log) = log.filter(|log| directory_of(head.path.unwrap_or(b"")) != log.directory) {
        let topic = log.topic.unwrap_or_default();
        let _ = write!(text, " of {topic}-{}", log.partition.unwrap_or_default());
    }
    text += " lost its end, ";
    text += &words::offsets(first, last);
    if let Some(missing) = log.and_then(|log| log.missing_segment) {
        let _ = write!(text, ": the segment that begins at offset {missing} is missing");
    }
    text
}

fn directory_of(path: &[u8]) -> &[u8] {
    let above = path.strip_suffix(base_name(path)).unwrap_or_default();
    above.strip_suffix(b"/").unwrap_or(above)
}

/// What shows an event, each with how many findings do, if there are several.
fn places(witnesses: &[&Told<'_>]) -> Vec<String> {
    let mut seen: Vec<(String, usize)> = Vec::new();
    for witness in witnesses {
        let place = shown_by(&witness.fault);
        match seen.iter_mut().find(|(known, _)| *known == place) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => seen.push((place, 1)),
        }
    }
    let text = |(place, count): (String, usize)| match count {
        1 => place,
        _ => format!("{place} ({})", thousands(count)),
    };
    seen.into_iter().map(text).collect()
}

/// What shows an event, in a few words.
fn shown_by(trace: &Fault<'_>) -> String {
    let of_name = match base_name(trace.path.unwrap_or(b"")) {
        RECOVERY_POINTS => Some("the recovery point"),
        HIGH_WATERMARKS => Some("the high watermark"),
        LOG_START_OFFSETS => Some("the log start offset"),
        _ => None,
    };
    let of_kind = trace.file_kind().and_then(|kind| match kind {
        FileKind::OffsetIndex => Some("the index"),
        FileKind::TimeIndex => Some("the time index"),
        FileKind::TransactionIndex => Some("the transaction index"),
        FileKind::ProducerSnapshot => Some("the producer snapshot"),
        FileKind::LeaderEpochCheckpoint => Some("the leader epochs"),
        FileKind::PartitionMetadata => Some("partition.metadata"),
        _ => None,
    });
    let known = of_name.or(of_kind).map(str::to_owned);
    known.unwrap_or_else(|| format!("the finding {}", trace.kind.name()))
}

/// Items as a sentence lists them; those beyond [`TRACES_SHOWN`] are counted.
fn listed(items: &[String]) -> String {
    let (shown, rest) = items.split_at_checked(TRACES_SHOWN).unwrap_or((items, &[]));
    let mut words = shown.to_vec();
    if !rest.is_empty() {
        words.push(format!("{} more", thousands(rest.len())));
    }
    match words.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => words.concat(),
    }
}
