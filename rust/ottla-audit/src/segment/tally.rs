//! What the sound batches of a segment amount to: counts, order of offsets, epochs, timestamps and
//! producers. A batch out of order is held back until the next one shows which of them is wrong.

use crate::catalogue::findings::{Finding, FindingKind, Findings, FirstFindings, Severity};
use crate::partition::gaps::{OffsetRange, Ranges, span};
use crate::partition::producers::{Producers, Verdict};
use crate::partition::sequences::{EventKind, ProducerEvent};
use crate::partition::transactions::{Ended, TransactionVerdict};
use crate::partition::verdicts;
use crate::segment::fingerprint::Fingerprint;
use crate::segment::index_check::{IndexCheck, Indexed, Indexes};
use ottla_format::attributes::TimestampType;
use ottla_format::batch::BatchInfo;
use ottla_format::check::ControlRecord;
use ottla_kernels::BatchHeader;
use serde::{Deserialize, Serialize};

/// Largest distance of an offset from the base of its segment (`LogSegment`: relative offsets are
/// 31 bits).
pub(crate) const MAX_RELATIVE_OFFSET: i64 = i32::MAX as i64;

/// How far a clock may be ahead: `message.timestamp.after.max.ms` of Kafka 4.
pub(crate) const FUTURE_MS: i64 = 3_600_000;

/// What counts as milliseconds no more: the year 5138.
const MICROSECONDS_FROM: i64 = 100_000_000_000_000;

/// Seconds of the years 2000 to 2100, taken for milliseconds: January and February of 1970.
const SECONDS: std::ops::Range<i64> = 946_684_800..4_102_444_800;

/// More than anything in a file can be counted to, and far from where counting overflows.
const MOST: u64 = 1 << 60;

/// Batches of one leader epoch, one after the other, that leave no doubt that it was the leader's.
const SETTLED_BATCHES: u64 = 2;

/// Changes of the leader epoch that a segment lists.
const MAX_EPOCHS: usize = 4096;

/// What is known about a segment before it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub struct SegmentContext {
    /// The offset its name gives, if it has such a name.
    pub base_offset: Option<i64>,
    /// The offset the name of the next segment gives, if there is one.
    pub next_base_offset: Option<i64>,
    /// Whether it is the last of its partition, the one a broker writes to.
    pub is_active: bool,
    /// Whether the broker stopped cleanly: then even the active segment must end with a batch.
    pub stopped_cleanly: bool,
    /// Whether it belongs to `__consumer_offsets`, whose coordinator writes transactional offsets
    /// with sequence 0 every time.
    pub is_consumer_offsets: bool,
    /// The time of the audit, in milliseconds since 1970.
    pub now_ms: i64,
    /// Whether it will be compared with other copies of the partition: the scan takes a fingerprint.
    pub is_compared: bool,
}

/// What was counted in a segment, of sound batches unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of damaged ranges and of tails that are no batch.
    pub damaged_bytes: u64,
    /// Batches with the right CRC.
    pub batches: u64,
    /// Batches framed rightly but with the wrong CRC.
    pub bad_batches: u64,
    /// Records; at level `crc` as the headers say.
    pub records: u64,
    /// Control batches.
    pub control_batches: u64,
    /// Transactional batches, markers included.
    pub transactional_batches: u64,
    /// Batches with a producer id.
    pub idempotent_batches: u64,
    /// Batches with fewer records than offsets: compaction took the others.
    pub thin_batches: u64,
    /// Batches without a record, which compaction leaves of the newest of a producer.
    pub empty_batches: u64,
    /// Batches with a delete horizon (KIP-534).
    pub delete_horizon_batches: u64,
    /// Offsets inside thin and empty batches that hold no record any more.
    pub removed_offsets: u64,
    /// Batches of each magic.
    pub magics: [u64; 3],
    /// Batches of each codec, by number.
    pub codecs: [u64; 8],
    /// Transactions committed and aborted by a marker here.
    pub committed: u64,
    /// See `committed`.
    pub aborted: u64,
}

impl Counters {
    /// Adds the counts of another segment.
    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.bytes, other.bytes),
            (&mut self.damaged_bytes, other.damaged_bytes),
            (&mut self.batches, other.batches),
            (&mut self.bad_batches, other.bad_batches),
            (&mut self.records, other.records),
            (&mut self.control_batches, other.control_batches),
            (&mut self.transactional_batches, other.transactional_batches),
            (&mut self.idempotent_batches, other.idempotent_batches),
            (&mut self.thin_batches, other.thin_batches),
            (&mut self.empty_batches, other.empty_batches),
            (&mut self.delete_horizon_batches, other.delete_horizon_batches),
            (&mut self.removed_offsets, other.removed_offsets),
            (&mut self.committed, other.committed),
            (&mut self.aborted, other.aborted),
        ];
        let lists = self.magics.iter_mut().zip(other.magics);
        for (mine, theirs) in
            pairs.into_iter().chain(lists).chain(self.codecs.iter_mut().zip(other.codecs))
        {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// Whether a log can have all this.
    fn are_possible(&self) -> bool {
        let Self {
            bytes,
            damaged_bytes,
            batches,
            bad_batches,
            records,
            control_batches,
            transactional_batches,
            idempotent_batches,
            thin_batches,
            empty_batches,
            delete_horizon_batches,
            removed_offsets,
            magics,
            codecs,
            committed,
            aborted,
        } = self;
        let counts = [
            bytes,
            damaged_bytes,
            batches,
            bad_batches,
            records,
            control_batches,
            transactional_batches,
            idempotent_batches,
            thin_batches,
            empty_batches,
            delete_horizon_batches,
            removed_offsets,
            committed,
            aborted,
        ];
        counts.into_iter().chain(magics).chain(codecs).all(|&count| count < MOST)
    }

    /// Whether batches show that the cleaner was at work.
    pub fn shows_compaction(&self) -> bool {
        self.thin_batches > 0 || self.empty_batches > 0 || self.delete_horizon_batches > 0
    }
}

/// Batches of one leader epoch, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochRun {
    /// The epoch.
    pub epoch: i32,
    /// Offset of its first batch.
    pub start_offset: i64,
    /// How many batches.
    pub batches: u64,
    /// Last offset of its first batch.
    first_last_offset: i64,
    /// Where its first batch is, and its size.
    pub(crate) position: u64,
    pub(crate) size: u64,
}

/// A timestamp and the batch it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dated {
    /// In milliseconds since 1970.
    pub timestamp: i64,
    /// First offset of the batch.
    pub offset: i64,
    /// Where the batch is in the file.
    pub position: u64,
}

impl Dated {
    /// The smaller timestamp; of equal ones the left.
    #[must_use]
    pub fn oldest(left: Option<Self>, right: Option<Self>) -> Option<Self> {
        match (left, right) {
            (Some(left), Some(right)) if right.timestamp < left.timestamp => Some(right),
            (left, right) => left.or(right),
        }
    }

    /// The larger timestamp; of equal ones the left.
    #[must_use]
    pub fn newest(left: Option<Self>, right: Option<Self>) -> Option<Self> {
        match (left, right) {
            (Some(left), Some(right)) if right.timestamp > left.timestamp => Some(right),
            (left, right) => left.or(right),
        }
    }
}

/// What was found in one segment, or in a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentScan {
    /// What was known before.
    pub context: SegmentContext,
    /// What was counted.
    pub counters: Counters,
    /// First offset of the first batch in order.
    pub first_offset: Option<i64>,
    /// The offset behind the last batch in order.
    pub next_offset: Option<i64>,
    /// Where the last sound batch ends.
    pub valid_bytes: u64,
    /// Smallest timestamp a batch names; −1 (none) left out.
    pub oldest: Option<Dated>,
    /// Largest timestamp a batch names; −1 (none) left out.
    pub newest: Option<Dated>,
    /// The leader epochs, in order; the first 4096 changes.
    pub leader_epochs: Vec<EpochRun>,
    /// Transactions ended by a marker here.
    pub ended: Ended,
    /// Offsets of control batches.
    pub control: Ranges,
    /// What is wrong, or worth knowing.
    pub findings: Findings,
    /// Of the sound batches, where the context asks for it.
    pub fingerprint: Option<Fingerprint>,
    /// Offsets missing between the first and the last.
    pub(crate) holes: i64,
    /// The producers, to be merged.
    pub(crate) producers: Producers,
    /// The indexes, as far as they were held against the batches.
    pub(crate) index_check: IndexCheck,
    /// What they give to find, until the segment is whole: it is made in another order by parts.
    pub(crate) verdicts: FirstFindings,
    /// Findings that wait for the next good offset, and the first offset that may be lost.
    pub(crate) waiting: Vec<Waiting>,
}

impl SegmentScan {
    /// Says what is wrong with the indexes that the segment was scanned with; once.
    pub fn judge_indexes(&mut self, indexes: &Indexes) {
        let check = std::mem::take(&mut self.index_check);
        for finding in check.finish(indexes, &self.context, self.next_offset) {
            self.findings.push(finding);
        }
    }
}

/// A finding whose lost offsets end where the next good batch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waiting {
    /// Index among the findings kept.
    pub(crate) finding: usize,
    /// Whether its offsets are what the header says, not what the neighbours leave.
    pub(crate) has_offsets: bool,
    /// First offset that may be lost.
    pub(crate) lowest: i64,
}

impl Waiting {
    /// The next good batch begins at `offset`.
    pub(crate) fn settle(&self, findings: &mut Findings, offset: i64) {
        if let Some(finding) = findings.kept_mut().get_mut(self.finding) {
            finding.next_good_offset = Some(offset);
            let fits = self.has_offsets && finding.last_offset.is_some_and(|last| last < offset);
            if !fits {
                (finding.first_offset, finding.last_offset) = (None, None);
                if self.lowest < offset {
                    finding.first_offset = Some(self.lowest);
                    finding.last_offset = Some(offset - 1);
                }
            }
        }
    }
}

/// A sound batch, as the tally needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) info: BatchInfo,
    pub(crate) records: u64,
    pub(crate) control: Option<ControlRecord>,
    /// Whether the first offset is known: not of a legacy wrapper that was not read.
    pub(crate) has_base: bool,
    /// Whether every record could be read.
    pub(crate) is_sound: bool,
}

/// Takes every batch framed rightly, and whether its CRC is right.
pub type OnBatch<'a> = dyn FnMut(&BatchInfo, bool) + 'a;

/// Why batches one after the other share a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Reason {
    Repeat,
    OutOfSegment,
    Before1970,
    Seconds,
    Microseconds,
    Future,
}

impl Reason {
    fn kind(self) -> FindingKind {
        match self {
            Self::Repeat => FindingKind::OffsetRepeat,
            Self::OutOfSegment => FindingKind::OutOfSegment,
            _ => FindingKind::TimestampSuspect,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Repeat => "offsets that were already there",
            Self::OutOfSegment => "offsets that the name of the file does not allow",
            Self::Before1970 => "timestamps before 1970, which retention by time passes over",
            Self::Seconds => "timestamps that look like seconds, not milliseconds",
            Self::Microseconds => {
                "timestamps that look like microseconds or nanoseconds, not milliseconds"
            }
            Self::Future => "timestamps in the future, which hold back retention by time",
        }
    }
}

/// A finding about batches one after the other that grows with each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Growing {
    reason: Reason,
    /// Index among the findings kept, if it was kept.
    finding: Option<usize>,
    start: u64,
    end: u64,
    first_offset: i64,
    last_offset: i64,
}

impl Growing {
    /// Whether both are the same finding.
    fn is(&self, other: &Self) -> bool {
        self.reason == other.reason && self.start == other.start
    }

    /// Goes on with `next`, if that is the same and begins where this ends.
    fn extend(&mut self, next: &Self, findings: &mut Findings) -> bool {
        if self.reason != next.reason || self.end != next.start {
            return false;
        }
        self.end = next.end;
        self.first_offset = self.first_offset.min(next.first_offset);
        self.last_offset = self.last_offset.max(next.last_offset);
        if let Some(finding) = self.finding.and_then(|index| findings.kept_mut().get_mut(index)) {
            finding.size = Some(self.end.saturating_sub(self.start));
            finding.first_offset = Some(self.first_offset);
            finding.last_offset = Some(self.last_offset);
        }
        true
    }
}

/// The findings at the edges of a part of a walk that may be the same as those beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Growth {
    /// The first one that grows, unless something came before it that ends those before.
    first: Option<Growing>,
    /// Whether nothing has come yet that is no part of what grew before.
    is_open: bool,
    /// The one that grows now.
    current: Option<Growing>,
}

impl Growth {
    /// Nothing is known of what comes before.
    fn open() -> Self {
        Self { is_open: true, ..Self::default() }
    }

    fn end(&mut self) {
        self.is_open = false;
        self.current = None;
    }

    /// Extends what grows at the end of this part by what grows from the beginning of the next one,
    /// and gives the latter if both are the same.
    fn continued_by(&mut self, right: &Self, findings: &mut Findings) -> Option<Growing> {
        let (current, next) = (self.current.as_mut()?, right.first?);
        let is_first = self.first.is_some_and(|first| first.is(current));
        if !current.extend(&next, findings) {
            return None;
        }
        if is_first {
            self.first = Some(*current);
        }
        Some(next)
    }

    /// The findings were moved to other places, or are not kept any more.
    fn move_to(&mut self, place: impl Fn(usize) -> Option<usize>) {
        for growing in self.first.iter_mut().chain(&mut self.current) {
            growing.finding = growing.finding.and_then(&place);
        }
    }

    /// Appends the edges of the next part; `continued` is what it went on with.
    fn append(&mut self, right: &Self, continued: Option<Growing>) {
        if self.is_open {
            self.first = right.first;
        }
        if !right.is_open {
            let goes_on = continued
                .is_some_and(|first| right.current.is_some_and(|current| current.is(&first)));
            if !goes_on {
                self.current = right.current;
            }
        }
        self.is_open &= right.is_open;
    }
}

impl SegmentScan {
    /// Whether what is counted of the part on the right would not be bounded otherwise behind this
    /// one.
    pub(crate) fn has_room_for(&self, right: &Self) -> bool {
        let runs = self.leader_epochs.len() + right.leader_epochs.len();
        let mut counters = self.counters;
        counters.add(&right.counters);
        runs < MAX_EPOCHS
            && self.producers.has_room_for(&right.producers)
            && counters.are_possible()
    }

    /// Whether a log can have all this: what comes from elsewhere may claim anything.
    pub(crate) fn is_possible(&self) -> bool {
        let runs = self.leader_epochs.iter().map(|run| run.batches);
        let mut counts = runs.chain([self.valid_bytes]);
        let mut offsets = self.first_offset.iter().chain(&self.next_offset);
        self.counters.are_possible()
            && counts.all(|count| count < MOST)
            && offsets.all(|&offset| offset >= 0)
            && self.index_check.is_possible()
    }

    /// Appends the part on the right, which began where this one ends; `growth` and `right_growth`
    /// are what grows at the edges of both.
    pub(crate) fn append(&mut self, growth: &mut Growth, right: Self, mut right_growth: Growth) {
        let Self {
            context: _,
            counters,
            first_offset,
            next_offset: _,
            valid_bytes,
            oldest,
            newest,
            leader_epochs,
            ended,
            control,
            findings,
            holes,
            producers,
            index_check,
            fingerprint,
            verdicts,
            waiting,
        } = right;
        self.counters.add(&counters);
        self.first_offset = self.first_offset.or(first_offset);
        self.valid_bytes = self.valid_bytes.max(valid_bytes);
        self.oldest = Dated::oldest(self.oldest, oldest);
        self.newest = Dated::newest(self.newest, newest);
        let mut runs = leader_epochs.into_iter();
        if let Some(last) = self.leader_epochs.last_mut()
            && let Some(same) = runs.next()
        {
            last.batches =
                last.batches.saturating_add(same.batches.saturating_sub(SETTLED_BATCHES));
        }
        self.leader_epochs.extend(runs);

        let continued = growth.continued_by(&right_growth, &mut self.findings);
        let same = continued.map(|same| (same.reason.kind(), same.finding));
        let places = self.findings.append(findings, same);
        let place = |index: usize| places.get(index).copied().flatten();
        right_growth.move_to(place);
        growth.append(&right_growth, continued);
        self.waiting.extend(
            waiting.into_iter().filter_map(|waiting| {
                Some(Waiting { finding: place(waiting.finding)?, ..waiting })
            }),
        );

        self.verdicts.append(verdicts);
        self.index_check = std::mem::take(&mut self.index_check).join(index_check);
        if let (Some(left), Some(right)) = (&mut self.fingerprint, fingerprint) {
            left.append(right);
        }
        self.ended.append(ended);
        self.control.append(&control);
        let mut sink = Sink {
            is_consumer_offsets: self.context.is_consumer_offsets,
            counters: &mut self.counters,
            verdicts: &mut self.verdicts,
            ended: &mut self.ended,
        };
        self.producers.append(producers, self.holes, 0, &mut |id, verdict| {
            sink.take(id, &verdict);
        });
        self.holes = self.holes.saturating_add(holes);
        self.verdicts.trim();
        self.ended.sort();
    }
}

/// What a tally remembers of the batches before: all that its judgement of the next ones needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    expected: i64,
    epoch: i32,
    /// Whether the batches before leave no doubt about the leader epoch.
    is_epoch_settled: bool,
    pending: Option<Seen>,
    after_damage: bool,
    has_first: bool,
}

impl Memory {
    /// Whether a walk can remember this.
    pub(crate) fn is_possible(&self) -> bool {
        let is_offset = self.expected >= 0 || self.expected == i64::MIN;
        is_offset && self.pending.is_none_or(|pending| pending.records < MOST)
    }

    /// Before the first batch of a segment; `base_offset` is what its name says.
    pub(crate) fn new(base_offset: Option<i64>) -> Self {
        Self {
            expected: base_offset.unwrap_or(i64::MIN),
            epoch: i32::MIN,
            is_epoch_settled: false,
            pending: None,
            after_damage: false,
            has_first: false,
        }
    }
}

pub(crate) struct Tally<'a> {
    pub(crate) scan: SegmentScan,
    pub(crate) on_batch: Option<&'a mut OnBatch<'a>>,
    indexes: &'a Indexes,
    /// The offset that should come next; `i64::MIN` while any may.
    expected: i64,
    /// Offsets the segment may hold.
    lowest: i64,
    highest: i64,
    pending: Option<Seen>,
    after_damage: bool,
    /// Whether a batch was in its place before.
    has_first: bool,
    epoch: i32,
    growth: Growth,
    newest: Dated,
    oldest: Dated,
    /// The latest time a clock may show.
    horizon: i64,
    /// `expected`, while nothing is pending; [`LOUD`] otherwise.
    quiet_offset: i64,
    quiet_batches: u64,
    quiet_records: u64,
}

/// An offset that no ordinary batch has.
const LOUD: i64 = i64::MIN;

impl<'a> Tally<'a> {
    pub(crate) fn new(
        context: SegmentContext,
        indexes: &'a Indexes,
        on_batch: Option<&'a mut OnBatch<'a>>,
    ) -> Self {
        let scan = SegmentScan { context, ..SegmentScan::default() };
        let memory = Memory::new(context.base_offset);
        Self { on_batch, ..Self::resume(scan, memory, Growth::default(), indexes) }
    }

    /// A tally that knows nothing of the batches before.
    pub(crate) fn open(context: SegmentContext, indexes: &'a Indexes) -> Self {
        let scan = SegmentScan { context, ..SegmentScan::default() };
        Self::resume(scan, Memory::new(None), Growth::open(), indexes)
    }

    /// Goes on where another tally was suspended.
    pub(crate) fn resume(
        mut scan: SegmentScan,
        memory: Memory,
        growth: Growth,
        indexes: &'a Indexes,
    ) -> Self {
        scan.index_check.resume(indexes);
        if scan.context.is_compared {
            scan.fingerprint.get_or_insert_default();
        }
        let base = scan.context.base_offset;
        let now_ms = scan.context.now_ms;
        let (oldest, newest) = (scan.oldest, scan.newest);
        Self {
            scan,
            on_batch: None,
            indexes,
            expected: memory.expected,
            lowest: base.unwrap_or(0),
            highest: base.map_or(i64::MAX, |base| base.saturating_add(MAX_RELATIVE_OFFSET)),
            pending: memory.pending,
            after_damage: memory.after_damage,
            has_first: memory.has_first,
            epoch: memory.epoch,
            growth,
            newest: newest.unwrap_or(Dated { timestamp: i64::MIN, offset: 0, position: 0 }),
            oldest: oldest.unwrap_or(Dated { timestamp: i64::MAX, offset: 0, position: 0 }),
            horizon: now_ms.saturating_add(FUTURE_MS),
            quiet_offset: LOUD,
            quiet_batches: 0,
            quiet_records: 0,
        }
    }

    /// What is remembered here.
    fn memory(&self) -> Memory {
        Memory {
            expected: self.expected,
            epoch: self.epoch,
            is_epoch_settled: match self.scan.leader_epochs.last() {
                Some(run) => run.epoch == self.epoch && run.batches >= SETTLED_BATCHES,
                None => true,
            },
            pending: self.pending,
            after_damage: self.after_damage,
            has_first: self.has_first,
        }
    }

    /// Lets go of everything but what is remembered: what follows is a part of its own. `None` where
    /// that would depend on more.
    pub(crate) fn begin_part(&mut self) -> Option<Memory> {
        let memory = self.memory();
        if !memory.is_epoch_settled || memory.after_damage || !memory.has_first {
            return None;
        }
        let mut scan = SegmentScan { context: self.scan.context, ..SegmentScan::default() };
        scan.leader_epochs.extend(self.scan.leader_epochs.last().map(|run| EpochRun {
            epoch: run.epoch,
            batches: SETTLED_BATCHES,
            start_offset: -1,
            first_last_offset: -1,
            position: 0,
            size: 0,
        }));
        *self = Self::resume(scan, memory, Growth::open(), self.indexes);
        Some(memory)
    }

    /// The part that ends here, and what is remembered for the next one.
    pub(crate) fn suspend(mut self) -> (SegmentScan, Memory, Growth) {
        self.unquiet();
        self.note_times();
        self.scan.verdicts.trim();
        self.scan.ended.sort();
        self.scan.index_check.suspend(self.indexes);
        let memory = self.memory();
        (self.scan, memory, self.growth)
    }

    fn note_times(&mut self) {
        let has_times = self.oldest.timestamp <= self.newest.timestamp;
        self.scan.oldest = has_times.then_some(self.oldest);
        self.scan.newest = has_times.then_some(self.newest);
    }

    /// The first offset that was not seen yet.
    pub(crate) fn lowest_unseen(&self) -> i64 {
        self.expected.max(self.lowest)
    }

    /// The last offset that a batch of this segment may have.
    pub(crate) fn highest(&self) -> i64 {
        let next = self.scan.context.next_base_offset.filter(|&next| next > self.lowest_unseen());
        self.highest.min(next.map_or(i64::MAX, |next| next - 1))
    }

    /// An ordinary batch of magic 2, proved by the kernels. `base` is where their buffer begins.
    #[inline]
    pub(crate) fn ordinary(&mut self, header: &BatchHeader, base: u64) {
        let last_offset = header.base_offset + i64::from(header.last_offset_delta);
        let oldest =
            if header.is_log_append_time() { header.max_timestamp } else { header.base_timestamp };
        let is_expected = header.base_offset == self.quiet_offset
            && last_offset <= self.highest
            && header.partition_leader_epoch == self.epoch
            && oldest >= SECONDS.end
            && header.max_timestamp >= SECONDS.end
            && header.max_timestamp <= self.horizon
            && !self.scan.index_check.is_due(base + header.position as u64, header.base_offset);
        if !is_expected {
            self.unquiet();
            self.sound(Seen::of_header(header, base));
            self.requiet();
            return;
        }
        let (position, end) = (base + header.position as u64, base + header.end as u64);
        self.scan.index_check.pass(position, end, header.max_timestamp);
        if let Some(fingerprint) = &mut self.scan.fingerprint {
            fingerprint.observe(&Seen::of_header(header, base).info);
        }
        self.quiet_batches += 1;
        self.quiet_records += header.record_count as u64;
        self.quiet_offset = last_offset.saturating_add(1);
        if header.max_timestamp > self.newest.timestamp || oldest < self.oldest.timestamp {
            let position = base + header.position as u64;
            self.dated(oldest, header.base_offset, position);
            self.dated(header.max_timestamp, header.base_offset, position);
        }
        if header.producer_id >= 0 {
            let seen = Seen::of_header(header, base);
            self.count_producer(&seen.info);
            self.produced(&seen);
        }
    }

    /// Before anything but an ordinary batch in its place: counts what was put off.
    pub(crate) fn unquiet(&mut self) {
        let batches = std::mem::take(&mut self.quiet_batches);
        if batches > 0 {
            let counters = &mut self.scan.counters;
            counters.batches += batches;
            counters.records += std::mem::take(&mut self.quiet_records);
            counters.magics[2] += batches;
            counters.codecs[0] += batches;
            self.expected = self.quiet_offset;
            if let Some(run) = self.scan.leader_epochs.last_mut() {
                run.batches = run.batches.saturating_add(batches);
            }
        }
        self.quiet_offset = LOUD;
    }

    /// From now on ordinary batches in their place need no more than to be counted.
    pub(crate) fn requiet(&mut self) {
        let is_quiet = self.pending.is_none() && !self.after_damage && self.on_batch.is_none();
        self.quiet_offset = if is_quiet { self.expected } else { LOUD };
    }

    /// A batch with the right CRC.
    pub(crate) fn sound(&mut self, seen: Seen) {
        if let Some(on_batch) = &mut self.on_batch {
            on_batch(&seen.info, true);
        }
        if let Some(fingerprint) = &mut self.scan.fingerprint {
            fingerprint.observe(&seen.info);
        }
        if let Some(pending) = self.pending.take() {
            self.settle(&pending, Some(&seen));
        }
        let base = self.base_of(&seen);
        let last = seen.info.last_offset;
        let fits = base == self.expected || (self.after_damage && base > self.expected);
        if self.expected == i64::MIN && base >= 0 || fits && last <= self.highest && last >= base {
            self.accept(&seen, base);
        } else {
            self.pending = Some(seen);
        }
    }

    /// The first offset of a batch; where only the last is known, whatever is left before it.
    fn base_of(&self, seen: &Seen) -> i64 {
        let info = &seen.info;
        if seen.has_base { info.base_offset } else { info.last_offset.min(self.lowest_unseen()) }
    }

    /// Decides about a batch out of order, with the one behind it in sight.
    fn settle(&mut self, seen: &Seen, next: Option<&Seen>) {
        let info = &seen.info;
        let (base, last) = (self.base_of(seen), info.last_offset);
        let expected = self.lowest_unseen();
        let span = last.saturating_sub(base);
        let next_base = match next {
            Some(next) => Some(next.info.base_offset),
            None => self.scan.context.next_base_offset,
        }
        .filter(|&next| next > expected);
        if let Some(next_base) = next_base.filter(|_| span >= 0) {
            let room = next_base.saturating_sub(span).saturating_sub(1);
            let conflicts = last >= next_base || base < 0;
            if (conflicts && room >= expected) || (base < expected && room == expected) {
                let place = if conflicts && self.has_first { expected } else { room };
                self.wrong_base(seen, place, next_base);
                return;
            }
        }
        if base < self.lowest || last > self.highest || span < 0 {
            self.out_of_segment(info);
            self.stray(info);
        } else if base > expected {
            if self.has_first && !self.after_damage {
                self.gap(info, expected, base);
            }
            self.accept(seen, base);
        } else if base == expected {
            self.accept(seen, base);
        } else {
            self.repeat(info, expected);
            if last >= expected {
                self.accept(seen, base);
            } else {
                self.stray(info);
                self.count(seen);
            }
        }
    }

    fn wrong_base(&mut self, seen: &Seen, place: i64, next_base: i64) {
        let info = &seen.info;
        let found = info.base_offset;
        let message = format!(
            "the batch at position {} says base offset {found}, but the one behind it begins at {next_base}, which only fits if this one begins at {place}",
            info.position
        );
        let span = info.last_offset.saturating_sub(found);
        let finding = Finding::new(FindingKind::BaseOffsetWrong, message)
            .at(info.position, info.size)
            .offsets(place, place.saturating_add(span))
            .values(place, found);
        self.scan.findings.push(finding);
        let mut right = *seen;
        right.info.base_offset = place;
        right.info.last_offset = place.saturating_add(span);
        self.accept(&right, place);
    }

    fn gap(&mut self, info: &BatchInfo, expected: i64, base: i64) {
        let message = format!(
            "offsets {expected} to {} are missing before the batch at position {}",
            base - 1,
            info.position
        );
        let finding = Finding {
            next_good_offset: Some(base),
            ..Finding::new(FindingKind::OffsetGap, message)
                .at(info.position, info.size)
                .offsets(expected, base - 1)
                .values(expected, base)
        };
        self.scan.findings.push(finding);
    }

    fn repeat(&mut self, info: &BatchInfo, expected: i64) {
        self.grow(Reason::Repeat, info, || {
            (format!("at least {expected}"), info.base_offset.to_string())
        });
    }

    fn out_of_segment(&mut self, info: &BatchInfo) {
        let (lowest, highest) = (self.lowest, self.highest);
        self.grow(Reason::OutOfSegment, info, || {
            (format!("{lowest} to {highest}"), info.base_offset.to_string())
        });
    }

    /// Adds a finding about a batch, or lets the one about the batches right before it grow.
    fn grow(
        &mut self,
        reason: Reason,
        info: &BatchInfo,
        values: impl FnOnce() -> (String, String),
    ) {
        let (first, last) = (info.base_offset, info.last_offset.max(info.base_offset));
        let mut new = Growing {
            reason,
            finding: None,
            start: info.position,
            end: info.position.saturating_add(info.size),
            first_offset: first,
            last_offset: last,
        };
        let growth = &mut self.growth;
        if let Some(current) = &mut growth.current
            && current.extend(&new, &mut self.scan.findings)
        {
            if growth.first.is_some_and(|first| first.is(current)) {
                growth.first = Some(*current);
            }
            return;
        }
        let (expected, found) = values();
        let text = reason.text();
        let message = format!("from position {} on: {text} (base offset {first})", info.position);
        let finding = Finding::new(reason.kind(), message)
            .at(info.position, info.size)
            .offsets(first, last)
            .values(expected, found);
        new.finding = self.scan.findings.push(finding);
        if growth.is_open {
            growth.first = Some(new);
        }
        growth.is_open = false;
        growth.current = Some(new);
    }

    /// A batch in its place.
    fn accept(&mut self, seen: &Seen, base: i64) {
        let info = &seen.info;
        if self.has_first {
            let missing = base.saturating_sub(self.expected).max(0);
            self.scan.holes = self.scan.holes.saturating_add(missing);
        } else {
            self.has_first = true;
            self.scan.first_offset = Some(base);
        }
        self.after_damage = false;
        for waiting in std::mem::take(&mut self.scan.waiting) {
            waiting.settle(&mut self.scan.findings, base);
        }
        self.expected = info.last_offset.saturating_add(1);
        if info.is_control() {
            let (first_offset, last_offset) = (base, info.last_offset);
            self.scan.control.push(OffsetRange {
                first_offset,
                last_offset,
                position: info.position,
            });
        } else {
            self.scan.counters.removed_offsets += seen.removed(base);
        }
        let indexed = Indexed {
            position: info.position,
            end: info.position.saturating_add(info.size),
            base_offset: base,
            timestamp: (info.magic > 0).then_some(info.max_timestamp),
        };
        self.scan.index_check.at(self.indexes, &indexed);
        self.count(seen);
        self.led(info, base);
        self.timed(info);
        if info.has_producer_id() {
            self.produced(seen);
        }
    }

    /// A batch that is framed, and in no place in the log.
    pub(crate) fn stray(&mut self, info: &BatchInfo) {
        let end = info.position.saturating_add(info.size);
        self.scan.index_check.stray(self.indexes, info.position, end);
    }

    fn count(&mut self, seen: &Seen) {
        let info = &seen.info;
        let counters = &mut self.scan.counters;
        counters.batches += 1;
        counters.records += seen.records;
        if let Some(count) = counters.magics.get_mut(info.magic.clamp(0, 2) as usize) {
            *count += 1;
        }
        if let Some(count) = counters.codecs.get_mut(usize::from(info.codec())) {
            *count += 1;
        }
        counters.empty_batches += u64::from(info.record_count == Some(0));
        counters.thin_batches += u64::from(seen.is_thin());
        counters.control_batches += u64::from(info.is_control());
        counters.delete_horizon_batches += u64::from(info.delete_horizon_ms().is_some());
        self.count_producer(info);
    }

    fn count_producer(&mut self, info: &BatchInfo) {
        let counters = &mut self.scan.counters;
        counters.transactional_batches += u64::from(info.is_transactional());
        counters.idempotent_batches += u64::from(info.has_producer_id());
    }

    /// The leader epoch: it never goes back. Where it does, the batch before may have been too high.
    fn led(&mut self, info: &BatchInfo, base: i64) {
        let epoch = info.partition_leader_epoch;
        let runs = &mut self.scan.leader_epochs;
        if epoch < 0 {
            return;
        }
        if let Some(run) = runs.last_mut().filter(|run| run.epoch == epoch) {
            run.batches = run.batches.saturating_add(1);
            self.epoch = epoch;
            return;
        }
        let new = EpochRun {
            epoch,
            start_offset: base,
            batches: 1,
            first_last_offset: info.last_offset,
            position: info.position,
            size: info.size,
        };
        let before = runs.len().checked_sub(2).and_then(|place| runs.get(place)).copied();
        if let Some(last) = runs.last().copied().filter(|last| last.epoch > epoch) {
            let is_last_wrong =
                last.batches == 1 && before.is_none_or(|before| before.epoch <= epoch);
            if is_last_wrong {
                self.scan.findings.push(epoch_fault(&last, epoch));
                runs.pop();
                if let Some(run) = runs.last_mut().filter(|run| run.epoch == epoch) {
                    run.batches = run.batches.saturating_add(2);
                    self.epoch = epoch;
                    return;
                }
            } else {
                self.scan.findings.push(epoch_fault(&new, last.epoch));
            }
        }
        self.epoch = epoch;
        if runs.len() < MAX_EPOCHS {
            runs.push(new);
        }
    }

    fn dated(&mut self, timestamp: i64, offset: i64, position: u64) {
        let dated = Dated { timestamp, offset, position };
        if timestamp > self.newest.timestamp {
            self.newest = dated;
        }
        if timestamp < self.oldest.timestamp {
            self.oldest = dated;
        }
    }

    fn timed(&mut self, info: &BatchInfo) {
        let kind = info.timestamp_type();
        if kind == TimestampType::None || info.record_count == Some(0) {
            return;
        }
        let has_base = kind == TimestampType::CreateTime && info.delete_horizon_ms().is_none();
        let base = has_base.then_some(info.base_timestamp);
        for timestamp in base.into_iter().chain([info.max_timestamp]).filter(|&time| time != -1) {
            self.dated(timestamp, info.base_offset, info.position);
            if let Some(reason) = self.suspicion(timestamp) {
                self.grow(reason, info, || {
                    ("a time in milliseconds that has come".to_owned(), timestamp.to_string())
                });
                return;
            }
        }
    }

    /// No record of a batch has the greatest timestamp that its header gives them.
    #[cold]
    pub(crate) fn maximum_unreached(&mut self, info: &BatchInfo) {
        let message = format!(
            "the header of the batch at position {} says max timestamp {}, later than any of its records: lookups by time and retention by time go by it",
            info.position, info.max_timestamp
        );
        self.push(
            Finding::new(FindingKind::TimestampSuspect, message)
                .at(info.position, info.size)
                .offsets(info.base_offset, info.last_offset)
                .values("the timestamp of a record", info.max_timestamp),
        );
    }

    fn suspicion(&self, timestamp: i64) -> Option<Reason> {
        if timestamp < 0 {
            Some(Reason::Before1970)
        } else if SECONDS.contains(&timestamp) {
            Some(Reason::Seconds)
        } else if timestamp <= self.horizon {
            None
        } else if timestamp >= MICROSECONDS_FROM {
            Some(Reason::Microseconds)
        } else {
            Some(Reason::Future)
        }
    }

    /// What the batch tells of its producer.
    fn produced(&mut self, seen: &Seen) {
        let info = &seen.info;
        let kind = if info.is_control() {
            match seen.control {
                Some(ControlRecord::Abort { coordinator_epoch }) => {
                    EventKind::Marker { coordinator_epoch, is_commit: false }
                }
                Some(ControlRecord::Commit { coordinator_epoch }) => {
                    EventKind::Marker { coordinator_epoch, is_commit: true }
                }
                Some(other) => {
                    self.strange_marker(info, other);
                    return;
                }
                // Emptied by the cleaner, or a fault that has been reported.
                None => return,
            }
        } else {
            let sequences = if info.base_sequence >= 0 && info.last_offset >= info.base_offset {
                (info.base_sequence, info.last_sequence())
            } else {
                (-1, -1)
            };
            EventKind::Data { sequences, is_transactional: info.is_transactional() }
        };
        let event = ProducerEvent {
            segment: 0,
            position: info.position,
            size: info.size,
            offset: info.base_offset,
            last_offset: info.last_offset,
            records: seen.records,
            holes: self.scan.holes,
            timestamp: info.max_timestamp,
            previous_timestamp: None,
            epoch: info.producer_epoch,
            kind,
        };
        let is_consumer_offsets = self.scan.context.is_consumer_offsets;
        let SegmentScan { producers, verdicts, counters, ended, .. } = &mut self.scan;
        let mut sink = Sink { is_consumer_offsets, counters, verdicts, ended };
        producers.observe(info.producer_id, event, &mut |id, verdict| sink.take(id, &verdict));
    }

    fn strange_marker(&mut self, info: &BatchInfo, control: ControlRecord) {
        let message = format!(
            "the control batch of producer {} at offset {} is neither ABORT nor COMMIT but {}",
            info.producer_id,
            info.base_offset,
            control.name()
        );
        let finding = Finding::new(FindingKind::TransactionFault, message)
            .at(info.position, info.size)
            .offsets(info.base_offset, info.last_offset)
            .producer(info.producer_id)
            .values("ABORT or COMMIT", control.name());
        self.scan.findings.push(finding);
    }

    /// Bytes that are lost begin: what is pending is decided without a batch behind it.
    pub(crate) fn before_damage(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.settle(&pending, None);
        }
        self.growth.end();
    }

    /// Something is lost; its offsets are known when the next good batch is. `offsets` are those
    /// that its header gives, where that is to be believed.
    pub(crate) fn lost(&mut self, finding: Finding, offsets: Option<(i64, i64)>) {
        let lowest = self.lowest_unseen();
        let finding = match offsets {
            Some((first, last)) => finding.offsets(first, last),
            None => finding,
        };
        let has_offsets = offsets.is_some_and(|(first, _)| first >= lowest);
        self.after_damage = true;
        self.scan.index_check.lost();
        if let Some(finding) = self.scan.findings.push(finding) {
            self.scan.waiting.push(Waiting { finding, has_offsets, lowest });
        }
    }

    /// Reading failed at `position`.
    pub(crate) fn unreadable(&mut self, position: u64, failure: &str) {
        let message = format!("reading failed at position {position}: {failure}");
        self.push(Finding::new(FindingKind::Unreadable, message).at(position, 0));
    }

    /// Adds a finding as it is.
    pub(crate) fn push(&mut self, finding: Finding) {
        self.scan.findings.push(finding);
    }

    /// The segment ends.
    pub(crate) fn finish(mut self) -> SegmentScan {
        self.before_damage();
        if self.has_first {
            self.scan.next_offset = Some(self.expected);
        }
        self.note_times();
        self.scan.ended.sort();
        if self.after_damage || self.scan.valid_bytes < self.scan.counters.bytes {
            self.scan.index_check.lost_end();
        }
        self.scan.index_check.suspend(self.indexes);
        let verdicts = std::mem::take(&mut self.scan.verdicts);
        self.scan.findings.append(verdicts.into_findings(), None);
        let left_out = self.scan.producers.left_out();
        if left_out > 0 {
            let message = format!(
                "{left_out} batches are of producers beyond the first {}: their sequences and transactions were not checked",
                crate::partition::producers::MAX_PRODUCERS
            );
            let finding = Finding::new(FindingKind::LimitExceeded, message);
            self.scan.findings.push(finding.graded(Severity::Info));
        }
        self.scan
    }
}

impl Seen {
    /// Whether offsets are missing inside the batch: compaction took their records.
    fn is_thin(&self) -> bool {
        let info = &self.info;
        self.counted()
            .is_some_and(|count| count > 0 && count <= info.last_offset.abs_diff(info.base_offset))
    }

    /// Records of the batch, where they are known. The header tells; in the older formats the
    /// records do.
    fn counted(&self) -> Option<u64> {
        match self.info.record_count {
            Some(count) => Some(u64::from(count.max(0) as u32)),
            None => (self.has_base && self.is_sound).then_some(self.records),
        }
    }

    /// Offsets of the batch, from `base` on, without a record.
    fn removed(&self, base: i64) -> u64 {
        let count = self.counted().unwrap_or(u64::MAX);
        span(base, self.info.last_offset).saturating_sub(count)
    }

    pub(crate) fn of_header(header: &BatchHeader, base: u64) -> Self {
        let info = BatchInfo::walked(header, base);
        let records = u64::try_from(header.record_count).unwrap_or(0);
        Self { info, records, control: None, has_base: true, is_sound: true }
    }
}

/// Takes what producers show in one segment.
pub(crate) struct Sink<'a> {
    pub(crate) is_consumer_offsets: bool,
    pub(crate) counters: &'a mut Counters,
    pub(crate) verdicts: &'a mut FirstFindings,
    pub(crate) ended: &'a mut Ended,
}

impl Sink<'_> {
    pub(crate) fn take(&mut self, producer_id: i64, verdict: &Verdict) {
        absorb(producer_id, verdict, self.counters, self.ended);
        if let Some((_, finding)) =
            verdicts::finding(producer_id, verdict, self.is_consumer_offsets)
        {
            self.verdicts.push(finding);
        }
    }
}

/// Counts what has ended.
pub(crate) fn absorb(
    producer_id: i64,
    verdict: &Verdict,
    counters: &mut Counters,
    ended: &mut Ended,
) {
    if let Verdict::Transaction(TransactionVerdict::Completed(completed)) = verdict {
        let count =
            if completed.is_commit { &mut counters.committed } else { &mut counters.aborted };
        *count = count.saturating_add(1);
        ended.push(producer_id, *completed);
    }
}

/// A run of batches whose leader epoch does not fit to `other` beside it.
pub(crate) fn epoch_fault(run: &EpochRun, other: i32) -> Finding {
    let message = format!(
        "the leader epoch of the batch at position {} is {}, beside one of {other}: epochs never go back",
        run.position, run.epoch
    );
    Finding::new(FindingKind::LeaderEpochFault, message)
        .at(run.position, run.size)
        .offsets(run.start_offset, run.first_last_offset)
        .values(other, run.epoch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PartitionContext, merge_partition};
    use ottla_format::header::{Header, RECORD_BATCH_OVERHEAD};

    /// As many as one scan may have counted.
    fn most() -> SegmentScan {
        let batches = MOST - 1;
        let counters = Counters {
            thin_batches: batches,
            empty_batches: batches,
            delete_horizon_batches: batches,
            removed_offsets: batches,
            committed: batches,
            aborted: batches,
            ..Counters::default()
        };
        let run = EpochRun {
            epoch: 3,
            start_offset: 0,
            batches,
            first_last_offset: 0,
            position: u64::MAX,
            size: u64::MAX,
        };
        let mut findings = Findings::default();
        findings.push(Finding::new(FindingKind::OutOfSegment, "somewhere").at(u64::MAX, u64::MAX));
        SegmentScan {
            counters,
            first_offset: Some(0),
            next_offset: Some(9),
            leader_epochs: vec![run; 20],
            findings,
            waiting: vec![Waiting { finding: usize::MAX, has_offsets: true, lowest: i64::MIN }],
            ..SegmentScan::default()
        }
    }

    #[test]
    fn the_largest_counts_that_come_through_bytes_can_be_merged() {
        let scan = SegmentScan::from_bytes(&most().to_bytes()).expect("none is too large");
        let log = merge_partition(vec![scan; 20], &PartitionContext::default());
        assert!(log.counters.shows_compaction());
        assert_eq!(log.transactions_left_out(), u64::MAX);
        assert_eq!(log.epochs.first().map(|epoch| epoch.batches), Some(u64::MAX));
        let inside = log.gaps.iter().find(|gap| gap.segment == 19).map(|gap| gap.ranges);
        assert_eq!(inside, Some(2 * (MOST - 1)));
    }

    #[test]
    fn counts_that_no_log_has_are_refused_or_not_added() {
        let most = most();
        assert!(most.has_room_for(&SegmentScan::default()));
        assert!(!most.has_room_for(&most));
        let mut impossible = most;
        impossible.counters.codecs[3] = MOST;
        assert!(SegmentScan::from_bytes(&impossible.to_bytes()).is_err());
    }

    #[test]
    fn a_batch_held_back_has_no_more_records_than_a_log() {
        let header = Header::read(&[0; RECORD_BATCH_OVERHEAD], 0).expect("long enough");
        let info = BatchInfo::from_header(&header, 0);
        let seen = |records| Seen { info, records, control: None, has_base: true, is_sound: true };
        let memory = |records| Memory { pending: Some(seen(records)), ..Memory::new(Some(0)) };
        assert!(memory(7).is_possible());
        assert!(!memory(u64::MAX).is_possible());
    }
}
