"""A member of a classic group: joins, syncs, and shows that it lives.

States and their table: `ottla.client.groups.classic_states`. Invariants beside those of
`Membership`:

- One JoinGroup or SyncGroup is under way at most, and one Heartbeat; what belongs to an earlier
  generation or state is not looked at.
- Of an eager strategy, nothing is owned in JOINING, ASSIGNING and SYNCING; of a cooperative one,
  what is owned there is what the JoinGroup said.
- What is not given up until the coordinator may go on without the member is lost then: others may
  have it, whatever the application is doing.
- A generation is had from an answer to JoinGroup until the next JoinGroup is answered, or the
  member is lost; a member id until it is removed, or leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.client.errors import (
    KafkaTimeoutError,
    OffsetCommitFailedError,
    RebalanceInProgressError,
    RetriableError,
    error_of,
)
from ottla.client.groups.assignors import Subscription, assignor_of
from ottla.client.groups.call import Call
from ottla.client.groups.classic_states import BEATING, COMMITTING, State
from ottla.client.groups.handover import Handover
from ottla.client.groups.leading import Leading
from ottla.client.groups.membership import Membership
from ottla.client.groups.poll_timer import PollTimer
from ottla.client.groups.reactions import Reaction, error_for, reaction
from ottla.client.groups.subscription import PROTOCOL_TYPE, read_assignment, subscription_bytes
from ottla.client.partitions import GroupMetadata
from ottla.client.pending import Pending
from ottla.errors import OttlaError
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.groups.assignors import Assignor
    from ottla.client.groups.coordinator import GroupCoordinator
    from ottla.client.network.exchange import Network
    from ottla.client.options.settings import ConsumerSettings
    from ottla.protocol.wire import Message

__all__ = ["ClassicMembership"]

_MAX_REASON = 255
# Versions that know static members, and for how long beyond a poll interval an answer may take: a
# JoinGroup is answered when all members have joined, a SyncGroup when the leader has assigned.
_SENT: dict[type[Message], tuple[range, int | None]] = {
    JoinGroupRequest: (range(5, 10), 5000),
    SyncGroupRequest: (range(3, 6), 5000),
    LeaveGroupRequest: (range(3, 6), None),
}


class ClassicMembership(Membership):
    """A member of a classic group.

    Args:
        settings: of the consumer.
        network: sends requests.
        coordinator: of the group.
        backoff_ms: how long to wait before an attempt, by the number of those before it.

    Attributes:
        state: what it is doing.
        member_id: as the coordinator gave it; empty without one.
        generation_id: of the group; -1 without one.
    """

    def __init__(
        self,
        settings: ConsumerSettings,
        network: Network,
        coordinator: GroupCoordinator,
        backoff_ms: Callable[[int], int],
    ) -> None:
        self.state = State.OUT
        self.member_id = ""
        self.generation_id = -1
        self._settings = settings
        self._network = network
        self._coordinator = coordinator
        self._backoff_ms = backoff_ms
        self._assignors = [assignor_of(each) for each in settings.partition_assignment_strategy]
        self._is_cooperative = all(each.is_cooperative for each in self._assignors)
        self._assignor: Assignor = self._assignors[0]
        self._handover = Handover()
        self._timer = PollTimer(settings)
        self._topics: frozenset[str] = frozenset()
        self._joined_topics: frozenset[str] = frozenset()
        self._reason: str | None = None
        self._leading: Leading | None = None
        self._call: Call | None = None
        self._beat: Call | None = None
        self._next_beat_ms = 0
        self._answered_ms = 0
        # When the coordinator surely was not waiting for the group to join.
        self._settled_ms = 0
        self._attempts = 0
        self._not_before_ms = 0
        self._leave: Pending | None = None
        self._leave_reason = ""
        coordinator.on_failure.append(self._coordinator_failed)

    # What the consumer asks.

    @property
    def matches_patterns(self) -> bool:
        """No coordinator matches patterns for classic groups."""
        return False

    @property
    def is_rebalancing(self) -> bool:
        """Whether the member joins, or is about to."""
        return self.state not in (State.OUT, State.STABLE, State.FAILED) or (
            self.state is State.STABLE and self._reason is not None
        )

    def subscribe(
        self,
        topics: frozenset[str],
        now_ms: int,
        *,
        pattern: str | None = None,  # noqa: ARG002 - see `matches_patterns`
    ) -> None:
        """Joins again where the topics are others."""
        self._topics = topics
        if topics:
            self._network.metadata.add_topics(topics)
        if self.state is State.STABLE and topics != self._joined_topics:
            self.rejoin("the subscription has changed", now_ms)
        self.tick(now_ms)

    def poll(self, now_ms: int) -> None:
        """Goes on, and raises what there is to tell."""
        self._timer.poll(now_ms)
        self.tick(now_ms)

    def event_done(self, now_ms: int) -> None:
        """Goes on."""
        self._handover.done()
        self.tick(now_ms)

    def rejoin(self, reason: str, now_ms: int) -> None:
        """Joins again, once the consumer has done what it was asked."""
        self._rejoin_after(reason)
        self.tick(now_ms)

    def leave(self, now_ms: int, reason: str = "the consumer is being closed") -> Pending:
        """Gives up everything, then leaves; a static member only stops."""
        if self._leave is not None:
            return self._leave
        self._leave = pending = Pending("leave")
        self._topics = frozenset()
        self._reason = None
        self._leave_reason = reason
        self._call = None
        self.state = State.LEAVING
        self._handover.give_up()
        self.tick(now_ms)
        return pending

    def group_metadata(self) -> GroupMetadata:
        """Returns the member of its generation."""
        return GroupMetadata(
            self._coordinator.group_id,
            self.generation_id,
            self.member_id if self.generation_id >= 0 else "",
            self._settings.group_instance_id,
        )

    def member_to_commit(self) -> GroupMetadata:
        """Returns the member of its generation."""
        if not self._topics and self.state is State.OUT:
            return GroupMetadata(self._coordinator.group_id)
        if self.generation_id >= 0 and self.state in COMMITTING:
            return self.group_metadata()
        if self.state in (State.JOINING, State.ASSIGNING, State.SYNCING):
            raise RebalanceInProgressError(
                "the group is assigning partitions: commit again after the next poll()"
            )
        raise OffsetCommitFailedError(
            self._timer.fatal or error_of(ErrorCode.UNKNOWN_MEMBER_ID, "no member of the group")
        )

    def refused(self, found: Reaction, group: GroupMetadata, now_ms: int) -> None:
        """Joins again where it is still of that member and generation."""
        if (group.generation_id, group.member_id) != (self.generation_id, self.member_id):
            return
        if found is Reaction.REJOINING:
            self.rejoin("the group is assigning partitions", now_ms)
        elif found in (Reaction.LOST, Reaction.REMOVED):
            self._lose(found, now_ms)
        elif found is Reaction.FATAL:
            self._fail(error_for(group.group_id, ErrorCode.FENCED_INSTANCE_ID), is_fatal=True)

    # Time.

    def tick(self, now_ms: int) -> None:
        """Does what is due."""
        if self.state is State.LEAVING:
            if self.assignment and now_ms >= self._rebalance_end_ms:
                self._handover.lose()
            self._go_on_leaving(now_ms)
            return
        if self._timer.expires(now_ms):
            self._leave_for_silence(now_ms)
            return
        if self.state in BEATING:
            self._go_on_beating(now_ms)
        if self._is_preparing_with_partitions and now_ms >= self._rebalance_end_ms:
            self._lose(Reaction.LOST, now_ms)
        if self.event is not None:
            return
        if self.state is State.OUT and self._topics and self._timer.may_join:
            self.state = State.PREPARING
        if self.state is State.STABLE and self._reason is not None:
            self._prepare()
        if self.state is State.PREPARING and self.event is None:
            self.state = State.JOINING
        if self.state is State.JOINING:
            self._go_on_joining(now_ms)
        elif self.state is State.ASSIGNING:
            self._go_on_assigning(now_ms)

    def next_deadline_ms(self) -> int | None:
        """Returns the earliest of what is to be done."""
        deadlines = []
        if self.state not in (State.LEAVING, State.FAILED):
            deadlines.append(self._timer.deadline_ms())
        is_leaving = self.state is State.LEAVING and bool(self.assignment)
        if self._is_preparing_with_partitions or is_leaving:
            deadlines.append(self._rebalance_end_ms)
        if not self._coordinator.is_looking:
            if self.state in BEATING:
                session_end_ms = self._answered_ms + self._settings.session_timeout_ms
                deadlines.append(self._next_beat_ms if self._beat is None else session_end_ms)
            if self._may_send_join:
                deadlines.append(self._not_before_ms)
        return min((each for each in deadlines if each is not None), default=None)

    # Joining.

    def _prepare(self) -> None:
        """Has the consumer give up what it may not have while the group assigns."""
        self.state = State.PREPARING
        if self._is_cooperative:
            unread = {each for each in self.assignment if each.topic not in self._topics}
            self._handover.revoke(unread)
        else:
            self._handover.revoke(self.assignment)

    @property
    def _may_send_join(self) -> bool:
        is_free = self._call is None and self.event is None
        return is_free and self.state is State.JOINING and self._timer.may_join

    @property
    def _is_preparing_with_partitions(self) -> bool:
        is_asked = self.state is State.STABLE and self._reason is not None
        return bool(self.assignment) and (is_asked or self.state is State.PREPARING)

    @property
    def _rebalance_end_ms(self) -> int:
        """When the coordinator may go on without this member."""
        return self._settled_ms + self._settings.max_poll_interval_ms

    def _go_on_joining(self, now_ms: int) -> None:
        if not self._may_send_join or now_ms < self._not_before_ms:
            return
        if self._coordinator.node_id is None:
            self._coordinator.look_for(now_ms)
            return
        self._joined_topics = self._topics
        reason = (self._reason or "")[:_MAX_REASON]
        self._reason = None
        self._leading = None
        settings = self._settings
        fields = {
            "session_timeout_ms": settings.session_timeout_ms,
            "rebalance_timeout_ms": settings.max_poll_interval_ms,
            "protocol_type": PROTOCOL_TYPE,
            "protocols": [
                JoinGroupRequestProtocol(name=each.name, metadata=self._subscription(each))
                for each in self._assignors
            ],
            "reason": reason,
        }
        self._send(JoinGroupRequest, fields, self._joined, now_ms)

    def _subscription(self, assignor: Assignor) -> bytes:
        return subscription_bytes(
            Subscription(
                topics=self._topics,
                owned=self.assignment,
                generation_id=self.generation_id,
                rack_id=self._settings.client_rack or None,
                user_data=assignor.user_data(),
            )
        )

    def _joined(self, call: Call, response: Any, now_ms: int) -> None:
        if not self._is_current(call):
            return
        if response.error_code:
            if reaction("JoinGroup", response.error_code) is Reaction.IDENTIFY:
                self.member_id = response.member_id
                self._reason = "the coordinator has given a member id"
                self._go_on_joining(now_ms)
            else:
                self._refused("JoinGroup", call, response.error_code, now_ms)
            return
        self._attempts = 0
        self.member_id = response.member_id
        self.generation_id = response.generation_id
        self._answered_ms = now_ms
        self._next_beat_ms = now_ms + self._settings.heartbeat_interval_ms
        chosen = [each for each in self._assignors if each.name == response.protocol_name]
        try:
            if not chosen:
                raise error_for(
                    self._coordinator.group_id,
                    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                    f"it has chosen {response.protocol_name!r}",
                )
            self._assignor = chosen[0]
            if response.leader == response.member_id:
                self._leading = Leading(
                    response.members, self._network.metadata, skips=response.skip_assignment
                )
        except OttlaError as error:
            self._tell(error)
            return
        if self._leading is None:
            self._sync([], now_ms)
        else:
            self.state = State.ASSIGNING
            self._go_on_assigning(now_ms)

    def _go_on_assigning(self, now_ms: int) -> None:
        if self._leading is None or not self._leading.knows_topics:
            return
        try:
            assignments = self._leading.assign(self._assignor)
        except OttlaError as error:
            self._tell(error)
            return
        self._sync(assignments, now_ms)

    def _sync(self, assignments: list[Any], now_ms: int) -> None:
        self.state = State.SYNCING
        self._settled_ms = now_ms
        fields = {
            "generation_id": self.generation_id,
            "protocol_type": PROTOCOL_TYPE,
            "protocol_name": self._assignor.name,
            "assignments": assignments,
        }
        if self._coordinator.node_id is None:
            self._join_later(now_ms)
        else:
            self._send(SyncGroupRequest, fields, self._synced, now_ms)

    def _synced(self, call: Call, response: Any, now_ms: int) -> None:
        if not self._is_current(call):
            return
        if response.error_code:
            self._refused("SyncGroup", call, response.error_code, now_ms)
            return
        try:
            partitions, _ = read_assignment(response.assignment)
        except OttlaError as error:
            self._tell(error)
            return
        self._attempts = 0
        self.state = State.STABLE
        self._assignor.assigned(partitions, self.generation_id)
        given_up = self.assignment - partitions
        if given_up:
            # Somebody else is to have them, and is assigned them once this member joins without.
            self._rejoin_after("partitions were given up")
        self._handover.revoke(given_up)
        self._handover.assign(partitions - self.assignment)
        if self._topics != self._joined_topics:
            self._rejoin_after("the subscription has changed")

    def _rejoin_after(self, reason: str) -> None:
        """Joins again once the consumer has done what it is asked."""
        self._reason = self._reason or reason

    # Heartbeats.

    def _go_on_beating(self, now_ms: int) -> None:
        if self.generation_id < 0:
            return
        silence_ms = now_ms - self._answered_ms
        if silence_ms >= self._settings.session_timeout_ms:
            # It may be that only this coordinator is gone: another says what became of the member.
            self._answered_ms = now_ms
            if self._beat is not None:
                self._coordinator.forget(self._beat, now_ms)
                self._beat = None
        if self._beat is not None or now_ms < self._next_beat_ms:
            return
        if self.state is State.STABLE and self._leading is not None and self._leading.is_outdated:
            self._rejoin_after("partitions of topics have changed")
        fields = {**self._identity(), "generation_id": self.generation_id}
        beat = Call(HeartbeatRequest, fields, self._beaten, self._beat_failed)
        if self._coordinator.send(beat, now_ms):
            self._beat = beat
            self._next_beat_ms = now_ms + self._settings.heartbeat_interval_ms

    def _beaten(self, call: Call, response: Any, now_ms: int) -> None:
        if call is not self._beat:
            return
        self._beat = None
        is_old = call.fields["generation_id"] != self.generation_id
        if is_old or self.state not in BEATING:
            return
        code = response.error_code
        found = reaction("Heartbeat", code) if code else None
        if found in (None, Reaction.REJOIN):
            self._answered_ms = now_ms
            if found is None:
                self._settled_ms = call.sent_ms
            elif self.state is State.STABLE:
                self.rejoin("the group is assigning partitions", now_ms)
        elif found in (Reaction.FIND, Reaction.RETRY):
            if found is Reaction.FIND:
                self._coordinator.forget(call, now_ms)
            self._next_beat_ms = now_ms + self._backoff_ms(1)
        else:
            self._refused("Heartbeat", call, code, now_ms)

    def _beat_failed(self, call: Call, error: Exception, now_ms: int) -> None:
        if call is not self._beat:
            return
        self._beat = None
        if isinstance(error, (RetriableError, KafkaTimeoutError)):
            self._coordinator.forget(call, now_ms)
            self._next_beat_ms = now_ms + self._backoff_ms(1)
        elif self.state in BEATING:
            self._tell(error)

    # Leaving.

    def _go_on_leaving(self, now_ms: int) -> None:
        if self.event is not None or self._call is not None or self._leave is None:
            return
        is_static = self._settings.group_instance_id is not None
        if not self.member_id or is_static or self._coordinator.node_id is None:
            self._left()
        else:
            self._send_leave(self._leave_reason, now_ms)

    def _send_leave(self, reason: str, now_ms: int) -> None:
        identity = MemberIdentity(member_id=self.member_id, reason=reason[:_MAX_REASON])
        fields = {"members": [identity]}
        self._send(LeaveGroupRequest, fields, self._leave_answered, now_ms)

    def _leave_answered(self, call: Call, _response: Any, _now_ms: int) -> None:
        # Whatever it says: nothing that a member who goes could do about it.
        if call is self._call:
            self._left()

    def _left(self) -> None:
        self._call = None
        self._forget(is_removed=True)
        self.state = State.OUT if self._timer.fatal is None else State.FAILED
        self._timer.is_running = False
        pending, self._leave = self._leave, None
        if pending is not None:
            pending.end()

    def _leave_for_silence(self, now_ms: int) -> None:
        """The application has not polled for too long: others get the partitions."""
        if self.state in (State.OUT, State.FAILED):
            return
        self._call = None
        is_static = self._settings.group_instance_id is not None
        if self.member_id and not is_static and self._coordinator.node_id is not None:
            self._send_leave("the consumer's max.poll.interval.ms is over", now_ms)
        self._call = None
        self._timer.tell()
        self._forget(is_removed=not is_static)
        self.state = State.OUT

    # What goes wrong.

    def _refused(self, api: str, call: Call, error_code: int, now_ms: int) -> None:
        """Reacts to an error of an answer; what was joined for is still wanted."""
        found = reaction(api, error_code)
        if found in (Reaction.LOST, Reaction.REMOVED):
            self._lose(found, now_ms)
        elif found is Reaction.FATAL:
            self._fail(error_for(self._coordinator.group_id, error_code), is_fatal=True)
        elif found in (Reaction.RETRY, Reaction.FIND, Reaction.REJOIN):
            if found is Reaction.FIND:
                self._coordinator.forget(call, now_ms)
            self._join_later(now_ms, at_once=found is Reaction.REJOIN and api == "SyncGroup")
        else:
            self._tell(error_for(self._coordinator.group_id, error_code))

    def _lose(self, found: Reaction, now_ms: int) -> None:
        self._forget(is_removed=found is Reaction.REMOVED)
        self._join_later(now_ms)

    def _forget(self, *, is_removed: bool) -> None:
        self.generation_id = -1
        if is_removed:
            self.member_id = ""
        self._leading = None
        self._beat = None
        self._reason = None
        self._handover.lose()

    def _join_later(self, now_ms: int, *, at_once: bool = False) -> None:
        self.state = State.JOINING
        self._attempts += 1
        self._not_before_ms = now_ms if at_once else now_ms + self._backoff_ms(self._attempts)
        self.tick(now_ms)

    def _tell(self, error: BaseException) -> None:
        """The next poll raises it, and the one after it tries again."""
        self._fail(error, is_fatal=False)

    def _fail(self, error: BaseException, *, is_fatal: bool) -> None:
        self._call = None
        self._forget(is_removed=False)
        if is_fatal:
            self._timer.fatal = error
            self.state = State.FAILED
        else:
            self._timer.error = error
            self.state = State.OUT

    def _coordinator_failed(self, error: Exception, now_ms: int) -> None:
        if self.state in BEATING:
            # What it has may stay its own: the coordinator alone can say.
            self._timer.error = error
        elif self.state is State.JOINING:
            self._tell(error)
        self.tick(now_ms)

    # Requests.

    def _identity(self) -> dict[str, Any]:
        return {
            "group_id": self._coordinator.group_id,
            "member_id": self.member_id,
            "group_instance_id": self._settings.group_instance_id,
        }

    def _send(
        self,
        request: type[Message],
        fields: dict[str, Any],
        answered: Callable[[Call, Any, int], None],
        now_ms: int,
    ) -> None:
        """Sends a request of the state to the coordinator."""
        versions, timeout_ms = _SENT[request]
        if timeout_ms is not None:
            timeout_ms += self._settings.max_poll_interval_ms
            timeout_ms = max(timeout_ms, self._settings.request_timeout_ms)
        call = Call(
            request,
            {**self._identity(), **fields},
            answered,
            self._call_failed,
            versions=None if self._settings.group_instance_id is None else versions,
            timeout_ms=timeout_ms,
        )
        if self._coordinator.send(call, now_ms):
            self._call = call

    def _is_current(self, call: Call) -> bool:
        """Whether an answer is of what is under way, which it ends."""
        if call is not self._call:
            return False
        self._call = None
        return True

    def _call_failed(self, call: Call, error: Exception, now_ms: int) -> None:
        if not self._is_current(call):
            return
        if self.state is State.LEAVING:
            self._left()
        elif isinstance(error, (RetriableError, KafkaTimeoutError)):
            self._coordinator.forget(call, now_ms)
            self._join_later(now_ms)
        else:
            self._tell(error)
