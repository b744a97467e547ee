"""Consumer groups: members tell what they read, the coordinator says who has what (KIP-848).

Each heartbeat does what is due, in this order:
    1. the member is added or updated, and the topics of the cluster are looked at;
    2. if that changed anything, the group's epoch goes up;
    3. if the group's epoch is above that of the targets, an assignor makes new targets;
    4. the member takes one step towards its target (`reconciliation.py`).
All of it is one batch of the log. A member that leaves, is silent for its session time-out, or does
not give up partitions within its rebalance time-out is removed, which is a change like any other.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.groups.consumer_group import (
    LEFT,
    LEFT_STATIC,
    NO_ASSIGNMENT,
    UNSUBSCRIBED,
    ConsumerGroup,
    ConsumerMember,
    member_tombstones,
)
from ottla.broker.groups.draft import Draft
from ottla.broker.groups.error import GroupError
from ottla.broker.groups.limits import MAX_MEMBERS
from ottla.broker.groups.reconciliation import reconcile
from ottla.broker.groups.records import (
    CurrentRecord,
    MemberRecord,
    MemberState,
    TargetRecord,
    each_partition,
)
from ottla.broker.groups.targets import GroupTargets
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.broker.groups.classic import Caller
    from ottla.broker.groups.reconciliation import Owned
    from ottla.broker.groups.records import CurrentAssignment, Partitions, Record, Subscription
    from ottla.broker.groups.store import GroupStore


class Entry(NamedTuple):
    """What a request says of a member.

    Attributes:
        epoch: that the member believes to have; `None` where it speaks the classic protocol.
        update: returns what the member says, from what it said before.
    """

    member_id: str
    instance_id: str | None
    epoch: int | None
    update: Callable[[Subscription], Subscription]
    owned: Owned


class ConsumerGroups:
    """The transitions of consumer groups."""

    def __init__(
        self,
        store: GroupStore,
        new_id: Callable[[], str],
        on_removal: Callable[[ConsumerGroup, int], None],
    ) -> None:
        self._on_removal = on_removal
        self._store = store
        self._timers = store.timers
        self._new_id = new_id
        self._targets = GroupTargets(store)

    def heartbeat(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        now_ms: int,
        before_it: Sequence[Record] = (),
    ) -> ConsumerGroupHeartbeatResponse:
        """Answers a ConsumerGroupHeartbeat.

        Args:
            before_it: records that are kept with it, of the classic group that was one before.

        Raises:
            GroupError: it is refused, or cannot be kept; the group is as before.
        """
        if request.member_epoch in {LEFT, LEFT_STATIC}:
            return self._leave(group, request, now_ms)
        member_id = request.member_id or self._new_id()
        update = partial(_updated, request=request, caller=caller)
        entry = Entry(member_id, request.instance_id, request.member_epoch, update, _owned(request))
        member, had = self.enter(group, entry, now_ms, before_it)
        is_changed = had.assigned != member.current.assigned
        return ConsumerGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._store.config_of(
                group.group_id
            ).group_consumer_heartbeat_interval_ms,
            assignment=_assignment(member.current.assigned)
            if is_changed or _is_full(request)
            else None,
        )

    def enter(
        self, group: ConsumerGroup, entry: Entry, now_ms: int, before_it: Sequence[Record] = ()
    ) -> tuple[ConsumerMember, CurrentAssignment]:
        """Adds or updates a member and takes it one step towards its target.

        Returns:
            The member, and the assignment that it had.

        Raises:
            GroupError: it is refused, or cannot be kept; the group is as before.
        """
        self._require_place(group, entry)
        with Draft(self._store, group, now_ms, before_it) as draft:
            replaced = self._admit(group, entry, draft)
            before = group.members.get(entry.member_id)
            had = NO_ASSIGNMENT if before is None else before.current
            self._subscribe(group, entry, draft)
            self._targets.update(group, draft, now_ms)
            member = self._step(group, entry, draft)
        if replaced is not None:
            self.stop_timers(group, replaced)
        if member.current != had:
            self._timers.stop(("rebalance", group.group_id, entry.member_id))
        self.start_timers(group, member, now_ms)
        return member, had

    def remove(self, group: ConsumerGroup, member_ids: list[str], now_ms: int) -> None:
        """Removes members.

        Raises:
            GroupError: it cannot be kept; the group is as before.
        """
        with Draft(self._store, group, now_ms) as draft:
            for member_id in member_ids:
                for record in member_tombstones(group.group_id, member_id):
                    draft.put(record)
            self._targets.bump(group, draft)
        for member_id in member_ids:
            self.stop_timers(group, member_id)
        self._on_removal(group, now_ms)

    def resume(self, group: ConsumerGroup, now_ms: int) -> None:
        """Starts the timers of a group that was restored."""
        for member in group.members.values():
            self.start_timers(group, member, now_ms)

    # Members

    def _require_place(self, group: ConsumerGroup, entry: Entry) -> None:
        size = min(self._store.config.group_consumer_max_size, MAX_MEMBERS)
        if entry.member_id not in group.members and len(group.members) >= size:
            raise GroupError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {size} members.",
            )

    def _admit(self, group: ConsumerGroup, entry: Entry, draft: Draft) -> str | None:
        """Refuses who is not who it says. Returns the id of the member whose place it takes."""
        joins = not entry.epoch
        if entry.instance_id is None:
            member = group.members.get(entry.member_id)
            if member is None and not joins:
                group.require_member(entry.member_id)
            if member is not None:
                _require_epoch(member, entry)
            return None
        known_id = group.static_members.get(entry.instance_id)
        if not joins:
            _require_epoch(_static_member(group, entry.member_id, entry.instance_id), entry)
            return None
        if known_id is None or known_id == entry.member_id:
            return None
        return self._replace(group, group.members[known_id], entry, draft)

    def _replace(
        self, group: ConsumerGroup, old: ConsumerMember, entry: Entry, draft: Draft
    ) -> str:
        """Gives the place of a static member that is away to the same instance under a new id."""
        member_id = entry.member_id
        # Members of the classic protocol do not say that they go (KIP-345).
        is_classic = entry.epoch is None and old.subscription.classic is not None
        if old.epoch != LEFT_STATIC and not is_classic:
            raise GroupError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {old.member_id} with instance id {old.subscription.instance_id} "
                "cannot join the group because the instance id is owned by another member.",
            )
        current = old.current._replace(member_epoch=0, previous_member_epoch=0)
        subscription, target = old.subscription, old.target
        for record in member_tombstones(group.group_id, old.member_id):
            draft.put(record)
        draft.put(MemberRecord(group.group_id, member_id, subscription))
        draft.put(TargetRecord(group.group_id, member_id, target))
        draft.put(CurrentRecord(group.group_id, member_id, current))
        return old.member_id

    def _subscribe(self, group: ConsumerGroup, entry: Entry, draft: Draft) -> None:
        """Adds the member or updates what it says; a change of what it reads is the group's."""
        known = group.members.get(entry.member_id)
        before = UNSUBSCRIBED if known is None else known.subscription
        after = entry.update(before)
        self._targets.require_pattern(after.topic_regex, before.topic_regex)
        draft.put(MemberRecord(group.group_id, entry.member_id, after))
        is_changed = set(before.topic_names) != set(after.topic_names)
        if known is None or is_changed or before.topic_regex != after.topic_regex:
            self._targets.bump(group, draft)

    def _step(self, group: ConsumerGroup, entry: Entry, draft: Draft) -> ConsumerMember:
        """Takes a member one step towards its target."""
        member = group.members[entry.member_id]
        current = reconcile(
            member.current,
            target=member.target,
            target_epoch=group.target_epoch,
            owned=entry.owned,
            is_free=lambda partition: partition not in group.owners,
        )
        draft.put(CurrentRecord(group.group_id, entry.member_id, current))
        return member

    def _leave(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, now_ms: int
    ) -> ConsumerGroupHeartbeatResponse:
        if request.instance_id is None:
            member = group.require_member(request.member_id)
        else:
            member = _static_member(group, request.member_id, request.instance_id)
        if request.member_epoch == LEFT_STATIC:
            with Draft(self._store, group, now_ms) as draft:
                # It is back within its session time-out, which runs on, or it is removed.
                away = member.current._replace(member_epoch=LEFT_STATIC, pending_revocation={})
                draft.put(CurrentRecord(group.group_id, member.member_id, away))
            self._timers.stop(("rebalance", group.group_id, member.member_id))
        else:
            self.remove(group, [member.member_id], now_ms)
        return ConsumerGroupHeartbeatResponse(
            member_id=member.member_id, member_epoch=request.member_epoch
        )

    # Time

    def start_timers(self, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
        """Lets a member be silent for its session time-out from now on."""
        classic = member.subscription.classic
        session_ms = (
            self._store.config_of(group.group_id).group_consumer_session_timeout_ms
            if classic is None
            else classic.session_timeout_ms
        )
        self._timers.start(
            ("session", group.group_id, member.member_id),
            now_ms + session_ms,
            partial(self.expire, group, member.member_id),
        )
        key = ("rebalance", group.group_id, member.member_id)
        if member.current.state != MemberState.UNREVOKED_PARTITIONS:
            self._timers.stop(key)
        elif self._timers.deadline_ms(key) is None:
            self._timers.start(
                key,
                now_ms + member.subscription.rebalance_timeout_ms,
                partial(self.expire, group, member.member_id),
            )

    def stop_timers(self, group: ConsumerGroup, member_id: str) -> None:
        """Expects nothing more of a member that is gone."""
        for what in ("session", "rebalance", "rejoin", "resync"):
            self._timers.stop((what, group.group_id, member_id))

    def expire(self, group: ConsumerGroup, member_id: str, now_ms: int) -> None:
        """Removes a member that was silent, or did not give up its partitions."""
        if member_id not in group.members:
            return
        try:
            self.remove(group, [member_id], now_ms)
        except GroupError:
            # The log does not take it now; the member stays until it does.
            self.start_timers(group, group.members[member_id], now_ms)


def _static_member(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    known_id = group.static_members.get(instance_id)
    if known_id is None:
        raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if known_id != member_id:
        raise GroupError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{known_id}.",
        )
    return group.members[known_id]


def _require_epoch(member: ConsumerMember, entry: Entry) -> None:
    """Refuses an epoch that is not the member's; the one before is of a lost answer."""
    epoch = entry.epoch
    if epoch is None or epoch == member.epoch:
        return
    what = "greater" if epoch > member.epoch else "smaller"
    if what == "smaller" and epoch == member.current.previous_member_epoch:
        held = {*each_partition(member.current.assigned)}
        if entry.owned is not None and entry.owned <= held:
            return
    raise GroupError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {what} member epoch ({epoch}) than the one known by "
        f"the group coordinator ({member.epoch}). The member must abandon all its partitions and "
        "rejoin.",
    )


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned:
    if request.topic_partitions is None:
        return None
    return {
        (each.topic_id, index) for each in request.topic_partitions for index in each.partitions
    }


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether it says everything, as a member does that begins anew."""
    return request.member_epoch == 0 or (
        request.rebalance_timeout_ms != -1
        and request.topic_partitions is not None
        and (
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        )
    )


def _updated(
    before: Subscription, *, request: ConsumerGroupHeartbeatRequest, caller: Caller
) -> Subscription:
    """Returns what a member has said by now: what a request leaves out stays."""
    names = request.subscribed_topic_names
    regex = request.subscribed_topic_regex
    return before._replace(
        instance_id=request.instance_id or before.instance_id,
        rack_id=request.rack_id or before.rack_id,
        client_id=caller.client_id,
        client_host=caller.client_host,
        topic_names=before.topic_names if names is None else tuple(sorted(set(names))),
        # An empty one ends the subscription by a regular expression.
        topic_regex=before.topic_regex if regex is None else regex or None,
        rebalance_timeout_ms=before.rebalance_timeout_ms
        if request.rebalance_timeout_ms == -1
        else request.rebalance_timeout_ms,
        server_assignor=request.server_assignor or before.server_assignor,
        classic=None,
    )


def _assignment(partitions: Partitions) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=[*indexes])
            for topic_id, indexes in partitions.items()
        ]
    )
