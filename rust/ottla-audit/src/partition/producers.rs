//! The producers of a part of a log, in a form that merges.

use crate::partition::sequences::{
    EventKind, ProducerEvent, SequenceState, SequenceVerdict, Sequences,
};
use crate::partition::transactions::{OpenTransaction, TransactionVerdict, Transactions};
use ottla_log::sidefiles::snapshot::SnapshotEntry;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

/// Producers of one part of a log that are tracked. One with a batch or two takes some 400 bytes, and
/// only a transaction makes it more; a log in which every batch has another producer would otherwise
/// take unbounded memory.
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Producer {
    id: i64,
    sequences: Sequences,
    transactions: Transactions,
    last_timestamp: Option<i64>,
    last_data: Option<(i64, i64)>,
    newest_offset: i64,
}

impl Producer {
    fn known(&self) -> KnownProducer {
        let state = self.sequences.finish(&mut |_, _| {});
        let (coordinator_epoch, open) = self.transactions.state();
        // A marker of another epoch makes a broker forget the batches before it.
        let newest = self.last_data.filter(|_| state.is_some_and(|state| state.has_batches()));
        let (first, last) = newest.unwrap_or((-1, -1));
        let entry = SnapshotEntry {
            producer_id: self.id,
            producer_epoch: state.map_or(-1, |state| state.epoch),
            last_sequence: state.map_or(-1, |state| state.last_sequence),
            last_offset: last,
            offset_delta: last.saturating_sub(first) as i32,
            last_timestamp: self.last_timestamp.unwrap_or(-1),
            coordinator_epoch: coordinator_epoch.unwrap_or(-1),
            transaction_first_offset: open.map(|open| open.first_offset),
        };
        KnownProducer {
            entry,
            newest_offset: self.newest_offset,
            has_data: self.last_data.is_some(),
            has_marker: coordinator_epoch.is_some(),
        }
    }
}

/// The producers of one part of a log.
#[derive(Clone, Default)]
pub struct Producers {
    places: HashMap<i64, usize>,
    list: Vec<Producer>,
    newest: usize,
    /// Places of those with an open transaction.
    open: BTreeSet<usize>,
    left_out: u64,
}

impl Producers {
    fn place(&mut self, id: i64) -> Option<&mut Producer> {
        // Batches of one producer come in runs.
        if self.list.get(self.newest).is_none_or(|producer| producer.id != id) {
            let next = self.list.len();
            self.newest = match self.places.get(&id) {
                Some(&place) => place,
                None if next >= MAX_PRODUCERS => {
                    self.left_out = self.left_out.saturating_add(1);
                    return None;
                }
                None => {
                    self.places.insert(id, next);
                    self.list.push(Producer {
                        id,
                        sequences: Sequences::default(),
                        transactions: Transactions::default(),
                        last_timestamp: None,
                        last_data: None,
                        newest_offset: -1,
                    });
                    next
                }
            };
        }
        self.list.get_mut(self.newest)
    }

    /// Adds the next batch of a producer.
    pub fn observe(&mut self, id: i64, mut event: ProducerEvent, out: &mut Out<'_>) {
        let Some(producer) = self.place(id) else { return };
        event.previous_timestamp = producer.last_timestamp;
        producer.last_timestamp = Some(event.timestamp);
        producer.newest_offset = event.last_offset;
        if matches!(event.kind, EventKind::Data { .. }) {
            producer.last_data = Some((event.offset, event.last_offset));
        }
        producer.sequences.observe(event, &mut |event, verdict| {
            out(id, ProducerVerdict::Sequence(*event, verdict));
        });
        producer.transactions.observe(&event, &mut |verdict| {
            out(id, ProducerVerdict::Transaction(verdict));
        });
        if !matches!(event.kind, EventKind::Data { is_transactional: false, .. }) {
            let is_open = producer.transactions.state().1.is_some();
            self.set_open(self.newest, is_open);
        }
    }

    fn set_open(&mut self, place: usize, is_open: bool) {
        if is_open {
            self.open.insert(place);
        } else {
            self.open.remove(&place);
        }
    }

    /// Appends the part to the right: `holes` offsets are missing below its first batch, and its
    /// segments are numbered from `segment` on.
    pub fn append(&mut self, right: Self, holes: i64, segment: u32, out: &mut Out<'_>) {
        self.left_out = self.left_out.saturating_add(right.left_out);
        for mut producer in right.list {
            let id = producer.id;
            let Some(left) = self.place(id) else { continue };
            producer.sequences.shift(holes, segment, left.last_timestamp);
            producer.transactions.shift(segment);
            left.last_timestamp = producer.last_timestamp.or(left.last_timestamp);
            left.last_data = producer.last_data.or(left.last_data);
            left.newest_offset = left.newest_offset.max(producer.newest_offset);
            left.sequences.append(&producer.sequences, &mut |event, verdict| {
                out(id, ProducerVerdict::Sequence(*event, verdict));
            });
            left.transactions.append(&producer.transactions, &mut |verdict| {
                out(id, ProducerVerdict::Transaction(verdict));
            });
            let is_open = left.transactions.state().1.is_some();
            self.set_open(self.newest, is_open);
        }
    }

    /// Ends the merge: nothing is to the left but `holes` deleted offsets. Judges the events that
    /// depended on this, and returns the producers by id.
    pub fn finish(self, holes: i64, out: &mut Out<'_>) -> Vec<ProducerState> {
        let mut states: Vec<ProducerState> = Vec::with_capacity(self.list.len());
        for mut producer in self.list {
            let id = producer.id;
            producer.sequences.shift(holes, 0, None);
            let state: Option<SequenceState> = producer.sequences.finish(&mut |event, verdict| {
                out(id, ProducerVerdict::Sequence(*event, verdict));
            });
            let (coordinator_epoch, open_transaction) = producer
                .transactions
                .finish(&mut |verdict| out(id, ProducerVerdict::Transaction(verdict)));
            let (first, last) = producer.last_data.unwrap_or((-1, -1));
            states.push(ProducerState {
                producer_id: id,
                producer_epoch: state.map_or(-1, |state| state.epoch),
                last_sequence: state.map_or(-1, |state| state.last_sequence),
                last_offset: last,
                last_offset_delta: last.saturating_sub(first) as i32,
                last_timestamp: producer.last_timestamp.unwrap_or(-1),
                coordinator_epoch,
                open_transaction,
            });
        }
        states.sort_by_key(|state| state.producer_id);
        states
    }

    /// Returns the state of a producer, with nothing to the left.
    pub fn known(&self, id: i64) -> Option<KnownProducer> {
        let place = self.places.get(&id)?;
        Some(self.list.get(*place)?.known())
    }

    /// Returns the states of all producers, in the order of their first batches.
    pub fn all_known(&self) -> impl Iterator<Item = KnownProducer> {
        self.list.iter().map(Producer::known)
    }

    /// Returns the states of the producers with an open transaction.
    pub fn with_open_transaction(&self) -> impl Iterator<Item = KnownProducer> {
        self.open.iter().filter_map(|&place| self.list.get(place)).map(Producer::known)
    }

    /// Whether all producers of the part to the right can be tracked here: then appending it has the
    /// same result as tracking both parts together.
    pub(crate) fn has_room_for(&self, right: &Self) -> bool {
        let room = MAX_PRODUCERS.saturating_sub(self.list.len());
        let is_new = |producer: &&Producer| !self.places.contains_key(&producer.id);
        right.left_out == 0
            && (right.list.len() <= room || right.list.iter().filter(is_new).count() <= room)
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
        let places = list.iter().enumerate().map(|(place, producer)| (producer.id, place));
        let places = places.collect();
        let is_open =
            |(_, producer): &(usize, &Producer)| producer.transactions.state().1.is_some();
        let open = list.iter().enumerate().filter(is_open).map(|(place, _)| place).collect();
        Ok(Self { places, list, newest: 0, open, left_out })
    }
}
