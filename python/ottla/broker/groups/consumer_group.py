"""A consumer group (KIP-848) as its records have it, and what follows from them.

    Empty ──▶ Assigning ──▶ Reconciling ──▶ Stable        by the epochs, see `state`

`epoch` counts changes of members, subscriptions and topics; `target_epoch` is the epoch that the
target assignment is for; each member's epoch goes up to it as the member reconciles. All changes
are records that `replay` applies; nothing else is kept, so a restart finds the same group.

Invariants:
    `target_epoch` ≤ `epoch`, and no member's epoch is above `target_epoch`.
    A partition is assigned to, or pending revocation from, one member at most: `owners`.
"""

from ottla.broker.groups.error import GroupError
from ottla.broker.groups.records import (
    ConsumerGroupRecord,
    CurrentAssignment,
    CurrentRecord,
    GroupEpoch,
    MemberRecord,
    MemberState,
    Partitions,
    Record,
    RegexRecord,
    ResolvedRegex,
    Subscription,
    TargetEpochRecord,
    TargetRecord,
    each_partition,
)
from ottla.protocol.error_code import ErrorCode

EMPTY = "Empty"
ASSIGNING = "Assigning"
RECONCILING = "Reconciling"
STABLE = "Stable"

# The epoch of a static member that is away but has its place (KIP-848).
LEFT_STATIC = -2
LEFT = -1


UNSUBSCRIBED = Subscription(None, None, "", "", (), None, -1, None)
NO_ASSIGNMENT = CurrentAssignment(0, 0, MemberState.STABLE, {}, {})


class ConsumerMember:
    """A member: what it said, what it is to have, what it has."""

    __slots__ = ("current", "member_id", "subscription", "target")

    def __init__(self, member_id: str, subscription: Subscription) -> None:
        self.member_id = member_id
        self.subscription = subscription
        self.target: Partitions = {}
        self.current = NO_ASSIGNMENT

    @property
    def epoch(self) -> int:
        """Its epoch, −2 while a static member is away."""
        return self.current.member_epoch

    def is_reconciled(self, target_epoch: int) -> bool:
        """Whether it has its target and nothing else."""
        return self.current.state == MemberState.STABLE and self.epoch == target_epoch


class ConsumerGroup:
    """A group of consumers whose partitions the coordinator assigns."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.metadata_hash = 0
        self.target_epoch = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        # Whose assigned partitions and partitions pending revocation are: the member's id.
        self.owners: dict[tuple[bytes, int], str] = {}
        # The topics of the cluster that the subscriptions were held against last.
        self.seen_topics: object = None
        self.is_deleted = False

    @property
    def state(self) -> str:
        """Kafka's name of the group's state."""
        if not self.members:
            return EMPTY
        if self.epoch > self.target_epoch:
            return ASSIGNING
        if all(member.is_reconciled(self.target_epoch) for member in self.members.values()):
            return STABLE
        return RECONCILING

    @property
    def is_empty(self) -> bool:
        """Whether it may be deleted, or become a classic group."""
        return not self.members

    def require_member(self, member_id: str) -> ConsumerMember:
        """Returns a member, and refuses a stranger."""
        member = self.members.get(member_id)
        if member is None:
            raise GroupError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def validate_epoch(self, member_id: str, member_epoch: int) -> None:
        """Refuses a member, for its offsets, that does not know its epoch."""
        member = self.require_member(member_id)
        if member_epoch == member.epoch:
            return
        if member.subscription.classic is not None:
            raise GroupError(ErrorCode.ILLEGAL_GENERATION)
        raise GroupError(
            ErrorCode.STALE_MEMBER_EPOCH,
            f"The received member epoch {member_epoch} does not match "
            f"the expected member epoch {member.epoch}.",
        )

    def topics_of(self, subscription: Subscription) -> frozenset[str]:
        """Returns the topics that a member reads, by name and by regular expression."""
        names = frozenset(subscription.topic_names)
        resolved = self.regexes.get(subscription.topic_regex or "")
        return names if resolved is None else names | frozenset(resolved.topics)

    def is_subscribed(self, topic: str) -> bool:
        """Whether any member reads a topic."""
        return any(
            topic in member.subscription.topic_names for member in self.members.values()
        ) or any(topic in resolved.topics for resolved in self.regexes.values())

    def assignor(self, default: str) -> str:
        """Returns the assignor that most members want, the default where nobody says."""
        votes: dict[str, int] = {}
        for member in self.members.values():
            name = member.subscription.server_assignor
            if name is not None:
                votes[name] = votes.get(name, 0) + 1
        return max(votes, key=lambda name: votes[name], default=default)

    def tombstones(self) -> list[Record]:
        """Returns the records that delete the group, in an order that leaves no half a group."""
        records: list[Record] = []
        for member_id in self.members:
            records += member_tombstones(self.group_id, member_id)
        records += [RegexRecord(self.group_id, regex, None) for regex in self.regexes]
        return [
            *records,
            TargetEpochRecord(self.group_id, None),
            ConsumerGroupRecord(self.group_id, None),
        ]

    def known(self, record: Record) -> Record:
        """Returns the record that undoes one: of the same key, with the value of now."""
        if isinstance(record, ConsumerGroupRecord):
            is_new = not self.epoch
            return record._replace(
                value=None if is_new else GroupEpoch(self.epoch, self.metadata_hash)
            )
        if isinstance(record, TargetEpochRecord):
            return record._replace(value=self.target_epoch)
        if isinstance(record, RegexRecord):
            return record._replace(value=self.regexes.get(record.regex))
        if isinstance(record, MemberRecord | TargetRecord | CurrentRecord):
            member = self.members.get(record.member_id)
            if member is None:
                return record._replace(value=None)
            if isinstance(record, MemberRecord):
                return record._replace(value=member.subscription)
            if isinstance(record, TargetRecord):
                return record._replace(value=member.target)
            return record._replace(value=member.current)
        return record

    def replay(self, record: Record) -> None:
        """Applies a record of this group."""
        if isinstance(record, ConsumerGroupRecord):
            self.is_deleted = record.value is None
            if record.value is not None:
                self.epoch, self.metadata_hash = record.value
        elif isinstance(record, TargetEpochRecord):
            self.target_epoch = record.value or 0
        elif isinstance(record, MemberRecord):
            self._replay_member(record)
        elif isinstance(record, TargetRecord):
            self._replay_target(record)
        elif isinstance(record, CurrentRecord):
            self._replay_current(record)
        elif isinstance(record, RegexRecord):
            if record.value is None:
                self.regexes.pop(record.regex, None)
            else:
                self.regexes[record.regex] = record.value

    def _replay_member(self, record: MemberRecord) -> None:
        known = self.members.get(record.member_id)
        if known is not None:
            instance_id = known.subscription.instance_id
            if instance_id is not None and self.static_members.get(instance_id) == record.member_id:
                del self.static_members[instance_id]
        if record.value is None:
            self.members.pop(record.member_id, None)
            return
        member = self._restored(record.member_id)
        member.subscription = record.value
        if record.value.instance_id is not None:
            self.static_members[record.value.instance_id] = record.member_id

    def _restored(self, member_id: str) -> ConsumerMember:
        """Returns a member; compaction may have left its subscription behind its assignment."""
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = ConsumerMember(member_id, UNSUBSCRIBED)
        return member

    def _replay_target(self, record: TargetRecord) -> None:
        if record.value is not None:
            self._restored(record.member_id).target = record.value
        elif record.member_id in self.members:
            self.members[record.member_id].target = {}

    def _replay_current(self, record: CurrentRecord) -> None:
        if record.value is None and record.member_id not in self.members:
            return
        member = self._restored(record.member_id)
        for partitions in (member.current.assigned, member.current.pending_revocation):
            for partition in each_partition(partitions):
                if self.owners.get(partition) == record.member_id:
                    del self.owners[partition]
        member.current = NO_ASSIGNMENT if record.value is None else record.value
        for partitions in (member.current.assigned, member.current.pending_revocation):
            for partition in each_partition(partitions):
                self.owners[partition] = record.member_id


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """Returns the records that delete a member."""
    return [
        CurrentRecord(group_id, member_id, None),
        TargetRecord(group_id, member_id, None),
        MemberRecord(group_id, member_id, None),
    ]
