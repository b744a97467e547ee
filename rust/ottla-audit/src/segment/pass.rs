//! One pass over the batches of a segment or of a range of it: plain batches at full speed by the
//! kernels, and every other one by the rules.

use crate::segment::observation::BatchObservation;
use crate::segment::scan_error::ScanError;
use crate::segment::tally::{Tally, TallyMemory};
use crate::segment::walk::{RecentBatches, Walk, WalkState};
use ottla_format::check::{Checker, Level, earliest_timestamp, reaches_maximum};
use ottla_format::error::Error;
use ottla_format::header::{Envelope, MIN_SIZE, RECORD_BATCH_OVERHEAD, field};
use ottla_kernels::Run;
use ottla_log::resync::budget::Spending;
use ottla_log::resync::header::HeaderBounds;
use ottla_log::resync::search::Search;
use ottla_log::source::{Source, Window};
use std::io;
use std::ops::Range;

/// Ranges shorter than a window are read in pieces of this size at least.
const MIN_WINDOW_BYTES: u64 = 64 << 10;

/// The bytes of the leader epoch in a batch of magic 2.
const LEADER_EPOCH: Range<usize> = field::PARTITION_LEADER_EPOCH..field::MAGIC;

/// A pass over the batches of a segment, and where it is.
pub(crate) struct Pass<'c, 'a> {
    pub(crate) checker: &'c mut Checker,
    /// Where the memory of the window goes in the end.
    pub(crate) buffer: &'c mut Vec<u8>,
    pub(crate) window: Window<'a>,
    pub(crate) tally: Tally<'a>,
    pub(super) search: Search,
    /// Faults of the batch at the position, in memory that is used again.
    pub(super) faults: Vec<Error>,
    /// Where the next batch begins; at most the end of the window's source.
    pub(crate) position: u64,
    /// Whether the last valid batch was of magic 0 or 1, or there was none yet: formats only go up.
    pub(super) last_was_legacy: bool,
    pub(super) recent: RecentBatches,
    /// Whether wrappers of magic 0 and 1 are inflated at every level: only that shows their first
    /// offset.
    pub(super) opens_wrappers: bool,
}

impl<'c, 'a> Pass<'c, 'a> {
    /// A pass from the beginning of a source, of which about `size` bytes will be read. Takes the
    /// memory of `buffer` for its window.
    pub(super) fn new(
        checker: &'c mut Checker,
        buffer: &'c mut Vec<u8>,
        source: &'a dyn Source,
        size: u64,
        progress: &'a mut dyn FnMut(u64) -> bool,
        tally: Tally<'a>,
    ) -> io::Result<Self> {
        let memory = std::mem::take(buffer);
        let window = Window::new(source, memory, size.max(MIN_WINDOW_BYTES), progress)?;
        Ok(Self::over(checker, buffer, window, tally))
    }

    /// A pass from the beginning of a window.
    pub(super) fn over(
        checker: &'c mut Checker,
        buffer: &'c mut Vec<u8>,
        window: Window<'a>,
        tally: Tally<'a>,
    ) -> Self {
        Self {
            checker,
            buffer,
            window,
            tally,
            search: Search::after(Spending::default()),
            faults: Vec::new(),
            position: 0,
            last_was_legacy: true,
            recent: RecentBatches::default(),
            opens_wrappers: false,
        }
    }
}

impl Pass<'_, '_> {
    /// Walks over the batches that begin before `stop`.
    pub(crate) fn walk(&mut self, stop: u64) {
        self.walk_until(stop, &|| false);
    }

    /// The same until there are enough, and then to the end of what the window holds.
    pub(super) fn walk_until(&mut self, stop: u64, is_enough: &impl Fn() -> bool) {
        while self.goes_on(stop, is_enough) && !self.is_lost() {
            let from = self.position;
            self.run_plain(stop, is_enough);
            if self.position > from {
                self.recent.clear();
            }
            if !self.goes_on(stop, is_enough) {
                break;
            }
            self.step();
            if self.window.is_cancelled() {
                return;
            }
        }
    }

    /// Whether there is more before `stop`; once there is enough, more that the window holds as a
    /// whole.
    fn goes_on(&self, stop: u64, is_enough: &impl Fn() -> bool) -> bool {
        let is_held = || {
            let held = self.window.held(self.position);
            Envelope::read(held, 0)
                .is_some_and(|envelope| envelope.size >= MIN_SIZE && envelope.total() <= held.len())
        };
        self.position < stop.min(self.window.end()) && (!is_enough() || is_held())
    }

    /// Walks over the batches that begin before `stop`, and over those behind it until the next
    /// range can take over; over no more than `margin` bytes of them.
    pub(super) fn walk_range(&mut self, stop: u64, margin: u64) {
        self.walk(stop);
        self.walk_to_handover(stop, margin);
    }

    /// Goes on batch by batch until the next range, from `cut` on, can take over. Returns whether it
    /// can.
    fn walk_to_handover(&mut self, cut: u64, margin: u64) -> bool {
        let limit = self.window.end().min(cut.saturating_add(margin));
        while !self.recent.hands_over(cut) {
            if self.position >= limit.min(self.window.end())
                || self.is_lost()
                || self.window.is_cancelled()
            {
                return false;
            }
            let from = self.position;
            self.run_plain(from.saturating_add(1), &|| false);
            if self.position > from {
                let epoch = self.window.held(from).get(LEADER_EPOCH);
                let epoch = epoch.and_then(|epoch| epoch.first_chunk());
                self.recent.push(from, epoch.map_or(-1, |epoch| i32::from_be_bytes(*epoch)));
            } else {
                self.step();
            }
        }
        true
    }

    /// Finds the first batch of a range that begins anywhere, and goes on to where the walk depends
    /// on nothing before. From there on everything counts.
    pub(super) fn enter(&mut self, start: u64, stop: u64, margin: u64) -> Option<WalkState> {
        let bounds = self.bounds();
        self.position = self.search.first(&mut self.window, start, stop, &bounds)?;
        if !self.walk_to_handover(start, margin) {
            return None;
        }
        let memory = self.tally.begin_part()?;
        Some(self.state(memory))
    }

    /// Whether a walk that began somewhere was refused what a walk from the beginning may do.
    pub(super) fn is_lost(&self) -> bool {
        self.search.is_lost() || self.window.has_more_zeros()
    }

    fn state(&self, memory: TallyMemory) -> WalkState {
        WalkState {
            position: self.position,
            end: self.window.end(),
            failure: self.window.failure().map(ToString::to_string),
            last_was_legacy: self.last_was_legacy,
            recent: self.recent,
            memory,
        }
    }

    /// Returns the walk that ends here, from `entry` on.
    pub(super) fn suspend(self, entry: Option<WalkState>) -> Result<Walk, ScanError> {
        if self.window.is_cancelled() {
            return Err(ScanError::Stopped);
        }
        let spending = self.search.spending();
        let Self { buffer, tally, window, position, last_was_legacy, recent, .. } = self;
        let (end, failure) = (window.end(), window.failure().map(ToString::to_string));
        *buffer = window.into_buffer();
        let (scan, memory, growth) = tally.suspend();
        let exit = WalkState { position, end, failure, last_was_legacy, recent, memory };
        Ok(Walk { entry, exit, scan, growth, spending })
    }

    /// Walks over plain batches that begin before `stop` at full speed, window by window until there
    /// are enough.
    fn run_plain(&mut self, stop: u64, is_enough: &impl Fn() -> bool) {
        self.run_kernels(stop, is_enough, |checker, data, base, tally| {
            let kernels = checker.kernels();
            if checker.level() == Level::Full {
                ottla_kernels::timestamp_run(kernels, data, &mut |header, timestamps| {
                    let records = data.get(header.records_position()..header.end);
                    let records = records.unwrap_or_default();
                    let earliest = earliest_timestamp(header, timestamps, records);
                    tally.on_plain_batch(header, base, earliest);
                    if !reaches_maximum(header, timestamps) {
                        let info = BatchObservation::of_header(header, base).info;
                        tally.on_unreached_max_timestamp(&info);
                    }
                })
            } else if checker.level() == Level::Crc {
                ottla_kernels::crc_only_run(kernels, data, 0, &mut |header| {
                    let is_plain = header.is_ordinary();
                    if is_plain {
                        tally.on_plain_batch(header, base, None);
                    }
                    is_plain
                })
            } else {
                ottla_kernels::header_run(kernels, data, &mut |header| {
                    tally.on_plain_batch(header, base, None);
                })
            }
        });
    }

    /// The same with a run of the caller's choice. It is passed what the window holds and the
    /// position of that, and passes every batch that it takes to the tally.
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
            self.position = base.saturating_add(run.position as u64);
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
            let is_cut = position.saturating_add(rest.len() as u64) < window.end();
            return is_cut.then_some(RECORD_BATCH_OVERHEAD);
        };
        let total = envelope.total();
        let is_cut = envelope.magic == 2
            && envelope.size >= MIN_SIZE
            && rest.len() < total
            && total as u64 <= self.checker.limits().batch_bytes
            && position.saturating_add(total as u64) <= window.end();
        is_cut.then_some(total)
    }

    /// What a batch at the position must fit into.
    pub(super) fn bounds(&self) -> HeaderBounds {
        let order = self.tally.order();
        HeaderBounds {
            lowest: order.first_unseen().max(0),
            highest: order.last_possible(),
            batch_bytes: self.checker.limits().batch_bytes,
            allows_legacy: self.last_was_legacy,
        }
    }
}

/// The part of `data` with the batches that begin in its first `room` bytes: the last of them alone
/// when it comes first, and otherwise without it.
fn begun_within(data: &[u8], room: u64) -> &[u8] {
    let Some(room) = usize::try_from(room).ok().filter(|&room| room < data.len()) else {
        return data;
    };
    let first = Envelope::read(data, 0).filter(|envelope| envelope.size >= MIN_SIZE);
    let size = first.map_or(room, |envelope| envelope.total().max(room));
    data.get(..size).unwrap_or(data)
}
