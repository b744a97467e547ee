//! The search for a batch: behind damage, or the first of a range.

use super::budget::{Budget, Spending};
use super::header::{HeaderBounds, LOOK_BYTES, PlausibleHeader, is_beginning, magic_of};
use super::read_ahead::{READ_AHEAD_BYTES, ReadAhead, is_zero, is_zero_at};
use super::size_proof::{SizeProof, StoredCrc};
use crate::source::Window;
use ottla_format::batch;
use ottla_format::header::RECORD_BATCH_OVERHEAD;

/// How far behind the end of a damaged batch a better successor is searched for.
const STRETCH: u64 = 64 << 10;

/// The same where nothing shows the size of the damaged batch: Kafka's default bound of a batch.
const STRETCH_UNSIZED: u64 = 1 << 20;

/// Bytes that show whether a batch begins with them.
const PEEK_BYTES: usize = 512;

/// A batch that failed, as the search needs it.
#[derive(Clone, Copy, Debug)]
pub struct Suspect {
    /// Where it begins.
    pub position: u64,
    /// The CRC it stores; `None` where there is no header.
    stored_crc: Option<StoredCrc>,
    /// Its header, where that obeys the rules.
    pub header: Option<PlausibleHeader>,
    /// Where it ends by its own size, where that may be right.
    end: Option<u64>,
}

impl Suspect {
    /// Reads what stands at `position`, of which `head` are the first bytes; `size` where it is a
    /// whole batch by its own size.
    pub fn read(head: &[u8], position: u64, size: Option<u64>, bounds: &HeaderBounds) -> Self {
        let is_legacy = bounds.allows_legacy && magic_of(head).is_some_and(|magic| magic < 2);
        let stored_crc = StoredCrc::read(head, position, is_legacy);
        let header = PlausibleHeader::read(head, bounds);
        let size = size.or(header.map(|header| header.total));
        let end = size.map(|size| position.saturating_add(size));
        Self { position, stored_crc, header, end }
    }

    /// Whether its own offsets end right before this one. A last offset that the record count does
    /// not confirm may be what is damaged.
    fn is_followed_by(&self, base_offset: i64) -> bool {
        self.header.is_some_and(|header| {
            header.is_dense && header.last_offset.checked_add(1) == Some(base_offset)
        })
    }

    /// Whether the batch behind it begins where its own offsets end.
    pub fn is_followed(&self, window: &mut Window<'_>, bounds: &HeaderBounds) -> bool {
        self.end.is_some_and(|end| {
            PlausibleHeader::read(window.hold(end, LOOK_BYTES), bounds)
                .is_some_and(|next| self.is_followed_by(next.base_offset))
        })
    }
}

/// How well a valid batch fits behind damage; the last fits best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// Its offsets are above those before.
    Loose,
    /// Its offsets are above those before, and batches with higher offsets follow it, as far as was
    /// searched: batches in a value end with the value.
    Chained,
    /// Its offsets continue those before, or those in the damaged header.
    Exact,
    /// Its offsets continue, and batches with higher offsets follow it.
    ExactChained,
}

/// A batch found again.
#[derive(Clone, Copy, Debug)]
pub struct FoundBatch {
    /// Where.
    pub position: u64,
    /// Whether the CRC of the suspect is that of the bytes up to here: then only its size field is
    /// wrong.
    pub proves_suspect: bool,
}

/// What a suspect shows about the batch behind it.
struct Expectation<'a> {
    suspect: &'a Suspect,
    bounds: &'a HeaderBounds,
    /// How far a better batch than the first is searched for.
    stretch_end: u64,
    /// Whether the suspect reaches to the end or beyond. Then it has no successor, and may be torn:
    /// what its value holds is no batch of the log, unless batches follow one another up to the very
    /// end.
    is_last: bool,
    /// A batch that does not continue the offsets begins here or above.
    lowest_loose: i64,
    /// A batch before this position may be inside the value of the suspect.
    value_end: u64,
}

impl<'a> Expectation<'a> {
    fn new(window: &mut Window<'_>, suspect: &'a Suspect, bounds: &'a HeaderBounds) -> Self {
        let start = suspect.position;
        let stretch = suspect
            .end
            .map_or(STRETCH_UNSIZED, |end| end.saturating_sub(start).saturating_add(STRETCH));
        let is_last = suspect.end.is_some_and(|end| {
            end.saturating_add(RECORD_BATCH_OVERHEAD as u64) > window.end()
                || end >= window.zeros_from(start)
        });
        // A header that continues the log shows which offsets are its own, and where its value ends.
        let known =
            suspect.header.filter(|header| header.is_dense && header.base_offset == bounds.lowest);
        Self {
            suspect,
            bounds,
            stretch_end: start.saturating_add(stretch),
            is_last,
            lowest_loose: known.map_or(bounds.lowest, |header| header.next_offset()),
            value_end: known.map_or(start, |header| start.saturating_add(header.total)),
        }
    }

    /// Whether a batch continues the offsets before the suspect, or those in its header.
    fn is_continued_by(&self, header: &PlausibleHeader) -> bool {
        header.base_offset == self.bounds.lowest || self.suspect.is_followed_by(header.base_offset)
    }
}

/// Searches behind damage within a budget.
#[derive(Debug)]
pub struct Search {
    budget: Budget,
    /// Where the search for a batch ends as if the budget were spent; `u64::MAX` for the search of a
    /// walk from the beginning of a source.
    horizon: u64,
}

impl Search {
    /// The search of a walk from the beginning of a source that has spent this much.
    pub fn after(spending: Spending) -> Self {
        Self { budget: Budget::after(spending), horizon: u64::MAX }
    }

    /// The search of a walk whose beginning is not known, with a budget of its own. What it refuses,
    /// here or behind `horizon`, is left to a walk that knows.
    pub fn with_budget(bytes: u64, horizon: u64) -> Self {
        Self { budget: Budget::new(bytes), horizon }
    }

    /// What was done to the budget.
    pub fn spending(&self) -> Spending {
        self.budget.spending()
    }

    /// Adds what these bytes earn: they will not be read again.
    pub fn earn(&mut self, bytes: u64) {
        self.budget.earn(bytes);
    }

    /// Whether this search began somewhere, and could not do what one from the beginning may.
    pub fn is_lost(&self) -> bool {
        self.horizon < u64::MAX && self.budget.was_refused()
    }

    /// Returns the position of the first proven batch that begins at `from` or behind it and before
    /// `stop`.
    pub fn first(
        &mut self,
        window: &mut Window<'_>,
        from: u64,
        stop: u64,
        bounds: &HeaderBounds,
    ) -> Option<u64> {
        let mut at = from;
        while !self.is_lost() && at < stop {
            let (position, header) = find_plausible(window, at, stop.saturating_sub(at), bounds)?;
            if self.is_proven(window, position, &header, bounds) {
                return Some(position);
            }
            at = position.saturating_add(1);
        }
        None
    }

    /// Whether the CRC of the suspect is that of its bytes up to the end of the source.
    pub fn ends_with_source(&mut self, window: &mut Window<'_>, suspect: &Suspect) -> bool {
        let end = window.end();
        self.budget.spend(end.saturating_sub(suspect.position))
            && SizeProof::new(suspect.stored_crc).ends_at(window, end)
    }

    /// Returns the next proven batch behind the suspect. `is_framed`: a batch, proven or not, stands
    /// where the suspect ends by its own size; then only a better place nearby is of interest.
    pub fn behind(
        &mut self,
        window: &mut Window<'_>,
        suspect: &Suspect,
        is_framed: bool,
        bounds: &HeaderBounds,
    ) -> Option<FoundBatch> {
        let expected = Expectation::new(window, suspect, bounds);
        let mut proof = SizeProof::new(suspect.stored_crc);
        let mut best: Option<(Fit, u64)> = None;
        let mut at = suspect.position.saturating_add(1);
        loop {
            let is_bounded = is_framed || best.is_some();
            let stop = if is_bounded { expected.stretch_end } else { self.horizon };
            let size = stop.saturating_sub(at);
            let candidate = find_plausible(window, at, size, bounds);
            if candidate.is_none() && !is_bounded && self.horizon < window.end() {
                self.budget.refuse();
                return None;
            }
            let reached = match candidate {
                Some((position, _)) => position.saturating_add(1),
                None => at.saturating_add(size).min(window.end()),
            };
            let bytes = reached.saturating_sub(at);
            let fallback = best.map(|(_, position)| FoundBatch { position, proves_suspect: false });
            // Without a place to fall back to, the bytes are passed for good; with one, they will be
            // read again.
            if !is_bounded {
                self.budget.earn(bytes);
            } else if !self.budget.spend(bytes.saturating_mul(2)) {
                return fallback;
            }
            let Some((position, header)) = candidate else { return fallback };
            at = reached;
            if proof.ends_at(window, position) {
                return Some(FoundBatch { position, proves_suspect: true });
            }
            let known = best.map(|(fit, _)| fit);
            if let Some(fit) = self.better_fit(window, &expected, position, &header, known)
                && self.is_proven(window, position, &header, bounds)
            {
                best = Some((fit, position));
            }
        }
    }

    /// Returns how well a batch would fit, if that is better than `known`.
    fn better_fit(
        &mut self,
        window: &mut Window<'_>,
        expected: &Expectation<'_>,
        position: u64,
        header: &PlausibleHeader,
        known: Option<Fit>,
    ) -> Option<Fit> {
        let is_exact = expected.is_continued_by(header);
        if !is_exact && header.base_offset < expected.lowest_loose {
            return None;
        }
        let (alone, chained) = match is_exact {
            true if position < expected.value_end => (Fit::Loose, Fit::ExactChained),
            true => (Fit::Exact, Fit::ExactChained),
            false => (Fit::Loose, Fit::Chained),
        };
        if known >= Some(chained) {
            return None;
        }
        let stop = (is_exact || !expected.is_last).then_some(expected.stretch_end);
        let is_chained = self.is_chained(window, position, header, stop, expected.bounds);
        let fit = if is_chained { chained } else { alone };
        let is_better = known.is_none_or(|known| fit > known);
        (is_better && !(expected.is_last && fit == Fit::Loose)).then_some(fit)
    }

    /// Whether headers that obey the rules follow one another from `position` to `stop`, or to the
    /// end of the source; without a stop, up to the very end.
    fn is_chained(
        &mut self,
        window: &mut Window<'_>,
        position: u64,
        header: &PlausibleHeader,
        stop: Option<u64>,
        bounds: &HeaderBounds,
    ) -> bool {
        let (mut at, mut header) = (position, *header);
        let mut ahead = ReadAhead::default();
        loop {
            // What a call of the system costs, shared by the headers that it brings.
            let cost = header.total.clamp(64, READ_AHEAD_BYTES as u64);
            at = at.saturating_add(header.total);
            if stop.is_some_and(|stop| at >= stop) || at == window.end() {
                return true;
            }
            if at > window.end() {
                return stop.is_some();
            }
            let head = ahead.head(window, at);
            let behind = bounds.behind(&header);
            match PlausibleHeader::read(head, &behind) {
                Some(next) if self.budget.spend(cost) => header = next,
                Some(_) => return false,
                // What a torn write or preallocation left behind the last batch.
                None => {
                    let header_end = at.saturating_add(RECORD_BATCH_OVERHEAD as u64);
                    let is_short = header_end > window.end() && stop.is_some();
                    return window.zeros_from(position) <= at
                        || (is_short && is_beginning(head, &behind));
                }
            }
        }
    }

    /// Whether a batch whose header obeys the rules has a successor and a correct CRC.
    fn is_proven(
        &mut self,
        window: &mut Window<'_>,
        position: u64,
        header: &PlausibleHeader,
        bounds: &HeaderBounds,
    ) -> bool {
        let end = position.saturating_add(header.total);
        let behind = bounds.behind(header);
        let has_successor = end <= window.end()
            && (seems_to_begin(window, end, &behind) || is_zero_at(window, end));
        if !has_successor || !self.budget.spend(header.total) {
            return false;
        }
        let size = header.total as usize;
        window.hold(position, size).get(..size).is_some_and(|whole| batch::verify(whole).is_ok())
    }
}

/// Whether a batch seems to begin at `position`, or the source ends there.
pub fn seems_to_begin(window: &mut Window<'_>, position: u64, bounds: &HeaderBounds) -> bool {
    if position >= window.end() {
        return position == window.end();
    }
    let mut head = [0; PEEK_BYTES];
    let size = window.peek(position, &mut head);
    let head = head.get(..size).unwrap_or(&head);
    let is_end = position.saturating_add(size as u64) == window.end();
    if size < RECORD_BATCH_OVERHEAD && is_end {
        return is_beginning(head, bounds) || is_zero(head);
    }
    if PlausibleHeader::read(head, bounds).is_some() {
        return true;
    }
    // A legacy key may be longer than what was peeked at.
    bounds.allows_legacy
        && magic_of(head).is_some_and(|magic| magic < 2)
        && PlausibleHeader::read(window.hold(position, LOOK_BYTES), bounds).is_some()
}

/// Returns the next plausible header in `size` bytes from `from` on, and where it is.
fn find_plausible(
    window: &mut Window<'_>,
    from: u64,
    size: u64,
    bounds: &HeaderBounds,
) -> Option<(u64, PlausibleHeader)> {
    let stop = from.saturating_add(size).min(window.end());
    let mut at = from;
    while at < stop {
        let held = window.held(at);
        if is_zero(held.get(..LOOK_BYTES).unwrap_or(held)) {
            // A batch may begin with zeros before its first other byte, which may be behind `stop`.
            let data = window.next_data(at).saturating_sub(LOOK_BYTES as u64);
            if data > at {
                at = data;
                continue;
            }
        }
        let held = window.hold(at, LOOK_BYTES).len();
        // A candidate is judged by lengths that may lie beyond what is held.
        let is_all = at.saturating_add(held as u64) >= window.end();
        let judged = held.saturating_sub(LOOK_BYTES).saturating_add(1);
        let places = if is_all { held } else { judged };
        if let Some((skip, found)) = PlausibleHeader::find(window.held(at), places, bounds) {
            let position = at.saturating_add(skip as u64);
            return (position < stop).then_some((position, found));
        }
        if is_all {
            return None;
        }
        at = at.saturating_add(places as u64);
    }
    None
}
