//! What a range of a segment shows, in a form that joins: a file cut anywhere shows what one pass
//! over it shows.
//!
//! A walk judges batches by a short memory: where it is, which offset comes next, the leader epoch, a
//! batch that is held back. Behind three consecutive valid batches of one leader epoch, two walks
//! that meet remember the same, wherever they began. There one range hands over to the next:
//!
//! ```text
//! left    ──────────────────────────┤cut├─batch─batch─batch─▌exit
//! right                                 ├─batch─batch─batch─▌entry ─────────────┤cut├─batch─…
//! ```
//!
//! The left range walks on behind its end until three batches have begun there. The right one finds
//! its first batch by the search that finds batches behind damage, and counts from the same place
//! on. If both remember the same, all that follows is the same, and the sums can be added: a gap,
//! damage or a growing finding may reach across the cut. If they do not (a value that holds batches,
//! damage that goes on, a search cut short), the range on the right is walked again from the exit of
//! the left one. So only the time depends on the cuts, never the result.

use crate::segment::context::SegmentContext;
use crate::segment::encoding::{self, CHUNK_VERSION, ChunkError};
use crate::segment::index_check::Indexes;
use crate::segment::segment_scan::SegmentScan;
use crate::segment::walk::{self, Walk};
use ottla_format::check::Level;
use serde::{Deserialize, Serialize};

/// A range and the walk through it; `None` if no walk was found whose sums can be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RangeScan {
    pub(crate) start: u64,
    pub(crate) stop: u64,
    pub(crate) walk: Option<Box<Walk>>,
}

impl RangeScan {
    /// Appends the range on the right, or returns it if the source is needed for that.
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

/// What a range of a segment shows. Consecutive chunks merge, in any grouping; those of a whole
/// segment make its [`SegmentScan`], equal to that of one pass.
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
    /// Consecutive; more than one where joining them takes the source, or what is on the left.
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

    /// Returns the scan of the segment, if this is all of it and nothing has to be read again.
    ///
    /// # Errors
    /// The chunk itself; [`crate::Scanner::finish`] reads what is missing.
    pub fn into_scan(mut self, indexes: &Indexes) -> Result<SegmentScan, Self> {
        let is_whole = |walk: &Walk| walk.entry.is_none() && walk.is_complete();
        match self.ranges.as_mut_slice() {
            [range] if range.walk.as_deref().is_some_and(is_whole) => {
                range.walk.take().map(|walk| walk::finish(*walk, indexes)).ok_or(self)
            }
            _ => Err(self),
        }
    }

    /// Returns the chunk as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        encoding::to_bytes(self, CHUNK_VERSION)
    }

    /// Returns the chunk that [`Self::to_bytes`] wrote. Other bytes are an error, and take no more
    /// memory than their number allows.
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
