//! Entries of the `.timeindex` against the timestamps of a part of a segment.

use super::faults::{EntryFault, FirstFault, earlier};
use super::indexes::{Indexes, MAX_ENTRIES};
use serde::{Deserialize, Serialize};

/// The greatest timestamp of a part of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MaxTimestamp {
    pub(super) timestamp: i64,
    /// Whether there may have been a greater one: in batches without timestamps, or in lost bytes.
    pub(super) is_partial: bool,
}

impl Default for MaxTimestamp {
    fn default() -> Self {
        Self { timestamp: i64::MIN, is_partial: false }
    }
}

impl MaxTimestamp {
    fn join(self, right: Self) -> Self {
        Self {
            timestamp: self.timestamp.max(right.timestamp),
            is_partial: self.is_partial || right.is_partial,
        }
    }
}

/// Consecutive entries of the `.timeindex` up to whose offsets the greatest timestamp is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EntryRun {
    /// Number of the first.
    pub(super) start: usize,
    /// Number behind the last.
    pub(super) stop: usize,
    pub(super) greatest: MaxTimestamp,
}

impl EntryRun {
    /// The first of its entries that is wrong.
    fn first_fault(self, indexes: &Indexes, end: Option<i64>) -> FirstFault {
        let Self { start, stop, greatest } = self;
        let stop = stop.min(indexes.ordered_times().len());
        let entries = indexes.ordered_times().get(start..stop).unwrap_or_default();
        (start..).zip(entries).find_map(|(number, entry)| {
            if let Some(end) = end
                && entry.offset(indexes.base_offset) >= end
            {
                return Some((number, EntryFault::Beyond { end }));
            }
            let is_wrong = greatest.timestamp > entry.timestamp
                || (greatest.timestamp < entry.timestamp && !greatest.is_partial);
            is_wrong.then_some((number, EntryFault::Timestamp { greatest: greatest.timestamp }))
        })
    }
}

/// The entries of the `.timeindex` that fall into one part of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TimeEntries {
    /// Number of the first entry at the first batch in its place or behind, and the greatest
    /// timestamp of this part before that batch.
    pub(super) start: Option<(usize, MaxTimestamp)>,
    /// The next entry to be judged.
    pub(super) next: usize,
    /// Entries in order, with the greatest timestamp of this part up to their offsets.
    pub(super) runs: Vec<EntryRun>,
    /// The greatest timestamp of this part.
    pub(super) greatest: MaxTimestamp,
}

impl TimeEntries {
    /// A batch in its place.
    pub(super) fn at(&mut self, indexes: &Indexes, base_offset: i64, timestamp: Option<i64>) {
        let here = indexes.time_entry_at(base_offset);
        if self.start.is_none() {
            (self.start, self.next) = (Some((here, self.greatest)), here);
        }
        self.end_run(here);
        let is_partial = timestamp.is_none();
        let timestamp = timestamp.unwrap_or(i64::MIN);
        self.greatest = self.greatest.join(MaxTimestamp { timestamp, is_partial });
    }

    /// The entries up to this number have the greatest timestamp so far.
    fn end_run(&mut self, stop: usize) {
        let (start, greatest) = (self.next, self.greatest);
        if start < stop {
            self.runs.push(EntryRun { start, stop, greatest });
            self.next = stop;
        }
    }

    /// Joins the part on the right.
    pub(super) fn join(mut self, right: Self) -> Self {
        let Some((start, before)) = right.start else {
            self.greatest = self.greatest.join(right.greatest);
            return self;
        };
        let left = self.greatest;
        if self.start.is_none() {
            self.start = Some((start, left.join(before)));
            self.next = start;
        } else {
            self.greatest = left.join(before);
            self.end_run(start);
        }
        let known = self.next;
        let later = right.runs.into_iter().map(|run| EntryRun {
            start: run.start.max(known),
            greatest: left.join(run.greatest),
            ..run
        });
        self.runs.extend(later.filter(|run| run.start < run.stop));
        self.next = known.max(right.next);
        self.greatest = left.join(right.greatest);
        self
    }

    /// Returns the first fault. The segment ends before the offset `end`, which is `None` where its
    /// end is not known.
    pub(super) fn finish(mut self, indexes: &Indexes, end: Option<i64>) -> FirstFault {
        self.end_run(indexes.ordered_times().len());
        // Entries below the first batch.
        let (stop, greatest) = self.start.unwrap_or_default();
        let first = EntryRun { start: 0, stop, greatest };
        let mut runs = std::iter::once(first).chain(self.runs);
        let fault = runs.find_map(|run| run.first_fault(indexes, end));
        earlier(fault, indexes.time_order())
    }

    /// Whether an index of bounded size has such entries, and each is in one run.
    pub(super) fn is_possible(&self) -> bool {
        let start = self.start.map_or(0, |(start, _)| start);
        let bounds = self.runs.iter().flat_map(|run| [run.start, run.stop]);
        bounds.chain([self.next, MAX_ENTRIES]).is_sorted() && start <= MAX_ENTRIES
    }
}
