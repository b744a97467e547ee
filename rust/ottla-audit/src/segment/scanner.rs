//! Scans of a segment, in one pass or range by range.

use crate::segment::chunk::{Chunk, RangeScan};
use crate::segment::context::SegmentContext;
use crate::segment::index_check::Indexes;
use crate::segment::observation::OnBatch;
use crate::segment::pass::Pass;
use crate::segment::scan_error::ScanError;
use crate::segment::segment_scan::SegmentScan;
use crate::segment::tally::Tally;
use crate::segment::walk::{self, Walk};
use ottla_format::check::{Checker, Level};
use ottla_format::limits::Limits;
use ottla_log::resync::budget::{BUDGET_AT_START, BUDGET_PER_BYTE};
use ottla_log::resync::search::Search;
use ottla_log::source::Source;
use std::io;
use std::ops::Range;

/// How far behind the end of a range its walk goes on at most, if the range is not longer itself:
/// three usual batches, or what stands between them and the damage before.
const MARGIN_BYTES: u64 = 4 << 20;

/// The smallest budget of a search in a range; that of a long one is in proportion.
const MIN_BUDGET: u64 = 1 << 20;

/// Scans segments, one after the other; holds the codecs and the window. One per thread.
///
/// # Examples
/// ```
/// use ottla_audit::{Scanner, SegmentContext};
/// use ottla_format::check::Level;
/// use ottla_format::limits::Limits;
///
/// let mut scanner = Scanner::new(Level::Full, Limits::default());
/// let context = SegmentContext { base_offset: Some(0), ..SegmentContext::default() };
/// let zeros: &[u8] = &[0; 100];
/// let scan = scanner.scan(&zeros, context, &mut |_bytes| true, None)?;
/// assert_eq!(scan.findings.kept()[0].kind.name(), "zero-tail");
/// # Ok::<(), ottla_audit::ScanError>(())
/// ```
pub struct Scanner {
    checker: Checker,
    /// Memory of the window between two scans.
    buffer: Vec<u8>,
}

impl Scanner {
    /// A scanner that looks as deep as `level`. Markers of transactions are read at every level.
    pub fn new(level: Level, limits: Limits) -> Self {
        Self { checker: Checker::new(level, limits), buffer: Vec::new() }
    }

    /// The checker, for other uses on the same thread.
    pub(crate) fn checker(&mut self) -> &mut Checker {
        &mut self.checker
    }

    /// Scans one segment. `progress` is called after each read with the number of bytes, and stops
    /// the scan by returning `false`. `on_batch` is called for every batch that is framed correctly.
    ///
    /// A source that ends early is taken to end there. Where reading fails, the scan ends with an
    /// `unreadable` finding.
    ///
    /// # Errors
    /// [`ScanError::Io`] and [`ScanError::Stopped`].
    pub fn scan<'a>(
        &mut self,
        source: &'a dyn Source,
        context: SegmentContext,
        progress: &'a mut dyn FnMut(u64) -> bool,
        on_batch: Option<&'a mut OnBatch<'a>>,
    ) -> Result<SegmentScan, ScanError> {
        self.scan_indexed(source, context, Indexes::NONE, progress, on_batch)
    }

    /// Scans one segment as [`scan`](Self::scan) does, and checks its indexes against it.
    ///
    /// # Errors
    /// See [`scan`](Self::scan).
    pub fn scan_indexed<'a>(
        &mut self,
        source: &'a dyn Source,
        context: SegmentContext,
        indexes: &'a Indexes,
        progress: &'a mut dyn FnMut(u64) -> bool,
        on_batch: Option<&'a mut OnBatch<'a>>,
    ) -> Result<SegmentScan, ScanError> {
        let tally = Tally::new(context, indexes, on_batch);
        let mut pass = self.pass(source, u64::MAX, progress, tally)?;
        pass.walk(u64::MAX);
        let walk = pass.suspend(None)?;
        Ok(walk::finish(walk, indexes))
    }

    /// Scans the batches that begin in a range of a segment, and a few behind it. The chunks of
    /// consecutive ranges together show what [`scan`](Self::scan) shows, wherever the segment was
    /// cut; `start` 0 is the beginning, and the last range ends at the size of the source or behind
    /// it. `indexes` are all of the segment's, or [`Indexes::NONE`].
    ///
    /// # Errors
    /// See [`scan`](Self::scan).
    pub fn scan_range<'a>(
        &mut self,
        source: &'a dyn Source,
        context: SegmentContext,
        indexes: &'a Indexes,
        range: Range<u64>,
        progress: &'a mut dyn FnMut(u64) -> bool,
    ) -> Result<Chunk, ScanError> {
        let Range { start, end: stop } = range;
        let size = stop.min(source.size()?).saturating_sub(start);
        let margin = size.max(MARGIN_BYTES);
        let walk = if start == 0 {
            let mut pass = self.pass(source, size, progress, Tally::new(context, indexes, None))?;
            pass.walk_range(stop, margin);
            Some(pass.suspend(None)?)
        } else {
            let mut pass = self.pass(source, size, progress, Tally::open(context, indexes))?;
            let budget = size.saturating_mul(BUDGET_PER_BYTE).clamp(MIN_BUDGET, BUDGET_AT_START);
            let horizon = start.saturating_add(size).saturating_add(margin);
            pass.search = Search::with_budget(budget, horizon);
            pass.window.count_zeros(margin);
            let entry = pass.enter(start, stop, margin);
            if entry.is_some() {
                pass.search = Search::with_budget(budget, horizon);
                pass.walk_range(stop, margin);
            }
            let is_lost = pass.is_lost();
            let walk = pass.suspend(entry)?;
            (walk.entry.is_some() && !is_lost).then_some(walk)
        };
        let range = RangeScan { start, stop, walk: walk.map(Box::new) };
        Ok(Chunk { level: self.checker.level(), context, ranges: vec![range] })
    }

    /// Joins the ranges of a chunk that begins with the segment to one, reading again what did not
    /// fit together; any other chunk comes back as it is. `indexes` are those of the scan.
    ///
    /// # Errors
    /// See [`scan`](Self::scan), and [`ScanError::WrongLevel`].
    pub fn resolve(
        &mut self,
        chunk: Chunk,
        source: &dyn Source,
        indexes: &Indexes,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Chunk, ScanError> {
        if chunk.level != self.checker.level() {
            return Err(ScanError::WrongLevel);
        }
        if !chunk.is_anchored() {
            return Ok(chunk);
        }
        let mut ranges = chunk.ranges.into_iter();
        let mut joined = ranges.next();
        for range in ranges {
            let Some(left) = &mut joined else { break };
            let Err(RangeScan { start, stop, .. }) = left.join(range) else { continue };
            if let Some(walk) = left.walk.take() {
                let margin = stop.min(source.size()?).saturating_sub(start).max(MARGIN_BYTES);
                let walk = self.walk_on(*walk, source, indexes, stop, margin, progress)?;
                left.walk = Some(Box::new(walk));
            }
            left.stop = stop;
        }
        Ok(Chunk { ranges: joined.into_iter().collect(), ..chunk })
    }

    /// Returns what all chunks of a segment, merged, show; reads again what did not fit together.
    ///
    /// # Errors
    /// See [`resolve`](Self::resolve), and [`ScanError::NotAnchored`].
    pub fn finish(
        &mut self,
        chunk: Chunk,
        source: &dyn Source,
        indexes: &Indexes,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<SegmentScan, ScanError> {
        let chunk = self.resolve(chunk, source, indexes, progress)?;
        let is_anchored = chunk.is_anchored();
        let first = chunk.ranges.into_iter().next().and_then(|range| range.walk);
        let walk = first.filter(|_| is_anchored).ok_or(ScanError::NotAnchored)?;
        if walk.is_complete() {
            return Ok(walk::finish(*walk, indexes));
        }
        let walk = self.walk_on(*walk, source, indexes, u64::MAX, MARGIN_BYTES, progress)?;
        Ok(walk::finish(walk, indexes))
    }

    /// Goes on with a walk until it hands over behind `stop`.
    fn walk_on(
        &mut self,
        walk: Walk,
        source: &dyn Source,
        indexes: &Indexes,
        stop: u64,
        margin: u64,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Walk, ScanError> {
        let Walk { entry, exit, scan, growth, spending } = walk;
        let tally = Tally::resume(scan, exit.memory, growth, indexes);
        let size = stop.saturating_sub(exit.position);
        let mut pass = self.pass(source, size, progress, tally)?;
        pass.window.resume(exit.end, exit.failure.as_deref());
        pass.search = Search::after(spending);
        pass.position = exit.position;
        pass.last_was_legacy = exit.last_was_legacy;
        pass.recent = exit.recent;
        pass.walk_range(stop, margin);
        pass.suspend(entry)
    }

    /// A pass from the beginning of a source, of which about `size` bytes will be read.
    pub(super) fn pass<'c, 'a>(
        &'c mut self,
        source: &'a dyn Source,
        size: u64,
        progress: &'a mut dyn FnMut(u64) -> bool,
        tally: Tally<'a>,
    ) -> io::Result<Pass<'c, 'a>> {
        Pass::new(&mut self.checker, &mut self.buffer, source, size, progress, tally)
    }

    /// The checker and the memory of the window.
    pub(super) fn parts(&mut self) -> (&mut Checker, &mut Vec<u8>) {
        (&mut self.checker, &mut self.buffer)
    }
}
