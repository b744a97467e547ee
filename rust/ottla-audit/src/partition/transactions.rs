//! The transactions of one producer, in a form that merges.
//!
//! Transactional data opens a transaction, a marker ends it. What lies before the first marker of a
//! part depends on the part to its left, and is kept as sums: plain data that came first (forbidden
//! if a transaction was open), then transactional data, then the marker.

use crate::partition::sequences::{EventKind, ProducerEvent};
use ottla_log::sorting::sort_by_key;
use serde::{Deserialize, Serialize};

/// Committed transactions that are listed, those that ended first; the others are counted.
pub const MAX_COMMITTED: usize = 1 << 10;

/// See [`MAX_COMMITTED`]. Every aborted one is needed to compare `.txnindex` files with the log, so
/// only hostile data reaches this bound.
pub const MAX_ABORTED: usize = 1 << 16;

/// The longest transaction a broker allows by default (`transaction.max.timeout.ms`).
const MAX_TRANSACTION_MS: i64 = 900_000;

/// Where a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchPlace {
    /// Which segment of the partition, from 0.
    pub segment: u32,
    /// Bytes.
    pub size: u32,
    /// Bytes from the start of its file.
    pub position: u64,
}

/// Consecutive plain batches of a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlainRun {
    /// Where the first batch is.
    pub place: BatchPlace,
    /// How many.
    pub batches: u64,
    /// First offset of the first batch.
    pub first_offset: i64,
    /// Last offset of the last batch.
    pub last_offset: i64,
}

/// A transaction that has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTransaction {
    /// Where its first batch is.
    pub place: BatchPlace,
    /// Producer epoch of its first batch.
    pub producer_epoch: i16,
    /// First offset of its data.
    pub first_offset: i64,
    /// Max timestamp of its first batch.
    pub first_timestamp: i64,
    /// Last offset minus first offset of its first batch.
    first_offset_delta: i32,
    /// Records of its first batch.
    first_records: u32,
    /// Offsets missing below its first batch, counted from the beginning of this part of the log.
    holes: i64,
    /// Of all its batches, if there is more than the first: most transactions of a log that has many
    /// open ones have no more, and take little.
    sums: Option<Box<TransactionSums>>,
}

/// What the batches of an open transaction amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionSums {
    /// Last offset of its data.
    pub last_offset: i64,
    /// Largest timestamp of its data.
    pub last_timestamp: i64,
    /// Batches of data.
    pub batches: u64,
    /// Bytes of data.
    pub bytes: u64,
    /// Records of its data.
    pub records: u64,
    /// Plain batches of the same producer inside it, which only faulty logs have.
    pub plain: Option<PlainRun>,
    /// Where another transaction begins inside it, which only faulty logs have.
    unmarked: Option<MissingMarkers>,
    /// Offsets missing below its last batch.
    newest_holes: i64,
    /// Producer epoch of its last batch.
    newest_epoch: i16,
    /// Whether a cleaner has left records of its last batch.
    newest_has_records: bool,
}

/// Markers that are missing in what a log therefore has as one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingMarkers {
    /// How many.
    pub markers: u64,
    /// Last offset before the first of them.
    pub last_offset: i64,
    /// First offset after it.
    pub next_offset: i64,
    /// Producer epoch after it.
    pub next_epoch: i16,
}

impl MissingMarkers {
    fn join(left: Option<Self>, right: Option<Self>) -> Option<Self> {
        match (left, right) {
            (Some(left), Some(right)) => {
                Some(Self { markers: left.markers.saturating_add(right.markers), ..left })
            }
            (left, right) => left.or(right),
        }
    }
}

/// A transaction that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedTransaction {
    /// Where its first batch is.
    pub place: BatchPlace,
    /// Producer epoch of its first batch.
    pub producer_epoch: i16,
    /// Epoch of the coordinator that wrote its end marker.
    pub coordinator_epoch: i32,
    /// First offset of its data.
    pub first_offset: i64,
    /// Last offset of its data.
    pub last_offset: i64,
    /// Offset of its end marker.
    pub marker_offset: i64,
    /// Max timestamp of its first batch.
    pub first_timestamp: i64,
    /// Timestamp of its end marker.
    pub marker_timestamp: i64,
    /// Batches of data.
    pub batches: u64,
    /// Bytes of data.
    pub bytes: u64,
    /// Records of its data.
    pub records: u64,
    /// Commit or abort.
    pub is_commit: bool,
}

/// Transactions that have ended, with their producer, in bounded memory and in a form that merges.
///
/// They are added when they become known, which for a log in parts is not the order of their markers.
/// Those with the lowest markers are kept, so that the result does not depend on the parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedTransactions {
    /// By an ABORT marker.
    pub aborted: Vec<(i64, CompletedTransaction)>,
    /// By a COMMIT marker.
    pub committed: Vec<(i64, CompletedTransaction)>,
}

impl EndedTransactions {
    /// Adds a transaction.
    pub fn push(&mut self, producer_id: i64, completed: CompletedTransaction) {
        let (list, limit) = if completed.is_commit {
            (&mut self.committed, MAX_COMMITTED)
        } else {
            (&mut self.aborted, MAX_ABORTED)
        };
        list.push((producer_id, completed));
        Self::bound(list, limit);
    }

    /// Adds the transactions of another part, and sorts them.
    pub fn append(&mut self, other: Self) {
        self.extend(other);
        self.sort();
    }

    /// Adds the transactions of another part.
    pub(crate) fn extend(&mut self, other: Self) {
        self.aborted.extend(other.aborted);
        self.committed.extend(other.committed);
        Self::bound(&mut self.aborted, MAX_ABORTED);
        Self::bound(&mut self.committed, MAX_COMMITTED);
    }

    fn bound(list: &mut Vec<(i64, CompletedTransaction)>, limit: usize) {
        if list.len() > limit.saturating_mul(2) {
            Self::trim(list, limit);
        }
    }

    /// Moves the part to its place: so many segments come before it.
    pub fn shift(&mut self, segments: u32) {
        for (_, completed) in self.aborted.iter_mut().chain(&mut self.committed) {
            completed.place.shift(segments);
        }
    }

    /// Sorts them by their markers, and drops those beyond the bounds.
    pub fn sort(&mut self) {
        Self::trim(&mut self.aborted, MAX_ABORTED);
        Self::trim(&mut self.committed, MAX_COMMITTED);
    }

    fn trim(list: &mut Vec<(i64, CompletedTransaction)>, limit: usize) {
        sort_by_key(list, |(producer_id, completed)| {
            let CompletedTransaction { marker_offset, first_offset, place, .. } = completed;
            (*marker_offset, *producer_id, *first_offset, place.segment, place.position)
        });
        list.truncate(limit);
    }
}

/// What transactions show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransactionVerdict {
    /// One has ended.
    Completed(CompletedTransaction),
    /// Plain data inside a transaction of the same producer.
    PlainInside {
        /// The data.
        plain: PlainRun,
        /// First offset of the transaction.
        first_offset: i64,
    },
    /// A transaction whose producer began another one before its marker.
    MarkerMissing {
        /// Where its first batch is.
        place: BatchPlace,
        /// Its producer epoch.
        producer_epoch: i16,
        /// First offset of its data.
        first_offset: i64,
        /// What is missing.
        missing: MissingMarkers,
    },
    /// A marker whose coordinator epoch is below the previous one.
    CoordinatorEpochRegression {
        /// The marker.
        marker: ProducerEvent,
        /// The previous epoch.
        previous: i32,
        /// Its own epoch.
        found: i32,
    },
}

/// The transactions of one producer in one part of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transactions {
    /// Plain data before any transactional data or marker.
    plain: Option<PlainRun>,
    /// Transactional data before the first marker. Most producers have neither, and boxed they
    /// take little of each.
    begun: Option<Box<OpenTransaction>>,
    /// The first marker.
    marker: Option<Box<ProducerEvent>>,
    /// After the first marker: the coordinator epoch and the open transaction.
    coordinator_epoch: i32,
    open: Option<Box<OpenTransaction>>,
}

impl BatchPlace {
    fn of(event: &ProducerEvent) -> Self {
        Self { segment: event.segment, position: event.position, size: event.size }
    }

    fn shift(&mut self, segments: u32) {
        self.segment = self.segment.saturating_add(segments);
    }
}

impl PlainRun {
    fn one(event: &ProducerEvent) -> Self {
        let (first_offset, last_offset) = (event.offset, event.last_offset());
        Self { place: BatchPlace::of(event), batches: 1, first_offset, last_offset }
    }

    fn join(left: Option<Self>, right: Option<Self>) -> Option<Self> {
        match (left, right) {
            (Some(left), Some(right)) => Some(Self {
                batches: left.batches.saturating_add(right.batches),
                last_offset: right.last_offset,
                ..left
            }),
            (left, right) => left.or(right),
        }
    }
}

impl OpenTransaction {
    fn one(event: &ProducerEvent) -> Self {
        Self {
            place: BatchPlace::of(event),
            producer_epoch: event.epoch,
            first_offset: event.offset,
            first_timestamp: event.timestamp,
            first_offset_delta: event.offset_delta,
            first_records: event.records,
            holes: event.holes,
            sums: None,
        }
    }

    /// What its batches amount to.
    pub fn sums(&self) -> TransactionSums {
        let of_first = || TransactionSums {
            last_offset: self.first_offset.wrapping_add(self.first_offset_delta.into()),
            last_timestamp: self.first_timestamp,
            batches: 1,
            bytes: self.place.size.into(),
            records: self.first_records.into(),
            plain: None,
            unmarked: None,
            newest_holes: self.holes,
            newest_epoch: self.producer_epoch,
            newest_has_records: self.first_records > 0,
        };
        self.sums.as_deref().copied().unwrap_or_else(of_first)
    }

    /// The same, to be added to.
    fn sums_mut(&mut self) -> &mut TransactionSums {
        let sums = self.sums();
        self.sums.get_or_insert_with(|| Box::new(sums))
    }

    /// Adds the data of the part on the right to a transaction, or begins one with it.
    fn extend(open: &mut Option<Box<Self>>, next: Self) {
        let Some(left) = open else {
            *open = Some(Box::new(next));
            return;
        };
        let (sums, right) = (left.sums_mut(), next.sums());
        let between = sums.is_unmarked_before(&next).then_some(MissingMarkers {
            markers: 1,
            last_offset: sums.last_offset,
            next_offset: next.first_offset,
            next_epoch: next.producer_epoch,
        });
        sums.unmarked =
            MissingMarkers::join(MissingMarkers::join(sums.unmarked, between), right.unmarked);
        sums.newest_holes = right.newest_holes;
        sums.newest_epoch = right.newest_epoch;
        sums.newest_has_records = right.newest_has_records;
        sums.last_offset = right.last_offset;
        sums.last_timestamp = sums.last_timestamp.max(right.last_timestamp);
        sums.batches = sums.batches.saturating_add(right.batches);
        sums.bytes = sums.bytes.saturating_add(right.bytes);
        sums.records = sums.records.saturating_add(right.records);
        sums.plain = PlainRun::join(sums.plain, right.plain);
    }

    /// Moves it to its place, with the part of the log that it is in.
    fn shift(&mut self, holes: i64, segments: u32) {
        self.place.shift(segments);
        self.holes = self.holes.saturating_add(holes);
        let Some(sums) = &mut self.sums else { return };
        sums.newest_holes = sums.newest_holes.saturating_add(holes);
        if let Some(plain) = &mut sums.plain {
            plain.place.shift(segments);
        }
    }

    /// Whether it is older, by the newest timestamp of its log, than a coordinator lets one become by
    /// default. Only its coordinator can tell that it hangs.
    pub(crate) fn is_old(&self, log_timestamp: i64) -> bool {
        log_timestamp.saturating_sub(self.first_timestamp) > MAX_TRANSACTION_MS
    }

    fn add_plain(&mut self, plain: Option<PlainRun>) {
        if plain.is_some() {
            let sums = self.sums_mut();
            sums.plain = PlainRun::join(sums.plain, plain);
        }
    }

    /// Reports what no transaction has inside.
    fn report_inside(&self, out: &mut dyn FnMut(TransactionVerdict)) {
        let Some(sums) = self.sums.as_deref() else { return };
        let Self { place, producer_epoch, first_offset, .. } = *self;
        if let Some(plain) = sums.plain {
            out(TransactionVerdict::PlainInside { plain, first_offset });
        }
        if let Some(missing) = sums.unmarked {
            out(TransactionVerdict::MarkerMissing { place, producer_epoch, first_offset, missing });
        }
    }
}

impl TransactionSums {
    /// Whether `next` is of another transaction than these batches, and the marker between is missing.
    ///
    /// A producer gets a new epoch once its transaction has ended. The marker may be where offsets
    /// are missing; and a cleaner removes it with the last records.
    fn is_unmarked_before(&self, next: &OpenTransaction) -> bool {
        next.producer_epoch > self.newest_epoch
            && next.holes == self.newest_holes
            && self.newest_has_records
    }
}

/// Ends an open transaction with a marker.
fn end(
    open: Option<Box<OpenTransaction>>,
    marker: ProducerEvent,
    out: &mut dyn FnMut(TransactionVerdict),
) {
    let EventKind::Marker { is_commit, coordinator_epoch } = marker.kind else { return };
    // A marker without data ends an empty transaction, or the cleaner removed the data.
    let Some(open) = open else { return };
    open.report_inside(out);
    let TransactionSums { last_offset, batches, bytes, records, .. } = open.sums();
    out(TransactionVerdict::Completed(CompletedTransaction {
        place: open.place,
        producer_epoch: open.producer_epoch,
        coordinator_epoch,
        first_offset: open.first_offset,
        last_offset,
        marker_offset: marker.offset,
        first_timestamp: open.first_timestamp,
        marker_timestamp: marker.timestamp,
        batches,
        bytes,
        records,
        is_commit,
    }));
}

fn compare_epochs(
    previous: i32,
    marker: ProducerEvent,
    out: &mut dyn FnMut(TransactionVerdict),
) -> i32 {
    let EventKind::Marker { coordinator_epoch: found, .. } = marker.kind else { return previous };
    if found < previous {
        out(TransactionVerdict::CoordinatorEpochRegression { marker, previous, found });
    }
    found
}

impl Transactions {
    /// Adds the next event; final verdicts go to `out`.
    pub fn observe(&mut self, event: &ProducerEvent, out: &mut dyn FnMut(TransactionVerdict)) {
        match event.kind {
            EventKind::Marker { coordinator_epoch, .. } => {
                if self.marker.is_some() {
                    self.coordinator_epoch = compare_epochs(self.coordinator_epoch, *event, out);
                    end(self.open.take(), *event, out);
                } else {
                    // Holes and timestamps before the part do not matter for a marker, and are not known.
                    let marker = ProducerEvent { holes: 0, previous_timestamp: None, ..*event };
                    self.marker = Some(Box::new(marker));
                    self.coordinator_epoch = coordinator_epoch;
                }
            }
            EventKind::Data { is_transactional: true, .. } => {
                OpenTransaction::extend(self.current(), OpenTransaction::one(event));
            }
            EventKind::Data { .. } => {
                let plain = Some(PlainRun::one(event));
                if let Some(open) = self.current() {
                    open.add_plain(plain);
                } else if self.marker.is_none() {
                    self.plain = PlainRun::join(self.plain, plain);
                }
            }
        }
    }

    /// The transaction that the next data belongs to.
    fn current(&mut self) -> &mut Option<Box<OpenTransaction>> {
        if self.marker.is_some() { &mut self.open } else { &mut self.begun }
    }

    /// Moves the part to its place: `holes` more offsets are missing below it, and so many segments
    /// come before it.
    pub fn shift(&mut self, holes: i64, segments: u32) {
        for open in self.begun.iter_mut().chain(&mut self.open) {
            open.shift(holes, segments);
        }
        if let Some(plain) = &mut self.plain {
            plain.place.shift(segments);
        }
        if let Some(marker) = &mut self.marker {
            marker.segment = marker.segment.saturating_add(segments);
        }
    }

    /// Appends the part to the right, which was moved to its place.
    pub fn append(&mut self, right: &Self, out: &mut dyn FnMut(TransactionVerdict)) {
        let had_marker = self.marker.is_some();
        if let Some(open) = self.current() {
            open.add_plain(right.plain);
        } else if !had_marker {
            self.plain = PlainRun::join(self.plain, right.plain);
        }
        if let Some(begun) = &right.begun {
            OpenTransaction::extend(self.current(), OpenTransaction::clone(begun));
        }
        let Some(marker) = &right.marker else { return };
        if had_marker {
            compare_epochs(self.coordinator_epoch, **marker, out);
            end(self.open.take(), **marker, out);
        } else {
            self.marker = Some(marker.clone());
        }
        self.coordinator_epoch = right.coordinator_epoch;
        self.open.clone_from(&right.open);
    }

    /// Returns the coordinator epoch of the last marker, if there was one, and the open transaction,
    /// with nothing to the left.
    pub fn state(&self) -> (Option<i32>, Option<&OpenTransaction>) {
        match self.marker {
            Some(_) => (Some(self.coordinator_epoch), self.open.as_deref()),
            None => (None, self.begun.as_deref()),
        }
    }

    /// Ends the merge, with nothing to the left; returns the coordinator epoch (−1 without a marker) and
    /// the transaction that is still open.
    pub fn finish(
        self,
        out: &mut dyn FnMut(TransactionVerdict),
    ) -> (i32, Option<Box<OpenTransaction>>) {
        let (epoch, open) = match self.marker {
            Some(marker) => {
                end(self.begun, *marker, out);
                (self.coordinator_epoch, self.open)
            }
            None => (-1, self.begun),
        };
        if let Some(open) = &open {
            open.report_inside(out);
        }
        (epoch, open)
    }
}
