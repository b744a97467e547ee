//! The offsets that groups have committed, compared with the logs.

use crate::{Finding, FindingKind};
use ottla_format::words;
use ottla_log::internal_topics::consumer_offsets::Committer;

/// What is known about the log of a partition that a group reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRange {
    /// First offset that consumers can get.
    pub log_start_offset: i64,
    /// The last offset plus one.
    pub log_end_offset: i64,
    /// First and last offset of each damage, and where a consumer can continue after it.
    pub lost: Vec<(i64, i64, Option<i64>)>,
}

/// Compares a committed offset with its log.
pub fn judge(committer: &Committer, offset: i64, log: &LogRange) -> Option<Finding> {
    let (group, topic, partition) = committer;
    let (start, end) = (log.log_start_offset, log.log_end_offset);
    let lost = log.lost.iter().find(|(first, last, _)| (*first..=*last).contains(&offset));
    let who = format!("group {group} has committed offset {offset} of {topic}-{partition}");
    let (kind, message, expected, next) = if let Some((first, last, next)) = lost {
        let message = format!("{who}, but {} cannot be read", words::offsets(*first, *last));
        (FindingKind::CommitInDamage, message, "an offset that can be read".into(), *next)
    } else if offset > end {
        let message = format!("{who}, whose log ends at {end}");
        (FindingKind::CommitBeyondEnd, message, format!("at most {end}"), None)
    } else if offset < start && end > start {
        let missed = start.saturating_sub(offset.max(0));
        let message =
            format!("{who}, whose log starts {} later, at {start}", words::count(missed, "offset"));
        (FindingKind::CommitBelowStart, message, format!("at least {start}"), Some(start))
    } else {
        return None;
    };
    let finding = Finding::new(kind, message).offsets(offset, offset).values(expected, offset);
    Some(Finding { next_good_offset: next, ..finding })
}
