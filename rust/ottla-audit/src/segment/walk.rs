//! A walk over the batches of a range, from one state to another.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::segment::growth::Growth;
use crate::segment::index_check::Indexes;
use crate::segment::segment_scan::SegmentScan;
use crate::segment::tally::{Tally, TallyMemory};
use ottla_log::names::MAX_SEGMENT_BYTES;
use ottla_log::resync::budget::Spending;
use serde::{Deserialize, Serialize};

/// Consecutive batches behind which a walk has forgotten where it began.
const HANDOVER_BATCHES: usize = 3;

/// The last valid batches before a position, without damage between them: where each begins, and
/// its leader epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecentBatches {
    batches: [Option<(u64, i32)>; HANDOVER_BATCHES],
}

impl RecentBatches {
    pub(crate) fn push(&mut self, position: u64, leader_epoch: i32) {
        self.batches.rotate_left(1);
        if let Some(last) = self.batches.last_mut() {
            *last = Some((position, leader_epoch));
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether the range before `cut` hands over here: enough batches of one epoch begin behind it.
    pub(crate) fn hands_over(&self, cut: u64) -> bool {
        let epoch = |batch: &Option<(u64, i32)>| batch.map(|(_, epoch)| epoch);
        let first = self.batches.first().and_then(epoch);
        self.batches.iter().all(|batch| {
            batch.is_some_and(|(position, _)| position >= cut) && epoch(batch) == first
        })
    }
}

/// All that a walk remembers at a position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WalkState {
    pub(crate) position: u64,
    /// Where the source ends, as far as was seen.
    pub(crate) end: u64,
    /// Why it could not be read further.
    pub(crate) failure: Option<String>,
    /// Whether the last valid batch was of magic 0 or 1.
    pub(crate) last_was_legacy: bool,
    pub(crate) recent: RecentBatches,
    pub(crate) memory: TallyMemory,
}

/// A walk from one state to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Walk {
    /// `None`: from the beginning of the source.
    pub(crate) entry: Option<WalkState>,
    pub(crate) exit: WalkState,
    pub(crate) scan: SegmentScan,
    pub(crate) growth: Growth,
    pub(crate) spending: Spending,
}

impl Walk {
    /// Whether it can have come from a scan, as far as that shows.
    pub(super) fn is_possible(&self) -> bool {
        let states = self.entry.iter().chain([&self.exit]);
        self.scan.is_possible() && states.into_iter().all(|state| state.memory.is_possible())
    }

    /// Whether it went to the end of the source.
    pub(crate) fn is_complete(&self) -> bool {
        self.exit.position >= self.exit.end
    }

    /// Whether it has covered all that the range before `stop` covers.
    pub(crate) fn reaches(&self, stop: u64) -> bool {
        self.is_complete() || self.exit.recent.hands_over(stop)
    }

    /// Whether the walk on the right goes on as this one would.
    pub(super) fn meets(&self, right: &Self) -> bool {
        right.entry.as_ref() == Some(&self.exit)
            && self.spending.suffices(&right.spending, self.entry.is_none())
            && self.scan.has_room_for(&right.scan)
    }

    /// Appends the walk on the right, which this one [meets](Self::meets).
    pub(super) fn append(&mut self, right: Self) {
        self.scan.append(&mut self.growth, right.scan, right.growth);
        self.spending = self.spending.join(&right.spending);
        self.exit = right.exit;
    }
}

/// Returns what a walk over a whole source shows.
pub(crate) fn finish(walk: Walk, indexes: &Indexes) -> SegmentScan {
    let Walk { exit, mut scan, growth, .. } = walk;
    scan.counters.bytes = exit.end;
    scan.valid_bytes = scan.valid_bytes.min(exit.position);
    let mut tally = Tally::resume(scan, exit.memory, growth, indexes);
    if let Some(failure) = &exit.failure {
        tally.on_read_failure(exit.end, failure);
    }
    let mut scan = tally.finish();
    if exit.end > MAX_SEGMENT_BYTES {
        let most = format!("at most {MAX_SEGMENT_BYTES} bytes");
        let message = "Kafka does not open a segment that is as large";
        let finding = Finding::new(FindingKind::OversizedSegment, message)
            .at(MAX_SEGMENT_BYTES, exit.end.saturating_sub(MAX_SEGMENT_BYTES))
            .values(most, format!("{} bytes", exit.end));
        scan.findings.push(finding);
    }
    scan.judge_indexes(indexes);
    scan.producers.complete();
    scan
}
