//! What a consumer would get of a partition: batch by batch, from an offset on, over damage.
//!
//! A consumer of a broker stops at the first byte it cannot read. Here reading goes on at the next
//! good batch, and what was passed over is told.
//!
//! With `read_committed` the end markers in the log decide, not the `.txnindex` beside it: the index
//! is derived from the markers, and may be missing or older. Nothing is known of a transaction whose
//! first data the log no longer holds. The pass for markers begins with the first transactional batch;
//! a log without one is read once.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::segment::context::{MAX_RELATIVE_OFFSET, SegmentContext};
use crate::segment::scanner::Scanner;
use ottla_format::attributes::Compression;
use ottla_format::batch::{self, BatchInfo, Payload, Record, RecordCursor};
use ottla_format::check::{Checked, ControlRecord, Level};
use ottla_format::header::Envelope;
use ottla_log::source::{Source, fill};
use std::collections::{HashMap, VecDeque};
use std::io;

/// Which records a consumer asks for (KIP-98).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// All of them.
    #[default]
    ReadUncommitted,
    /// Up to the last stable offset, without those of aborted transactions.
    ReadCommitted,
    /// Without those of aborted and of open transactions, up to the end: what counts for a coordinator
    /// that loads its topic. No consumer can ask for it.
    Decided,
}

impl Isolation {
    /// The isolation of Kafka's name for it.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "read_uncommitted" => Some(Self::ReadUncommitted),
            "read_committed" => Some(Self::ReadCommitted),
            _ => None,
        }
    }
}

/// What to read of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Which records.
    pub isolation: Isolation,
    /// The first offset: the log start offset, or one behind it.
    pub start_offset: i64,
    /// The offset behind the last.
    pub end_offset: i64,
    /// Whether the broker stopped cleanly: then even the active segment must end with a batch.
    pub stopped_cleanly: bool,
}

/// A batch of which a consumer gets records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readable {
    /// Index of its segment.
    pub segment: usize,
    /// The batch.
    pub info: BatchInfo,
    /// Records before this offset, if there are any, were given before or not asked for.
    pub first_offset: i64,
    /// Records from this offset on are not asked for.
    pub end_offset: i64,
}

/// What becomes of a record of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordPlace {
    /// It is given.
    Wanted,
    /// It was given before, or was not asked for.
    Unwanted,
    /// Its offset is not in the batch, or not behind the one before.
    Wrong,
}

impl Readable {
    /// What becomes of a record, where `next_offset` is behind the one before it. A consumer passes over
    /// offsets that go back, and would lose what follows one that is too high.
    pub fn place(&self, offset: i64, next_offset: i64) -> RecordPlace {
        if offset >= next_offset && offset <= self.info.last_offset {
            return if offset < self.end_offset {
                RecordPlace::Wanted
            } else {
                RecordPlace::Unwanted
            };
        }
        let is_before = offset < self.first_offset && next_offset <= self.first_offset;
        if is_before { RecordPlace::Unwanted } else { RecordPlace::Wrong }
    }
}

/// What was passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Index of the segment it begins in.
    pub segment: usize,
    /// Where, in bytes from the start of that segment's file.
    pub position: u64,
    /// Bytes that could not be read.
    pub size: u64,
    /// The first offset lost, if any is.
    pub first_offset: Option<i64>,
    /// The last offset lost; `None` at the end of the log, where nothing tells.
    pub last_offset: Option<i64>,
    /// Where reading goes on, if it does.
    pub next_good_offset: Option<i64>,
    /// As the audit grades it.
    pub severity: Severity,
    /// What is wrong there.
    pub message: String,
}

/// One step of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A batch to be read.
    Batch(Readable),
    /// Damage was passed over.
    Damage(Damage),
    /// A window of the log was looked at; nothing came of it yet.
    Busy,
    /// There is no more.
    End,
}

/// Damage until the next good batch shows how far it reaches.
#[derive(Clone, Debug)]
struct Pending {
    segment: usize,
    position: u64,
    size: u64,
    first_offset: i64,
    severity: Severity,
    message: String,
    /// Zeros at the end of a file: nothing, unless offsets are missing behind them.
    is_quiet: bool,
}

/// A place in the log.
#[derive(Clone, Copy, Debug)]
struct Place {
    segment: usize,
    position: u64,
}

/// Offsets of aborted transactions of one producer, from the first record to the marker.
#[derive(Clone, Debug, Default)]
struct Aborted {
    ranges: Vec<(i64, i64)>,
    /// Nothing was committed behind the last range.
    may_grow: bool,
}

impl Aborted {
    fn add(&mut self, first_offset: i64, marker_offset: i64) {
        match self.ranges.last_mut().filter(|_| self.may_grow) {
            Some(range) => range.1 = marker_offset,
            None => self.ranges.push((first_offset, marker_offset)),
        }
        self.may_grow = true;
    }

    fn holds(&self, info: &BatchInfo) -> bool {
        let behind = self.ranges.partition_point(|range| range.1 < info.base_offset);
        self.ranges.get(behind).is_some_and(|range| range.0 <= info.last_offset)
    }
}

/// What the markers of the log say.
#[derive(Clone, Debug, Default)]
struct Transactions {
    aborted: HashMap<i64, Aborted>,
    /// First offset of each transaction without a marker, by producer.
    open: HashMap<i64, i64>,
}

impl Transactions {
    fn began(&mut self, info: &BatchInfo) {
        self.open.entry(info.producer_id).or_insert(info.base_offset);
    }

    fn ended(&mut self, info: &BatchInfo, is_commit: bool) {
        let Some(first_offset) = self.open.remove(&info.producer_id) else { return };
        if !is_commit {
            let aborted = self.aborted.entry(info.producer_id).or_default();
            aborted.add(first_offset, info.last_offset);
        } else if let Some(aborted) = self.aborted.get_mut(&info.producer_id) {
            aborted.may_grow = false;
        }
    }

    /// The open transaction that comes first: its offset and its producer.
    fn first_open(&self) -> Option<(i64, i64)> {
        self.open.iter().map(|(&producer_id, &offset)| (offset, producer_id)).min()
    }
}

/// Reads the segments of a partition one after the other, a window at a time.
///
/// It opens nothing itself: before each step the caller has the file of [`PartitionReader::segment`]
/// open and passes it on.
///
/// # Examples
/// ```
/// use ottla_audit::{PartitionReader, ReadOptions, Isolation, Scanner, Step};
/// use ottla_format::{check::Level, limits::Limits};
///
/// let options = ReadOptions {
///     isolation: Isolation::ReadCommitted,
///     start_offset: 0,
///     end_offset: i64::MAX,
///     stopped_cleanly: false,
/// };
/// let mut reader = PartitionReader::new(vec![Some(0)], options);
/// let mut scanner = Scanner::new(Level::Crc, Limits::default());
/// let empty: &[u8] = &[];
/// while reader.segment().is_some() {
///     assert!(matches!(reader.step(&mut scanner, &empty)?, Step::Busy | Step::End));
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PartitionReader {
    options: ReadOptions,
    /// Base offsets of the segments, by name.
    segments: Vec<Option<i64>>,
    segment: usize,
    /// Where to list on in the segment; `None` when all of it was.
    next_position: Option<u64>,
    /// Bytes of the segment.
    size: u64,
    /// Up to here the segment has been judged.
    covered: u64,
    batches: VecDeque<(BatchInfo, bool)>,
    findings: Vec<Finding>,
    /// The offset behind the last good batch.
    expected: Option<i64>,
    pending: Option<Pending>,
    transactions: Option<Transactions>,
    /// Where the pass for markers is.
    learning: Option<Place>,
    /// The last stable offset where a transaction is open, and its producer.
    open: Option<(i64, i64)>,
    is_stopped: bool,
}

impl PartitionReader {
    /// A reader of segments whose names give these base offsets, in their order.
    pub fn new(segments: Vec<Option<i64>>, options: ReadOptions) -> Self {
        let is_at_or_before =
            |base: &Option<i64>| base.is_some_and(|base| base <= options.start_offset);
        // A transaction that begins before the first offset may be open, and end the reading there.
        let segment = match options.isolation {
            Isolation::ReadCommitted | Isolation::Decided => 0,
            Isolation::ReadUncommitted => segments.iter().rposition(is_at_or_before).unwrap_or(0),
        };
        Self {
            options,
            segments,
            segment,
            next_position: Some(0),
            size: 0,
            covered: 0,
            batches: VecDeque::new(),
            findings: Vec::new(),
            expected: None,
            pending: None,
            transactions: None,
            learning: None,
            open: None,
            is_stopped: false,
        }
    }

    /// The segment that the next step reads; `None` at the end.
    pub fn segment(&self) -> Option<usize> {
        let wanted = self.learning.map_or(self.segment, |place| place.segment);
        (wanted < self.segments.len()).then_some(wanted)
    }

    /// The open transaction at which `read_committed` has stopped: the last stable offset, and the
    /// producer.
    pub fn stopped_by(&self) -> Option<(i64, i64)> {
        self.open.filter(|_| self.is_stopped)
    }

    /// Goes on. `source` is the file of [`PartitionReader::segment`].
    ///
    /// # Errors
    /// What ended reading.
    pub fn step(&mut self, scanner: &mut Scanner, source: &dyn Source) -> io::Result<Step> {
        if let Some(place) = self.learning {
            self.learn(place, scanner, source)?;
            return Ok(Step::Busy);
        }
        while self.segment < self.segments.len() {
            // A batch is judged with the one behind it in sight.
            if self.batches.len() < 2
                && let Some(position) = self.next_position
            {
                self.list(position, scanner, source)?;
                return Ok(Step::Busy);
            }
            let Some(&(info, is_valid)) = self.batches.front() else {
                self.end_segment();
                return Ok(self.settle(None).map_or(Step::Busy, Step::Damage));
            };
            self.skipped_bytes(info.position);
            let fault = self.fault(&info, is_valid, scanner.checker().limits().batch_bytes);
            if let Some((severity, message)) = fault {
                self.pass();
                self.damaged(info.position, info.size, severity, message);
                continue;
            }
            let base_offset = self.base_of(&info);
            let is_transactional = info.is_transactional() && info.has_producer_id();
            if self.options.isolation != Isolation::ReadUncommitted
                && is_transactional
                && !info.is_control()
                && self.transactions.is_none()
            {
                self.transactions = Some(Transactions::default());
                self.learning = Some(Place { segment: self.segment, position: info.position });
                return Ok(Step::Busy);
            }
            // Behind damage the first offset of a wrapper is not the one that was expected.
            let is_known = self.pending.is_none() || !is_wrapper(&info);
            let inside = if is_known { None } else { look_inside(scanner, source, &info)? };
            let base_offset = inside
                .and_then(|checked| checked.base_offset)
                .filter(|base| (base_offset..=info.last_offset).contains(base))
                .unwrap_or(base_offset);
            if let Some(damage) = self.settle(Some(base_offset)) {
                return Ok(Step::Damage(damage));
            }
            if base_offset >= self.end_offset() {
                self.is_stopped = base_offset < self.options.end_offset;
                self.segment = self.segments.len();
                break;
            }
            let before = self.options.start_offset.max(self.expected.unwrap_or(i64::MIN));
            let first_offset = base_offset.max(before);
            self.pass();
            self.expected = Some(info.last_offset.saturating_add(1));
            if info.is_control() || info.last_offset < before || self.is_withheld(&info) {
                continue;
            }
            let (segment, end_offset) = (self.segment, self.end_offset());
            return Ok(Step::Batch(Readable { segment, info, first_offset, end_offset }));
        }
        Ok(self.settle(None).map_or(Step::End, Step::Damage))
    }

    /// Goes on, and shows the records of a batch instead of giving it: whether there is more. What cannot
    /// be read is passed over in silence.
    ///
    /// # Errors
    /// What ended reading.
    pub fn visit(
        &mut self,
        scanner: &mut Scanner,
        source: &dyn Source,
        on_record: &mut dyn FnMut(&Record<'_>),
    ) -> io::Result<bool> {
        let readable = match self.step(scanner, source)? {
            Step::Batch(readable) => readable,
            Step::Damage(_) | Step::Busy => return Ok(true),
            Step::End => return Ok(false),
        };
        let Some(whole) = read_whole(scanner, source, &readable.info)? else { return Ok(true) };
        let checker = scanner.checker();
        let limits = *checker.limits();
        let inside = match batch::payload(&readable.info, &whole) {
            Ok(Payload::Plain { start }) => whole.get(start..).unwrap_or_default(),
            Ok(Payload::Compressed { codec, bytes, .. }) => {
                match checker.codecs().decompress(codec, readable.info.magic, bytes) {
                    Ok(inflated) => inflated,
                    Err(_) => return Ok(true),
                }
            }
            Err(_) => return Ok(true),
        };
        let Ok(mut records) = RecordCursor::start(&readable.info, inside, limits) else {
            return Ok(true);
        };
        let mut next_offset = readable.first_offset;
        while let Ok(Some(record)) = records.next(inside) {
            if readable.place(record.offset, next_offset) == RecordPlace::Wanted {
                next_offset = record.offset.saturating_add(1);
                on_record(&record);
            }
        }
        Ok(true)
    }

    /// The records of a batch could not be read, from an offset on.
    pub fn unreadable(&mut self, batch: &Readable, offset: i64, fault: &str) {
        let info = &batch.info;
        let message = format!("the batch at position {}: {fault}", info.position);
        self.damaged(info.position, info.size, Severity::Error, message);
        if let Some(pending) = &mut self.pending {
            pending.first_offset = pending.first_offset.min(offset);
        }
    }

    /// A record of a batch was left out, because its offset cannot be right.
    pub fn misplaced(&mut self, batch: &Readable, offset: i64) {
        let info = &batch.info;
        let message = format!(
            "the batch at position {}: a record has offset {offset}, which is not in its place, and was left out",
            info.position
        );
        self.damaged(info.position, info.size, Severity::Error, message);
    }

    /// Takes the first batch off.
    fn pass(&mut self) {
        if let Some((info, _)) = self.batches.pop_front() {
            self.covered = info.position.saturating_add(info.size);
        }
    }

    fn context(&self, segment: usize) -> SegmentContext {
        let base_offset = self.segments.get(segment).copied().flatten();
        SegmentContext {
            base_offset: self.expected.filter(|_| segment == self.segment).max(base_offset),
            next_base_offset: self.segments.get(segment + 1).copied().flatten(),
            is_active: segment + 1 == self.segments.len(),
            stopped_cleanly: self.options.stopped_cleanly,
            is_consumer_offsets: false,
            // Timestamps are not judged here.
            now_ms: i64::MAX,
            is_compared: false,
        }
    }

    fn list(
        &mut self,
        position: u64,
        scanner: &mut Scanner,
        source: &dyn Source,
    ) -> io::Result<()> {
        let listing = scanner.list(source, self.context(self.segment), position, 1)?;
        self.batches.extend(listing.batches);
        self.findings.retain(|finding| finding.position >= Some(self.covered));
        self.findings
            .extend(listing.findings.into_iter().filter(|found| found.kind.row().has_no_batch()));
        self.next_position = listing.next_position;
        self.size = source.size()?;
        Ok(())
    }

    fn end_segment(&mut self) {
        self.skipped_bytes(self.size);
        self.findings.clear();
        self.segment += 1;
        self.next_position = Some(0);
        self.covered = 0;
        self.size = 0;
    }

    /// Bytes up to `position` are no batch.
    fn skipped_bytes(&mut self, position: u64) {
        let (start, size) = (self.covered, position.saturating_sub(self.covered));
        if size == 0 {
            return;
        }
        self.covered = position;
        let mut inside = self
            .findings
            .iter()
            .filter(|finding| finding.position.is_some_and(|at| (start..position).contains(&at)));
        let (severity, message, is_quiet) = if let Some(first) = inside.next() {
            let severity = inside.fold(first.severity, |all, found| all.max(found.severity));
            (severity, first.message.clone(), first.kind == FindingKind::ZeroTail)
        } else {
            let message =
                format!("{size} bytes from position {start} on cannot be read as batches");
            (Severity::Error, message, false)
        };
        let is_new = self.pending.is_none();
        self.damaged(start, size, severity, message);
        if let Some(pending) = &mut self.pending {
            pending.is_quiet = is_quiet && (is_new || pending.is_quiet);
        }
    }

    /// Why a batch is not given, if it is not sound or not in its place.
    fn fault(&self, info: &BatchInfo, is_valid: bool, limit: u64) -> Option<(Severity, String)> {
        let position = info.position;
        let (base, last) = (self.base_of(info), info.last_offset);
        let lowest = self.lowest();
        let message = if !is_valid {
            format!("the batch at position {position} does not have the CRC it stores")
        } else if info.size > limit {
            format!(
                "the batch at position {position} has {} bytes, more than {limit}: it was not looked into",
                info.size
            )
        } else if base < 0 || last < base || last > self.highest() {
            format!(
                "the batch at position {position} has offsets {base} to {last}, which cannot be here"
            )
        } else if base != lowest && last < lowest {
            format!(
                "the batch at position {position} has offsets {base} to {last}, which came before"
            )
        } else if let Some(next) =
            self.next_base(lowest).filter(|&next| base > lowest && last >= next)
        {
            format!(
                "the batch at position {position} has offsets {base} to {last}, but offset {next} comes behind it"
            )
        } else {
            return None;
        };
        Some((Severity::Error, message))
    }

    /// The first offset that was not seen yet.
    fn lowest(&self) -> i64 {
        let base_offset = self.segments.get(self.segment).copied().flatten();
        self.expected.or(base_offset).unwrap_or(0)
    }

    /// The last offset a batch of this segment can have.
    fn highest(&self) -> i64 {
        let base_offset = self.segments.get(self.segment).copied().flatten();
        base_offset.map_or(i64::MAX, |base| base.saturating_add(MAX_RELATIVE_OFFSET))
    }

    /// The offset with which the batch behind the first begins, or the next segment.
    fn next_base(&self, lowest: i64) -> Option<i64> {
        let batch = self.batches.get(1).filter(|(_, is_valid)| *is_valid);
        let batch = batch.map(|(info, _)| info.base_offset);
        let segment = self.segments.get(self.segment + 1).copied().flatten();
        [batch, segment].into_iter().flatten().filter(|&base| base >= lowest).min()
    }

    /// The first offset of a batch; of a legacy wrapper, which does not tell, what is left for it.
    fn base_of(&self, info: &BatchInfo) -> i64 {
        if is_wrapper(info) { info.last_offset.min(self.lowest()) } else { info.base_offset }
    }

    fn damaged(&mut self, position: u64, size: u64, severity: Severity, message: String) {
        let (segment, first_offset) = (self.segment, self.lowest());
        let pending = self.pending.get_or_insert(Pending {
            segment,
            position,
            size: 0,
            first_offset,
            severity,
            message,
            is_quiet: false,
        });
        pending.size = pending.size.saturating_add(size);
        pending.severity = pending.severity.max(severity);
        pending.is_quiet = false;
    }

    /// The damage before a good batch at `next`, or before the end of the log, as far as it concerns
    /// the offsets asked for.
    fn settle(&mut self, next: Option<i64>) -> Option<Damage> {
        if next.is_none() && self.segment < self.segments.len() {
            return None;
        }
        let pending = self.pending.take()?;
        let end = self.end_offset().min(next.unwrap_or(i64::MAX));
        let start = self.options.start_offset.max(pending.first_offset);
        let loses = pending.first_offset < next.unwrap_or(i64::MAX);
        let is_told = match next {
            None => start < end && !pending.is_quiet,
            Some(_) if loses => start < end,
            Some(next) => {
                let asked_for = self.options.start_offset..self.end_offset();
                !pending.is_quiet && asked_for.contains(&next)
            }
        };
        is_told.then_some(Damage {
            segment: pending.segment,
            position: pending.position,
            size: pending.size,
            first_offset: loses.then_some(start),
            last_offset: next.filter(|_| loses).map(|_| end - 1),
            next_good_offset: next,
            severity: if loses && next.is_some() { Severity::Error } else { pending.severity },
            message: pending.message,
        })
    }

    /// Looks for markers in one more window.
    fn learn(
        &mut self,
        place: Place,
        scanner: &mut Scanner,
        source: &dyn Source,
    ) -> io::Result<()> {
        let context = self.context(place.segment);
        let listing = scanner.list(source, context, place.position, 1)?;
        let transactions = self.transactions.get_or_insert_default();
        for (info, is_valid) in &listing.batches {
            if !is_valid || !info.has_producer_id() {
                continue;
            }
            if !info.is_control() {
                if info.is_transactional() {
                    transactions.began(info);
                }
                continue;
            }
            match look_inside(scanner, source, info)?.and_then(|checked| checked.control) {
                Some(ControlRecord::Commit { .. }) => transactions.ended(info, true),
                Some(ControlRecord::Abort { .. }) => transactions.ended(info, false),
                _ => {}
            }
        }
        self.learning = match listing.next_position {
            Some(position) => Some(Place { position, ..place }),
            None if place.segment + 1 < self.segments.len() => {
                Some(Place { segment: place.segment + 1, position: 0 })
            }
            None => None,
        };
        if self.learning.is_none() && self.options.isolation == Isolation::ReadCommitted {
            self.open = transactions.first_open();
        }
        Ok(())
    }

    /// The offset behind the last to be given.
    fn end_offset(&self) -> i64 {
        let last_stable_offset = self.open.map_or(i64::MAX, |(offset, _)| offset);
        self.options.end_offset.min(last_stable_offset)
    }

    /// Whether a batch belongs to an aborted transaction, or to one that is open.
    fn is_withheld(&self, info: &BatchInfo) -> bool {
        let Some(transactions) = self.transactions.as_ref().filter(|_| info.is_transactional())
        else {
            return false;
        };
        let open = transactions.open.get(&info.producer_id);
        open.is_some_and(|&first_offset| info.base_offset >= first_offset)
            || transactions
                .aborted
                .get(&info.producer_id)
                .is_some_and(|aborted| aborted.holds(info))
    }
}

/// Whether only the records tell the first offset.
fn is_wrapper(info: &BatchInfo) -> bool {
    info.magic < 2 && info.compression() != Ok(Compression::None)
}

/// The bytes of a batch, if it is not too large and all there.
fn read_whole(
    scanner: &mut Scanner,
    source: &dyn Source,
    info: &BatchInfo,
) -> io::Result<Option<Vec<u8>>> {
    if info.size > scanner.checker().limits().batch_bytes {
        return Ok(None);
    }
    let mut whole = vec![0; info.size as usize];
    let filled = fill(source, info.position, &mut whole)?;
    Ok((filled == whole.len()).then_some(whole))
}

/// What the records of a batch show, if it can be read as a whole.
fn look_inside(
    scanner: &mut Scanner,
    source: &dyn Source,
    info: &BatchInfo,
) -> io::Result<Option<Checked>> {
    let Some(whole) = read_whole(scanner, source, info)? else { return Ok(None) };
    let checker = scanner.checker();
    let Some(envelope) = Envelope::read(&whole, 0) else { return Ok(None) };
    let level = checker.level();
    checker.set_level(Level::Decode);
    let inside = checker.check(&whole, 0, &envelope, &mut Vec::new());
    checker.set_level(level);
    Ok(Some(inside))
}
