"""Classic groups: members join, a leader assigns, everybody syncs (KIP-62, 134, 345, 394, 814).

    Empty ──join──▶ PreparingRebalance ──all joined, or time──▶ CompletingRebalance
      ▲                  ▲        │                               │            │
      │                  │        └──nobody is left──▶ Empty      │      leader syncs
      │                  └──join, leave, failure, expiry──────────┴── Stable ◀─┘
    Dead: deleted.

A join waits in PreparingRebalance for the others: until all members have joined again and nobody to
whom a member id was given is missing, or the longest rebalance time-out is over. Members that have
not joined by then are out, static ones (KIP-345) stay until their session is over. The first
rebalance of an empty group waits `group.initial.rebalance.delay.ms`, and again while members come.
A sync waits in CompletingRebalance for the leader's. Members that do not sync are out after the
rebalance time-out.

Invariants: a request that waits is answered once, whatever becomes of its member. Answers go out
when the group is in its next state, since an answer may bring the connection's next request.
"""

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ottla.broker.groups.classic_group import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    ClassicGroup,
    Member,
    Protocols,
    Reply,
)
from ottla.broker.groups.error import GroupError
from ottla.broker.groups.limits import (
    MAX_MEMBER_METADATA_BYTES,
    MAX_MEMBERS,
    MAX_PENDING_MEMBERS,
)
from ottla.broker.groups.records import ClassicGroupRecord, ClassicGroupState
from ottla.broker.groups.store import GroupStore
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from ottla.protocol.messages.leave_group import MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

NONE = 0
# The version of JoinGroup from which a member has to know its id before it joins (KIP-394), and the
# one from which a leader may be told to leave the assignment as it is (KIP-814).
_KNOWN_MEMBER_ID = 4
_SKIP_ASSIGNMENT = 9


class Caller:
    """Who has sent a request, and in which version."""

    __slots__ = ("api_version", "client_host", "client_id")

    def __init__(self, api_version: int, client_id: str = "", client_host: str = "") -> None:
        self.api_version = api_version
        self.client_id = client_id
        self.client_host = client_host


class ClassicGroups:
    """The transitions of classic groups. Groups themselves are the coordinator's."""

    def __init__(self, store: GroupStore, new_id: Callable[[], str]) -> None:
        self._store = store
        self._timers = store.timers
        self._new_id = new_id
        self._answers: deque[tuple[Reply, Any]] = deque()

    # Requests

    def join(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        caller: Caller,
        now_ms: int,
        reply: Reply,
    ) -> None:
        """Answers a JoinGroup, now or when the generation begins."""
        join = _Join(request, caller, now_ms, reply)
        try:
            self._admit(group, join)
            if request.member_id:
                self._join_known(group, join)
            else:
                self._join_new(group, join)
        except GroupError as error:
            self._answer(reply, refused_join(request.member_id, error.error_code))
        self.send()

    def sync(
        self, group: ClassicGroup, request: SyncGroupRequest, now_ms: int, reply: Reply
    ) -> None:
        """Answers a SyncGroup, now or when the leader has sent the assignments."""
        try:
            member = self._validate_sync(group, request)
            self._saw_sync(group, member)
            if group.state == STABLE:
                self._answer(reply, _synced(group, member.assignment))
            else:
                self._refuse_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
                member.sync_reply = reply
                if member.member_id == group.leader:
                    self._assign(group, request, now_ms)
        except GroupError as error:
            self._answer(reply, SyncGroupResponse(error_code=error.error_code))
        self.send()

    def heartbeat(
        self,
        group: ClassicGroup,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        now_ms: int,
    ) -> int:
        """Extends a session. Returns an error code; 27 asks the member to join again."""
        try:
            member = self._of_generation(group, member_id, group_instance_id, generation_id)
        except GroupError as error:
            return error.error_code
        self.extend_session(group, member, now_ms)
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state == PREPARING_REBALANCE else NONE

    def leave(
        self, group: ClassicGroup, identities: Iterable[MemberIdentity], now_ms: int
    ) -> list[int]:
        """Removes members. Returns an error code for each of them."""
        codes = []
        left = False
        for identity in identities:
            try:
                member_id = self._leaving(group, identity.member_id, identity.group_instance_id)
            except GroupError as error:
                codes.append(error.error_code)
            else:
                self._drop(group, member_id)
                codes.append(NONE)
                left = True
        if left:
            self._settle(group, now_ms)
        self.send()
        return codes

    def extend_session(self, group: ClassicGroup, member: Member, now_ms: int) -> None:
        """Lets a member be silent for its session time-out from now on."""
        self._watch(group, member.member_id, now_ms + member.session_timeout_ms)

    def resume(self, group: ClassicGroup, now_ms: int) -> None:
        """Starts the sessions of a group that was restored."""
        for member in group.members.values():
            self.extend_session(group, member, now_ms)

    def rebalance(self, group: ClassicGroup, now_ms: int) -> None:
        """Has all members of a group join again."""
        self._prepare(group, now_ms)
        self.send()

    def forget(self, group: ClassicGroup, now_ms: int) -> None:
        """Ends a group that is deleted or becomes a consumer group: nobody waits any more."""
        self.give_up(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.transition(DEAD, now_ms)
        self.send()

    def give_up(self, group: ClassicGroup, error_code: int) -> None:
        """Has nothing more happen to a group; who waits is told by the next `send`."""
        for member_id in [*group.members, *group.pending_members]:
            self._drop(group, member_id, error_code)
        self._timers.stop(("join", group.group_id))
        self._timers.stop(("sync", group.group_id))

    def send(self) -> None:
        """Sends what was answered."""
        while self._answers:
            reply, response = self._answers.popleft()
            reply(response)

    def _of_generation(
        self, group: ClassicGroup, member_id: str, instance: str | None, generation_id: int
    ) -> Member:
        if group.state == DEAD:
            raise GroupError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        member = group.validate_member(member_id, instance)
        if generation_id != group.generation_id:
            raise GroupError(ErrorCode.ILLEGAL_GENERATION)
        return member

    # Joining

    def _admit(self, group: ClassicGroup, join: "_Join") -> None:
        """Refuses a join that cannot be of this group."""
        if group.state == DEAD:
            raise GroupError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        size = sum(len(name) + len(metadata) for name, metadata in join.protocols)
        if size > MAX_MEMBER_METADATA_BYTES:
            raise GroupError(ErrorCode.INVALID_REQUEST)
        self._accept(group, join.request.member_id)
        if not group.supports(join.request.protocol_type, join.protocols):
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _accept(self, group: ClassicGroup, member_id: str) -> None:
        """Refuses a member beyond `group.max.size`; those who join again have their place."""
        size = min(self._store.config.group_max_size, MAX_MEMBERS)
        member = group.members.get(member_id)
        is_accepted = True
        if group.state == PREPARING_REBALANCE:
            waits = member is not None and member.join_reply is not None
            is_accepted = waits or group.waiting_joins() < size
        elif group.state != EMPTY:
            is_accepted = member is not None or len(group.members) < size
        if not is_accepted:
            self._drop(group, member_id)
            raise GroupError(ErrorCode.GROUP_MAX_SIZE_REACHED)

    def _join_new(self, group: ClassicGroup, join: "_Join") -> None:
        """Joins somebody without a member id."""
        instance = join.request.group_instance_id
        member_id = f"{join.caller.client_id if instance is None else instance}-{self._new_id()}"
        known = None if instance is None else group.static_members.get(instance)
        if known is not None:
            self._replace_static(group, group.members[known], member_id, join)
        elif instance is None and join.caller.api_version >= _KNOWN_MEMBER_ID:
            if len(group.pending_members) >= MAX_PENDING_MEMBERS:
                raise GroupError(ErrorCode.GROUP_MAX_SIZE_REACHED)
            group.pending_members.add(member_id)
            self._watch(group, member_id, join.now_ms + join.request.session_timeout_ms)
            self._answer(join.reply, refused_join(member_id, ErrorCode.MEMBER_ID_REQUIRED))
        else:
            self._add(group, member_id, join)

    def _join_known(self, group: ClassicGroup, join: "_Join") -> None:
        """Joins somebody who says who it is."""
        member_id = join.request.member_id
        if member_id in group.pending_members:
            self._add(group, member_id, join)
            return
        member = group.validate_member(member_id, join.request.group_instance_id)
        is_leader = member_id == group.leader
        # A member that says nothing new was not told of the generation, or is: it is told again.
        if member.protocols == join.protocols and (
            group.state == COMPLETING_REBALANCE or (group.state == STABLE and not is_leader)
        ):
            self._answer(join.reply, _joined(group, member))
        elif group.is_empty:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        else:
            self._update(member, join)
            self._rebalance_or_complete(group, join.now_ms)

    def _add(self, group: ClassicGroup, member_id: str, join: "_Join") -> None:
        request = join.request
        member = Member(
            member_id,
            request.group_instance_id,
            client_id=join.caller.client_id,
            client_host=join.caller.client_host,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=join.protocols,
        )
        member.is_new = True
        member.join_reply = join.reply
        if group.state == PREPARING_REBALANCE and group.previous_state == EMPTY:
            group.new_member_added = True
        group.add(member, request.protocol_type)
        # It cannot send heartbeats while it waits, and may be gone; so it does not wait for ever.
        self._watch(
            group, member_id, join.now_ms + self._store.config.group_new_member_join_timeout_ms
        )
        self._rebalance_or_complete(group, join.now_ms)

    def _update(self, member: Member, join: "_Join") -> None:
        """Takes over what a member says that joins again."""
        self._refuse_join(member, ErrorCode.REBALANCE_IN_PROGRESS)
        member.protocols = join.protocols
        member.rebalance_timeout_ms = join.rebalance_timeout_ms
        member.session_timeout_ms = join.request.session_timeout_ms
        member.join_reply = join.reply

    def _replace_static(
        self, group: ClassicGroup, old: Member, member_id: str, join: "_Join"
    ) -> None:
        """Joins a static member anew, in the place of the one before (KIP-345)."""
        self._timers.stop(("session", group.group_id, old.member_id))
        self._refuse_join(old, ErrorCode.FENCED_INSTANCE_ID)
        self._refuse_sync(old, ErrorCode.FENCED_INSTANCE_ID)
        leader_before = group.leader
        member = group.replace(old, member_id)
        self._update(member, join)
        self.extend_session(group, member, join.now_ms)
        if group.state == STABLE and group.chosen_protocol() == group.protocol_name:
            self._keep_generation(group, old, member, leader_before, join)
        elif group.state in {STABLE, COMPLETING_REBALANCE}:
            # A leader that assigns by now knows the old id alone.
            self._prepare(group, join.now_ms)
        else:
            self._complete_if_all_joined(group, join.now_ms)

    def _keep_generation(
        self,
        group: ClassicGroup,
        old: Member,
        member: Member,
        leader_before: str | None,
        join: "_Join",
    ) -> None:
        """Tells a static member of the generation that goes on with it."""
        group.remember_topics()
        member.join_reply = None
        code = self._keep(group, group.persistent(), join.now_ms)
        if code != NONE:
            group.replace(member, old.member_id).protocols = old.protocols
            group.remember_topics()
            self._timers.stop(("session", group.group_id, member.member_id))
            self.extend_session(group, group.members[old.member_id], join.now_ms)
            raise GroupError(code)
        answer = _joined(group, member)
        if join.caller.api_version >= _SKIP_ASSIGNMENT:
            answer.skip_assignment = member.member_id == group.leader
        else:
            # Told that another leads, it does not assign to a generation that has its assignments.
            answer.leader = leader_before or ""
            answer.members = []
        self._answer(join.reply, answer)

    # Generations

    def _rebalance_or_complete(self, group: ClassicGroup, now_ms: int) -> None:
        if group.state in {STABLE, COMPLETING_REBALANCE, EMPTY}:
            self._prepare(group, now_ms)
        else:
            self._complete_if_all_joined(group, now_ms)

    def _settle(self, group: ClassicGroup, now_ms: int) -> None:
        """Goes on after members were removed."""
        if group.state in {STABLE, COMPLETING_REBALANCE}:
            self._prepare(group, now_ms)
        else:
            self._complete_if_all_joined(group, now_ms)

    def _prepare(self, group: ClassicGroup, now_ms: int) -> None:
        """Has everybody join again."""
        for member in group.members.values():
            self._refuse_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
            if group.state == COMPLETING_REBALANCE:
                member.assignment = b""
        self._timers.stop(("sync", group.group_id))
        is_first = group.state == EMPTY
        group.transition(PREPARING_REBALANCE, now_ms)
        delay_ms = self._store.config.group_initial_rebalance_delay_ms
        if is_first and delay_ms:
            group.new_member_added = False
            remaining_ms = max(group.rebalance_timeout_ms() - delay_ms, 0)
            self._delay(group, delay_ms, remaining_ms, now_ms)
        elif is_first or group.all_have_joined():
            self._complete(group, now_ms)
        else:
            self._complete_later(group, now_ms)

    def _delay(self, group: ClassicGroup, delay_ms: int, remaining_ms: int, now_ms: int) -> None:
        """Waits for more members of a first generation (KIP-134)."""

        def go_on(now_ms: int) -> None:
            if group.new_member_added and remaining_ms:
                group.new_member_added = False
                next_delay_ms = min(
                    self._store.config.group_initial_rebalance_delay_ms, remaining_ms
                )
                self._delay(group, next_delay_ms, max(remaining_ms - delay_ms, 0), now_ms)
            else:
                self._complete(group, now_ms)
                self.send()

        self._timers.start(("join", group.group_id), now_ms + delay_ms, go_on)

    def _complete_later(self, group: ClassicGroup, now_ms: int) -> None:
        def go_on(now_ms: int) -> None:
            self._complete(group, now_ms)
            self.send()

        deadline_ms = now_ms + group.rebalance_timeout_ms()
        self._timers.start(("join", group.group_id), deadline_ms, go_on)

    def _complete_if_all_joined(self, group: ClassicGroup, now_ms: int) -> None:
        is_first = group.previous_state == EMPTY
        if group.state == PREPARING_REBALANCE and not is_first and group.all_have_joined():
            self._complete(group, now_ms)

    def _complete(self, group: ClassicGroup, now_ms: int) -> None:
        """Begins the next generation with those who have joined."""
        self._timers.stop(("join", group.group_id))
        missing = [
            member.member_id
            for member in group.members.values()
            if member.join_reply is None and member.group_instance_id is None
        ]
        for member_id in missing:
            self._drop(group, member_id)
        if group.members and not group.elect_joined_leader():
            # Static members alone, of whom none has come: until their sessions are over.
            self._complete_later(group, now_ms)
            return
        group.next_generation(now_ms)
        if group.state == EMPTY:
            # Lost at worst is that a generation was empty, which a restart finds out by itself.
            self._keep(group, group.persistent(), now_ms)
            return
        for member in group.members.values():
            if member.join_reply is not None:
                self._answer(member.join_reply, _joined(group, member))
                member.join_reply = None
            member.is_new = False
            self.extend_session(group, member, now_ms)
        expire = partial(self._expire_syncs, group, group.generation_id)
        deadline_ms = now_ms + group.rebalance_timeout_ms()
        self._timers.start(("sync", group.group_id), deadline_ms, expire)

    # Syncing

    def _validate_sync(self, group: ClassicGroup, request: SyncGroupRequest) -> Member:
        member = self._of_generation(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        # Null before version 5, and from those who do not mind.
        if request.protocol_type not in {None, group.protocol_type} or (
            request.protocol_name not in {None, group.protocol_name}
        ):
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state == PREPARING_REBALANCE:
            raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS)
        return member

    def _saw_sync(self, group: ClassicGroup, member: Member) -> None:
        group.pending_syncs.discard(member.member_id)
        if not group.pending_syncs:
            self._timers.stop(("sync", group.group_id))

    def _assign(self, group: ClassicGroup, request: SyncGroupRequest, now_ms: int) -> None:
        """Makes the generation stable with the leader's assignments, once they are kept."""
        given = {each.member_id: each.assignment for each in request.assignments}
        kept = group.persistent(given)._replace(state_timestamp_ms=now_ms)
        code = self._keep(group, kept, now_ms)
        for member in group.members.values():
            member.assignment = given.get(member.member_id, b"") if code == NONE else b""
            if member.sync_reply is None:
                continue
            if code == NONE:
                self._answer(member.sync_reply, _synced(group, member.assignment))
                member.sync_reply = None
                self.extend_session(group, member, now_ms)
            else:
                self._refuse_sync(member, code)
        if code == NONE:
            group.transition(STABLE, now_ms)
        else:
            self._prepare(group, now_ms)

    def _expire_syncs(self, group: ClassicGroup, generation_id: int, now_ms: int) -> None:
        """Removes members that have not asked for their assignment."""
        if generation_id != group.generation_id or not group.pending_syncs:
            return
        if group.state in {COMPLETING_REBALANCE, STABLE}:
            for member_id in sorted(group.pending_syncs):
                self._drop(group, member_id)
            self._prepare(group, now_ms)
            self.send()

    # Leaving

    def _leaving(self, group: ClassicGroup, member_id: str, instance: str | None) -> str:
        """Returns the id of the member that leaves, which an administrator may not know."""
        if group.state == DEAD:
            raise GroupError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if not member_id and instance is not None and instance in group.static_members:
            return group.static_members[instance]
        if member_id not in group.pending_members:
            group.validate_member(member_id, instance)
        return member_id

    def _watch(self, group: ClassicGroup, member_id: str, deadline_ms: int) -> None:
        key = ("session", group.group_id, member_id)
        self._timers.start(key, deadline_ms, partial(self._expire, group, member_id))

    def _expire(self, group: ClassicGroup, member_id: str, now_ms: int) -> None:
        """Removes a member that was silent, unless it waits for us."""
        member = group.members.get(member_id)
        if member is not None and not member.is_new:
            if member.join_reply is not None or member.sync_reply is not None:
                return
        elif member is None and member_id not in group.pending_members:
            return
        self._drop(group, member_id)
        self._settle(group, now_ms)
        self.send()

    def _drop(
        self,
        group: ClassicGroup,
        member_id: str,
        error_code: int = ErrorCode.UNKNOWN_MEMBER_ID,
    ) -> None:
        """Removes a member, whose waiting requests are answered."""
        self._timers.stop(("session", group.group_id, member_id))
        member = group.remove(member_id)
        if member is not None:
            self._refuse_join(member, error_code)
            self._refuse_sync(member, error_code)

    def _keep(self, group: ClassicGroup, state: ClassicGroupState, now_ms: int) -> int:
        return self._store.keep([ClassicGroupRecord(group.group_id, state)], now_ms)

    # Answers

    def _answer(self, reply: Reply, response: object) -> None:
        self._answers.append((reply, response))

    def _refuse_join(self, member: Member, error_code: int) -> None:
        reply, member.join_reply = member.join_reply, None
        if reply is not None:
            is_unknown = error_code == ErrorCode.UNKNOWN_MEMBER_ID
            self._answer(reply, refused_join("" if is_unknown else member.member_id, error_code))

    def _refuse_sync(self, member: Member, error_code: int) -> None:
        reply, member.sync_reply = member.sync_reply, None
        if reply is not None:
            self._answer(reply, SyncGroupResponse(error_code=error_code))


class _Join:
    """A JoinGroup, with what its version leaves to us."""

    __slots__ = ("caller", "now_ms", "protocols", "rebalance_timeout_ms", "reply", "request")

    def __init__(
        self, request: JoinGroupRequest, caller: Caller, now_ms: int, reply: Reply
    ) -> None:
        self.request = request
        self.caller = caller
        self.now_ms = now_ms
        self.reply = reply
        self.protocols: Protocols = tuple((each.name, each.metadata) for each in request.protocols)
        # Version 0 has one time-out for both.
        self.rebalance_timeout_ms = (
            request.session_timeout_ms if caller.api_version == 0 else request.rebalance_timeout_ms
        )


def refused_join(member_id: str, error_code: int) -> JoinGroupResponse:
    """Returns the answer to a join that is refused."""
    return JoinGroupResponse(
        error_code=error_code,
        generation_id=-1,
        protocol_name="",
        leader="",
        member_id=member_id,
        members=[],
    )


def _joined(group: ClassicGroup, member: Member) -> JoinGroupResponse:
    """Returns what a member is told of its generation; the leader alone hears of the others."""
    members = []
    if member.member_id == group.leader:
        members = [
            JoinGroupResponseMember(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                metadata=each.metadata(group.protocol_name),
            )
            for each in group.members.values()
        ]
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        member_id=member.member_id,
        members=members,
    )


def _synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=assignment,
    )
