"""Members of the classic protocol in consumer groups (KIP-848, online migration).

To such a member a member epoch is a generation, and a step of its reconciliation a rebalance: it is
told to join again by its heartbeat, says in its subscription which partitions it still owns, and is
given by SyncGroup what the coordinator has assigned to it. Nobody leads, and nobody but the
coordinator assigns.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.groups.classic_group import CONSUMER_PROTOCOL_TYPE
from ottla.broker.groups.consumer import ConsumerGroups, Entry
from ottla.broker.groups.error import GroupError
from ottla.broker.groups.limits import MAX_MEMBER_METADATA_BYTES
from ottla.broker.groups.records import ClassicProtocols, MemberState, each_partition
from ottla.broker.groups.subscription import assignment_bytes, read_subscription, version_of
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from ottla.broker.groups.classic import Caller
    from ottla.broker.groups.consumer_group import ConsumerGroup, ConsumerMember
    from ottla.broker.groups.records import Subscription
    from ottla.broker.groups.store import GroupStore
    from ottla.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
    from ottla.protocol.messages.join_group import JoinGroupRequest
    from ottla.protocol.messages.sync_group import SyncGroupRequest

_KNOWN_MEMBER_ID = 4


class ClassicMembers:
    """The requests of classic members of consumer groups."""

    def __init__(self, store: GroupStore, consumer: ConsumerGroups) -> None:
        self._store = store
        self._timers = store.timers
        self._consumer = consumer

    def join(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        caller: Caller,
        new_id: str,
        now_ms: int,
    ) -> JoinGroupResponse:
        """Answers a JoinGroup.

        Raises:
            GroupError: it is refused; an id that the member has to join with is its message.
        """
        protocols = tuple((each.name, each.metadata) for each in request.protocols)
        said = self._read(group, request, protocols)
        member_id = request.member_id
        if not member_id:
            instance = request.group_instance_id
            member_id = f"{caller.client_id if instance is None else instance}-{new_id}"
            if instance is None and caller.api_version >= _KNOWN_MEMBER_ID:
                raise GroupError(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        topics = self._store.image.topics
        owned = {
            (topics[each.topic].topic_id, partition)
            for each in said.owned_partitions
            if each.topic in topics
            for partition in each.partitions
        }
        rebalance_timeout_ms = request.rebalance_timeout_ms
        if caller.api_version == 0:
            rebalance_timeout_ms = request.session_timeout_ms

        def update(before: Subscription) -> Subscription:
            return before._replace(
                instance_id=request.group_instance_id,
                rack_id=said.rack_id,
                client_id=caller.client_id,
                client_host=caller.client_host,
                topic_names=tuple(sorted(set(said.topics))),
                topic_regex=None,
                rebalance_timeout_ms=rebalance_timeout_ms,
                server_assignor=None,
                classic=ClassicProtocols(request.session_timeout_ms, protocols),
            )

        entry = Entry(member_id, request.group_instance_id, None, update, owned)
        member, _ = self._consumer.enter(group, entry, now_ms)
        self._timers.stop(("rejoin", group.group_id, member_id))
        self._expect("resync", group, member, now_ms)
        return JoinGroupResponse(
            generation_id=member.epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=protocols[0][0],
            member_id=member_id,
        )

    def sync(
        self, group: ConsumerGroup, request: SyncGroupRequest, now_ms: int
    ) -> SyncGroupResponse:
        """Answers a SyncGroup with what the coordinator has assigned.

        Raises:
            GroupError: it is refused.
        """
        member, classic = self._member(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        name = classic.protocols[0][0]
        if request.protocol_type not in {None, CONSUMER_PROTOCOL_TYPE} or (
            request.protocol_name not in {None, name}
        ):
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        is_behind = group.epoch > member.epoch
        if is_behind and member.current.state != MemberState.UNREVOKED_PARTITIONS:
            self._expect("rejoin", group, member, now_ms)
            raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._timers.stop(("resync", group.group_id, member.member_id))
        self._consumer.start_timers(group, member, now_ms)
        version = version_of(classic.protocols[0][1])
        return SyncGroupResponse(
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=name,
            assignment=assignment_bytes(member.current.assigned, self._store.image, version),
        )

    def heartbeat(
        self,
        group: ConsumerGroup,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        now_ms: int,
    ) -> int:
        """Extends a session. Returns an error code; 27 asks the member to join again.

        Raises:
            GroupError: it is refused.
        """
        member, _ = self._member(group, member_id, group_instance_id, generation_id)
        self._consumer.start_timers(group, member, now_ms)
        state = member.current.state
        is_due = member.epoch < group.epoch or state == MemberState.UNREVOKED_PARTITIONS
        if state == MemberState.UNRELEASED_PARTITIONS:
            missing = {*each_partition(member.target)} - {*each_partition(member.current.assigned)}
            is_due = is_due or not missing & group.owners.keys()
        if not is_due:
            return ErrorCode.NONE
        self._expect("rejoin", group, member, now_ms)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def leaving(self, group: ConsumerGroup, member_id: str, group_instance_id: str | None) -> str:
        """Returns the id of a member that leaves; an administrator names its instance alone.

        Raises:
            GroupError: it is not there, or does not leave in this way.
        """
        if not member_id and group_instance_id in group.static_members:
            return group.static_members[group_instance_id or ""]
        self._identified(group, member_id, group_instance_id)
        return member_id

    def _read(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        protocols: tuple[tuple[str, bytes], ...],
    ) -> ConsumerProtocolSubscription:
        """Returns the subscription in a join, which has to be a consumer's that fits the others."""
        said = read_subscription(protocols[0][1]) if protocols else None
        size = sum(len(name) + len(data) for name, data in protocols)
        if said is None or request.protocol_type != CONSUMER_PROTOCOL_TYPE:
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if size > MAX_MEMBER_METADATA_BYTES:
            raise GroupError(ErrorCode.INVALID_REQUEST)
        common = {name for name, _ in protocols}
        for member in group.members.values():
            classic = member.subscription.classic
            if classic is not None and member.member_id != request.member_id:
                common &= {name for name, _ in classic.protocols}
        if not common:
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        return said

    def _member(
        self, group: ConsumerGroup, member_id: str, instance: str | None, generation_id: int
    ) -> tuple[ConsumerMember, ClassicProtocols]:
        member, classic = self._identified(group, member_id, instance)
        if generation_id != member.epoch:
            raise GroupError(ErrorCode.ILLEGAL_GENERATION)
        return member, classic

    def _identified(
        self, group: ConsumerGroup, member_id: str, instance: str | None
    ) -> tuple[ConsumerMember, ClassicProtocols]:
        if instance is not None:
            known = group.static_members.get(instance)
            if known is None:
                raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise GroupError(ErrorCode.FENCED_INSTANCE_ID)
        member = group.require_member(member_id)
        classic = member.subscription.classic
        if classic is None:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member, classic

    def _expect(self, what: str, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
        """Gives a member its rebalance time-out to do what it was told."""
        key = (what, group.group_id, member.member_id)
        if self._timers.deadline_ms(key) is None:
            deadline_ms = now_ms + member.subscription.rebalance_timeout_ms
            expire = partial(self._consumer.expire, group, member.member_id)
            self._timers.start(key, deadline_ms, expire)
