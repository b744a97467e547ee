//! Entries of the `.index` against the batches of a part of a segment.

use super::faults::{EntryFault, FirstFault, earlier};
use super::indexes::{Indexes, MAX_ENTRIES};
use ottla_log::sidefiles::offset_index::OffsetEntry;
use serde::{Deserialize, Serialize};

/// The entries of the `.index` that fall into one part of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OffsetEntries {
    /// Number of the first entry at the first batch of this part or behind.
    pub(super) start: Option<usize>,
    /// The next entry to be judged.
    pub(super) next: usize,
    pub(super) first_fault: FirstFault,
    /// Where the last valid batch begins and ends.
    pub(super) last_batch: (u64, u64),
}

impl OffsetEntries {
    /// Judges the entries up to a valid batch. One without a base offset is out of its place: only
    /// that a batch begins there is asked of its entry.
    pub(super) fn at(
        &mut self,
        indexes: &Indexes,
        position: u64,
        end: u64,
        base_offset: Option<i64>,
    ) {
        let here = indexes.offset_entry_at(position);
        if self.start.is_none() {
            (self.start, self.next) = (Some(here), here);
        }
        self.judge_up_to(indexes, here);
        let entry = indexes.ordered_offsets().get(self.next);
        if entry.is_some_and(|entry| i64::from(entry.position) == position as i64) {
            let fault = base_offset.and_then(|base_offset| indexes.judge(self.next, base_offset));
            self.first_fault = earlier(self.first_fault, fault);
            self.next = self.next.saturating_add(1);
        }
        self.last_batch = (position, end);
    }

    /// Judges the entries up to this number, which point to no batch.
    pub(super) fn judge_up_to(&mut self, indexes: &Indexes, stop: usize) {
        let (start, end) = self.last_batch;
        for number in self.next..stop {
            let entry = indexes.ordered_offsets().get(number);
            // Bytes behind the valid batch that cannot be read may hold a batch.
            if entry.is_some_and(|entry| i64::from(entry.position) < end as i64) {
                let fault = Some((number, EntryFault::NoBatch { start }));
                self.first_fault = earlier(self.first_fault, fault);
            }
        }
        self.next = self.next.max(stop);
    }

    /// Joins the part on the right.
    pub(super) fn join(self, right: Self) -> Self {
        match (self.start, right.start) {
            (_, None) => self,
            (None, _) => right,
            (start, _) => {
                let first_fault = earlier(self.first_fault, right.first_fault);
                Self { start, first_fault, ..right }
            }
        }
    }

    /// Whether an index of bounded size has such entries.
    pub(super) fn is_possible(&self) -> bool {
        let wrong = self.first_fault.map_or(0, |(number, _)| number);
        [self.start.unwrap_or(0), self.next, wrong].iter().all(|&number| number <= MAX_ENTRIES)
    }

    /// Returns the first fault. The segment ends before the offset `end`, which is `None` where its
    /// end is not known.
    pub(super) fn finish(mut self, indexes: &Indexes, end: Option<i64>) -> FirstFault {
        // Before the first batch there is nothing to point to but lost bytes.
        let is_negative = indexes.ordered_offsets().first().is_some_and(|entry| entry.position < 0);
        let before = is_negative.then_some((0, EntryFault::NoBatch { start: 0 }));
        self.judge_up_to(indexes, indexes.offset_entry_at(self.last_batch.1));
        let fault = earlier(before, earlier(self.first_fault, indexes.offset_order()));
        let Some(end) = end else { return fault };
        let is_beyond = |entry: &OffsetEntry| entry.offset(indexes.base_offset) >= end;
        let beyond = indexes.ordered_offsets().iter().position(is_beyond);
        let behind = Some(self.next).filter(|&next| next < indexes.ordered_offsets().len());
        let beyond = beyond.into_iter().chain(behind).min();
        earlier(fault, beyond.map(|number| (number, EntryFault::Beyond { end })))
    }
}
