//! What a partition knows of one producer.

use super::batch::ProducerBatch;
use ottla_format::sequence::{REMEMBERED_BATCHES, decrement_sequence};

/// A batch that is in the log, as its producer's entry remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RememberedBatch {
    /// Sequence of its last record.
    pub last_sequence: i32,
    /// Offset of its last record.
    pub last_offset: i64,
    /// Offset of its last record less that of its first.
    pub offset_delta: i32,
    /// Its max timestamp.
    pub timestamp: i64,
}

impl RememberedBatch {
    /// No batch.
    pub const NONE: Self =
        Self { last_sequence: -1, last_offset: -1, offset_delta: 0, timestamp: -1 };

    /// Sequence of its first record.
    #[inline]
    pub fn first_sequence(&self) -> i32 {
        decrement_sequence(self.last_sequence, self.offset_delta)
    }

    /// Offset of its first record.
    pub fn first_offset(&self) -> i64 {
        self.last_offset.wrapping_sub(i64::from(self.offset_delta))
    }
}

/// The newest batches of a producer. Most producers of a log that has many wrote once: one batch takes no
/// room of its own.
#[derive(Clone, Debug)]
enum Remembered {
    One(RememberedBatch),
    Any(Vec<RememberedBatch>),
}

impl Remembered {
    const NONE: Self = Self::Any(Vec::new());

    #[inline]
    fn batches(&self) -> &[RememberedBatch] {
        match self {
            Self::One(batch) => std::slice::from_ref(batch),
            Self::Any(batches) => batches,
        }
    }

    /// Adds a batch, in place of the oldest if there are as many as are remembered.
    #[inline]
    fn add(&mut self, batch: RememberedBatch) {
        match self {
            Self::Any(batches) if batches.is_empty() => *self = Self::One(batch),
            Self::Any(batches) if batches.len() < REMEMBERED_BATCHES => {
                batches.reserve_exact(1);
                batches.push(batch);
            }
            Self::Any(batches) => {
                batches.copy_within(1.., 0);
                if let Some(newest) = batches.last_mut() {
                    *newest = batch;
                }
            }
            Self::One(first) => *self = Self::Any(vec![*first, batch]),
        }
    }
}

impl PartialEq for Remembered {
    fn eq(&self, other: &Self) -> bool {
        self.batches() == other.batches()
    }
}

impl Eq for Remembered {}

/// What is known of one producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerEntry {
    /// Its id.
    pub producer_id: i64,
    /// Its epoch, −1 before anything is known.
    pub producer_epoch: i16,
    /// Epoch of the coordinator that wrote its last marker, −1 for none.
    pub coordinator_epoch: i32,
    /// Max timestamp of its last batch, markers included: from here on it expires.
    pub last_timestamp: i64,
    /// First offset of its open transaction.
    pub transaction_first_offset: Option<i64>,
    remembered: Remembered,
}

impl ProducerEntry {
    /// A producer of which nothing is known.
    pub fn unknown(producer_id: i64) -> Self {
        Self {
            producer_id,
            producer_epoch: -1,
            coordinator_epoch: -1,
            last_timestamp: -1,
            transaction_first_offset: None,
            remembered: Remembered::NONE,
        }
    }

    /// The same without its batches.
    pub(super) fn without_batches(&self) -> Self {
        let Self { producer_id, producer_epoch, coordinator_epoch, .. } = *self;
        let Self { last_timestamp, transaction_first_offset, .. } = *self;
        let remembered = Remembered::NONE;
        Self {
            producer_id,
            producer_epoch,
            coordinator_epoch,
            last_timestamp,
            transaction_first_offset,
            remembered,
        }
    }

    /// Its newest batches of its epoch, oldest first, at most [`REMEMBERED_BATCHES`].
    #[inline]
    pub fn batches(&self) -> &[RememberedBatch] {
        self.remembered.batches()
    }

    /// Sequence of its last record, −1 for none in its epoch.
    #[inline]
    pub fn last_sequence(&self) -> i32 {
        self.batches().last().map_or(-1, |batch| batch.last_sequence)
    }

    /// Adds a batch, in place of the oldest if there are as many as are remembered.
    #[inline]
    pub(super) fn remember(&mut self, batch: RememberedBatch) {
        self.remembered.add(batch);
    }

    #[inline]
    fn adopt_epoch(&mut self, producer_epoch: i16) {
        if self.producer_epoch != producer_epoch {
            self.producer_epoch = producer_epoch;
            self.remembered = Remembered::NONE;
        }
    }

    /// Adds a batch of records.
    #[inline]
    pub(super) fn append(&mut self, batch: &ProducerBatch) {
        self.adopt_epoch(batch.producer_epoch);
        self.remember(RememberedBatch {
            last_sequence: batch.last_sequence,
            last_offset: batch.last_offset,
            offset_delta: batch.last_offset.wrapping_sub(batch.base_offset) as i32,
            timestamp: batch.max_timestamp,
        });
        self.last_timestamp = batch.max_timestamp;
    }

    /// The remembered batch that this one repeats.
    #[inline]
    pub(super) fn repeated_by(&self, batch: &ProducerBatch) -> Option<RememberedBatch> {
        let is_same = |known: &&RememberedBatch| {
            known.last_sequence == batch.last_sequence
                && known.first_sequence() == batch.base_sequence
        };
        self.batches()
            .iter()
            .find(is_same)
            .filter(|_| self.producer_epoch == batch.producer_epoch)
            .copied()
    }

    /// A marker ends its transaction. Returns the first offset of that.
    pub(super) fn end_transaction(
        &mut self,
        producer_epoch: i16,
        coordinator_epoch: i32,
        timestamp: i64,
    ) -> Option<i64> {
        self.adopt_epoch(producer_epoch);
        self.coordinator_epoch = coordinator_epoch;
        self.last_timestamp = timestamp;
        self.transaction_first_offset.take()
    }

    /// Adopts what a set of batches has done to a copy [without batches](Self::without_batches).
    pub(super) fn update(&mut self, copy: Self) {
        self.adopt_epoch(copy.producer_epoch);
        if self.batches().is_empty() {
            self.remembered = copy.remembered;
        } else {
            for batch in copy.batches() {
                self.remember(*batch);
            }
        }
        self.coordinator_epoch = copy.coordinator_epoch;
        self.transaction_first_offset = copy.transaction_first_offset;
        self.last_timestamp = copy.last_timestamp;
    }

    /// Whether it has been silent for so long, with no transaction open.
    pub(super) fn is_expired(&self, now_ms: i64, expiration_ms: i64) -> bool {
        self.transaction_first_offset.is_none()
            && now_ms.wrapping_sub(self.last_timestamp) >= expiration_ms
    }
}
