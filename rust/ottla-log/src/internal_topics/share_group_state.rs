//! `__share_group_state`: how far share groups have delivered a partition (KIP-932).

use super::consumer_offsets::MAX_COMMITTED_OFFSETS;
use super::record::{CoordinatorRecord, RecordValue};
use super::schema::{DecodeError, Field, Kind, Schema, Value, split_version};
use std::collections::BTreeMap;

const KEY: Schema = Schema::key(&[
    Field::new("group", Kind::Text),
    Field::new("topic_id", Kind::Uuid),
    Field::new("partition", Kind::Int32),
]);

const STATE_BATCHES: Kind = Kind::Array(&Kind::Struct(&[
    Field::new("first_offset", Kind::Int64),
    Field::new("last_offset", Kind::Int64),
    Field::new("delivery_state", Kind::Int8),
    Field::new("delivery_count", Kind::Int16),
]));

const SNAPSHOT: Schema = Schema::flexible(&[
    Field::new("snapshot_epoch", Kind::Int32),
    Field::new("state_epoch", Kind::Int32),
    Field::new("leader_epoch", Kind::Int32),
    Field::new("start_offset", Kind::Int64),
    Field::new("create_timestamp", Kind::Int64),
    Field::new("write_timestamp", Kind::Int64),
    Field::new("state_batches", STATE_BATCHES),
    // Since 4.2 (KIP-1226).
    Field::new("delivery_complete_count", Kind::Int32).tagged(0),
]);

const UPDATE: Schema = Schema::flexible(&[
    Field::new("snapshot_epoch", Kind::Int32),
    Field::new("leader_epoch", Kind::Int32),
    Field::new("start_offset", Kind::Int64),
    Field::new("state_batches", STATE_BATCHES),
    Field::new("delivery_complete_count", Kind::Int32).tagged(0),
]);

/// Decodes a record.
///
/// # Errors
/// [`DecodeError`], of the key or of the value.
pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<CoordinatorRecord, DecodeError> {
    let (number, rest) = split_version(key)?;
    let (name, schema) = match number {
        0 => ("share-snapshot", SNAPSHOT),
        1 => ("share-update", UPDATE),
        _ => return Err(DecodeError::UnknownType(number)),
    };
    let key = KEY.read(rest, 0)?;
    let value = match value {
        Some(value) => RecordValue::of(schema.read_versioned(value)?),
        None => RecordValue::Tombstone,
    };
    Ok(CoordinatorRecord { name, key, value })
}

/// Whose state: group, topic id, partition.
pub type SharePartition = (String, [u8; 16], i32);

/// How far a share group has come in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareState {
    /// Records below this are delivered, or will not be.
    pub start_offset: i64,
    /// Leader epoch of the partition.
    pub leader_epoch: i32,
    /// When the last snapshot was written, in ms since 1970.
    pub write_timestamp_ms: i64,
}

/// The states in a partition of the topic: of each key the last snapshot counts, with the updates
/// behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareStates {
    /// By group, topic id and partition.
    pub states: BTreeMap<SharePartition, ShareState>,
    /// Records that could not be decoded, and why the first of them.
    pub undecoded: u64,
    /// See `undecoded`.
    pub first_error: Option<(i64, DecodeError)>,
    /// Snapshots of keys beyond [`MAX_COMMITTED_OFFSETS`].
    pub left_out: u64,
}

impl ShareStates {
    /// Adds the next record.
    pub fn add(&mut self, offset: i64, key: &[u8], value: Option<&[u8]>) {
        match decode(key, value) {
            Ok(CoordinatorRecord { name, key, value }) => self.update(name, &key, &value),
            Err(error) => {
                self.undecoded = self.undecoded.saturating_add(1);
                self.first_error.get_or_insert((offset, error));
            }
        }
    }

    fn update(&mut self, name: &str, key: &Value, value: &RecordValue) {
        let (Some(group), Some(Value::Uuid(id)), Some(partition)) =
            (key.text("group"), key.get("topic_id"), key.int("partition"))
        else {
            return;
        };
        let key = (group.to_owned(), *id, partition as i32);
        let RecordValue::Value { value, .. } = value else {
            if name == "share-snapshot" {
                self.states.remove(&key);
            }
            return;
        };
        let (Some(start_offset), Some(leader_epoch)) =
            (value.int("start_offset"), value.int("leader_epoch"))
        else {
            return;
        };
        let leader_epoch = leader_epoch as i32;
        if let Some(write_timestamp_ms) = value.int("write_timestamp") {
            let state = ShareState { start_offset, leader_epoch, write_timestamp_ms };
            if self.states.len() < MAX_COMMITTED_OFFSETS || self.states.contains_key(&key) {
                self.states.insert(key, state);
            } else {
                self.left_out = self.left_out.saturating_add(1);
            }
        } else if let Some(state) = self.states.get_mut(&key) {
            state.leader_epoch = leader_epoch;
            // An update need not move the start.
            if start_offset >= 0 {
                state.start_offset = start_offset;
            }
        }
    }
}
