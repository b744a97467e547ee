"""What the coordinator keeps: the records of `__consumer_offsets` as plain values.

Each record is a key and a value; `value` is `None` for a tombstone. `log.py` has their bytes.
Everything that survives a restart changes by one of these, and by nothing else.
"""

from typing import NamedTuple

NO_TOPIC_ID = bytes(16)

# Partitions of topics, by topic id; the partitions of a topic ascend.
Partitions = dict[bytes, tuple[int, ...]]


def by_topic(partitions: set[tuple[bytes, int]]) -> Partitions:
    """Returns partitions by their topics."""
    found: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        found.setdefault(topic_id, []).append(partition)
    return {topic_id: tuple(indexes) for topic_id, indexes in found.items()}


def each_partition(partitions: Partitions) -> list[tuple[bytes, int]]:
    """Returns partitions one by one."""
    return [(topic_id, each) for topic_id, indexes in partitions.items() for each in indexes]


class CommittedOffset(NamedTuple):
    """What a group has committed of a partition; the times are milliseconds since 1970."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None


class OffsetCommit(NamedTuple):
    """A committed offset."""

    group_id: str
    topic: str
    partition: int
    value: CommittedOffset | None


class ClassicMemberState(NamedTuple):
    """A member of a classic group, with its metadata of the protocol that was chosen."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class ClassicGroupState(NamedTuple):
    """A generation of a classic group."""

    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader: str | None
    state_timestamp_ms: int
    members: tuple[ClassicMemberState, ...]


class ClassicGroupRecord(NamedTuple):
    """A classic group."""

    group_id: str
    value: ClassicGroupState | None


class GroupEpoch(NamedTuple):
    """The epoch of a consumer group, and a hash of the topics it was reached with (KIP-1101)."""

    epoch: int
    metadata_hash: int


class ConsumerGroupRecord(NamedTuple):
    """A consumer group."""

    group_id: str
    value: GroupEpoch | None


class ClassicProtocols(NamedTuple):
    """What a member of a consumer group has that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class Subscription(NamedTuple):
    """What a member of a consumer group has said of itself."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topic_names: tuple[str, ...]
    topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic: ClassicProtocols | None = None


class MemberRecord(NamedTuple):
    """A member of a consumer group."""

    group_id: str
    member_id: str
    value: Subscription | None


class TargetEpochRecord(NamedTuple):
    """The group epoch that the targets of the members are for."""

    group_id: str
    value: int | None


class TargetRecord(NamedTuple):
    """The partitions that a member is to have."""

    group_id: str
    member_id: str
    value: Partitions | None


class MemberState:
    """Where a member is on its way to its target, by the numbers of Kafka's records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


class CurrentAssignment(NamedTuple):
    """The partitions that a member has; `state` is one of `MemberState`."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned: Partitions
    pending_revocation: Partitions


class CurrentRecord(NamedTuple):
    """The current assignment of a member."""

    group_id: str
    member_id: str
    value: CurrentAssignment | None


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched, and when it was held against them."""

    topics: tuple[str, ...]
    version: int
    timestamp_ms: int


class RegexRecord(NamedTuple):
    """A regular expression that members of a consumer group subscribe to."""

    group_id: str
    regex: str
    value: ResolvedRegex | None


Record = (
    OffsetCommit
    | ClassicGroupRecord
    | ConsumerGroupRecord
    | MemberRecord
    | TargetEpochRecord
    | TargetRecord
    | CurrentRecord
    | RegexRecord
)
