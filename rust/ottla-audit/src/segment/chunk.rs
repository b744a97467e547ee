//! What a range of a segment shows, in a form that joins: a file cut anywhere gives what one pass
//! over it gives.
//!
//! A walk over batches is judged by a short memory: where it is, which offset comes next, the leader
//! epoch, a batch that is held back. Behind three sound batches, one after the other, of one leader
//! epoch, two walks that met there remember the same, wherever they began. That place is where one
//! range hands over to the next:
//!
//! ```text
//! left    ──────────────────────────┤cut├─batch─batch─batch─▌exit
//! right                                 ├─batch─batch─batch─▌entry ─────────────┤cut├─batch─…
//! ```
//!
//! The left range walks on behind its end until three batches have begun there; the right one finds
//! its first batch by the search that finds batches behind damage, and counts from the same place
//! on. If what both remember is equal, all that follows is equal, and the sums can be added: a gap,
//! damage or a growing finding may reach across the cut as it likes. If it is not (a value that holds
//! batches, damage that goes on, a search cut short), the range on the right is walked again from the
//! exit of the left one. So the result never depends on the cuts; only the time does.

use crate::segment::context::SegmentContext;
use crate::segment::encoding::{self, CHUNK_VERSION, ChunkError};
use crate::segment::growth::Growth;
use crate::segment::index_check::Indexes;
use crate::segment::resync::budget::Spending;
use crate::segment::segment_scan::SegmentScan;
use crate::segment::tally::{Tally, TallyMemory};
use ottla_format::check::Level;
use serde::{Deserialize, Serialize};

/// Batches, one after the other, behind which a walk has forgotten where it began.
const SETTLING: usize = 3;

/// The last sound batches before a position, without damage between them: where each begins, and
/// its leader epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecentBatches {
    batches: [Option<(u64, i32)>; SETTLING],
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
    /// Where the source ends, as far as was seen, and why it could not be read further.
    pub(crate) end: u64,
    pub(crate) failure: Option<String>,
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
    /// Whether it can have come from a scan, as far as that is to be seen.
    fn is_possible(&self) -> bool {
        let states = self.entry.iter().chain([&self.exit]);
        self.scan.is_possible() && states.into_iter().all(|state| state.memory.is_possible())
    }

    /// Whether it went to the end of the source.
    pub(crate) fn is_complete(&self) -> bool {
        self.exit.position >= self.exit.end
    }

    /// Whether it has gone through all that the range before `stop` is to go through.
    pub(crate) fn reaches(&self, stop: u64) -> bool {
        self.is_complete() || self.exit.recent.hands_over(stop)
    }

    /// Whether the walk on the right goes on as this one would.
    fn meets(&self, right: &Self) -> bool {
        right.entry.as_ref() == Some(&self.exit)
            && self.spending.suffices(&right.spending, self.entry.is_none())
            && self.scan.has_room_for(&right.scan)
    }

    fn append(&mut self, right: Self) {
        self.scan.append(&mut self.growth, right.scan, right.growth);
        self.spending = self.spending.join(&right.spending);
        self.exit = right.exit;
    }
}

/// A range and the walk through it, if one was found that is worth something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RangeScan {
    pub(crate) start: u64,
    pub(crate) stop: u64,
    pub(crate) walk: Option<Box<Walk>>,
}

impl RangeScan {
    /// Appends the range on the right, or gives it back if that takes the source.
    pub(crate) fn join(&mut self, right: Self) -> Result<(), Self> {
        let Some(walk) = &mut self.walk else { return Err(right) };
        if !walk.reaches(right.stop) {
            match right.walk {
                Some(next) if walk.meets(&next) => walk.append(*next),
                next => return Err(Self { walk: next, ..right }),
            }
        }
        self.stop = right.stop;
        Ok(())
    }
}

/// What a range of a segment shows. Chunks that follow each other merge, in any grouping; all of a
/// segment together give its [`SegmentScan`], equal to that of one pass.
///
/// # Examples
/// ```
/// use ottla_audit::segment::index_check::Indexes;
/// use ottla_audit::{Chunk, Scanner, SegmentContext};
/// use ottla_format::check::Level;
/// use ottla_format::limits::Limits;
///
/// let mut scanner = Scanner::new(Level::Full, Limits::default());
/// let context = SegmentContext { base_offset: Some(0), ..SegmentContext::default() };
/// let zeros: &[u8] = &[0; 100];
/// let left = scanner.scan_range(&zeros, context, Indexes::NONE, 0..50, &mut |_| true)?;
/// let right = scanner.scan_range(&zeros, context, Indexes::NONE, 50..100, &mut |_| true)?;
/// let left = Chunk::from_bytes(&left.to_bytes()).expect("as it was");
/// let whole = left.merge(right).expect("they follow each other");
/// let scan = scanner.finish(whole, &zeros, Indexes::NONE, &mut |_| true)?;
/// assert_eq!(scan.findings.kept()[0].kind.name(), "zero-tail");
/// # Ok::<(), ottla_audit::ScanError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    pub(crate) level: Level,
    pub(crate) context: SegmentContext,
    /// One after the other; more than one where joining them takes the source, or what is on the
    /// left.
    pub(crate) ranges: Vec<RangeScan>,
}

impl Chunk {
    /// Where its range begins.
    pub fn start(&self) -> u64 {
        self.ranges.first().map_or(0, |range| range.start)
    }

    /// Where its range ends.
    pub fn stop(&self) -> u64 {
        self.ranges.last().map_or(0, |range| range.stop)
    }

    /// Ranges it is made of that could not be joined without the source: the fewer the better.
    pub fn pieces(&self) -> usize {
        self.ranges.len()
    }

    /// Whether it begins with the segment.
    pub(crate) fn is_anchored(&self) -> bool {
        let first = self.ranges.first().and_then(|range| range.walk.as_ref());
        first.is_some_and(|walk| walk.entry.is_none())
    }

    /// Appends the chunk on the right.
    ///
    /// # Errors
    /// [`ChunkError::Foreign`] and [`ChunkError::NotAdjacent`].
    pub fn merge(mut self, right: Self) -> Result<Self, ChunkError> {
        if self.level != right.level || self.context != right.context {
            return Err(ChunkError::Foreign);
        }
        if self.stop() != right.start() {
            return Err(ChunkError::NotAdjacent { stop: self.stop(), start: right.start() });
        }
        for range in right.ranges {
            let rest = match self.ranges.last_mut() {
                Some(last) => last.join(range),
                None => Err(range),
            };
            self.ranges.extend(rest.err());
        }
        Ok(self)
    }

    /// The scan of the segment, if this is all of it and nothing has to be read again.
    ///
    /// # Errors
    /// Gives itself back; [`crate::Scanner::finish`] reads what is missing.
    pub fn into_scan(mut self, indexes: &Indexes) -> Result<SegmentScan, Self> {
        let is_whole = |walk: &Walk| walk.entry.is_none() && walk.is_complete();
        match self.ranges.as_mut_slice() {
            [range] if range.walk.as_deref().is_some_and(is_whole) => {
                range.walk.take().map(|walk| finish(*walk, indexes)).ok_or(self)
            }
            _ => Err(self),
        }
    }

    /// The chunk as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        encoding::to_bytes(self, CHUNK_VERSION)
    }

    /// The chunk of bytes that [`Self::to_bytes`] gave. Bytes of anything else are an error, never
    /// more: memory is bounded by their number.
    ///
    /// # Errors
    /// [`ChunkError::Malformed`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ChunkError> {
        let chunk: Self = encoding::from_bytes(bytes, CHUNK_VERSION)?;
        let is_one = !chunk.ranges.is_empty()
            && chunk.ranges.iter().all(|range| {
                range.start <= range.stop && range.walk.as_ref().is_none_or(|w| w.is_possible())
            })
            && chunk.ranges.windows(2).all(|pair| match pair {
                [left, right] => left.stop == right.start,
                _ => true,
            });
        if is_one { Ok(chunk) } else { Err(ChunkError::Malformed) }
    }
}

/// What a walk through a whole source shows.
pub(crate) fn finish(walk: Walk, indexes: &Indexes) -> SegmentScan {
    let Walk { exit, mut scan, growth, .. } = walk;
    scan.counters.bytes = exit.end;
    scan.valid_bytes = scan.valid_bytes.min(exit.position);
    let mut tally = Tally::resume(scan, exit.memory, growth, indexes);
    if let Some(failure) = &exit.failure {
        tally.on_read_failure(exit.end, failure);
    }
    let mut scan = tally.finish();
    scan.judge_indexes(indexes);
    scan
}
