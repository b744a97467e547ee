//! The producers of a part of a log, in a form that merges.

use crate::partition::sequences::{
    EventKind, ProducerEvent, SequenceState, SequenceVerdict, Sequences, judge_head,
};
use crate::partition::transactions::{OpenTransaction, TransactionVerdict, Transactions};
use ottla_log::sidefiles::snapshot::SnapshotEntry;
use ottla_log::sorting::sort_by_key;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::OnceLock;

/// Producers of one part of a log that are tracked. One with a single batch takes some 100 bytes, one
/// with several at most eight times as much; a log in which every batch has another producer would
/// otherwise take unbounded memory.
pub const MAX_PRODUCERS: usize = 1 << 18;

/// What a batch of a producer, or the end of a transaction, shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProducerVerdict {
    /// About sequences and epochs.
    Sequence(ProducerEvent, SequenceVerdict),
    /// About transactions.
    Transaction(TransactionVerdict),
}

/// Takes a verdict and the id of its producer.
pub type Out<'a> = dyn FnMut(i64, ProducerVerdict) + 'a;

/// The state of a producer at the end of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerState {
    /// Its id.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// Last sequence of that epoch, −1 for none.
    pub last_sequence: i32,
    /// Last offset of its newest batch of data, −1 for none.
    pub last_offset: i64,
    /// Last offset minus base offset of its newest batch of data.
    pub last_offset_delta: i32,
    /// Max timestamp of its last batch, marker included.
    pub last_timestamp: i64,
    /// Epoch of the coordinator that wrote its last marker, −1 for none.
    pub coordinator_epoch: i32,
    /// Its open transaction.
    pub open_transaction: Option<Box<OpenTransaction>>,
}

/// The state of a producer at some offset, as a snapshot of that offset would have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownProducer {
    /// The entry.
    pub entry: SnapshotEntry,
    /// Offset of its newest batch, marker included.
    pub newest_offset: i64,
    /// Whether the log has data of the producer.
    pub has_data: bool,
    /// Whether the log has a marker of the producer.
    pub has_marker: bool,
}

/// What several batches of a producer amount to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct History {
    sequences: Sequences,
    transactions: Transactions,
    last_timestamp: i64,
    last_data: Option<(i64, i64)>,
    newest_offset: i64,
}

impl History {
    /// A first batch; nothing can be said of it yet.
    fn of(event: &ProducerEvent) -> Self {
        let mut history = Self {
            sequences: Sequences::default(),
            transactions: Transactions::default(),
            last_timestamp: event.timestamp,
            last_data: None,
            newest_offset: event.last_offset(),
        };
        history.observe(*event, &mut |_| {});
        history
    }

    /// Adds the next batch.
    fn observe(&mut self, event: ProducerEvent, out: &mut dyn FnMut(ProducerVerdict)) {
        self.last_timestamp = event.timestamp;
        self.newest_offset = event.last_offset();
        self.last_data = data_offsets(&event).or(self.last_data);
        self.sequences.observe(event, &mut |event, verdict| {
            out(ProducerVerdict::Sequence(*event, verdict));
        });
        self.transactions.observe(&event, &mut |verdict| {
            out(ProducerVerdict::Transaction(verdict));
        });
    }

    /// Moves it to its place in the log, behind a batch of `previous_timestamp`.
    fn shift(&mut self, holes: i64, segment: u32, previous_timestamp: Option<i64>) {
        self.sequences.shift(holes, segment, previous_timestamp);
        self.transactions.shift(holes, segment);
    }

    /// Appends what was moved to its place.
    fn append(&mut self, right: &Self, out: &mut dyn FnMut(ProducerVerdict)) {
        self.last_timestamp = right.last_timestamp;
        self.last_data = right.last_data.or(self.last_data);
        self.newest_offset = self.newest_offset.max(right.newest_offset);
        self.sequences.append(&right.sequences, &mut |event, verdict| {
            out(ProducerVerdict::Sequence(*event, verdict));
        });
        self.transactions.append(&right.transactions, &mut |verdict| {
            out(ProducerVerdict::Transaction(verdict));
        });
    }
}

/// What is known of a producer. Most producers of a log that has many have written once, and take no
/// more room than that batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Batches {
    One(ProducerEvent),
    Several(Box<History>),
}

impl Batches {
    /// The history, to be added to.
    fn several(&mut self) -> &mut History {
        loop {
            match self {
                Self::One(event) => *self = Self::Several(Box::new(History::of(event))),
                Self::Several(history) => return history,
            }
        }
    }

    fn history(&self) -> Cow<'_, History> {
        match self {
            Self::One(event) => Cow::Owned(History::of(event)),
            Self::Several(history) => Cow::Borrowed(history),
        }
    }

    fn last_timestamp(&self) -> i64 {
        match self {
            Self::One(event) => event.timestamp,
            Self::Several(history) => history.last_timestamp,
        }
    }

    fn has_open_transaction(&self) -> bool {
        match self {
            Self::One(event) => {
                matches!(event.kind, EventKind::Data { is_transactional: true, .. })
            }
            Self::Several(history) => history.transactions.state().1.is_some(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Producer {
    id: i64,
    batches: Batches,
}

impl Producer {
    fn known(&self) -> KnownProducer {
        let history = self.batches.history();
        let state = history.sequences.finish(&mut |_, _| {});
        let (coordinator_epoch, open) = history.transactions.state();
        // A marker of another epoch makes a broker forget the batches before it.
        let newest = history.last_data.filter(|_| state.is_some_and(|state| state.has_batches()));
        let (first, last) = newest.unwrap_or((-1, -1));
        let entry = SnapshotEntry {
            producer_id: self.id,
            producer_epoch: state.map_or(-1, |state| state.epoch),
            last_sequence: state.map_or(-1, |state| state.last_sequence),
            last_offset: last,
            offset_delta: last.saturating_sub(first) as i32,
            last_timestamp: history.last_timestamp,
            coordinator_epoch: coordinator_epoch.unwrap_or(-1),
            transaction_first_offset: open.map(|open| open.first_offset),
        };
        KnownProducer {
            entry,
            newest_offset: history.newest_offset,
            has_data: history.last_data.is_some(),
            has_marker: coordinator_epoch.is_some(),
        }
    }

    /// Judges what depended on that nothing is to the left but `holes` deleted offsets.
    fn finish(self, holes: i64, out: &mut dyn FnMut(ProducerVerdict)) -> ProducerState {
        let last_timestamp = self.batches.last_timestamp();
        let judged = &mut |event: &ProducerEvent, verdict| {
            out(ProducerVerdict::Sequence(*event, verdict));
        };
        let state: Option<SequenceState>;
        let (transactions, last_data) = match self.batches {
            Batches::One(mut event) => {
                event.holes = event.holes.saturating_add(holes);
                state = judge_head(&[event], judged);
                let mut transactions = Transactions::default();
                transactions.observe(&event, &mut |_| {});
                (transactions, data_offsets(&event))
            }
            Batches::Several(history) => {
                let History { mut sequences, transactions, last_data, .. } = *history;
                sequences.shift(holes, 0, None);
                state = sequences.finish(judged);
                (transactions, last_data)
            }
        };
        let (coordinator_epoch, open_transaction) =
            transactions.finish(&mut |verdict| out(ProducerVerdict::Transaction(verdict)));
        let (first, last) = last_data.unwrap_or((-1, -1));
        ProducerState {
            producer_id: self.id,
            producer_epoch: state.map_or(-1, |state| state.epoch),
            last_sequence: state.map_or(-1, |state| state.last_sequence),
            last_offset: last,
            last_offset_delta: last.saturating_sub(first) as i32,
            last_timestamp,
            coordinator_epoch,
            open_transaction,
        }
    }
}

/// The first and the last offset of a batch of data.
fn data_offsets(event: &ProducerEvent) -> Option<(i64, i64)> {
    matches!(event.kind, EventKind::Data { .. }).then(|| (event.offset, event.last_offset()))
}

/// The producers of one part of a log.
#[derive(Clone, Default)]
pub struct Producers {
    /// Of each id, once one is looked for.
    places: OnceLock<HashMap<i64, u32>>,
    list: Vec<Producer>,
    /// The largest id: a new producer has a larger one, mostly, and then is not looked for.
    largest: Option<i64>,
    newest: usize,
    /// Places of those with an open transaction.
    open: BTreeSet<u32>,
    left_out: u64,
}

impl Producers {
    /// The place of a producer in the list.
    fn place(&mut self, id: i64) -> Option<usize> {
        // Batches of one producer come in runs.
        if self.list.get(self.newest).is_none_or(|producer| producer.id != id) {
            if Some(id) > self.largest {
                return None;
            }
            self.newest = *self.places().get(&id)? as usize;
        }
        Some(self.newest)
    }

    fn places(&self) -> &HashMap<i64, u32> {
        self.places.get_or_init(|| {
            self.list.iter().zip(0..).map(|(producer, place)| (producer.id, place)).collect()
        })
    }

    /// Adds a producer that is not in the list.
    fn add(&mut self, id: i64, batches: Batches) {
        let next = self.list.len();
        if next >= MAX_PRODUCERS {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        if batches.has_open_transaction() {
            self.open.insert(next as u32);
        }
        if let Some(places) = self.places.get_mut() {
            places.insert(id, next as u32);
        }
        // The list is most of what a log of many producers takes: it grows by little.
        if next == self.list.capacity() {
            self.list.reserve_exact((next / 8).max(4));
        }
        self.list.push(Producer { id, batches });
        self.largest = self.largest.max(Some(id));
        self.newest = next;
    }

    /// Adds the next batch of a producer.
    pub fn observe(&mut self, id: i64, mut event: ProducerEvent, out: &mut Out<'_>) {
        let place = self.place(id);
        let Some(producer) = place.and_then(|place| self.list.get_mut(place)) else {
            event.previous_timestamp = None;
            return self.add(id, Batches::One(event));
        };
        event.previous_timestamp = Some(producer.batches.last_timestamp());
        producer.batches.several().observe(event, &mut |verdict| out(id, verdict));
        if !matches!(event.kind, EventKind::Data { is_transactional: false, .. }) {
            self.follow_open();
        }
    }

    /// Takes down whether the newest producer has an open transaction.
    fn follow_open(&mut self) {
        let producer = self.list.get(self.newest);
        let place = self.newest as u32;
        if producer.is_some_and(|producer| producer.batches.has_open_transaction()) {
            self.open.insert(place);
        } else {
            self.open.remove(&place);
        }
    }

    /// Appends the part to the right: `holes` offsets are missing below its first batch, and its
    /// segments are numbered from `segment` on.
    pub fn append(&mut self, right: &Self, holes: i64, segment: u32, out: &mut Out<'_>) {
        self.left_out = self.left_out.saturating_add(right.left_out);
        if self.list.is_empty() {
            self.list.reserve_exact(right.list.len());
        }
        for Producer { id, batches } in &right.list {
            let (id, mut batches) = (*id, batches.clone());
            let place = self.place(id);
            let left = place.and_then(|place| self.list.get_mut(place));
            let previous = left.as_ref().map(|left| left.batches.last_timestamp());
            match &mut batches {
                Batches::One(event) => {
                    event.holes = event.holes.saturating_add(holes);
                    event.segment = event.segment.saturating_add(segment);
                }
                Batches::Several(history) => history.shift(holes, segment, previous),
            }
            match left {
                Some(left) => {
                    let right = batches.several();
                    right.sequences.shift(0, 0, previous);
                    left.batches.several().append(right, &mut |verdict| out(id, verdict));
                    self.follow_open();
                }
                None => self.add(id, batches),
            }
        }
    }

    /// Ends the merge: nothing is to the left but `holes` deleted offsets. Judges the events that
    /// depended on this, and returns the producers by id.
    pub fn finish(self, holes: i64, out: &mut Out<'_>) -> Vec<ProducerState> {
        drop(self.places);
        // The states take the place of the list as they are made.
        states(self.list.into_iter(), holes, out)
    }

    /// Does the same with a part that is needed afterwards.
    pub(crate) fn finish_copy(&self, holes: i64, out: &mut Out<'_>) -> Vec<ProducerState> {
        states(self.list.iter().cloned(), holes, out)
    }

    /// Frees what only serves to add more: a part that is complete is kept until all are.
    pub(crate) fn complete(&mut self) {
        self.places = OnceLock::new();
    }

    /// Returns the state of a producer, with nothing to the left.
    pub fn known(&self, id: i64) -> Option<KnownProducer> {
        let place = self.places().get(&id)?;
        Some(self.list.get(*place as usize)?.known())
    }

    /// Returns the states of all producers, in the order of their first batches.
    pub fn all_known(&self) -> impl Iterator<Item = KnownProducer> {
        self.list.iter().map(Producer::known)
    }

    /// Returns the states of the producers with an open transaction.
    pub fn with_open_transaction(&self) -> impl Iterator<Item = KnownProducer> {
        self.open.iter().filter_map(|&place| self.list.get(place as usize)).map(Producer::known)
    }

    /// Whether all producers of the part to the right can be tracked here: then appending it has the
    /// same result as tracking both parts together.
    pub(crate) fn has_room_for(&self, right: &Self) -> bool {
        let room = MAX_PRODUCERS.saturating_sub(self.list.len());
        let has_room = || {
            let known: HashSet<i64> = self.list.iter().map(|producer| producer.id).collect();
            right.list.iter().filter(|producer| !known.contains(&producer.id)).count() <= room
        };
        right.left_out == 0 && (right.list.len() <= room || has_room())
    }

    /// How many batches belong to producers beyond [`MAX_PRODUCERS`], which were not tracked.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// How many producers are tracked.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl fmt::Debug for Producers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { list, left_out, .. } = self;
        f.debug_struct("Producers").field("list", list).field("left_out", left_out).finish()
    }
}

impl PartialEq for Producers {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list && self.left_out == other.left_out
    }
}

impl Eq for Producers {}

impl Serialize for Producers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.list, self.left_out).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Producers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (mut list, left_out): (Vec<Producer>, u64) = Deserialize::deserialize(deserializer)?;
        let mut known = HashSet::new();
        list.retain(|producer| known.len() < MAX_PRODUCERS && known.insert(producer.id));
        list.shrink_to_fit();
        let is_open = |(_, producer): &(u32, &Producer)| producer.batches.has_open_transaction();
        let open = (0..).zip(&list).filter(is_open).map(|(place, _)| place).collect();
        let largest = list.iter().map(|producer| producer.id).max();
        Ok(Self { places: OnceLock::new(), list, largest, newest: 0, open, left_out })
    }
}

fn states(
    producers: impl Iterator<Item = Producer>,
    holes: i64,
    out: &mut Out<'_>,
) -> Vec<ProducerState> {
    let mut states: Vec<ProducerState> = producers
        .map(|producer| {
            let id = producer.id;
            producer.finish(holes, &mut |verdict| out(id, verdict))
        })
        .collect();
    sort_by_key(&mut states, |state| state.producer_id);
    states
}
