//! `__transaction_state`: what the transaction coordinator knows of transactional ids.

use super::record::{CoordinatorRecord, RecordValue};
use super::schema::{DecodeError, Field, Kind, Schema, Value, split_version};
use crate::sorting::sort_by;
use std::collections::BTreeMap;

/// Transactional ids of a partition that are held; a coordinator holds all of them in memory, too.
pub const MAX_TRANSACTIONAL_IDS: usize = 1 << 20;

const KEY: Schema =
    Schema { latest: 0, flexible: i16::MAX, fields: &[Field::new("transactional_id", Kind::Text)] };

const VALUE: Schema = Schema {
    latest: 1,
    flexible: 1,
    fields: &[
        Field::new("producer_id", Kind::Int64),
        Field::new("previous_producer_id", Kind::Int64).tagged(0),
        Field::new("next_producer_id", Kind::Int64).tagged(1),
        Field::new("producer_epoch", Kind::Int16),
        Field::new("transaction_timeout_ms", Kind::Int32),
        Field::new("transaction_status", Kind::Int8),
        Field::new(
            "transaction_partitions",
            Kind::Array(&Kind::Struct(&[
                Field::new("topic", Kind::Text),
                Field::new("partition_ids", Kind::Array(&Kind::Int32)),
            ])),
        )
        .or_null(),
        Field::new("transaction_last_update_timestamp_ms", Kind::Int64),
        Field::new("transaction_start_timestamp_ms", Kind::Int64),
        Field::new("client_transaction_version", Kind::Int16).tagged(2),
    ],
};

/// Decodes a record.
///
/// # Errors
/// [`DecodeError`], of the key or of the value.
pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<CoordinatorRecord, DecodeError> {
    let (number, rest) = split_version(key)?;
    if number != 0 {
        return Err(DecodeError::UnknownType(number));
    }
    let key = KEY.read(rest, 0)?;
    let value = match value {
        Some(value) => RecordValue::of(VALUE.read_versioned(value)?),
        None => RecordValue::Tombstone,
    };
    Ok(CoordinatorRecord { name: "transactional-id", key, value })
}

/// Where a transactional id stands (`TransactionState`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub enum TransactionState {
    Empty,
    Ongoing,
    PrepareCommit,
    PrepareAbort,
    CompleteCommit,
    CompleteAbort,
    Dead,
    PrepareEpochFence,
    /// A number without a state.
    Unknown,
}

impl TransactionState {
    fn of(number: i64) -> Self {
        match number {
            0 => Self::Empty,
            1 => Self::Ongoing,
            2 => Self::PrepareCommit,
            3 => Self::PrepareAbort,
            4 => Self::CompleteCommit,
            5 => Self::CompleteAbort,
            6 => Self::Dead,
            7 => Self::PrepareEpochFence,
            _ => Self::Unknown,
        }
    }

    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::PrepareCommit => "PrepareCommit",
            Self::PrepareAbort => "PrepareAbort",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
            Self::Dead => "Dead",
            Self::PrepareEpochFence => "PrepareEpochFence",
            Self::Unknown => "unknown",
        }
    }

    /// The state of Kafka's name for it.
    pub fn from_name(name: &str) -> Self {
        (0..8).map(Self::of).find(|state| state.name() == name).unwrap_or(Self::Unknown)
    }

    /// Whether a transaction is under way, which the coordinator will end.
    pub fn has_transaction(self) -> bool {
        matches!(
            self,
            Self::Ongoing | Self::PrepareCommit | Self::PrepareAbort | Self::PrepareEpochFence
        )
    }
}

/// What the coordinator knows of a transactional id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionalId {
    /// Its producer.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// Where it stands.
    pub state: TransactionState,
    /// Partitions of the transaction under way, sorted.
    pub partitions: Vec<(String, i32)>,
    /// How long a transaction may take, in milliseconds.
    pub timeout_ms: i32,
    /// When that was written, in milliseconds since 1970.
    pub last_update_ms: i64,
    /// When the transaction began, in milliseconds since 1970; −1 before the first.
    pub start_ms: i64,
}

impl TransactionalId {
    fn of(value: &Value) -> Option<Self> {
        let partitions = value.array("transaction_partitions").iter().flat_map(|entry| {
            let topic = entry.text("topic").unwrap_or_default();
            let ids = entry.array("partition_ids").iter();
            ids.filter_map(move |id| match id {
                Value::Int(id) => Some((topic.to_owned(), *id as i32)),
                _ => None,
            })
        });
        let mut partitions: Vec<_> = partitions.collect();
        sort_by(&mut partitions, Ord::cmp);
        Some(Self {
            producer_id: value.int("producer_id")?,
            producer_epoch: value.int("producer_epoch")? as i16,
            state: TransactionState::of(value.int("transaction_status")?),
            partitions,
            timeout_ms: value.int("transaction_timeout_ms")? as i32,
            last_update_ms: value.int("transaction_last_update_timestamp_ms")?,
            start_ms: value.int("transaction_start_timestamp_ms")?,
        })
    }
}

/// The transactional ids of a partition of the topic: of each the last value counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionalIds {
    /// By id.
    pub ids: BTreeMap<String, TransactionalId>,
    /// Records that could not be decoded, and why the first of them.
    pub undecoded: u64,
    /// See `undecoded`.
    pub first_error: Option<(i64, DecodeError)>,
    /// Ids beyond [`MAX_TRANSACTIONAL_IDS`].
    pub left_out: u64,
}

impl TransactionalIds {
    /// Adds the next record.
    pub fn add(&mut self, offset: i64, key: &[u8], value: Option<&[u8]>) {
        match decode(key, value) {
            Ok(CoordinatorRecord { key, value, .. }) => self.update(&key, &value),
            Err(error) => {
                self.undecoded = self.undecoded.saturating_add(1);
                self.first_error.get_or_insert((offset, error));
            }
        }
    }

    fn update(&mut self, key: &Value, value: &RecordValue) {
        let Some(id) = key.text("transactional_id") else { return };
        let found = match value {
            RecordValue::Value { value, .. } => TransactionalId::of(value),
            _ => None,
        };
        match found {
            None => {
                self.ids.remove(id);
            }
            Some(found) if self.ids.len() < MAX_TRANSACTIONAL_IDS || self.ids.contains_key(id) => {
                self.ids.insert(id.to_owned(), found);
            }
            Some(_) => self.left_out = self.left_out.saturating_add(1),
        }
    }
}

/// What the coordinator says about a transaction without an end marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is under way, and the coordinator will end it: when its producer does, or at its timeout.
    Ongoing,
    /// The coordinator has moved on: to another epoch of the producer, to a state without a
    /// transaction, or to a transaction without this partition. Nobody will write the marker.
    MovedOn,
}

/// Compares an open transaction of a partition with what the coordinator knows of its producer, as
/// `kafka-transactions.sh find-hanging` does (KIP-664).
pub fn judge(
    known: &TransactionalId,
    producer_epoch: i16,
    topic: &str,
    partition: i32,
) -> Standing {
    let is_part = known.partitions.iter().any(|(name, id)| name == topic && *id == partition);
    if known.state.has_transaction() && is_part && producer_epoch >= known.producer_epoch {
        return Standing::Ongoing;
    }
    // The epoch of the coordinator goes up once more when it aborts on its own.
    let is_fenced = known.state.has_transaction()
        && is_part
        && known.state != TransactionState::Ongoing
        && producer_epoch.checked_add(1) == Some(known.producer_epoch);
    if is_fenced { Standing::Ongoing } else { Standing::MovedOn }
}
