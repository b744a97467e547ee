//! Findings about consecutive batches that have the same fault: one finding that grows with each of
//! them, also across the edges of the parts that a segment is scanned in.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::list::Findings;
use ottla_format::batch::BatchInfo;
use serde::{Deserialize, Serialize};

/// The fault that consecutive batches share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SharedFault {
    Repeat,
    OutOfSegment,
    Before1970,
    ClockNotSet,
    Seconds,
    Microseconds,
    Future,
}

impl SharedFault {
    pub(crate) fn kind(self) -> FindingKind {
        match self {
            Self::Repeat => FindingKind::OffsetRepeat,
            Self::OutOfSegment => FindingKind::OutOfSegment,
            _ => FindingKind::TimestampSuspect,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Repeat => "offsets that the log already has",
            Self::OutOfSegment => "offsets outside the range of this file",
            Self::Before1970 => "timestamps before 1970, which retention by time ignores",
            Self::ClockNotSet => {
                "timestamps of the first days of 1970, as of a clock that was never set"
            }
            Self::Seconds => "timestamps that look like seconds, not milliseconds",
            Self::Microseconds => {
                "timestamps that look like microseconds or nanoseconds, not milliseconds"
            }
            Self::Future => "timestamps in the future, which delay retention by time",
        }
    }
}

/// A finding about consecutive batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GrowingFinding {
    fault: SharedFault,
    /// Index among the findings kept, if it was kept.
    finding: Option<usize>,
    start: u64,
    end: u64,
    first_offset: i64,
    last_offset: i64,
}

impl GrowingFinding {
    fn of_batch(fault: SharedFault, info: &BatchInfo) -> Self {
        Self {
            fault,
            finding: None,
            start: info.position,
            end: info.position.saturating_add(info.size),
            first_offset: info.base_offset,
            last_offset: info.last_offset.max(info.base_offset),
        }
    }

    /// The kind of the finding, and its index if it was kept.
    pub(crate) fn kept_as(&self) -> (FindingKind, Option<usize>) {
        (self.fault.kind(), self.finding)
    }

    /// Whether both are the same finding.
    fn is_same(&self, other: &Self) -> bool {
        self.fault == other.fault && self.start == other.start
    }

    /// Extends this finding by `next`, if that has the same fault and begins where this ends.
    fn extend(&mut self, next: &Self, findings: &mut Findings) -> bool {
        if self.fault != next.fault || self.end != next.start {
            return false;
        }
        self.end = next.end;
        self.first_offset = self.first_offset.min(next.first_offset);
        self.last_offset = self.last_offset.max(next.last_offset);
        if let Some(finding) = self.finding.and_then(|index| findings.kept_mut().get_mut(index)) {
            finding.size = Some(self.end.saturating_sub(self.start));
            finding.first_offset = Some(self.first_offset);
            finding.last_offset = Some(self.last_offset);
        }
        true
    }
}

/// The growing findings at the edges of a part of a walk: those of its neighbours may be the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Growth {
    /// The first growing finding, unless something before it ended that of the part on the left.
    first: Option<GrowingFinding>,
    /// Whether nothing has come yet that ends the growing finding of the part on the left.
    is_open: bool,
    /// The finding that still grows.
    current: Option<GrowingFinding>,
}

impl Growth {
    /// The growth of a part with another one on its left.
    pub(crate) fn open() -> Self {
        Self { is_open: true, ..Self::default() }
    }

    /// Ends the growing finding: what comes next is another one.
    pub(crate) fn end(&mut self) {
        self.is_open = false;
        self.current = None;
    }

    /// Adds a finding about a batch, or extends the one about the batches right before it. `values`
    /// returns what was expected and what was found.
    pub(crate) fn grow(
        &mut self,
        findings: &mut Findings,
        fault: SharedFault,
        info: &BatchInfo,
        values: impl FnOnce() -> (String, String),
    ) {
        let mut new = GrowingFinding::of_batch(fault, info);
        if let Some(current) = &mut self.current
            && current.extend(&new, findings)
        {
            if self.first.is_some_and(|first| first.is_same(current)) {
                self.first = Some(*current);
            }
            return;
        }
        let (expected, found) = values();
        let (position, text, first) = (info.position, fault.text(), new.first_offset);
        let message = format!("from position {position} on: {text} (base offset {first})");
        let finding = Finding::new(fault.kind(), message)
            .at(position, info.size)
            .offsets(first, new.last_offset)
            .values(expected, found);
        new.finding = findings.push(finding);
        if self.is_open {
            self.first = Some(new);
        }
        self.is_open = false;
        self.current = Some(new);
    }

    /// Extends the last finding of this part by the first of the part on the right. Returns the
    /// latter if both are the same.
    pub(crate) fn continue_with(
        &mut self,
        right: &Self,
        findings: &mut Findings,
    ) -> Option<GrowingFinding> {
        let (current, next) = (self.current.as_mut()?, right.first?);
        let is_first = self.first.is_some_and(|first| first.is_same(current));
        if !current.extend(&next, findings) {
            return None;
        }
        if is_first {
            self.first = Some(*current);
        }
        Some(next)
    }

    /// Follows findings that moved to other indexes; `None` for one that is no longer kept.
    pub(crate) fn reindex(&mut self, index: impl Fn(usize) -> Option<usize>) {
        for growing in self.first.iter_mut().chain(&mut self.current) {
            growing.finding = growing.finding.and_then(&index);
        }
    }

    /// Appends the edges of the part on the right; `continued` is what
    /// [`continue_with`](Self::continue_with) returned for it.
    pub(crate) fn append(&mut self, right: &Self, continued: Option<GrowingFinding>) {
        if self.is_open {
            self.first = right.first;
        }
        if !right.is_open {
            let goes_on = continued
                .is_some_and(|first| right.current.is_some_and(|current| current.is_same(&first)));
            if !goes_on {
                self.current = right.current;
            }
        }
        self.is_open &= right.is_open;
    }
}
