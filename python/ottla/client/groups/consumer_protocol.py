"""A member of a group whose coordinator assigns (KIP-848).

    OUT ─▸ JOINING ─▸ STABLE ─▸ LEAVING ─▸ OUT

| state   | what it is                                             | member epoch | heartbeats    |
| ------- | ------------------------------------------------------ | ------------ | ------------- |
| OUT     | no member: without a subscription, or a poll           | 0            | none          |
| JOINING | about to be one; after a LOSE, once that is done       | 0            | once, in full |
| STABLE  | a member, which owns, gives up or takes what it is told| > 0          | what changed  |
| LEAVING | the consumer gives up everything, then one more goes   | -1, or -2    | once          |
| FAILED  | the consumer has to be closed                          | 0            | none          |

JOINING follows STABLE where the member is fenced; OUT follows any, where an error is to be told or
the time between two polls is over.

Invariants beside those of `Membership`:

- One heartbeat is under way at most. One that fails is followed by one in full, since nobody knows
  what the coordinator heard.
- What the coordinator is told to be owned is what `assignment` was when the heartbeat left; what
  is revoked is left out only once the consumer has given it up.
- What is assigned is never more than the last answer allows: the coordinator names a partition
  once nobody else has it.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from enum import Enum
from typing import TYPE_CHECKING, Any

from ottla.client.errors import (
    KafkaTimeoutError,
    OffsetCommitFailedError,
    RetriableError,
    error_of,
)
from ottla.client.groups.call import Call
from ottla.client.groups.handover import Handover
from ottla.client.groups.membership import Membership
from ottla.client.groups.poll_timer import PollTimer
from ottla.client.groups.reactions import Reaction, error_for, reaction
from ottla.client.groups.subscription import partitions_by_topic
from ottla.client.partitions import GroupMetadata, TopicPartition
from ottla.client.pending import Pending
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from ottla.protocol.wire import NO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.groups.coordinator import GroupCoordinator
    from ottla.client.network.exchange import Network
    from ottla.client.options.settings import ConsumerSettings

__all__ = ["ConsumerProtocolMembership"]

_LEFT, _LEFT_STATIC = -1, -2
_API = "ConsumerGroupHeartbeat"
_WITH_PATTERNS = range(1, 2)
# An empty one ends the subscription by an earlier one.
_NO_PATTERN = ""
_UNTOLD = {"subscribed_topic_regex": _NO_PATTERN}


class State(Enum):
    """What a member is doing."""

    OUT = "out"
    JOINING = "joining"
    STABLE = "stable"
    LEAVING = "leaving"
    FAILED = "failed"


class ConsumerProtocolMembership(Membership):
    """A member of a group of KIP-848.

    Args:
        settings: of the consumer.
        network: sends requests.
        coordinator: of the group.
        backoff_ms: how long to wait before an attempt, by the number of those before it.
        random: draws from [0, 1), for the member's id.

    Attributes:
        state: what it is doing.
        member_id: made up here, and kept.
        member_epoch: as the coordinator counts; 0 for no member.
    """

    def __init__(
        self,
        settings: ConsumerSettings,
        network: Network,
        coordinator: GroupCoordinator,
        backoff_ms: Callable[[int], int],
        random: Callable[[], float],
    ) -> None:
        self.state = State.OUT
        drawn = bytes(int(random() * 256) for _ in range(16))
        self.member_id = urlsafe_b64encode(drawn).rstrip(b"=").decode()
        self.member_epoch = 0
        self._settings = settings
        self._network = network
        self._coordinator = coordinator
        self._backoff_ms = backoff_ms
        self._handover = Handover()
        self._timer = PollTimer(settings)
        self._topics: frozenset[str] = frozenset()
        self._pattern: str | None = None
        # By topic id; a new one is put in the place of the last, whose topics may not be known yet.
        self._target: dict[bytes, list[int]] | None = None
        self._seen = -1
        self._told: dict[str, Any] = {}
        self._call: Call | None = None
        self._interval_ms = settings.heartbeat_interval_ms
        self._next_beat_ms = 0
        self._attempts = 0
        self._leave: Pending | None = None
        coordinator.on_failure.append(self._coordinator_failed)

    # What the consumer asks.

    @property
    def matches_patterns(self) -> bool:
        """The coordinator does; one of version 0 refuses it, which the next poll tells."""
        return True

    @property
    def is_rebalancing(self) -> bool:
        """Whether it joins, or takes or gives up anything."""
        is_joining = self.state in (State.JOINING, State.LEAVING)
        return is_joining or self.event is not None or self._target is not None

    def subscribe(self, topics: frozenset[str], now_ms: int, *, pattern: str | None = None) -> None:
        """Tells the coordinator where the topics or the pattern are others."""
        is_changed = (topics, pattern) != (self._topics, self._pattern)
        self._topics = topics
        self._pattern = pattern
        if topics:
            self._network.metadata.add_topics(topics)
        if pattern is not None:
            # The coordinator names topics by their ids alone.
            self._network.metadata.follow_all_topics(follow=True)
        if is_changed:
            self._next_beat_ms = min(self._next_beat_ms, now_ms)
        self.tick(now_ms)

    def poll(self, now_ms: int) -> None:
        """Goes on, and raises what there is to tell."""
        self._timer.poll(now_ms)
        self.tick(now_ms)

    def event_done(self, now_ms: int) -> None:
        """Goes on; the coordinator hears at once of what is given up, or taken."""
        self._handover.done()
        self.tick(now_ms)

    def rejoin(self, reason: str, now_ms: int) -> None:
        """Does nothing: the coordinator alone says when to assign."""

    def leave(
        self,
        now_ms: int,
        reason: str = "",  # noqa: ARG002 - a heartbeat has no room for it
    ) -> Pending:
        """Gives up everything, then leaves; a static member says that it may be back."""
        if self._leave is None:
            self._leave = Pending("leave")
            self._topics = frozenset()
            self._pattern = None
            self._target = None
            self._call = None
            self.state = State.LEAVING
            self._handover.give_up()
        leave = self._leave
        self.tick(now_ms)
        return leave

    def group_metadata(self) -> GroupMetadata:
        """Returns the member of its epoch."""
        is_member = self.member_epoch > 0
        return GroupMetadata(
            self._coordinator.group_id,
            self.member_epoch if is_member else -1,
            self.member_id if is_member else "",
            self._settings.group_instance_id,
        )

    def member_to_commit(self) -> GroupMetadata:
        """Returns the member of its epoch."""
        if self.member_epoch > 0:
            return self.group_metadata()
        if self.state is State.OUT and not self._topics and self._pattern is None:
            return GroupMetadata(self._coordinator.group_id)
        raise OffsetCommitFailedError(
            self._timer.fatal or error_of(ErrorCode.UNKNOWN_MEMBER_ID, "no member of the group")
        )

    def refused(self, found: Reaction, group: GroupMetadata, now_ms: int) -> None:
        """Hears by a heartbeat what became of the member."""
        if group.generation_id == self.member_epoch and found is not Reaction.FATAL:
            self._next_beat_ms = min(self._next_beat_ms, now_ms)
            self.tick(now_ms)

    # Time.

    def tick(self, now_ms: int) -> None:
        """Does what is due."""
        if self.state is State.LEAVING:
            if self._timer.expires(now_ms):
                # The coordinator waits no longer for what the consumer has yet to give up.
                self._handover.lose()
            self._go_on_leaving(now_ms)
            return
        if self._timer.expires(now_ms):
            self._leave_for_silence(now_ms)
            return
        is_subscribed = bool(self._topics) or self._pattern is not None
        is_idle = self.state is State.OUT and self.event is None
        if is_idle and is_subscribed and self._timer.may_join:
            self.state = State.JOINING
        if self.state is State.STABLE:
            self._reconcile()
        if self._may_beat and self._is_due(now_ms):
            self._send_beat(now_ms)

    def next_deadline_ms(self) -> int | None:
        """Returns the earliest of what is to be done."""
        deadlines = []
        if self.state is not State.FAILED:
            deadlines.append(self._timer.deadline_ms())
        if self._may_beat and not self._coordinator.is_looking:
            deadlines.append(self._next_beat_ms)
        return min((each for each in deadlines if each is not None), default=None)

    @property
    def _may_beat(self) -> bool:
        if self._call is not None:
            return False
        if self.state is State.JOINING:
            return self.event is None and self._timer.may_join
        return self.state is State.STABLE

    def _is_due(self, now_ms: int) -> bool:
        if now_ms >= self._next_beat_ms:
            return True
        # What was given up or taken is told at once, unless the last attempt failed.
        is_settled = self.state is State.STABLE and self.event is None and not self._attempts
        return is_settled and self._told.get("topic_partitions") != self._owned()

    # Heartbeats.

    def _send_beat(self, now_ms: int) -> None:
        news = {
            "rebalance_timeout_ms": self._settings.max_poll_interval_ms,
            "rack_id": self._settings.client_rack or None,
            "server_assignor": self._settings.group_remote_assignor,
            "subscribed_topic_names": sorted(self._topics),
            "subscribed_topic_regex": self._pattern or _NO_PATTERN,
            "topic_partitions": self._owned(),
        }
        told, self._told = self._told, news
        fields: dict[str, Any] = {
            name: value
            for name, value in news.items()
            if told.get(name, _UNTOLD.get(name)) != value
        }
        if "topic_partitions" in fields:
            fields["topic_partitions"] = self._topic_ids(fields["topic_partitions"])
        fields |= {
            "group_id": self._coordinator.group_id,
            "member_id": self.member_id,
            "member_epoch": self.member_epoch,
            "instance_id": self._settings.group_instance_id,
        }
        call = Call(
            ConsumerGroupHeartbeatRequest,
            fields,
            self._beaten,
            self._failed,
            versions=_WITH_PATTERNS if self._pattern else None,
        )
        if self._coordinator.send(call, now_ms):
            self._call = call
            self._next_beat_ms = now_ms + self._interval_ms
        else:
            self._told = told

    def _beaten(self, call: Call, response: Any, now_ms: int) -> None:
        if call is not self._call:
            return
        self._call = None
        if response.error_code:
            self._refused(call, response, now_ms)
            return
        self._attempts = 0
        self.state = State.STABLE
        self.member_id = response.member_id or self.member_id
        self.member_epoch = response.member_epoch
        self._interval_ms = response.heartbeat_interval_ms
        self._next_beat_ms = min(self._next_beat_ms, now_ms + self._interval_ms)
        if response.assignment is not None:
            self._target = {
                each.topic_id: list(each.partitions)
                for each in response.assignment.topic_partitions
            }
        self.tick(now_ms)

    def _refused(self, call: Call, response: Any, now_ms: int) -> None:
        code = response.error_code
        found = reaction(_API, code)
        error = error_for(self._coordinator.group_id, code, response.error_message)
        if found is Reaction.LOST:
            self._rejoin(now_ms)
        elif found in (Reaction.FIND, Reaction.RETRY):
            if found is Reaction.FIND:
                self._coordinator.forget(call, now_ms)
            self._again(now_ms)
        else:
            self._tell(error, is_fatal=found is Reaction.FATAL)

    def _failed(self, call: Call, error: Exception, now_ms: int) -> None:
        if call is not self._call:
            return
        self._call = None
        if self.state is State.LEAVING:
            self._left()
        elif isinstance(error, (RetriableError, KafkaTimeoutError)):
            self._coordinator.forget(call, now_ms)
            self._again(now_ms)
        elif getattr(error, "error_code", 0) == ErrorCode.UNSUPPORTED_VERSION:
            self._tell(error_for(self._coordinator.group_id, ErrorCode.UNSUPPORTED_VERSION))
        else:
            self._tell(error)

    def _again(self, now_ms: int) -> None:
        self._told = {}
        self._attempts += 1
        self._next_beat_ms = now_ms + self._backoff_ms(self._attempts)

    def _rejoin(self, now_ms: int) -> None:
        """The coordinator has given the partitions to others: it is joined anew."""
        self._forget()
        self.state = State.JOINING
        self._again(now_ms)

    def _forget(self) -> None:
        self.member_epoch = 0
        self._told = {}
        self._target = None
        self._call = None
        self._handover.lose()

    def _tell(self, error: BaseException, *, is_fatal: bool = False) -> None:
        self._forget()
        self._attempts = 0
        self._next_beat_ms = 0
        if is_fatal:
            self._timer.fatal = error
            self.state = State.FAILED
        else:
            self._timer.error = error
            self.state = State.OUT

    def _coordinator_failed(self, error: Exception, now_ms: int) -> None:
        if self.state is State.LEAVING:
            self._go_on_leaving(now_ms)
        elif self.state is State.STABLE:
            # What it has may stay its own: the coordinator alone can say.
            self._timer.error = error
        elif self.state is State.JOINING:
            self._tell(error)

    # What it is to have.

    def _reconcile(self) -> None:
        """Goes towards the target: first what goes, then what comes."""
        if self._target is None or self.event is not None:
            return
        metadata = self._network.metadata
        names = {topic_id: metadata.topic_name(topic_id) for topic_id in self._target}
        wanted = frozenset(
            TopicPartition(name, number)
            for topic_id, name in names.items()
            for number in self._target[topic_id]
            if name is not None
        )
        if None in names.values():
            if self._seen != metadata.update_count:
                self._seen = metadata.update_count
                metadata.request_update()
            if wanted == self.assignment:
                return
        else:
            self._target = None
        self._handover.revoke(self.assignment - wanted)
        self._handover.assign(wanted - self.assignment)

    def _owned(self) -> dict[str, list[int]]:
        return partitions_by_topic(self.assignment)

    def _topic_ids(self, owned: dict[str, list[int]]) -> list[TopicPartitions]:
        ids = {topic: self._network.metadata.topic_id(topic) for topic in owned}
        return [
            TopicPartitions(topic_id=ids[topic], partitions=numbers)
            for topic, numbers in owned.items()
            if ids[topic] != NO_UUID
        ]

    # Leaving.

    def _go_on_leaving(self, now_ms: int) -> None:
        if self.event is not None or self._call is not None or self._leave is None:
            return
        if not self.member_epoch or self._coordinator.node_id is None:
            self._left()
            return
        self._call = self._goodbye(self._leave_answered)
        self._coordinator.send(self._call, now_ms)

    def _goodbye(self, answered: Callable[[Call, Any, int], None]) -> Call:
        is_static = self._settings.group_instance_id is not None
        fields = {
            "group_id": self._coordinator.group_id,
            "member_id": self.member_id,
            "member_epoch": _LEFT_STATIC if is_static else _LEFT,
            "instance_id": self._settings.group_instance_id,
        }
        return Call(ConsumerGroupHeartbeatRequest, fields, answered, self._failed)

    def _leave_answered(self, call: Call, _response: Any, _now_ms: int) -> None:
        # Whatever it says: nothing that a member who goes could do about it.
        if call is self._call:
            self._left()

    def _left(self) -> None:
        self._forget()
        self._attempts = 0
        self._next_beat_ms = 0
        self.state = State.OUT if self._timer.fatal is None else State.FAILED
        self._timer.is_running = False
        pending, self._leave = self._leave, None
        if pending is not None:
            pending.end()

    def _leave_for_silence(self, now_ms: int) -> None:
        """The application has not polled for too long: others get the partitions."""
        if self.state in (State.OUT, State.FAILED):
            return
        if self.member_epoch and self._coordinator.node_id is not None:
            self._coordinator.send(self._goodbye(self._leave_answered), now_ms)
        self._forget()
        self._attempts = 0
        self._next_beat_ms = 0
        self._timer.tell()
        self.state = State.OUT
