//! What the group coordinator keeps of share groups (KIP-932) and streams groups (KIP-1071): the
//! values of their records in `__consumer_offsets`.

use super::schema::{Field, Kind, Schema};

const TOPIC: &[Field] = &[Field::new("topic_id", Kind::Uuid), Field::new("topic_name", Kind::Text)];
const TOPIC_PARTITIONS: Kind = Kind::Array(&Kind::Struct(&[
    Field::new("topic_id", Kind::Uuid),
    Field::new("topic_name", Kind::Text),
    Field::new("partitions", Kind::Array(&Kind::Int32)),
]));
const PARTITIONS_BY_ID: Kind = Kind::Array(&Kind::Struct(&[
    Field::new("topic_id", Kind::Uuid),
    Field::new("partitions", Kind::Array(&Kind::Int32)),
]));
const PAIRS: Kind =
    Kind::Array(&Kind::Struct(&[Field::new("key", Kind::Text), Field::new("value", Kind::Text)]));

pub(super) const SHARE_GROUP: Schema =
    Schema::flexible(&[Field::new("epoch", Kind::Int32), Field::new("metadata_hash", Kind::Int64)]);

pub(super) const SHARE_GROUP_MEMBER: Schema = Schema::flexible(&[
    Field::new("rack_id", Kind::Text).or_null(),
    Field::new("client_id", Kind::Text),
    Field::new("client_host", Kind::Text),
    Field::new("subscribed_topic_names", Kind::Array(&Kind::Text)),
]);

pub(super) const SHARE_MEMBER_ASSIGNMENT: Schema =
    Schema::flexible(&[Field::new("topic_partitions", PARTITIONS_BY_ID)]);

pub(super) const SHARE_CURRENT_ASSIGNMENT: Schema = Schema::flexible(&[
    Field::new("member_epoch", Kind::Int32),
    Field::new("previous_member_epoch", Kind::Int32),
    Field::new("state", Kind::Int8),
    Field::new("assigned_partitions", PARTITIONS_BY_ID),
]);

pub(super) const SHARE_STATE_PARTITIONS: Schema = Schema::flexible(&[
    Field::new("initializing_topics", TOPIC_PARTITIONS),
    Field::new("initialized_topics", TOPIC_PARTITIONS),
    Field::new("deleting_topics", Kind::Array(&Kind::Struct(TOPIC))),
]);

pub(super) const STREAMS_GROUP: Schema = Schema::flexible(&[
    Field::new("epoch", Kind::Int32),
    Field::new("metadata_hash", Kind::Int64),
    Field::new("validated_topology_epoch", Kind::Int32).tagged(0),
    Field::new("last_assignment_configs", PAIRS).tagged(1),
    Field::new("stored_description_topology_epoch", Kind::Int32).tagged(2),
    Field::new("failed_description_topology_epoch", Kind::Int32).tagged(3),
]);

const ENDPOINT: Kind =
    Kind::Struct(&[Field::new("host", Kind::Text), Field::new("port", Kind::UInt16)]);

pub(super) const STREAMS_GROUP_MEMBER: Schema = Schema::flexible(&[
    Field::new("instance_id", Kind::Text).or_null(),
    Field::new("rack_id", Kind::Text).or_null(),
    Field::new("client_id", Kind::Text),
    Field::new("client_host", Kind::Text),
    Field::new("rebalance_timeout_ms", Kind::Int32),
    Field::new("topology_epoch", Kind::Int32),
    Field::new("process_id", Kind::Text),
    Field::new("user_endpoint", ENDPOINT).or_null(),
    Field::new("client_tags", PAIRS),
]);

const TASKS: Kind = Kind::Array(&Kind::Struct(&[
    Field::new("subtopology_id", Kind::Text),
    Field::new("partitions", Kind::Array(&Kind::Int32)),
    Field::new("assignment_epochs", Kind::Array(&Kind::Int32)).tagged(0),
]));

pub(super) const STREAMS_MEMBER_ASSIGNMENT: Schema = Schema::flexible(&[
    Field::new("active_tasks", TASKS),
    Field::new("standby_tasks", TASKS),
    Field::new("warmup_tasks", TASKS),
]);

pub(super) const STREAMS_CURRENT_ASSIGNMENT: Schema = Schema::flexible(&[
    Field::new("member_epoch", Kind::Int32),
    Field::new("previous_member_epoch", Kind::Int32),
    Field::new("state", Kind::Int8),
    Field::new("active_tasks", TASKS),
    Field::new("standby_tasks", TASKS),
    Field::new("warmup_tasks", TASKS),
    Field::new("active_tasks_pending_revocation", TASKS),
    Field::new("standby_tasks_pending_revocation", TASKS),
    Field::new("warmup_tasks_pending_revocation", TASKS),
]);

const TOPICS_OF_STREAMS: Kind = Kind::Array(&Kind::Struct(&[
    Field::new("name", Kind::Text),
    Field::new("partitions", Kind::Int32),
    Field::new("replication_factor", Kind::Int16),
    Field::new("topic_configs", PAIRS),
]));
const INDEXES: Kind = Kind::Array(&Kind::Int16);

pub(super) const STREAMS_TOPOLOGY: Schema = Schema::flexible(&[
    Field::new("epoch", Kind::Int32),
    Field::new(
        "subtopologies",
        Kind::Array(&Kind::Struct(&[
            Field::new("subtopology_id", Kind::Text),
            Field::new("source_topics", Kind::Array(&Kind::Text)),
            Field::new("source_topic_regex", Kind::Array(&Kind::Text)),
            Field::new("state_changelog_topics", TOPICS_OF_STREAMS),
            Field::new("repartition_sink_topics", Kind::Array(&Kind::Text)),
            Field::new("repartition_source_topics", TOPICS_OF_STREAMS),
            Field::new(
                "copartition_groups",
                Kind::Array(&Kind::Struct(&[
                    Field::new("source_topics", INDEXES),
                    Field::new("source_topic_regex", INDEXES),
                    Field::new("repartition_source_topics", INDEXES),
                ])),
            ),
        ])),
    ),
]);
