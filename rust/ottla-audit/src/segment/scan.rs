//! One pass over one segment, or over a range of it: batches as long as framing holds, and what to
//! make of the bytes where it does not.

use crate::catalogue::causes::Cause;
use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::segment::chunk::{self, Chunk, Piece, Recent, State, Walk};
use crate::segment::context::SegmentContext;
use crate::segment::growth::Growth;
use crate::segment::index_check::Indexes;
use crate::segment::observation::{BatchObservation, OnBatch};
use crate::segment::resync::{
    self, BUDGET_AT_START, BUDGET_PER_BYTE, Bounds, Plausible, Search, Spending, Suspect,
};
use crate::segment::segment_scan::SegmentScan;
use crate::segment::tally::{Tally, TallyMemory};
use ottla_format::attributes::Compression;
use ottla_format::batch::BatchInfo;
use ottla_format::check::{Checker, Level, reaches_maximum};
use ottla_format::error::{Error, ErrorKind, Family};
use ottla_format::header::{
    CRC_START, Envelope, HEADER_UP_TO_MAGIC, Header, LOG_OVERHEAD, MIN_SIZE, RECORD_BATCH_OVERHEAD,
};
use ottla_format::limits::Limits;
use ottla_kernels::{BatchHeader, EachBatch, Nothing, Run, Timestamps};
use ottla_log::source::{Kept, Source, Window};
use std::io;
use std::ops::Range;

/// Bytes of a failed batch that are looked at: its header, and the lengths of a legacy record.
const HEAD_BYTES: usize = 64 << 10;

/// How far behind the end of a range its walk goes on at most, if the range is not longer itself:
/// three usual batches, or what stands between them and the damage before.
const MARGIN: u64 = 4 << 20;

/// The least budget of a search in a range; that of a long one is in proportion.
const LEAST_BUDGET: u64 = 1 << 20;

/// Ranges shorter than [`super::WINDOW_BYTES`] are read in pieces of this size at least.
const LEAST_WINDOW: u64 = 64 << 10;

/// Unwritten bytes of a torn write begin at a multiple of this.
const SECTOR: u64 = 512;

/// Zeros from the beginning of a sector to the end of a batch that are no chance.
const SECTOR_ZEROS: u64 = 16;

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
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Scanner {
    checker: Checker,
    buffer: Vec<u8>,
}

impl Scanner {
    /// A scanner that looks as deep as `level`. Markers of transactions are read at every level.
    pub fn new(level: Level, limits: Limits) -> Self {
        Self { checker: Checker::new(level, limits), buffer: Vec::new() }
    }

    /// Scans one segment. `progress` is called after each read with the number of bytes, and stops
    /// the scan by returning `false`. `on_batch` sees every batch that is framed rightly.
    ///
    /// A source that ends early is taken to end there; one that fails on the way gives an
    /// `unreadable` finding there.
    ///
    /// # Errors
    /// When the source cannot tell its size, or [`io::ErrorKind::Interrupted`] when `progress` said
    /// to stop.
    pub fn scan<'a>(
        &mut self,
        source: &'a dyn Source,
        context: SegmentContext,
        progress: &'a mut dyn FnMut(u64) -> bool,
        on_batch: Option<&'a mut OnBatch<'a>>,
    ) -> io::Result<SegmentScan> {
        self.scan_indexed(source, context, Indexes::NONE, progress, on_batch)
    }

    /// The same, with the indexes of the segment held against it.
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
    ) -> io::Result<SegmentScan> {
        let tally = Tally::new(context, indexes, on_batch);
        let mut pass = self.pass(source, u64::MAX, progress, tally)?;
        pass.walk(u64::MAX);
        let walk = pass.suspend(None)?;
        Ok(chunk::finish(walk, indexes))
    }

    /// Scans the batches that begin in a range of a segment, and a few behind it. Together the
    /// chunks of ranges that follow each other give what [`Scanner::scan`] gives, wherever the segment
    /// was cut; `start` 0 is the beginning, and the last range ends at the size of the source or
    /// behind it. `indexes` are all of the segment's, or [`Indexes::NONE`].
    ///
    /// # Errors
    /// As [`Scanner::scan`].
    pub fn scan_range<'a>(
        &mut self,
        source: &'a dyn Source,
        context: SegmentContext,
        indexes: &'a Indexes,
        range: Range<u64>,
        progress: &'a mut dyn FnMut(u64) -> bool,
    ) -> io::Result<Chunk> {
        let Range { start, end: stop } = range;
        let size = stop.min(source.size()?).saturating_sub(start);
        let margin = size.max(MARGIN);
        let walk = if start == 0 {
            let mut pass = self.pass(source, size, progress, Tally::new(context, indexes, None))?;
            pass.go_through(stop, margin);
            Some(pass.suspend(None)?)
        } else {
            let mut pass = self.pass(source, size, progress, Tally::open(context, indexes))?;
            let budget = size.saturating_mul(BUDGET_PER_BYTE).clamp(LEAST_BUDGET, BUDGET_AT_START);
            let horizon = start.saturating_add(size).saturating_add(margin);
            pass.search = Search::with_budget(budget, horizon);
            pass.window.count_zeros(margin);
            let entry = pass.enter(start, stop, margin);
            if entry.is_some() {
                pass.search = Search::with_budget(budget, horizon);
                pass.go_through(stop, margin);
            }
            let is_lost = pass.is_lost();
            let walk = pass.suspend(entry)?;
            (walk.entry.is_some() && !is_lost).then_some(walk)
        };
        let piece = Piece { start, stop, walk: walk.map(Box::new) };
        Ok(Chunk { level: self.checker.level(), context, pieces: vec![piece] })
    }

    /// Joins the pieces of a chunk that begins with the segment to one, reading again what did not
    /// fit together; any other chunk comes back as it is. `indexes` are those of the scan.
    ///
    /// # Errors
    /// As [`Scanner::scan`], and [`io::ErrorKind::InvalidInput`] for a chunk of another level.
    pub fn resolve(
        &mut self,
        chunk: Chunk,
        source: &dyn Source,
        indexes: &Indexes,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> io::Result<Chunk> {
        if chunk.level != self.checker.level() {
            let message = "the chunk was scanned at another level: use a scanner of that one";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        if !chunk.is_anchored() {
            return Ok(chunk);
        }
        let mut pieces = chunk.pieces.into_iter();
        let mut joined = pieces.next();
        for piece in pieces {
            let Some(left) = &mut joined else { break };
            let Err(Piece { start, stop, .. }) = left.join(piece) else { continue };
            if let Some(walk) = left.walk.take() {
                let margin = stop.min(source.size()?).saturating_sub(start).max(MARGIN);
                let walk = self.walk_on(*walk, source, indexes, stop, margin, progress)?;
                left.walk = Some(Box::new(walk));
            }
            left.stop = stop;
        }
        Ok(Chunk { pieces: joined.into_iter().collect(), ..chunk })
    }

    /// What all chunks of a segment, merged, show; reads again what did not fit together.
    ///
    /// # Errors
    /// As [`Scanner::resolve`], and [`io::ErrorKind::InvalidInput`] for a chunk that does not begin with
    /// the segment.
    pub fn finish(
        &mut self,
        chunk: Chunk,
        source: &dyn Source,
        indexes: &Indexes,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> io::Result<SegmentScan> {
        let chunk = self.resolve(chunk, source, indexes, progress)?;
        let is_anchored = chunk.is_anchored();
        let first = chunk.pieces.into_iter().next().and_then(|piece| piece.walk);
        let Some(walk) = first.filter(|_| is_anchored) else {
            let message = "the chunk does not begin with the segment: merge it with those before";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        if walk.is_complete() {
            return Ok(chunk::finish(*walk, indexes));
        }
        let walk = self.walk_on(*walk, source, indexes, u64::MAX, MARGIN, progress)?;
        Ok(chunk::finish(walk, indexes))
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
    ) -> io::Result<Walk> {
        let Walk { entry, exit, scan, growth, spending } = walk;
        let tally = Tally::resume(scan, exit.memory, growth, indexes);
        let size = stop.saturating_sub(exit.position);
        let mut pass = self.pass(source, size, progress, tally)?;
        pass.window.resume(exit.end, exit.failure.as_deref());
        pass.search = Search::after(spending);
        pass.position = exit.position;
        pass.last_was_legacy = exit.last_was_legacy;
        pass.recent = exit.recent;
        pass.go_through(stop, margin);
        pass.suspend(entry)
    }

    /// A pass from the beginning of a source, of which about `size` bytes will be read.
    fn pass<'c, 'a>(
        &'c mut self,
        source: &'a dyn Source,
        size: u64,
        progress: &'a mut dyn FnMut(u64) -> bool,
        tally: Tally<'a>,
    ) -> io::Result<Pass<'c, 'a>> {
        let buffer = std::mem::take(&mut self.buffer);
        Ok(Pass {
            window: Window::new(source, buffer, size.max(LEAST_WINDOW), progress)?,
            checker: &mut self.checker,
            buffer: &mut self.buffer,
            tally,
            search: Search::after(Spending::default()),
            faults: Vec::new(),
            position: 0,
            last_was_legacy: true,
            recent: Recent::default(),
            opens_wrappers: false,
        })
    }

    /// A pass over the batches that begin in a range, to be gone through piece by piece. `on_batch` sees
    /// every batch that is framed rightly.
    pub(crate) fn begin_pieces<'c, 'a>(
        &'c mut self,
        source: &'a dyn Source,
        range: &Range<u64>,
        progress: &'a mut dyn FnMut(u64) -> bool,
        on_batch: &'a mut OnBatch<'a>,
    ) -> io::Result<Pass<'c, 'a>> {
        let tally = Tally::new(context_of_pieces(), Indexes::NONE, Some(on_batch));
        let pass = self.pass(source, range.end.saturating_sub(range.start), progress, tally)?;
        Ok(Pass { position: range.start, opens_wrappers: true, ..pass })
    }

    /// Goes on where such a pass was paused.
    pub(crate) fn next_piece<'c, 'a>(
        &'c mut self,
        source: &'a dyn Source,
        paused: Paused,
        progress: &'a mut dyn FnMut(u64) -> bool,
        on_batch: &'a mut OnBatch<'a>,
    ) -> Pass<'c, 'a> {
        let Paused { position, window, memory, spending, last_was_legacy } = paused;
        let scan = SegmentScan { context: context_of_pieces(), ..SegmentScan::default() };
        let mut tally = Tally::resume(scan, memory, Growth::default(), Indexes::NONE);
        tally.call_on_batch(Some(on_batch));
        Pass {
            window: Window::again(source, window, progress),
            checker: &mut self.checker,
            buffer: &mut self.buffer,
            tally,
            search: Search::after(spending),
            faults: Vec::new(),
            position,
            last_was_legacy,
            recent: Recent::default(),
            opens_wrappers: true,
        }
    }
}

impl Scanner {
    /// The checker, for other uses on the same thread.
    pub(crate) fn checker(&mut self) -> &mut Checker {
        &mut self.checker
    }
}

/// Batches of a part of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Every batch framed rightly, and whether its CRC is right.
    pub batches: Vec<(BatchInfo, bool)>,
    /// What was found on the way, at most [`crate::MAX_FINDINGS_PER_KIND`] of each kind.
    pub findings: Vec<Finding>,
    /// Where to go on; `None` at the end.
    pub next_position: Option<u64>,
}

impl Scanner {
    /// Lists the batches of a segment from a batch at `position` on, damage left out: at least
    /// `limit` of them where there are so many, and then up to the end of the window.
    ///
    /// # Errors
    /// When the source cannot tell its size, or what ended reading.
    pub fn list(
        &mut self,
        source: &dyn Source,
        context: SegmentContext,
        position: u64,
        limit: usize,
    ) -> io::Result<Listing> {
        let mut batches = Vec::new();
        let count = std::cell::Cell::new(0);
        let mut on_batch = |info: &BatchInfo, is_valid: bool| {
            batches.push((*info, is_valid));
            count.set(batches.len());
        };
        let mut progress = |_: u64| true;
        let tally = Tally::new(context, Indexes::NONE, Some(&mut on_batch));
        let mut pass = self.pass(source, u64::MAX, &mut progress, tally)?;
        pass.position = position;
        pass.walk_until(u64::MAX, &|| count.get() >= limit);
        let Pass { buffer, mut window, tally, position, .. } = pass;
        let findings = tally.into_findings();
        let next_position = (position < window.end()).then_some(position);
        if let Some(error) = window.take_failure() {
            return Err(error);
        }
        *buffer = window.into_buffer();
        Ok(Listing { batches, findings, next_position })
    }
}

pub(crate) struct Pass<'c, 'a> {
    pub(crate) checker: &'c mut Checker,
    /// Where the memory of the window goes in the end.
    pub(crate) buffer: &'c mut Vec<u8>,
    pub(crate) window: Window<'a>,
    pub(crate) tally: Tally<'a>,
    search: Search,
    faults: Vec<Error>,
    pub(crate) position: u64,
    /// Whether the last sound batch was of magic 0 or 1, or there was none yet: formats only go up.
    last_was_legacy: bool,
    recent: Recent,
    /// Whether wrappers of magic 0 and 1 are inflated at every level, as only that tells their first
    /// offset.
    opens_wrappers: bool,
}

/// Nothing is known of a segment that is read in pieces, and no timestamp is later than now: nobody
/// asks.
fn context_of_pieces() -> SegmentContext {
    SegmentContext { now_ms: i64::MAX, ..SegmentContext::default() }
}

/// A pass between two pieces of its work.
pub(crate) struct Paused {
    pub(crate) position: u64,
    window: Kept,
    memory: TallyMemory,
    spending: Spending,
    last_was_legacy: bool,
}

/// What stands at a position.
enum Frame {
    /// A batch, whole in the window.
    Whole(Envelope),
    /// A batch that is larger than the bound, and inside the source.
    TooLarge(Envelope),
    /// Nothing that can be a batch, or one that reaches beyond the end.
    Broken,
}

impl Pass<'_, '_> {
    /// The batches that begin before `stop`.
    pub(crate) fn walk(&mut self, stop: u64) {
        self.walk_until(stop, &|| false);
    }

    fn walk_until(&mut self, stop: u64, is_enough: &impl Fn() -> bool) {
        while self.goes_on(stop, is_enough) && !self.is_lost() {
            let from = self.position;
            self.run_ordinary(stop, is_enough);
            if self.position > from {
                self.recent.clear();
            }
            if !self.goes_on(stop, is_enough) {
                break;
            }
            self.one_careful();
            if self.window.is_cancelled() {
                return;
            }
        }
    }

    /// Whether there is more; once there is enough, more that is in the window as a whole.
    fn goes_on(&self, stop: u64, is_enough: &impl Fn() -> bool) -> bool {
        let is_held = || {
            let held = self.window.held(self.position);
            Envelope::read(held, 0)
                .is_some_and(|envelope| envelope.size >= MIN_SIZE && envelope.total() <= held.len())
        };
        self.position < stop.min(self.window.end()) && (!is_enough() || is_held())
    }

    /// The batches that begin before `stop`, and those behind it until the next range can take over;
    /// no more than `margin` bytes of them.
    fn go_through(&mut self, stop: u64, margin: u64) {
        self.walk(stop);
        self.settle(stop, margin);
    }

    /// Goes on batch by batch until the next range, from `cut` on, can take over.
    fn settle(&mut self, cut: u64, margin: u64) -> bool {
        let limit = self.window.end().min(cut.saturating_add(margin));
        while !self.recent.hands_over(cut) {
            if self.position >= limit.min(self.window.end())
                || self.is_lost()
                || self.window.is_cancelled()
            {
                return false;
            }
            let from = self.position;
            self.run_ordinary(from + 1, &|| false);
            if self.position > from {
                let epoch =
                    self.window.held(from).get(12..16).and_then(|epoch| epoch.first_chunk());
                self.recent.push(from, epoch.map_or(-1, |epoch| i32::from_be_bytes(*epoch)));
            } else {
                self.one_careful();
            }
        }
        true
    }

    /// Finds the first batch of a range that begins anywhere, and goes on to where its walk depends on
    /// nothing before. From there on everything counts.
    fn enter(&mut self, start: u64, stop: u64, margin: u64) -> Option<State> {
        let bounds = self.bounds();
        self.position = self.search.first(&mut self.window, start, stop, &bounds)?;
        if !self.settle(start, margin) {
            return None;
        }
        let memory = self.tally.begin_part()?;
        Some(self.state(memory))
    }

    /// Whether a walk that began somewhere was refused what a walk from the beginning may do.
    fn is_lost(&self) -> bool {
        self.search.is_lost() || self.window.has_more_zeros()
    }

    fn state(&self, memory: TallyMemory) -> State {
        State {
            position: self.position,
            end: self.window.end(),
            failure: self.window.failure().map(ToString::to_string),
            last_was_legacy: self.last_was_legacy,
            recent: self.recent,
            memory,
        }
    }

    /// Ends a piece of work. What was found in it is forgotten.
    pub(crate) fn pause(self) -> Paused {
        let Self { window, tally, search, position, last_was_legacy, .. } = self;
        let (_, memory, _) = tally.suspend();
        Paused {
            position,
            window: window.keep(),
            memory,
            spending: search.spending(),
            last_was_legacy,
        }
    }

    /// The walk that ends here, from `entry` on.
    fn suspend(self, entry: Option<State>) -> io::Result<Walk> {
        if self.window.is_cancelled() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "the scan was stopped"));
        }
        let spending = self.search.spending();
        let Self { buffer, tally, window, position, last_was_legacy, recent, .. } = self;
        let (end, failure) = (window.end(), window.failure().map(ToString::to_string));
        *buffer = window.into_buffer();
        let (scan, memory, growth) = tally.suspend();
        let exit = State { position, end, failure, last_was_legacy, recent, memory };
        Ok(Walk { entry, exit, scan, growth, spending })
    }

    /// What is at the position, by every rule.
    pub(crate) fn one_careful(&mut self) {
        let from = self.position;
        match self.frame() {
            Frame::Whole(envelope) => self.careful(&envelope),
            Frame::TooLarge(envelope) => self.too_large(&envelope),
            Frame::Broken => self.damage(None),
        }
        self.search.earn(self.position.saturating_sub(from));
    }

    /// Ordinary batches that begin before `stop` at full speed, window by window until there are
    /// enough.
    fn run_ordinary(&mut self, stop: u64, is_enough: &impl Fn() -> bool) {
        self.run_kernels(stop, is_enough, |checker, data, base, tally| {
            let kernels = checker.kernels();
            if checker.level() == Level::Full {
                let mut target = Timestamps::default();
                let mut each =
                    EachBatch::new(&mut target, |header: &BatchHeader, timestamps: &_| {
                        tally.on_plain_batch(header, base);
                        if !reaches_maximum(header, timestamps) {
                            tally.on_unreached_max_timestamp(
                                &BatchObservation::of_header(header, base).info,
                            );
                        }
                    });
                ottla_kernels::run(kernels, data, 0, &mut each)
            } else if checker.level() == Level::Crc {
                ottla_kernels::crc_only_run(kernels, data, 0, |header| {
                    let is_plain = header.is_ordinary();
                    if is_plain {
                        tally.on_plain_batch(header, base);
                    }
                    is_plain
                })
            } else {
                let mut target = Nothing;
                let mut each = EachBatch::new(&mut target, |header: &_, _: &_| {
                    tally.on_plain_batch(header, base);
                });
                ottla_kernels::run(kernels, data, 0, &mut each)
            }
        });
    }

    /// The same with a run of the caller's choice. It gets what the window holds and the position of
    /// that, and gives every batch that it takes to the tally.
    pub(crate) fn run_kernels(
        &mut self,
        stop: u64,
        is_enough: &impl Fn() -> bool,
        mut run: impl FnMut(&Checker, &[u8], u64, &mut Tally<'_>) -> Run,
    ) {
        loop {
            let base = self.position;
            let held = self.window.hold(base, RECORD_BATCH_OVERHEAD);
            let data = begun_within(held, stop.saturating_sub(base));
            let is_part = data.len() < held.len();
            self.tally.arm_fast_path();
            let run = run(self.checker, data, base, &mut self.tally);
            self.tally.flush_fast_counts();
            self.position += run.position as u64;
            if run.position > 0 {
                self.last_was_legacy = false;
                self.tally.on_valid_bytes(self.position);
                if is_part && self.position < stop && !is_enough() {
                    continue;
                }
            }
            if self.position >= stop {
                return;
            }
            let Some(total) = self.cut_batch().filter(|_| !is_enough()) else { return };
            if self.window.hold(self.position, total).len() < total {
                return;
            }
        }
    }

    /// The size of the batch at the position, as far as is known, if the window cuts it: then it comes
    /// whole with the next one.
    fn cut_batch(&self) -> Option<usize> {
        let (window, position) = (&self.window, self.position);
        let rest = window.held(position);
        let Some(envelope) = Envelope::read(rest, 0) else {
            let is_cut = position + (rest.len() as u64) < window.end();
            return is_cut.then_some(RECORD_BATCH_OVERHEAD);
        };
        let is_cut = envelope.magic == 2
            && envelope.size >= MIN_SIZE
            && rest.len() < envelope.total()
            && envelope.total() as u64 <= self.checker.limits().batch_bytes
            && position + envelope.total() as u64 <= window.end();
        is_cut.then_some(envelope.total())
    }

    fn frame(&mut self) -> Frame {
        let left = self.window.end() - self.position;
        let data = self.window.hold(self.position, RECORD_BATCH_OVERHEAD);
        let Some(envelope) = Envelope::read(data, 0) else { return Frame::Broken };
        let minimum =
            if envelope.magic == 2 { ottla_format::header::MIN_SIZE_V2 } else { MIN_SIZE };
        let total = envelope.total() as u64;
        if envelope.size < minimum || !(0..=2).contains(&envelope.magic) || total > left {
            return Frame::Broken;
        }
        if total > self.checker.limits().batch_bytes {
            return Frame::TooLarge(envelope);
        }
        if self.window.hold(self.position, envelope.total()).len() < envelope.total() {
            return Frame::Broken;
        }
        Frame::Whole(envelope)
    }

    /// One whole batch by every rule.
    fn careful(&mut self, envelope: &Envelope) {
        let Self { checker, window, faults, position, .. } = self;
        let total = envelope.total();
        let data = window.held(*position).get(..total).unwrap_or_default();
        let Ok(mut info) = BatchInfo::read(data, 0, envelope) else {
            self.damage(None);
            return;
        };
        info.position = *position;
        faults.clear();
        let level = checker.level();
        let is_wrapper = info.magic < 2 && info.compression() != Ok(Compression::None);
        if level == Level::Crc && (info.is_control() || is_wrapper && self.opens_wrappers) {
            checker.set_level(Level::Decode);
        }
        let checked = checker.check(data, 0, envelope, faults);
        checker.set_level(level);
        if !checked.crc_ok {
            let fault = self.faults.first().copied();
            self.damage(fault.map(|fault| (info, fault)));
            return;
        }
        if let Some(base) = checked.base_offset.filter(|&base| base <= info.last_offset) {
            info.base_offset = base;
        }
        let seen = BatchObservation {
            info,
            records: checked.records,
            control: checked.control,
            has_base_offset: !is_wrapper || checked.base_offset.is_some(),
            is_readable: self.faults.is_empty(),
        };
        self.last_was_legacy = info.magic < 2;
        self.recent.push(self.position, info.partition_leader_epoch);
        self.position += total as u64;
        self.tally.on_valid_bytes(self.position);
        self.tally.on_valid_batch(seen);
        if checked.maximum_unreached && self.faults.is_empty() {
            self.tally.on_unreached_max_timestamp(&info);
        }
        for fault in &self.faults {
            // The base offset is judged by its neighbours.
            if !matches!(fault.kind, ErrorKind::OffsetOutOfRange { .. }) {
                self.tally.push(record_finding(&info, fault));
            }
        }
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            lowest: self.tally.order().first_unseen().max(0),
            highest: self.tally.order().last_possible(),
            batch_bytes: self.checker.limits().batch_bytes,
            allows_legacy: self.last_was_legacy,
        }
    }

    /// A batch that no window may hold: stepped over if a batch follows it.
    fn too_large(&mut self, envelope: &Envelope) {
        let bounds = Bounds { batch_bytes: i32::MAX as u64, ..self.bounds() };
        let total = envelope.total() as u64;
        let head = self.window.look(self.position, HEAD_BYTES);
        let end = self.position + total;
        let info = BatchInfo::read(head, 0, envelope).ok();
        let header = resync::plausible(head, &bounds);
        let (Some(mut info), Some(header)) = (info, header) else {
            self.damage(None);
            return;
        };
        let behind = Bounds { lowest: header.last_offset.saturating_add(1), ..bounds };
        if !self.stands(end, &behind) {
            self.damage(None);
            return;
        }
        info.position = self.position;
        let limit = self.checker.limits().batch_bytes;
        let message = format!(
            "the batch at position {} has {total} bytes, more than {limit}: it was not looked into",
            self.position
        );
        self.tally.on_valid_batch(BatchObservation {
            info,
            records: 0,
            control: None,
            has_base_offset: info.magic == 2,
            is_readable: false,
        });
        self.tally.push(
            Finding::new(FindingKind::LimitExceeded, message)
                .at(info.position, total)
                .offsets(info.base_offset, info.last_offset)
                .values(format!("at most {limit} bytes"), total),
        );
        self.recent.clear();
        self.position = end;
        self.tally.on_valid_bytes(end);
    }

    /// Where the zeros at the end of the source begin.
    fn zeros_from(&mut self) -> u64 {
        self.window.zeros_from(self.position)
    }

    /// Whether a batch seems to begin at `position`, or nothing but zeros or the end comes.
    fn stands(&mut self, position: u64, bounds: &Bounds) -> bool {
        Search::stands(&mut self.window, position, bounds)
            || (position < self.window.end() && position >= self.zeros_from())
    }

    /// What stands here is no sound batch. `bad`: it is framed, but its checksum is wrong.
    fn damage(&mut self, bad: Option<(BatchInfo, Error)>) {
        self.tally.before_damage();
        self.recent.clear();
        let bounds = self.bounds();
        let start = self.position;
        let end = self.window.end();
        if self.zeros_from() <= start {
            if self.window.failure().is_some() {
                self.position = end;
            } else if self.may_be_an_offset() {
                self.tail(None, &bounds);
            } else {
                self.zero_tail();
            }
            return;
        }
        if self.wrong_magic(&bounds) {
            return;
        }
        let head = self.window.hold(start, HEAD_BYTES);
        let size = bad.map(|(info, _)| info.size);
        let suspect = Suspect::read(head, start, size, &bounds);
        if let Some((info, fault)) = bad
            && Search::is_followed(&mut self.window, &suspect, &bounds)
        {
            self.bad_batch(&info, &fault, suspect.header.as_ref());
            return;
        }
        let is_framed = bad.is_some_and(|(info, _)| self.stands(start + info.size, &bounds));
        let found = self.search.behind(&mut self.window, &suspect, is_framed, &bounds);
        if let Some(found) = found {
            match bad {
                Some((info, fault)) if start + info.size == found.position => {
                    self.bad_batch(&info, &fault, suspect.header.as_ref());
                }
                _ => self.damaged_range(found.position, suspect.header, found.proves_suspect),
            }
            return;
        }
        if self.window.failure().is_some() {
            // What could not be read is no end of the file.
            self.position = self.window.end();
            return;
        }
        if self.search.ends_with_source(&mut self.window, &suspect) {
            self.damaged_range(end, suspect.header, true);
            return;
        }
        match bad {
            Some((info, fault)) if is_framed => {
                self.bad_batch(&info, &fault, suspect.header.as_ref());
            }
            _ if suspect.header.is_some_and(|header| start + header.total <= end) => {
                self.damaged_range(end, suspect.header, false);
            }
            _ => self.tail(suspect.header, &bounds),
        }
    }

    /// A batch of magic 2 whose only fault is another magic byte.
    fn wrong_magic(&mut self, bounds: &Bounds) -> bool {
        let start = self.position;
        let left = self.window.end() - start;
        let head = self.window.hold(start, RECORD_BATCH_OVERHEAD);
        let found = head.get(HEADER_UP_TO_MAGIC - 1).map_or(2, |&magic| magic as i8);
        let Some(header) = Header::read(head, 0).filter(|_| found != 2) else { return false };
        let Some(plausible) = resync::plausible_v2(&header, bounds) else { return false };
        if plausible.total > left {
            return false;
        }
        let size = plausible.total as usize;
        let covered = self.window.hold(start, size).get(CRC_START..size).unwrap_or_default();
        if ottla_kernels::crc32c(covered) != header.crc {
            return false;
        }
        let header = Header { magic: 2, ..header };
        let info = BatchInfo::from_header(&header, start);
        let message = format!(
            "the batch at position {start} has magic {found}, but its CRC is that of a batch of magic 2"
        );
        let finding = Finding::new(FindingKind::MagicFault, message)
            .at(start, info.size)
            .offsets(info.base_offset, info.last_offset)
            .values(2, found);
        self.position += info.size;
        self.tally.on_valid_bytes(self.position);
        self.last_was_legacy = false;
        let records = u64::try_from(header.record_count).unwrap_or(0);
        self.tally.on_valid_batch(BatchObservation {
            info,
            records,
            control: None,
            has_base_offset: true,
            is_readable: true,
        });
        self.tally.push(finding);
        true
    }

    /// One batch with a wrong checksum, behind which framing goes on.
    fn bad_batch(&mut self, info: &BatchInfo, fault: &Error, header: Option<&Plausible>) {
        let end = info.position + info.size;
        self.tally.count_bad_batch(info.size);
        let context = *self.tally.context();
        let is_torn = context.is_active
            && !context.stopped_cleanly
            && self.zeros_from().next_multiple_of(SECTOR) + SECTOR_ZEROS <= end;
        if is_torn {
            self.position = self.window.end();
            let message = format!(
                "the last batch, at position {}, was not wholly written: zeros follow from position {} on",
                info.position,
                self.zeros_from()
            );
            let finding = Finding::new(FindingKind::TruncatedTail, message)
                .at(info.position, self.window.end() - info.position)
                .values(
                    format!("{} bytes", info.size),
                    format!("{} bytes", self.zeros_from() - info.position),
                )
                .graded(Severity::Info);
            self.tally
                .on_damage(finding, header.map(|header| (header.base_offset, header.last_offset)));
            return;
        }
        let (expected, found) = fault.kind.expected_and_found();
        let message = format!(
            "the batch at position {} (base offset {}): {}",
            info.position, info.base_offset, fault.kind
        );
        let finding = Finding::new(FindingKind::CrcMismatch, message)
            .at(info.position, info.size)
            .values(expected, found);
        let offsets = header
            .filter(|_| info.magic == 2)
            .map(|header| (header.base_offset, header.last_offset));
        self.tally.on_bad_batch(info);
        self.tally.on_damage(finding, offsets);
        self.position = end;
    }

    /// Bytes up to `end` that cannot be read as batches.
    fn damaged_range(&mut self, end: u64, header: Option<Plausible>, is_whole: bool) {
        let start = self.position;
        let size = end - start;
        self.tally.count_damaged_bytes(size);
        let declared = self
            .window
            .hold(start, LOG_OVERHEAD)
            .get(8..LOG_OVERHEAD)
            .and_then(|bytes| bytes.first_chunk::<4>())
            .map_or(0, |bytes| i32::from_be_bytes(*bytes));
        let right = size.saturating_sub(LOG_OVERHEAD as u64);
        let (message, expected, found) = if is_whole {
            (
                format!(
                    "the size field of the batch at position {start} says {declared}, but its CRC is that of the {right} bytes before the next batch: nothing else is wrong with it"
                ),
                right.to_string(),
                declared.to_string(),
            )
        } else {
            (
                format!("{size} bytes from position {start} on cannot be read as batches"),
                "a batch".to_owned(),
                format!("{size} bytes"),
            )
        };
        let finding = Finding::new(FindingKind::DamagedRange, message)
            .at(start, size)
            .values(expected, found);
        let finding = Finding { cause: Some(Cause::Damage), ..finding };
        let offsets =
            header.filter(|_| is_whole).map(|header| (header.base_offset, header.last_offset));
        self.tally.on_damage(finding, offsets);
        self.position = end;
    }

    /// Whether a few zeros at the end are more likely the first bytes of the offset of a batch that
    /// should follow.
    fn may_be_an_offset(&self) -> bool {
        let size = self.window.end() - self.position;
        let expected = self.tally.order().first_unseen();
        let next = self.tally.order().next_segment;
        size < 8
            && u64::from(expected.leading_zeros()) >= size * 8
            && next.is_none_or(|next| next > expected)
    }

    fn zero_tail(&mut self) {
        let (start, end) = (self.position, self.window.end());
        let context = *self.tally.context();
        let size = end - start;
        self.tally.count_damaged_bytes(size);
        self.position = end;
        let place = if context.is_active { "active" } else { "closed" };
        let message = format!("{size} zeros after the last batch of this {place} segment");
        let severity = if context.is_active && context.stopped_cleanly {
            Severity::Warning
        } else {
            Severity::Info
        };
        let finding = Finding::new(FindingKind::ZeroTail, message)
            .at(start, size)
            .values("the end of the file", format!("{size} zeros"))
            .graded(severity);
        self.tally.push(finding);
    }

    /// Bytes at the end that are no whole batch, and behind which none was found.
    fn tail(&mut self, header: Option<Plausible>, bounds: &Bounds) {
        let (start, end) = (self.position, self.window.end());
        let size = end - start;
        let context = *self.tally.context();
        let head = self.window.hold(start, RECORD_BATCH_OVERHEAD);
        let is_cut = header.is_some()
            || (head.len() < RECORD_BATCH_OVERHEAD && resync::is_beginning(head, bounds));
        let needed = Envelope::read(head, 0).map(|envelope| envelope.total() as u64);
        self.tally.count_damaged_bytes(size);
        self.position = end;
        let (kind, message, expected) = match (is_cut, needed) {
            (true, Some(needed)) => (
                FindingKind::TruncatedTail,
                format!(
                    "the file ends inside the batch at position {start}: {size} of its {needed} bytes are there"
                ),
                format!("{needed} bytes"),
            ),
            (true, None) => (
                FindingKind::TruncatedTail,
                format!("the file ends inside the header of the batch at position {start}"),
                "a whole batch".to_owned(),
            ),
            (false, _) => (
                FindingKind::GarbageTail,
                format!("{size} bytes after the last batch are neither a batch nor zeros"),
                "the end of the file".to_owned(),
            ),
        };
        let severity = match (context.is_active, context.stopped_cleanly) {
            (true, false) => Severity::Info,
            (true, true) => Severity::Warning,
            (false, _) => Severity::Error,
        };
        let finding = Finding::new(kind, message)
            .at(start, size)
            .values(expected, format!("{size} bytes"))
            .graded(severity);
        if is_cut {
            let offsets = header.map(|header| (header.base_offset, header.last_offset));
            self.tally.on_damage(finding, offsets);
        } else {
            self.tally.push(finding);
        }
    }
}

/// The part of `data` with the batches that begin in its first `room` bytes: the last of them alone,
/// when it comes first, and otherwise without it.
fn begun_within(data: &[u8], room: u64) -> &[u8] {
    let Some(room) = usize::try_from(room).ok().filter(|&room| room < data.len()) else {
        return data;
    };
    let first = Envelope::read(data, 0).filter(|envelope| envelope.size >= MIN_SIZE);
    let size = first.map_or(room, |envelope| envelope.total().max(room));
    data.get(..size).unwrap_or(data)
}

/// The finding of a fault inside a batch whose checksum is right.
fn record_finding(info: &BatchInfo, fault: &Error) -> Finding {
    let kind = match fault.kind {
        ErrorKind::TimestampAboveMaximum { .. } => FindingKind::TimestampSuspect,
        ErrorKind::ControlKey { .. }
        | ErrorKind::ControlValue { .. }
        | ErrorKind::ControlBatch { .. }
            if info.has_producer_id() =>
        {
            FindingKind::TransactionFault
        }
        kind => match kind.family() {
            Family::Compression => FindingKind::Undecodable,
            Family::Limit => FindingKind::LimitExceeded,
            _ => FindingKind::RecordFault,
        },
    };
    let (expected, found) = fault.kind.expected_and_found();
    let message = format!(
        "the batch at position {} (offsets {} to {}): {}",
        info.position, info.base_offset, info.last_offset, fault.kind
    );
    let finding = Finding::new(kind, message)
        .at(info.position, info.size)
        .offsets(info.base_offset, info.last_offset)
        .values(expected, found);
    let producer_id = info.has_producer_id().then_some(info.producer_id);
    Finding { record_index: fault.kind.record_index(), producer_id, ..finding }
}
