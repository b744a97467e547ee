//! `.index` and `.timeindex` held against the batches of their segment, in a form that joins.
//!
//! Entries are checked in the pass over the log. One of the offset index is judged where its batch
//! is, with the entry before it at hand, so it needs nothing from elsewhere. One of the time index
//! needs the greatest timestamp up to its offset, and waits for the parts on the left:
//!
//! ```text
//! .index      entry (o, p):  a batch begins at p; its base offset is at most o, and above the o of
//!                            the entry before
//! .timeindex  entry (t, o):  t is the greatest timestamp of the batches that begin at or below o
//! ```
//!
//! That is what a lookup relies on, and no more. Brokers before 0.11 note the first offset of what
//! they append, later ones the last; a follower appends several batches at once; magic 0 has no
//! timestamps, but its index has those of the clock. What damage took may have held anything.

use crate::catalogue::finding::{Finding, SideFile};
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::segment::context::SegmentContext;
use ottla_log::sidefiles::offset_index::{self, OFFSET_ENTRY_BYTES, OffsetEntry};
use ottla_log::sidefiles::time_index::{self, TIME_ENTRY_BYTES, TimeEntry};
use serde::{Deserialize, Serialize};

/// Bytes of entries that are looked at: more than a broker writes unless it is told to
/// (`segment.index.bytes`), and a bound on what an index takes of memory.
pub const MAX_INDEX_BYTES: usize = 16 << 20;

/// Entries that are looked at, of the kind that takes less.
const MAX_ENTRIES: usize = MAX_INDEX_BYTES / OFFSET_ENTRY_BYTES;

/// What the two index files of a segment hold, up to the zeros that follow while they are in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexes {
    base_offset: i64,
    offsets: Vec<OffsetEntry>,
    times: Vec<TimeEntry>,
    /// How many entries there are before the first that goes back; only those are held against the
    /// log.
    placed: usize,
    timed: usize,
    /// Bytes of the files, where there are any.
    offset_bytes: Option<u64>,
    time_bytes: Option<u64>,
    is_cut: bool,
}

impl Indexes {
    /// No index files.
    pub const NONE: &'static Self = &Self::new(0);

    /// The indexes of a segment, still without entries.
    pub const fn new(base_offset: i64) -> Self {
        Self {
            base_offset,
            offsets: Vec::new(),
            times: Vec::new(),
            placed: 0,
            timed: 0,
            offset_bytes: None,
            time_bytes: None,
            is_cut: false,
        }
    }

    /// There is an `.index` of this many bytes.
    pub fn has_offsets(&mut self, bytes: u64) {
        self.offset_bytes = Some(bytes);
    }

    /// There is a `.timeindex` of this many bytes.
    pub fn has_times(&mut self, bytes: u64) {
        self.time_bytes = Some(bytes);
    }

    /// Takes the next whole entries of the `.index`: whether more may follow.
    pub fn add_offsets(&mut self, data: &[u8]) -> bool {
        for entry in offset_index::entries(data) {
            let number = self.offsets.len();
            let is_zero = entry.relative_offset == 0 && entry.position == 0;
            if entry.is_unused(number) || is_zero {
                return false;
            }
            if (number + 1) * OFFSET_ENTRY_BYTES > MAX_INDEX_BYTES {
                self.is_cut = true;
                return false;
            }
            let before = self.offsets.last().map_or(i32::MIN, |before| before.position);
            if self.placed == number && (number == 0 || entry.position > before) {
                self.placed += 1;
            }
            self.offsets.push(entry);
        }
        true
    }

    /// Takes the next whole entries of the `.timeindex`: whether more may follow.
    pub fn add_times(&mut self, data: &[u8]) -> bool {
        for entry in time_index::entries(data) {
            let number = self.times.len();
            if entry.timestamp == 0 && entry.relative_offset == 0 {
                return false;
            }
            if (number + 1) * TIME_ENTRY_BYTES > MAX_INDEX_BYTES {
                self.is_cut = true;
                return false;
            }
            let before = self.times.last().map_or(i32::MIN, |before| before.relative_offset);
            if self.timed == number && entry.relative_offset >= before {
                self.timed += 1;
            }
            self.times.push(entry);
        }
        true
    }

    /// Entries of the `.index` whose positions go up.
    fn placed(&self) -> &[OffsetEntry] {
        self.offsets.get(..self.placed).unwrap_or_default()
    }

    /// Entries of the `.timeindex` whose offsets do not go back.
    fn timed(&self) -> &[TimeEntry] {
        self.times.get(..self.timed).unwrap_or_default()
    }

    /// Number of the first entry at or behind a position.
    fn offset_entry_at(&self, position: u64) -> usize {
        let position = i64::try_from(position).unwrap_or(i64::MAX);
        self.placed().partition_point(|entry| i64::from(entry.position) < position)
    }

    /// Number of the first entry at or above an offset.
    fn time_entry_at(&self, offset: i64) -> usize {
        self.timed().partition_point(|entry| entry.offset(self.base_offset) < offset)
    }

    fn offset_of(&self, number: usize) -> Option<i64> {
        Some(self.offsets.get(number)?.offset(self.base_offset))
    }

    /// An entry whose position is that of a batch with this base offset.
    fn judge(&self, number: usize, base_offset: i64) -> Wrong {
        let before = number.checked_sub(1);
        if let Some(before) = before
            && self.offset_of(before).is_some_and(|offset| offset >= base_offset)
        {
            return Some((before, Fault::Far { base_offset }));
        }
        let is_above = self.offset_of(number).is_some_and(|offset| offset < base_offset);
        is_above.then_some((number, Fault::Above { base_offset }))
    }

    fn offset_order(&self) -> Wrong {
        let goes_back = |pair: &[OffsetEntry]| match pair {
            [before, entry] => {
                entry.relative_offset <= before.relative_offset || entry.position <= before.position
            }
            _ => false,
        };
        let first = self.offsets.windows(2).position(goes_back)?;
        Some((first + 1, Fault::Order))
    }

    fn time_order(&self) -> Wrong {
        let goes_back = |pair: &[TimeEntry]| match pair {
            [before, entry] => {
                entry.timestamp <= before.timestamp
                    || entry.relative_offset < before.relative_offset
            }
            _ => false,
        };
        let first = self.times.windows(2).position(goes_back)?;
        Some((first + 1, Fault::Order))
    }
}

/// A batch as the indexes see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedBatch {
    /// Where it begins.
    pub position: u64,
    /// Where it ends.
    pub end: u64,
    /// Its first offset.
    pub base_offset: i64,
    /// Its max timestamp; `None` where the format has none.
    pub timestamp: Option<i64>,
}

/// What is wrong with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Fault {
    /// Points into the batch that begins at `start`.
    NoBatch { start: u64 },
    /// The batch there begins above the offset of the entry.
    Above { base_offset: i64 },
    /// The batch of the next entry begins at or below the offset of this one.
    Far { base_offset: i64 },
    /// Not above the entry before.
    Order,
    /// Names what lies behind the end of the log.
    Beyond { end: i64 },
    /// The greatest timestamp up to the offset is another.
    Timestamp { greatest: i64 },
}

/// The first wrong entry of a file, and what is wrong with it.
type Wrong = Option<(usize, Fault)>;

fn earlier(left: Wrong, right: Wrong) -> Wrong {
    match (left, right) {
        (Some(left), Some(right)) if right.0 < left.0 => Some(right),
        (left, right) => left.or(right),
    }
}

/// The entries of the `.index` that fall into one part of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Offsets {
    /// Number of the first entry at the first batch of this part or behind.
    start: Option<usize>,
    /// The next entry to be judged.
    next: usize,
    wrong: Wrong,
    /// Where the last sound batch begins and ends.
    last: (u64, u64),
}

impl Offsets {
    /// A sound batch; without a base offset one that is out of place, of which nothing is asked.
    fn at(&mut self, indexes: &Indexes, position: u64, end: u64, base_offset: Option<i64>) {
        let here = indexes.offset_entry_at(position);
        if self.start.is_none() {
            (self.start, self.next) = (Some(here), here);
        }
        self.settle(indexes, here);
        let entry = indexes.placed().get(self.next);
        if entry.is_some_and(|entry| i64::from(entry.position) == position as i64) {
            let wrong = base_offset.and_then(|base_offset| indexes.judge(self.next, base_offset));
            self.wrong = earlier(self.wrong, wrong);
            self.next += 1;
        }
        self.last = (position, end);
    }

    /// Entries up to this number, which point to no batch.
    fn settle(&mut self, indexes: &Indexes, until: usize) {
        let (start, end) = self.last;
        for number in self.next..until {
            let entry = indexes.placed().get(number);
            // Behind a sound batch lie bytes that cannot be read: nobody knows.
            if entry.is_some_and(|entry| i64::from(entry.position) < end as i64) {
                self.wrong = earlier(self.wrong, Some((number, Fault::NoBatch { start })));
            }
        }
        self.next = self.next.max(until);
    }

    fn join(self, right: Self) -> Self {
        match (self.start, right.start) {
            (_, None) => self,
            (None, _) => right,
            (start, _) => Self { start, wrong: earlier(self.wrong, right.wrong), ..right },
        }
    }

    /// Whether an index of bounded size has such entries.
    fn is_possible(&self) -> bool {
        let wrong = self.wrong.map_or(0, |(number, _)| number);
        [self.start.unwrap_or(0), self.next, wrong].iter().all(|&number| number <= MAX_ENTRIES)
    }

    /// The segment ends before the offset `end`, which is `None` where its end is not known.
    fn finish(mut self, indexes: &Indexes, end: Option<i64>) -> Wrong {
        // Before the first batch there is nothing to point to but lost bytes.
        let is_negative = indexes.placed().first().is_some_and(|entry| entry.position < 0);
        let before = is_negative.then_some((0, Fault::NoBatch { start: 0 }));
        self.settle(indexes, indexes.offset_entry_at(self.last.1));
        let wrong = earlier(before, earlier(self.wrong, indexes.offset_order()));
        let Some(end) = end else { return wrong };
        let is_beyond = |entry: &OffsetEntry| entry.offset(indexes.base_offset) >= end;
        let beyond = indexes.placed().iter().position(is_beyond);
        let behind = Some(self.next).filter(|&next| next < indexes.placed().len());
        let beyond = beyond.into_iter().chain(behind).min();
        earlier(wrong, beyond.map(|number| (number, Fault::Beyond { end })))
    }
}

/// The greatest timestamp of a part of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Greatest {
    timestamp: i64,
    /// Whether there may have been a greater one: in batches without timestamps, or in lost bytes.
    is_partial: bool,
}

impl Default for Greatest {
    fn default() -> Self {
        Self { timestamp: i64::MIN, is_partial: false }
    }
}

impl Greatest {
    fn join(self, right: Self) -> Self {
        Self {
            timestamp: self.timestamp.max(right.timestamp),
            is_partial: self.is_partial || right.is_partial,
        }
    }
}

/// Entries of the `.timeindex`, one after the other, up to whose offsets the greatest timestamp is the
/// same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Settled {
    /// Number of the first.
    start: usize,
    /// Number behind the last.
    stop: usize,
    greatest: Greatest,
}

/// The entries of the `.timeindex` that fall into one part of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Times {
    /// Number of the first entry at the first batch in its place or behind, and what was before it.
    start: Option<(usize, Greatest)>,
    /// The next entry to be judged.
    next: usize,
    /// Entries in order, with the greatest timestamp of this part up to their offsets.
    settled: Vec<Settled>,
    greatest: Greatest,
}

impl Times {
    fn at(&mut self, indexes: &Indexes, base_offset: i64, timestamp: Option<i64>) {
        let here = indexes.time_entry_at(base_offset);
        if self.start.is_none() {
            (self.start, self.next) = (Some((here, self.greatest)), here);
        }
        self.settle(here);
        let is_partial = timestamp.is_none();
        let timestamp = timestamp.unwrap_or(i64::MIN);
        self.greatest = self.greatest.join(Greatest { timestamp, is_partial });
    }

    fn settle(&mut self, until: usize) {
        let (start, greatest) = (self.next, self.greatest);
        if start < until {
            self.settled.push(Settled { start, stop: until, greatest });
            self.next = until;
        }
    }

    fn join(mut self, right: Self) -> Self {
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
            self.settle(start);
        }
        let known = self.next;
        let later = right.settled.into_iter().map(|settled| Settled {
            start: settled.start.max(known),
            greatest: left.join(settled.greatest),
            ..settled
        });
        self.settled.extend(later.filter(|settled| settled.start < settled.stop));
        self.next = known.max(right.next);
        self.greatest = left.join(right.greatest);
        self
    }

    /// As of [`Offsets::finish`].
    fn finish(mut self, indexes: &Indexes, end: Option<i64>) -> Wrong {
        self.settle(indexes.timed().len());
        let judge = |settled: Settled| {
            let Settled { start, stop, greatest } = settled;
            let stop = stop.min(indexes.timed().len());
            let entries = indexes.timed().get(start..stop).unwrap_or_default();
            (start..).zip(entries).find_map(|(number, entry)| {
                if let Some(end) = end
                    && entry.offset(indexes.base_offset) >= end
                {
                    return Some((number, Fault::Beyond { end }));
                }
                let is_wrong = greatest.timestamp > entry.timestamp
                    || (greatest.timestamp < entry.timestamp && !greatest.is_partial);
                is_wrong.then_some((number, Fault::Timestamp { greatest: greatest.timestamp }))
            })
        };
        // Entries below the first batch.
        let (stop, greatest) = self.start.unwrap_or_default();
        let before = judge(Settled { start: 0, stop, greatest });
        let wrong = before.or_else(|| self.settled.into_iter().find_map(judge));
        earlier(wrong, indexes.time_order())
    }

    /// Whether an index of bounded size has such entries, and each is settled once.
    fn is_possible(&self) -> bool {
        let start = self.start.map_or(0, |(start, _)| start);
        let bounds = self.settled.iter().flat_map(|settled| [settled.start, settled.stop]);
        bounds.chain([self.next, MAX_ENTRIES]).is_sorted() && start <= MAX_ENTRIES
    }
}

/// The entries of both indexes that fall into one part of a segment, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexCheck {
    offsets: Offsets,
    times: Times,
    /// Whether the bytes behind the last batch cannot be read.
    is_end_lost: bool,
    next_position: u64,
    next_offset: Option<i64>,
}

impl IndexCheck {
    /// Whether an entry waits for a batch here; otherwise [`pass`](Self::pass) will do.
    #[inline]
    pub fn is_due(&self, position: u64, base_offset: i64) -> bool {
        position >= self.next_position
            || self.next_offset.is_none_or(|next_offset| base_offset > next_offset)
    }

    /// A batch that no entry waits for.
    #[inline]
    pub fn pass(&mut self, position: u64, end: u64, timestamp: i64) {
        self.offsets.last = (position, end);
        let greatest = &mut self.times.greatest;
        greatest.timestamp = greatest.timestamp.max(timestamp);
    }

    /// The next sound batch.
    pub fn at(&mut self, indexes: &Indexes, batch: &IndexedBatch) {
        self.offsets.at(indexes, batch.position, batch.end, Some(batch.base_offset));
        self.times.at(indexes, batch.base_offset, batch.timestamp);
        self.aim(indexes);
    }

    /// A sound batch that is out of its place in the log.
    pub fn stray(&mut self, indexes: &Indexes, position: u64, end: u64) {
        self.offsets.at(indexes, position, end, None);
        self.times.greatest.is_partial = true;
        self.aim(indexes);
    }

    /// Bytes that are lost: they may have held anything.
    pub fn lost(&mut self) {
        self.times.greatest.is_partial = true;
    }

    /// The bytes behind the last batch of the segment cannot be read.
    pub fn lost_end(&mut self) {
        self.is_end_lost = true;
    }

    fn aim(&mut self, indexes: &Indexes) {
        let entry = indexes.placed().get(self.offsets.next);
        self.next_position = entry.map_or(u64::MAX, |e| u64::try_from(e.position).unwrap_or(0));
        let entry = indexes.timed().get(self.times.next).filter(|_| self.times.start.is_some());
        let none = self.times.start.map(|_| i64::MAX);
        self.next_offset = entry.map(|entry| entry.offset(indexes.base_offset)).or(none);
    }

    /// Whether it can come from a scan: what comes from elsewhere may claim anything.
    pub(crate) fn is_possible(&self) -> bool {
        self.offsets.is_possible() && self.times.is_possible()
    }

    /// A part ends here: what points into its last batch points to no other.
    pub fn suspend(&mut self, indexes: &Indexes) {
        let (_, end) = self.offsets.last;
        self.offsets.settle(indexes, indexes.offset_entry_at(end));
    }

    /// Goes on behind parts that were joined.
    pub fn resume(&mut self, indexes: &Indexes) {
        self.aim(indexes);
    }

    /// Joins the part to the right; both were [suspended](Self::suspend). Parts can be joined in any
    /// order.
    #[must_use]
    pub fn join(self, right: Self) -> Self {
        Self {
            offsets: self.offsets.join(right.offsets),
            times: self.times.join(right.times),
            ..Self::default()
        }
    }

    /// The segment ends with the batch before `next_offset`, after bytes that are
    /// [lost](Self::lost_end) or at once.
    pub fn finish(
        self,
        indexes: &Indexes,
        context: &SegmentContext,
        next_offset: Option<i64>,
    ) -> Vec<Finding> {
        // Entries behind the end of a log that a kill cut short go when it is loaded.
        let is_rebuilt = context.is_active && !context.stopped_cleanly;
        let end = next_offset.unwrap_or(indexes.base_offset);
        let end = Some(end).filter(|_| !self.is_end_lost && !is_rebuilt);
        let mut times = self.times;
        times.greatest.is_partial |= self.is_end_lost || is_rebuilt;
        let report = Report { indexes, context, is_rebuilt };
        let mut findings = Vec::new();
        findings.extend(self.offsets.finish(indexes, end).map(|wrong| report.offset(wrong)));
        findings.extend(times.finish(indexes, end).map(|wrong| report.time(wrong)));
        let (offsets, times) = (indexes.offsets.len(), indexes.times.len());
        findings.extend(indexes.is_cut.then(Report::cut));
        findings.extend(report.size(OFFSETS, indexes.offset_bytes, offsets));
        findings.extend(report.size(TIMES, indexes.time_bytes, times));
        findings
    }
}

/// One of the two files.
#[derive(Clone, Copy)]
struct File {
    kind: FindingKind,
    side: SideFile,
    entry_bytes: u64,
    name: &'static str,
}

const OFFSETS: File = File {
    kind: FindingKind::IndexMismatch,
    side: SideFile::OffsetIndex,
    entry_bytes: OFFSET_ENTRY_BYTES as u64,
    name: ".index",
};

const TIMES: File = File {
    kind: FindingKind::TimeindexMismatch,
    side: SideFile::TimeIndex,
    entry_bytes: TIME_ENTRY_BYTES as u64,
    name: ".timeindex",
};

/// Makes findings of faults.
struct Report<'a> {
    indexes: &'a Indexes,
    context: &'a SegmentContext,
    is_rebuilt: bool,
}

impl Report<'_> {
    fn severity(&self) -> Severity {
        if self.is_rebuilt { Severity::Info } else { Severity::Warning }
    }

    /// What Kafka makes of a wrong entry.
    fn consequence(&self, file: File) -> &'static str {
        match (self.is_rebuilt, file.side, self.context.is_active) {
            (true, ..) => "the broker did not stop cleanly, so its next start builds the file anew",
            (_, SideFile::OffsetIndex, true) => {
                "the next start takes the end of the log from the last entry, unchecked, and may come up with end offset 0"
            }
            (_, SideFile::OffsetIndex, false) => {
                "Kafka does not check it after a clean stop, and fetches that use it begin at a wrong place"
            }
            (..) => {
                "Kafka does not check it after a clean stop: lookups by time and retention by time go wrong"
            }
        }
    }

    fn offset(&self, (number, fault): (usize, Fault)) -> Finding {
        let entry = self.indexes.offsets.get(number).copied();
        let position = entry.map_or(0, |entry| entry.position);
        let offset = entry.map_or(0, |entry| entry.offset(self.indexes.base_offset));
        let told = format!("offset {offset} at position {position}");
        self.wrong(OFFSETS, number, offset, &told, fault)
    }

    fn time(&self, (number, fault): (usize, Fault)) -> Finding {
        let entry = self.indexes.times.get(number).copied();
        let timestamp = entry.map_or(0, |entry| entry.timestamp);
        let offset = entry.map_or(0, |entry| entry.offset(self.indexes.base_offset));
        let told = format!("timestamp {timestamp} up to offset {offset}");
        self.wrong(TIMES, number, offset, &told, fault)
    }

    fn wrong(&self, file: File, number: usize, offset: i64, told: &str, fault: Fault) -> Finding {
        let (reason, expected) = match fault {
            Fault::NoBatch { start } => (
                format!("the position is inside the batch that begins at position {start}"),
                "the position of a batch".to_owned(),
            ),
            Fault::Above { base_offset } => (
                format!("the batch there begins above, with offset {base_offset}"),
                format!("at least {base_offset}"),
            ),
            Fault::Far { base_offset } => (
                format!("the batch of the entry behind begins with offset {base_offset}"),
                format!("below {base_offset}"),
            ),
            Fault::Order => (
                "it is not above the entry before".to_owned(),
                "more than in the entry before".to_owned(),
            ),
            Fault::Beyond { end } => {
                (format!("the segment ends before offset {end}"), format!("below {end}"))
            }
            Fault::Timestamp { greatest: i64::MIN } => {
                ("no batch up to there has a timestamp".to_owned(), "no entry".to_owned())
            }
            Fault::Timestamp { greatest } => {
                (format!("the greatest timestamp up to there is {greatest}"), greatest.to_string())
            }
        };
        let message = format!(
            "entry {number} of the {} says {told}, but {reason}; {}",
            file.name,
            self.consequence(file)
        );
        let finding = Finding::new(file.kind, message)
            .beside(file.side)
            .at(number as u64 * file.entry_bytes, file.entry_bytes)
            .values(expected, told)
            .graded(self.severity());
        if offset >= 0 { finding.offsets(offset, offset) } else { finding }
    }

    fn cut() -> Finding {
        let message = format!(
            "an index has more than {MAX_INDEX_BYTES} bytes of entries: the others were not looked at"
        );
        Finding::new(FindingKind::LimitExceeded, message)
            .beside(SideFile::OffsetIndex)
            .values(format!("at most {MAX_INDEX_BYTES} bytes"), "more")
            .graded(Severity::Info)
    }

    /// A file whose size does not fit its entries.
    fn size(&self, file: File, bytes: Option<u64>, entries: usize) -> Option<Finding> {
        let bytes = bytes?;
        let (used, rest) = (entries as u64 * file.entry_bytes, bytes % file.entry_bytes);
        let whole = format!("a multiple of {}", file.entry_bytes);
        if rest > 0 {
            let message = format!(
                "the {} has {bytes} bytes, which is no multiple of {}; {}",
                file.name,
                file.entry_bytes,
                self.consequence(file)
            );
            let is_grave = self.context.is_active && self.context.stopped_cleanly;
            let severity = if is_grave { Severity::Warning } else { Severity::Info };
            let finding = Finding::new(file.kind, message)
                .beside(file.side)
                .at(bytes - rest, rest)
                .values(whole, bytes)
                .graded(severity);
            return Some(finding);
        }
        if self.indexes.is_cut || self.context.is_active || used >= bytes {
            return None;
        }
        let zeros = bytes - used;
        let message = format!(
            "{zeros} zeros follow the entries of the {} of a closed segment: lookups still end, but read more than they need",
            file.name
        );
        Some(
            Finding::new(file.kind, message)
                .beside(file.side)
                .at(used, zeros)
                .values("the end of the file", format!("{zeros} zeros"))
                .graded(Severity::Info),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChunkError, SegmentScan};

    fn through_bytes(index_check: IndexCheck) -> Result<SegmentScan, ChunkError> {
        let scan = SegmentScan { index_check, ..SegmentScan::default() };
        SegmentScan::from_bytes(&scan.to_bytes())
    }

    #[test]
    fn numbers_of_entries_that_no_index_has_are_refused() {
        let settled = |start, stop| Settled { start, stop, greatest: Greatest::default() };
        let times = |times| IndexCheck { times, ..IndexCheck::default() };
        let offsets = |offsets| IndexCheck { offsets, ..IndexCheck::default() };
        let possible =
            Times { settled: vec![settled(0, 2), settled(2, 5)], next: 5, ..Times::default() };
        assert!(through_bytes(times(possible.clone())).is_ok());
        let far = MAX_ENTRIES + 1;
        let greatest = Greatest::default();
        for impossible in [
            // A join and a judgement go through all numbers up to those.
            times(Times { start: Some((usize::MAX, greatest)), ..Times::default() }),
            times(Times { next: far, ..Times::default() }),
            times(Times { settled: vec![settled(0, far)], next: far, ..Times::default() }),
            times(Times { settled: vec![settled(2, 5), settled(0, 2)], ..possible.clone() }),
            times(Times { settled: vec![settled(0, 2), settled(1, 5)], ..possible }),
            offsets(Offsets { start: Some(far), ..Offsets::default() }),
            offsets(Offsets { next: far, ..Offsets::default() }),
            // Where in the file it is would have no place in a number.
            offsets(Offsets { wrong: Some((usize::MAX, Fault::Order)), ..Offsets::default() }),
        ] {
            assert_eq!(
                through_bytes(impossible.clone()),
                Err(ChunkError::Malformed),
                "{impossible:?}"
            );
        }
    }
}
