//! Finding the next batch after damage.
//!
//! Kafka gives up where framing is lost. Here a place counts as a batch again when everything that
//! can be known of one agrees: every field of the header, an offset above the last good one and
//! inside the segment, a size within bounds, a successor that looks like a batch too (or the end),
//! and the CRC. By chance that happens once in 2^70 places.
//!
//! What chance cannot do, a value that holds captured batches can: these are sound. So a batch that
//! continues the offsets exactly is preferred, within a stretch, to the first sound one; and a batch
//! whose only fault is its size field is found by its own CRC, which no value inside it can fool.

use ottla_format::header::{
    CRC_START, Envelope, HEADER_UP_TO_MAGIC, Header, LOG_OVERHEAD, MIN_SIZE_V2,
    RECORD_BATCH_OVERHEAD, read_i32,
};
use ottla_format::record::MIN_RECORD_BYTES;
use ottla_format::{batch, legacy};
use ottla_log::source::Window;
use serde::{Deserialize, Serialize};

/// Bytes that may be hashed, or looked at again, for each byte scanned, so that bytes made to look
/// like batches cannot make the scan slower than this factor.
pub const BUDGET_PER_BYTE: u64 = 8;

/// What the budget begins with: a few large batches.
pub const BUDGET_AT_START: u64 = 256 << 20;

/// How far behind where a batch should end a better successor is looked for.
const STRETCH: u64 = 64 << 10;

/// The same where nothing tells the size of the damaged batch: Kafka's default bound of a batch.
const STRETCH_UNSIZED: u64 = 1 << 20;

/// How far the end of a batch whose size field is wrong is looked for by its CRC.
const PROOF_BYTES: u64 = 8 << 20;

/// Bytes seen of a candidate, enough for a header and the lengths of a legacy record with a usual key.
const LOOK: usize = 16 << 10;

/// What a batch behind damage must fit into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// First offset that was not seen yet.
    pub(crate) lowest: i64,
    /// Last offset the segment may hold.
    pub(crate) highest: i64,
    /// Largest batch.
    pub(crate) batch_bytes: u64,
    /// Whether magic 0 and 1 may come.
    pub(crate) allows_legacy: bool,
}

/// What a header says that obeys every rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plausible {
    /// Bytes.
    pub(crate) total: u64,
    /// First offset; of a legacy wrapper unknown, and then the last.
    pub(crate) base_offset: i64,
    /// Last offset.
    pub(crate) last_offset: i64,
    /// Whether the record count confirms the last offset.
    pub(crate) is_dense: bool,
}

/// Judges what stands at the start of `data` by every rule of a header. No more than the first
/// [`LOOK`] bytes count, however many there are.
pub(crate) fn plausible(data: &[u8], bounds: &Bounds) -> Option<Plausible> {
    let data = data.get(..LOOK).unwrap_or(data);
    match data.get(HEADER_UP_TO_MAGIC - 1)? {
        2 => plausible_v2(&Header::read(data, 0)?, bounds),
        0 | 1 if bounds.allows_legacy => plausible_legacy(data, bounds),
        _ => None,
    }
}

/// The rules of a magic 2 header, its magic aside. Stricter than Kafka: a batch of Kafka obeys
/// them all.
pub(crate) fn plausible_v2(header: &Header, bounds: &Bounds) -> Option<Plausible> {
    let total = u64::try_from(header.batch_length).ok()? + LOG_OVERHEAD as u64;
    let delta = header.last_offset_delta;
    let last_offset = header.base_offset.checked_add(i64::from(delta))?;
    let room = total.checked_sub(RECORD_BATCH_OVERHEAD as u64)?;
    let count = u64::try_from(header.record_count).ok()?;
    let is_idempotent = header.producer_id >= 0
        && header.producer_epoch >= 0
        && (header.base_sequence >= 0 || header.base_sequence == -1);
    let is_anonymous =
        header.producer_id == -1 && header.producer_epoch == -1 && !header.is_transactional();
    let fits = header.batch_length >= MIN_SIZE_V2
        && total <= bounds.batch_bytes
        && header.attributes & !0x7f == 0
        && header.codec() <= 4
        && delta >= 0
        && header.base_offset >= bounds.lowest
        && last_offset <= bounds.highest
        && count <= u64::from(delta as u32) + 1
        && (header.codec() != 0 || count * MIN_RECORD_BYTES as u64 <= room)
        && (is_idempotent || is_anonymous)
        && header.partition_leader_epoch >= -1;
    let is_dense = count == u64::from(delta as u32) + 1;
    fits.then_some(Plausible { total, base_offset: header.base_offset, last_offset, is_dense })
}

/// The rules of a legacy message: its key and value fill it exactly.
fn plausible_legacy(data: &[u8], bounds: &Bounds) -> Option<Plausible> {
    let envelope = Envelope::read(data, 0)?;
    let total = u64::try_from(envelope.size).ok()? + LOG_OVERHEAD as u64;
    let key_at = if envelope.magic == 0 { 18 } else { 26 };
    let key = read_i32(data, key_at)?;
    let value_at = key_at + 4 + usize::try_from(key.max(0)).ok()?;
    let value = read_i32(data, value_at)?;
    let used = value_at as u64 + 4 + u64::try_from(value.max(0)).ok()?;
    let attributes = *data.get(HEADER_UP_TO_MAGIC)?;
    let known_bits = if envelope.magic == 0 { 0x07 } else { 0x0f };
    let fits = envelope.size >= legacy::MIN_BODY as i32
        && total <= bounds.batch_bytes
        && used == total
        && key >= -1
        && value >= -1
        && attributes & !known_bits == 0
        && attributes & 7 <= 3
        && envelope.offset >= bounds.lowest
        && envelope.offset <= bounds.highest;
    let (base_offset, last_offset) = (envelope.offset, envelope.offset);
    fits.then_some(Plausible { total, base_offset, last_offset, is_dense: false })
}

/// The next place among the first `places` of `data` whose header obeys every rule.
fn next_plausible(data: &[u8], places: usize, bounds: &Bounds) -> Option<(usize, Plausible)> {
    let limit = bounds.batch_bytes.min(i32::MAX as u64) as u32;
    let mut at = 0;
    while at < places
        && let Some(head) = data.get(at..).and_then(|rest| rest.first_chunk::<HEADER_UP_TO_MAGIC>())
    {
        // The cheap part first: most places fail here.
        if head[16] <= 2 {
            let size = u32::from_be_bytes([head[8], head[9], head[10], head[11]]);
            if size >= legacy::MIN_BODY as u32
                && size <= limit
                && let Some(found) = plausible(data.get(at..).unwrap_or_default(), bounds)
            {
                return Some((at, found));
            }
        }
        at += 1;
    }
    None
}

/// A batch that failed, as the search needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspect {
    /// Where it begins.
    pub(crate) position: u64,
    /// Where its CRC begins to cover, and what it should be; `None` where there is no header.
    pub(crate) sum: Option<Sum>,
    /// What its header says, where that obeys the rules apart from being whole.
    pub(crate) header: Option<Plausible>,
    /// Where it ends by its own size, where that may be right.
    pub(crate) end: Option<u64>,
}

/// A stored checksum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    stored: u32,
    from: u64,
    is_legacy: bool,
}

impl Suspect {
    /// Reads what stands at `position`, of which `head` are the first bytes; `size` where it is a
    /// whole batch by its own size.
    pub(crate) fn read(head: &[u8], position: u64, size: Option<u64>, bounds: &Bounds) -> Self {
        let magic = head.get(HEADER_UP_TO_MAGIC - 1).copied();
        let is_legacy = bounds.allows_legacy && magic.is_some_and(|magic| magic < 2);
        let (stored_at, from) = if is_legacy { (12, 16) } else { (17, CRC_START) };
        let sum = read_i32(head, stored_at).map(|stored| Sum {
            stored: stored as u32,
            from: position + from as u64,
            is_legacy,
        });
        let header = plausible(head, bounds);
        let end = size.or(header.map(|header| header.total)).map(|size| position + size);
        Self { position, sum, header, end }
    }

    /// Whether its own offsets end right before this one. A last offset that the record count does
    /// not confirm may be what is damaged.
    fn is_followed_by(&self, base_offset: i64) -> bool {
        self.header.is_some_and(|header| {
            header.is_dense && header.last_offset.checked_add(1) == Some(base_offset)
        })
    }
}

/// How well a sound batch fits behind damage; the last fits best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Its offsets are above those before.
    Loose,
    /// And batches with higher offsets follow it, as far as it was looked: batches in a value end
    /// with the value.
    Chained,
    /// Its offsets continue those before, or those the damaged header gives.
    Exact,
    /// Both.
    ExactChained,
}

/// The CRC of a suspect over ever more bytes, each of them hashed once.
struct Proof {
    sum: Option<Sum>,
    reached: u64,
    state: ProofState,
}

enum ProofState {
    Castagnoli(u32),
    Legacy(crc32fast::Hasher),
}

impl Proof {
    fn new(suspect: &Suspect) -> Self {
        let is_legacy = suspect.sum.is_some_and(|sum| sum.is_legacy);
        let state = if is_legacy {
            ProofState::Legacy(crc32fast::Hasher::new())
        } else {
            ProofState::Castagnoli(0)
        };
        Self { sum: suspect.sum, reached: suspect.sum.map_or(0, |sum| sum.from), state }
    }

    /// Whether the CRC is that of the bytes up to `end`, which goes up from call to call.
    fn ends_at(&mut self, window: &mut Window<'_>, end: u64) -> bool {
        let Some(sum) = self.sum else { return false };
        if end <= sum.from || end - sum.from > PROOF_BYTES {
            return false;
        }
        let floor = if sum.is_legacy { 10 } else { (RECORD_BATCH_OVERHEAD - CRC_START) as u64 };
        let size = end.saturating_sub(self.reached) as usize;
        let Some(covered) = window.hold(self.reached, size).get(..size) else { return false };
        let computed = match &mut self.state {
            ProofState::Legacy(hasher) => {
                hasher.update(covered);
                hasher.clone().finalize()
            }
            ProofState::Castagnoli(crc) => {
                *crc = join_crc32c(*crc, ottla_kernels::crc32c(covered), size as u64);
                *crc
            }
        };
        self.reached = end;
        end - sum.from >= floor && computed == sum.stored
    }
}

/// The CRC-32C of two stretches of bytes put together, from the CRC of each and the size of the
/// second: the first times `x` to the power of the second's bits, modulo the polynomial.
fn join_crc32c(first: u32, second: u32, second_size: u64) -> u32 {
    let mut shifted = first;
    for (bit, &power) in POWERS.iter().enumerate() {
        if second_size >> bit & 1 == 1 {
            shifted = times(shifted, power);
        }
    }
    shifted ^ second
}

/// `x` to the power of 8, 16, 32 and so on: one byte, two bytes, four bytes.
const POWERS: [u32; 32] = {
    let mut powers = [0x0080_0000; 32];
    let mut bit = 1;
    while bit < 32 {
        powers[bit] = times(powers[bit - 1], powers[bit - 1]);
        bit += 1;
    }
    powers
};

/// The product of two polynomials modulo that of CRC-32C; bits are reflected.
const fn times(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 32;
    while bit > 0 {
        bit -= 1;
        product ^= b & (a >> bit & 1).wrapping_neg();
        b = (b >> 1) ^ (0x82f6_3b78 & (b & 1).wrapping_neg());
    }
    product
}

/// A batch found again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Where.
    pub(crate) position: u64,
    /// The CRC of the suspect is that of the bytes up to here: only its size field is wrong.
    pub(crate) proves_suspect: bool,
}

/// Searches behind damage within a budget that grows with the bytes scanned.
#[derive(Debug)]
pub(crate) struct Search {
    budget: u64,
    spending: Spending,
    /// Where looking for another batch is given up, as if the budget were spent.
    horizon: u64,
}

/// What a part of a walk did to the budget. A part that was never refused would have gone the same
/// way with any budget of at least `needed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spending {
    /// By how much the budget has changed.
    change: i64,
    /// The least budget that suffices.
    needed: u64,
    /// Whether the budget did not suffice once.
    was_refused: bool,
}

impl Spending {
    /// What is left of the budget that a walk from the beginning of a source starts with.
    fn left(&self) -> u64 {
        BUDGET_AT_START.saturating_add_signed(self.change)
    }

    /// Whether the part behind this one would have gone the same way after it; `is_anchored`: this
    /// one begins with the source.
    pub(crate) fn suffices(&self, right: &Self, is_anchored: bool) -> bool {
        !right.was_refused && (!is_anchored || self.left() >= right.needed)
    }

    /// Both parts together.
    pub(crate) fn join(&self, right: &Self) -> Self {
        let needed_before = i128::from(right.needed).saturating_sub(i128::from(self.change)).max(0);
        Self {
            change: self.change.saturating_add(right.change),
            needed: self.needed.max(u64::try_from(needed_before).unwrap_or(u64::MAX)),
            was_refused: self.was_refused,
        }
    }
}

impl Search {
    /// The search of a walk from the beginning of a source, or of one that has come this far.
    pub(crate) fn after(spending: Spending) -> Self {
        Self { budget: spending.left(), spending, horizon: u64::MAX }
    }

    /// The search of a walk whose beginning is not known, with a budget of its own. What it refuses,
    /// here or behind `horizon`, is left to a walk that knows.
    pub(crate) fn with_budget(budget: u64, horizon: u64) -> Self {
        Self { budget, spending: Spending::default(), horizon }
    }

    /// What was done to the budget.
    pub(crate) fn spending(&self) -> Spending {
        self.spending
    }

    /// Whether this search began somewhere, and could not do what one from the beginning may.
    pub(crate) fn is_lost(&self) -> bool {
        self.horizon < u64::MAX && self.spending.was_refused
    }

    /// These bytes will not be looked at again.
    pub(crate) fn earn(&mut self, bytes: u64) {
        let earned = bytes.saturating_mul(BUDGET_PER_BYTE);
        self.budget = self.budget.saturating_add(earned);
        self.spending.change =
            self.spending.change.saturating_add(i64::try_from(earned).unwrap_or(i64::MAX));
    }

    fn spend(&mut self, bytes: u64) -> bool {
        let spending = &mut self.spending;
        let Some(rest) = self.budget.checked_sub(bytes) else {
            spending.was_refused = true;
            return false;
        };
        self.budget = rest;
        spending.change = spending.change.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        spending.needed = spending.needed.max(spending.change.min(0).unsigned_abs());
        true
    }

    /// The first proven batch that begins at `from` or behind it and before `stop`.
    pub(crate) fn first(
        &mut self,
        window: &mut Window<'_>,
        from: u64,
        stop: u64,
        bounds: &Bounds,
    ) -> Option<u64> {
        let mut at = from;
        while !self.is_lost() && at < stop {
            let (position, header) = Self::scan(window, at, stop - at, bounds)?;
            if self.is_proven(window, position, &header, bounds) {
                return Some(position);
            }
            at = position + 1;
        }
        None
    }

    /// Whether a batch seems to begin at `position`, or the source ends there.
    pub(crate) fn stands(window: &mut Window<'_>, position: u64, bounds: &Bounds) -> bool {
        if position >= window.end() {
            return position == window.end();
        }
        let mut head = [0; 512];
        let size = window.peek(position, &mut head);
        let head = head.get(..size).unwrap_or_default();
        if size < RECORD_BATCH_OVERHEAD && position + size as u64 == window.end() {
            return is_beginning(head, bounds) || is_zero(head);
        }
        let magic = head.get(HEADER_UP_TO_MAGIC - 1).copied();
        if magic != Some(2) && plausible(head, bounds).is_none() {
            // A legacy key may be longer than what was peeked at.
            return magic.is_some_and(|magic| magic < 2)
                && bounds.allows_legacy
                && plausible(window.hold(position, LOOK), bounds).is_some();
        }
        plausible(head, bounds).is_some()
    }

    /// Whether the batch behind a suspect begins where its own offsets end.
    pub(crate) fn is_followed(window: &mut Window<'_>, suspect: &Suspect, bounds: &Bounds) -> bool {
        suspect.end.is_some_and(|end| {
            plausible(window.hold(end, LOOK), bounds)
                .is_some_and(|next| suspect.is_followed_by(next.base_offset))
        })
    }

    /// Whether the CRC of the suspect is that of its bytes up to the end of the source.
    pub(crate) fn ends_with_source(&mut self, window: &mut Window<'_>, suspect: &Suspect) -> bool {
        let end = window.end();
        self.spend(end.saturating_sub(suspect.position)) && Proof::new(suspect).ends_at(window, end)
    }

    /// The next plausible header in `size` bytes from `from` on.
    fn scan(
        window: &mut Window<'_>,
        from: u64,
        size: u64,
        bounds: &Bounds,
    ) -> Option<(u64, Plausible)> {
        let stop = from.saturating_add(size).min(window.end());
        let mut at = from;
        while at < stop {
            let held = window.hold(at, LOOK).len();
            // A candidate is judged by lengths that may lie beyond what is held.
            let is_all = at + held as u64 >= window.end();
            let places = if is_all { held } else { held.saturating_sub(LOOK - 1).max(1) };
            if let Some((skip, found)) = next_plausible(window.held(at), places, bounds) {
                let position = at + skip as u64;
                return (position < stop).then_some((position, found));
            }
            if is_all {
                return None;
            }
            at += places as u64;
        }
        None
    }

    /// The next proven batch behind the suspect. `is_framed`: a batch, proven or not, stands where the
    /// suspect ends by its own size; then only a better place nearby is of interest.
    pub(crate) fn behind(
        &mut self,
        window: &mut Window<'_>,
        suspect: &Suspect,
        is_framed: bool,
        bounds: &Bounds,
    ) -> Option<Found> {
        let start = suspect.position;
        let stretch =
            suspect.end.map_or(STRETCH_UNSIZED, |end| (end - start).saturating_add(STRETCH));
        // A batch that reaches to the end or beyond has no successor, and may be torn: what its value
        // holds is none, unless batches follow one another up to the very end.
        let is_last = suspect.end.is_some_and(|end| {
            end + RECORD_BATCH_OVERHEAD as u64 > window.end() || end >= window.zeros_from(start)
        });
        // A header that continues the log tells which offsets are its own, and where its value ends.
        let known =
            suspect.header.filter(|header| header.is_dense && header.base_offset == bounds.lowest);
        let lowest_loose =
            known.map_or(bounds.lowest, |header| header.last_offset.saturating_add(1));
        let inside = known.map_or(start, |header| start.saturating_add(header.total));
        let mut proof = Proof::new(suspect);
        let mut best: Option<(Rank, u64)> = None;
        let mut at = start + 1;
        loop {
            let is_bounded = is_framed || best.is_some();
            let size = if is_bounded {
                (start + stretch).saturating_sub(at)
            } else {
                self.horizon.saturating_sub(at)
            };
            let scanned = Self::scan(window, at, size, bounds);
            if scanned.is_none() && !is_bounded && self.horizon < window.end() {
                self.spending.was_refused = true;
                return None;
            }
            let reached = scanned.map_or(at.saturating_add(size).min(window.end()), |(p, _)| p + 1);
            let bytes = reached.saturating_sub(at);
            let fallback = best.map(|(_, position)| Found { position, proves_suspect: false });
            // Without a place to fall back to the bytes are passed for good; with one they will be
            // looked at again.
            if !is_bounded {
                self.earn(bytes);
            } else if !self.spend(bytes.saturating_mul(2)) {
                return fallback;
            }
            let Some((position, header)) = scanned else { return fallback };
            at = position + 1;
            if proof.ends_at(window, position) {
                return Some(Found { position, proves_suspect: true });
            }
            let is_exact =
                header.base_offset == bounds.lowest || suspect.is_followed_by(header.base_offset);
            if !is_exact && header.base_offset < lowest_loose {
                continue;
            }
            let (plain, chained) = match is_exact {
                true if position < inside => (Rank::Loose, Rank::ExactChained),
                true => (Rank::Exact, Rank::ExactChained),
                false => (Rank::Loose, Rank::Chained),
            };
            if best.is_some_and(|(known, _)| known >= chained) {
                continue;
            }
            let stop = if is_last && !is_exact { u64::MAX } else { start + stretch };
            let is_chained = self.is_chained(window, position, &header, stop, bounds);
            let rank = if is_chained { chained } else { plain };
            let is_better = best.is_none_or(|(known, _)| rank > known);
            if !is_better || (is_last && rank == Rank::Loose) {
                continue;
            }
            if self.is_proven(window, position, &header, bounds) {
                best = Some((rank, position));
            }
        }
    }

    /// Whether headers that obey the rules follow one another from `position` to `stop`, or to the
    /// end.
    fn is_chained(
        &mut self,
        window: &mut Window<'_>,
        position: u64,
        header: &Plausible,
        stop: u64,
        bounds: &Bounds,
    ) -> bool {
        let (mut at, mut header) = (position, *header);
        let mut ahead = Ahead::default();
        loop {
            // What a call of the system costs, shared by the headers that it brings.
            let cost = header.total.clamp(64, AHEAD as u64);
            at = at.saturating_add(header.total);
            if at >= stop || at == window.end() {
                return true;
            }
            if at > window.end() {
                return stop < u64::MAX;
            }
            let head = ahead.head(window, at);
            let behind = Bounds { lowest: header.last_offset.saturating_add(1), ..*bounds };
            match plausible(head, &behind) {
                Some(next) if self.spend(cost) => header = next,
                Some(_) => return false,
                // What a torn write or preallocation left behind the last batch.
                None => {
                    let is_short =
                        at + RECORD_BATCH_OVERHEAD as u64 > window.end() && stop < u64::MAX;
                    return window.zeros_from(position) <= at
                        || (is_short && is_beginning(head, &behind));
                }
            }
        }
    }

    /// Whether a batch whose header obeys the rules has a successor and the right CRC.
    fn is_proven(
        &mut self,
        window: &mut Window<'_>,
        position: u64,
        header: &Plausible,
        bounds: &Bounds,
    ) -> bool {
        let end = position.saturating_add(header.total);
        let behind = Bounds { lowest: header.last_offset.saturating_add(1), ..*bounds };
        let stands =
            end <= window.end() && (Self::stands(window, end, &behind) || is_zero_at(window, end));
        if !stands || !self.spend(header.total) {
            return false;
        }
        let size = header.total as usize;
        window.hold(position, size).get(..size).is_some_and(|whole| batch::verify(whole).is_ok())
    }
}

/// Bytes behind the window are read so many at once, about as long as hashing as many.
const AHEAD: usize = 4096;

/// Bytes that a header and the lengths of a short legacy key take.
const HEAD: usize = 512;

/// A few headers read ahead of the window.
struct Ahead {
    bytes: [u8; AHEAD],
    start: u64,
    size: usize,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { bytes: [0; AHEAD], start: 0, size: 0 }
    }
}

impl Ahead {
    /// The bytes at `position`, [`HEAD`] of them where there are so many.
    fn head(&mut self, window: &mut Window<'_>, position: u64) -> &[u8] {
        let wanted = (HEAD as u64).min(window.end().saturating_sub(position)) as usize;
        let skip = position.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        let held = skip.filter(|skip| skip.saturating_add(wanted) <= self.size);
        if held.is_none() {
            self.size = window.peek(position, &mut self.bytes);
            self.start = position;
        }
        let skip = held.unwrap_or(0);
        self.bytes.get(skip..self.size.min(skip.saturating_add(wanted))).unwrap_or_default()
    }
}

fn is_zero(data: &[u8]) -> bool {
    data.iter().all(|&byte| byte == 0)
}

/// Whether at least a header's worth of zeros stands at `position`, as behind the last batch of a
/// preallocated file.
fn is_zero_at(window: &mut Window<'_>, position: u64) -> bool {
    let mut head = [0xff; RECORD_BATCH_OVERHEAD];
    let size = window.peek(position, &mut head);
    head.get(..size).is_some_and(is_zero)
}

/// Whether bytes at the end of a source, fewer than a header, can be the beginning of a batch.
pub(crate) fn is_beginning(head: &[u8], bounds: &Bounds) -> bool {
    let offset = ottla_format::header::read_i64(head, 0);
    let size = read_i32(head, 8);
    let magic = head.get(HEADER_UP_TO_MAGIC - 1);
    offset.is_none_or(|offset| (bounds.lowest..=bounds.highest).contains(&offset))
        && size.is_none_or(|size| {
            size >= if bounds.allows_legacy { legacy::MIN_BODY as i32 } else { MIN_SIZE_V2 }
                && size as u64 + LOG_OVERHEAD as u64 <= bounds.batch_bytes
        })
        && magic.is_none_or(|&magic| magic == 2 || (magic < 2 && bounds.allows_legacy))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Earns (above 0) and spends (below) one after the other: whether all could be spent.
    fn use_up(search: &mut Search, amounts: &[i64]) -> bool {
        amounts.iter().all(|&amount| {
            if amount > 0 {
                search.earn(amount as u64);
            }
            amount > 0 || search.spend(amount.unsigned_abs())
        })
    }

    #[test]
    fn a_part_of_a_walk_goes_the_same_way_after_any_part_that_leaves_it_enough() {
        let start = BUDGET_AT_START as i64;
        let lefts = [
            vec![],
            vec![-start],
            vec![100, -start],
            vec![-start + 50, 10],
            vec![-50, 40, -start + 500],
        ];
        let rights =
            [vec![], vec![-1], vec![-400, 30, -241], vec![70, -560], vec![-90, 1000, -900]];
        let mut refused = 0;
        for left in &lefts {
            let mut first = Search::after(Spending::default());
            assert!(use_up(&mut first, left));
            for right in &rights {
                let mut alone = Search::with_budget(1000, u64::MAX);
                assert!(use_up(&mut alone, right));
                let mut behind = Search::after(first.spending());
                let suffices = use_up(&mut behind, right);
                assert_eq!(first.spending().suffices(&alone.spending(), true), suffices);
                assert!(first.spending().suffices(&alone.spending(), false));
                if suffices {
                    assert_eq!(first.spending().join(&alone.spending()), behind.spending());
                }
                refused += u32::from(!suffices);
            }
        }
        assert!(refused > 3, "{refused}");
        let mut short = Search::with_budget(10, 99);
        assert!(!use_up(&mut short, &[-11]));
        assert!(short.is_lost());
        assert!(!Spending::default().suffices(&short.spending(), false));
    }

    #[test]
    fn a_budget_that_was_used_up_beyond_all_bounds_is_refused_no_less() {
        let spending = Spending { change: i64::MIN, ..Spending::default() };
        let mut search = Search { budget: 10, ..Search::after(spending) };
        assert!(use_up(&mut search, &[-1]));
        assert!(!use_up(&mut search, &[-10]));
        assert_eq!(search.spending().needed, 1 << 63);
    }

    #[test]
    fn the_crc_of_two_stretches_is_that_of_both_together() {
        let bytes: Vec<u8> = (0..5000u32).map(|i| (i * 31 % 251) as u8).collect();
        for cut in [0, 1, 7, 8, 61, 255, 256, 4095, 5000] {
            let (first, second) = bytes.split_at(cut);
            let (a, b) = (ottla_kernels::crc32c(first), ottla_kernels::crc32c(second));
            assert_eq!(join_crc32c(a, b, second.len() as u64), ottla_kernels::crc32c(&bytes));
        }
    }
}
