//! What a group of findings comes to.

use super::loss::LostOffsets;
use super::message::message;
use super::told::{EventLog, Told};
use crate::catalogue::causes::Cause;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::row::ConsumerEffect;
use crate::catalogue::severity::Severity;
use crate::traces::{Fault, Group};
use ottla_log::names::FileKind;

/// A cause with the findings that show it; what is not here is as its head has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEvent {
    /// The first of its offsets.
    pub first_offset: Option<i64>,
    /// The last.
    pub last_offset: Option<i64>,
    /// Where consumers can go on.
    pub next_good_offset: Option<i64>,
    /// The consumers that do not get past it, and where they stop.
    pub blocks: Option<(Blocked, i64)>,
    /// Why it happened.
    pub cause: Option<Cause>,
    /// What to do.
    pub action: &'static str,
    /// What happened in a sentence; `None` if the head says it all.
    pub message: Option<String>,
    /// Whether something was not read.
    pub is_unread: bool,
}

/// Consumers that do not get past something, the fewest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blocked {
    /// Those that read what is committed.
    ReadCommitted,
    /// Every one.
    All,
}

impl Blocked {
    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read_committed",
            Self::All => "all",
        }
    }

    /// The consumers that do not get past a finding.
    fn by(fault: &Fault<'_>) -> Option<Self> {
        match fault.kind.row().consumers {
            ConsumerEffect::Continue => None,
            ConsumerEffect::StopAtDamage | ConsumerEffect::StopAtBatch => {
                (fault.severity == Severity::Error).then_some(Self::All)
            }
            ConsumerEffect::WaitForEnd => {
                (fault.severity >= Severity::Warning).then_some(Self::ReadCommitted)
            }
        }
    }
}

impl LogEvent {
    /// The event of a group, whose members are `members`, the head first; `None` without any.
    pub fn of(
        group: &Group,
        members: &[&Told<'_>],
        loss: &LostOffsets,
        log: Option<&EventLog<'_>>,
    ) -> Option<Self> {
        let head = members.first()?;
        let missing = log.and_then(|log| log.missing_segment);
        let cause = cause(&head.fault, group, missing);
        let action_for = group.lost_end.map_or(cause, |_| Some(Cause::LostEnd));
        let (first_offset, last_offset) = reach(head, members, loss).unzip();
        Some(Self {
            first_offset,
            last_offset,
            next_good_offset: members.iter().find_map(|told| told.next_good_offset),
            blocks: blocks(members),
            cause,
            action: action(&head.fault, action_for),
            message: message(head, members, group, log),
            is_unread: members.iter().any(|told| told.fault.kind == FindingKind::Unreadable),
        })
    }
}

fn cause(head: &Fault<'_>, group: &Group, missing_segment: Option<i64>) -> Option<Cause> {
    if group.lost_end.is_some() {
        return Some(missing_segment.map_or(Cause::LostEnd, |_| Cause::MissingFile));
    }
    let is_checkpoint = head.file_kind() == Some(FileKind::OffsetCheckpoint);
    if group.is_contradicted && is_checkpoint { Some(Cause::WrongCheckpoint) } else { head.cause }
}

/// What to do: for the cause, unless the finding says which bytes are at fault.
fn action(head: &Fault<'_>, cause: Option<Cause>) -> &'static str {
    let kind = head.kind.row();
    match cause {
        Some(cause) if !(kind.condemns() && head.cause == Some(cause)) => cause.row().action,
        _ => kind.action,
    }
}

/// The first and the last of the offsets of an event.
fn reach(head: &Told<'_>, members: &[&Told<'_>], loss: &LostOffsets) -> Option<(i64, i64)> {
    let alike = members.iter().filter(|told| told.fault.kind == head.fault.kind);
    let own = alike.flat_map(|told| [told.fault.first_offset, told.fault.last_offset]);
    let lost = loss.offsets.iter().flat_map(|&(first, last)| [first, last]);
    let known = own.flatten().chain(lost);
    known.fold(None, |reach, offset| {
        let (first, last) = reach.unwrap_or((offset, offset));
        Some((offset.min(first), offset.max(last)))
    })
}

/// The consumers that do not get past an event, and the offset where they stop.
fn blocks(members: &[&Told<'_>]) -> Option<(Blocked, i64)> {
    let stops = members
        .iter()
        .filter_map(|told| Some((Blocked::by(&told.fault)?, told.fault.first_offset?)));
    stops.reduce(|(blocked, first), (other, offset)| match blocked.cmp(&other) {
        std::cmp::Ordering::Less => (other, offset),
        std::cmp::Ordering::Equal => (blocked, first.min(offset)),
        std::cmp::Ordering::Greater => (blocked, first),
    })
}
