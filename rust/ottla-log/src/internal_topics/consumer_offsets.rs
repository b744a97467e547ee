//! `__consumer_offsets`: what groups have committed, and what the group coordinator knows of them.

use super::group_values::{
    SHARE_CURRENT_ASSIGNMENT, SHARE_GROUP, SHARE_GROUP_MEMBER, SHARE_MEMBER_ASSIGNMENT,
    SHARE_STATE_PARTITIONS, STREAMS_CURRENT_ASSIGNMENT, STREAMS_GROUP, STREAMS_GROUP_MEMBER,
    STREAMS_MEMBER_ASSIGNMENT, STREAMS_TOPOLOGY,
};
use super::record::{CoordinatorRecord, RecordValue};
use super::schema::{DecodeError, Field, Kind, Schema, Value, split_version};
use std::collections::BTreeMap;

/// Entries of a partition that are held; a coordinator holds all of them in memory, too.
pub const MAX_COMMITTED_OFFSETS: usize = 1 << 21;

const OFFSET_KEY: Schema = Schema::key(&[
    Field::new("group", Kind::Text),
    Field::new("topic", Kind::Text),
    Field::new("partition", Kind::Int32),
]);
const GROUP_KEY: Schema = Schema::key(&[Field::new("group", Kind::Text)]);
const MEMBER_KEY: Schema =
    Schema::key(&[Field::new("group", Kind::Text), Field::new("member_id", Kind::Text)]);
const REGEX_KEY: Schema =
    Schema::key(&[Field::new("group", Kind::Text), Field::new("regular_expression", Kind::Text)]);

const OFFSET_VALUE: Schema = Schema {
    latest: 4,
    flexible: 4,
    fields: &[
        Field::new("offset", Kind::Int64),
        Field::new("leader_epoch", Kind::Int32).since(3),
        Field::new("metadata", Kind::Text),
        Field::new("commit_timestamp", Kind::Int64),
        Field::new("expire_timestamp", Kind::Int64).since(1).until(1),
        Field::new("topic_id", Kind::Uuid).tagged(0),
    ],
};

const GROUP_MEMBER: &[Field] = &[
    Field::new("member_id", Kind::Text),
    Field::new("group_instance_id", Kind::Text).since(3).or_null(),
    Field::new("client_id", Kind::Text),
    Field::new("client_host", Kind::Text),
    Field::new("rebalance_timeout", Kind::Int32).since(1),
    Field::new("session_timeout", Kind::Int32),
    Field::new("subscription", Kind::Bytes),
    Field::new("assignment", Kind::Bytes),
];

const GROUP_VALUE: Schema = Schema {
    latest: 4,
    flexible: 4,
    fields: &[
        Field::new("protocol_type", Kind::Text),
        Field::new("generation", Kind::Int32),
        Field::new("protocol", Kind::Text).or_null(),
        Field::new("leader", Kind::Text).or_null(),
        Field::new("current_state_timestamp", Kind::Int64).since(2),
        Field::new("members", Kind::Array(&Kind::Struct(GROUP_MEMBER))),
    ],
};

const PARTITIONS: Kind = Kind::Array(&Kind::Struct(&[
    Field::new("topic_id", Kind::Uuid),
    Field::new("partitions", Kind::Array(&Kind::Int32)),
    Field::new("assignment_epochs", Kind::Array(&Kind::Int32)).tagged(0),
]));

const CONSUMER_GROUP: Schema = Schema::flexible(&[
    Field::new("epoch", Kind::Int32),
    Field::new("metadata_hash", Kind::Int64).tagged(0),
    Field::new("creation_time_ms", Kind::Int64).tagged(1),
]);

const CONSUMER_GROUP_PARTITIONS: Schema = Schema::flexible(&[Field::new(
    "topics",
    Kind::Array(&Kind::Struct(&[
        Field::new("topic_id", Kind::Uuid),
        Field::new("topic_name", Kind::Text),
        Field::new("num_partitions", Kind::Int32),
        Field::new(
            "partition_metadata",
            Kind::Array(&Kind::Struct(&[
                Field::new("partition", Kind::Int32),
                Field::new("racks", Kind::Array(&Kind::Text)),
            ])),
        ),
    ])),
)]);

const CONSUMER_GROUP_MEMBER: Schema = Schema::flexible(&[
    Field::new("instance_id", Kind::Text).or_null(),
    Field::new("rack_id", Kind::Text).or_null(),
    Field::new("client_id", Kind::Text),
    Field::new("client_host", Kind::Text),
    Field::new("subscribed_topic_names", Kind::Array(&Kind::Text)),
    Field::new("subscribed_topic_regex", Kind::Text).or_null(),
    Field::new("rebalance_timeout_ms", Kind::Int32),
    Field::new("server_assignor", Kind::Text).or_null(),
    Field::new(
        "classic_member_metadata",
        Kind::Struct(&[
            Field::new("session_timeout_ms", Kind::Int32),
            Field::new(
                "supported_protocols",
                Kind::Array(&Kind::Struct(&[
                    Field::new("name", Kind::Text),
                    Field::new("metadata", Kind::Bytes),
                ])),
            ),
        ]),
    )
    .tagged(0),
]);

const ASSIGNMENT: Schema = Schema::flexible(&[
    Field::new("assignment_epoch", Kind::Int32),
    // Since 4.3 (KIP-1263).
    Field::new("assignment_timestamp", Kind::Int64).tagged(0),
]);
const MEMBER_ASSIGNMENT: Schema = Schema::flexible(&[Field::new("topic_partitions", PARTITIONS)]);

const CURRENT_ASSIGNMENT: Schema = Schema::flexible(&[
    Field::new("member_epoch", Kind::Int32),
    Field::new("previous_member_epoch", Kind::Int32),
    Field::new("state", Kind::Int8),
    Field::new("assigned_partitions", PARTITIONS),
    Field::new("partitions_pending_revocation", PARTITIONS),
]);

const REGEX_VALUE: Schema = Schema::flexible(&[
    Field::new("topics", Kind::Array(&Kind::Text)),
    Field::new("version", Kind::Int64),
    Field::new("timestamp", Kind::Int64),
]);

/// A type of record: its number in the key, its name, its key, and its value where that is decoded.
type RecordType = (i16, &'static str, Schema, Option<Schema>);

/// Every type up to Kafka 4.4 (`CoordinatorRecordType`). Values that no released broker writes are
/// not decoded.
const TYPES: &[RecordType] = &[
    (0, "offset-commit", OFFSET_KEY, Some(OFFSET_VALUE)),
    (1, "offset-commit", OFFSET_KEY, Some(OFFSET_VALUE)),
    (2, "group", GROUP_KEY, Some(GROUP_VALUE)),
    (3, "consumer-group", GROUP_KEY, Some(CONSUMER_GROUP)),
    (4, "consumer-group-partitions", GROUP_KEY, Some(CONSUMER_GROUP_PARTITIONS)),
    (5, "consumer-group-member", MEMBER_KEY, Some(CONSUMER_GROUP_MEMBER)),
    (6, "consumer-group-target-assignment", GROUP_KEY, Some(ASSIGNMENT)),
    (7, "consumer-group-target-assignment-member", MEMBER_KEY, Some(MEMBER_ASSIGNMENT)),
    (8, "consumer-group-current-assignment", MEMBER_KEY, Some(CURRENT_ASSIGNMENT)),
    (9, "share-group-partitions", GROUP_KEY, None),
    (10, "share-group-member", MEMBER_KEY, Some(SHARE_GROUP_MEMBER)),
    (11, "share-group", GROUP_KEY, Some(SHARE_GROUP)),
    (12, "share-group-target-assignment", GROUP_KEY, Some(ASSIGNMENT)),
    (13, "share-group-target-assignment-member", MEMBER_KEY, Some(SHARE_MEMBER_ASSIGNMENT)),
    (14, "share-group-current-assignment", MEMBER_KEY, Some(SHARE_CURRENT_ASSIGNMENT)),
    (15, "share-group-state-partitions", GROUP_KEY, Some(SHARE_STATE_PARTITIONS)),
    (16, "consumer-group-regular-expression", REGEX_KEY, Some(REGEX_VALUE)),
    (17, "streams-group", GROUP_KEY, Some(STREAMS_GROUP)),
    (18, "streams-group-partitions", GROUP_KEY, None),
    (19, "streams-group-member", MEMBER_KEY, Some(STREAMS_GROUP_MEMBER)),
    (20, "streams-group-target-assignment", GROUP_KEY, Some(ASSIGNMENT)),
    (21, "streams-group-target-assignment-member", MEMBER_KEY, Some(STREAMS_MEMBER_ASSIGNMENT)),
    (22, "streams-group-current-assignment", MEMBER_KEY, Some(STREAMS_CURRENT_ASSIGNMENT)),
    (23, "streams-group-topology", GROUP_KEY, Some(STREAMS_TOPOLOGY)),
];

/// Decodes a record.
///
/// # Errors
/// [`DecodeError`], of the key or of the value.
pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<CoordinatorRecord, DecodeError> {
    let (number, rest) = split_version(key)?;
    let found = TYPES.iter().find(|record_type| record_type.0 == number);
    let (_, name, key_schema, value_schema) = found.ok_or(DecodeError::UnknownType(number))?;
    let key = key_schema.read(rest, 0)?;
    let value = match (value, value_schema) {
        (Some(value), Some(schema)) => RecordValue::of(schema.read_versioned(value)?),
        (Some(_), None) => RecordValue::Opaque,
        (None, _) => RecordValue::Tombstone,
    };
    Ok(CoordinatorRecord { name, key, value })
}

/// What a group has committed of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The next offset it will read.
    pub offset: i64,
    /// Leader epoch of the record before it, −1 if unknown.
    pub leader_epoch: i32,
    /// What the consumer noted beside it.
    pub metadata: String,
    /// When it was committed, in milliseconds since 1970.
    pub commit_timestamp_ms: i64,
    /// When it expires; brokers up to 2.0 note it.
    pub expire_timestamp_ms: Option<i64>,
}

impl CommittedOffset {
    fn of(value: &Value) -> Option<Self> {
        Some(Self {
            offset: value.int("offset")?,
            leader_epoch: value.int("leader_epoch").map_or(-1, |epoch| epoch as i32),
            metadata: value.text("metadata")?.to_owned(),
            commit_timestamp_ms: value.int("commit_timestamp")?,
            expire_timestamp_ms: value.int("expire_timestamp").filter(|&time| time >= 0),
        })
    }
}

/// Whose committed offset: group, topic, partition.
pub type Committer = (String, String, i32);

/// The protocol that a group speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupType {
    /// That of consumers before KIP-848.
    Classic,
    /// That of consumers (KIP-848).
    Consumer,
    /// That of share consumers (KIP-932).
    Share,
    /// That of Kafka Streams (KIP-1071).
    Streams,
}

impl GroupType {
    /// The type of the group that a record is about, of those that every group has.
    fn of_record(name: &str) -> Option<Self> {
        match name {
            "group" => Some(Self::Classic),
            "consumer-group" => Some(Self::Consumer),
            "share-group" => Some(Self::Share),
            "streams-group" => Some(Self::Streams),
            _ => None,
        }
    }

    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Consumer => "consumer",
            Self::Share => "share",
            Self::Streams => "streams",
        }
    }
}

/// A topic that a share group reads: its id, its name, the partitions.
pub type SharedTopic = ([u8; 16], String, Vec<i32>);

/// The committed offsets of a partition of the topic, and its groups: of each key the last value
/// counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommittedOffsets {
    /// By group, topic and partition.
    pub offsets: BTreeMap<Committer, CommittedOffset>,
    /// The types of groups, by name.
    pub groups: BTreeMap<String, GroupType>,
    /// What share groups read, by name.
    pub shared: BTreeMap<String, Vec<SharedTopic>>,
    /// Records that could not be decoded, and why the first of them.
    pub undecoded: u64,
    /// See `undecoded`.
    pub first_error: Option<(i64, DecodeError)>,
    /// Keys beyond [`MAX_COMMITTED_OFFSETS`] of each kind.
    pub left_out: u64,
}

impl CommittedOffsets {
    /// Adds the next record that was not aborted.
    pub fn add(&mut self, offset: i64, key: &[u8], value: Option<&[u8]>) {
        match decode(key, value) {
            Ok(CoordinatorRecord { name: "offset-commit", key, value }) => {
                self.commit(&key, &value);
            }
            Ok(CoordinatorRecord { name: "share-group-state-partitions", key, value }) => {
                let shared = shared_topics(&value);
                let beyond = insert(&mut self.shared, key.text("group"), shared);
                self.left_out = self.left_out.saturating_add(beyond);
            }
            Ok(CoordinatorRecord { name, key, value }) => {
                if let Some(group_type) = GroupType::of_record(name) {
                    let known = (value != RecordValue::Tombstone).then_some(group_type);
                    let beyond = insert(&mut self.groups, key.text("group"), known);
                    self.left_out = self.left_out.saturating_add(beyond);
                }
            }
            Err(error) => {
                self.undecoded = self.undecoded.saturating_add(1);
                self.first_error.get_or_insert((offset, error));
            }
        }
    }

    fn commit(&mut self, key: &Value, value: &RecordValue) {
        let (Some(group), Some(topic), Some(partition)) =
            (key.text("group"), key.text("topic"), key.int("partition"))
        else {
            return;
        };
        let key = (group.to_owned(), topic.to_owned(), partition as i32);
        let committed = match value {
            RecordValue::Value { value, .. } => CommittedOffset::of(value),
            _ => None,
        };
        match committed {
            None => {
                self.offsets.remove(&key);
            }
            Some(committed)
                if self.offsets.len() < MAX_COMMITTED_OFFSETS
                    || self.offsets.contains_key(&key) =>
            {
                self.offsets.insert(key, committed);
            }
            Some(_) => self.left_out = self.left_out.saturating_add(1),
        }
    }
}

/// The topics of which a share group has a state.
fn shared_topics(value: &RecordValue) -> Option<Vec<SharedTopic>> {
    let RecordValue::Value { value, .. } = value else { return None };
    let topic = |topic: &Value| {
        let Some(Value::Uuid(id)) = topic.get("topic_id") else { return None };
        let partitions = topic.array("partitions").iter().filter_map(|partition| match partition {
            Value::Int(partition) => Some(*partition as i32),
            _ => None,
        });
        Some((*id, topic.text("topic_name")?.to_owned(), partitions.collect()))
    };
    Some(value.array("initialized_topics").iter().filter_map(topic).collect())
}

/// Sets what is known of a group, or forgets it. Returns how many keys are left out: one beyond the
/// bound.
fn insert<T>(known: &mut BTreeMap<String, T>, group: Option<&str>, value: Option<T>) -> u64 {
    let Some(group) = group else { return 0 };
    match value {
        None => {
            known.remove(group);
        }
        Some(value) if known.len() < MAX_COMMITTED_OFFSETS || known.contains_key(group) => {
            known.insert(group.to_owned(), value);
        }
        Some(_) => return 1,
    }
    0
}
