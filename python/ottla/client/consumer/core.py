"""A consumer without I/O: calls, times and answers in; requests, records and completions out.

What the application calls is here; what the parts do is in their own files: `subscription` (what
is read), `positions` (where from), `fetcher` (the records), `queries` (what the cluster is asked),
and the package `groups` (whom it is shared with).

Nothing that the application has to hear of happens but in a poll: partitions come and go by
`begin_event` and `end_event`, with its callbacks between them; errors wait for the next poll.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.consumer.delivery import Delivery
from ottla.client.consumer.errors import (
    InvalidPartitionEpochError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    WakeupError,
)
from ottla.client.consumer.fetcher import Records
from ottla.client.consumer.lookup import EARLIEST, LATEST
from ottla.client.consumer.metrics import ConsumerMetrics
from ottla.client.consumer.obstacles import Complaints, obstacle
from ottla.client.consumer.position import OffsetAndOffsetEpoch
from ottla.client.consumer.positions import Positions
from ottla.client.consumer.queries import Queries
from ottla.client.consumer.subscription import Kind, Subscription
from ottla.client.consumer.table import State, Table
from ottla.client.errors import (
    IllegalArgumentError,
    IllegalStateError,
    KafkaTimeoutError,
    topic_error,
)
from ottla.client.groups.auto_commit import AutoCommit
from ottla.client.groups.membership import Event, EventKind
from ottla.client.network.backoff import Backoff
from ottla.client.partitions import GroupMetadata, OffsetAndMetadata, TopicPartition, topic_of
from ottla.client.pending import Pending
from ottla.errors import KafkaError
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ottla.client.consumer.errors import PositionError
    from ottla.client.consumer.position import Position
    from ottla.client.consumer.table import Assigned
    from ottla.client.groups.group import Group
    from ottla.client.network.network import ClientNetwork
    from ottla.client.options.settings import ConsumerSettings

__all__ = ["ConsumerCore"]

_READ_COMMITTED = 1
_MOST_TOLD = 16
_ALL = 1 << 62
_POLL_EACH_MS = 1_000
_OF_GROUP = frozenset({"commit", "committed"})
_BY_PRIORITY: tuple[type[PositionError], ...] = (
    InvalidPartitionEpochError,
    LogTruncationError,
    OffsetOutOfRangeError,
    NoOffsetForPartitionError,
)
_LASTING = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION})


class ConsumerCore:
    """The core of one consumer.

    Args:
        settings: its options.
        network: its connections.
        group: the group of `group_id`, if there is one.
        random: draws from [0, 1).
        wall_ms: the time of day, in ms since 1970.

    Attributes:
        network: see above.
        delivery: the records that are there, and errors, for who polls.
        queries: what the cluster is asked.
        is_closed: whether it was closed.
    """

    def __init__(
        self,
        settings: ConsumerSettings,
        network: ClientNetwork,
        group: Group | None,
        *,
        random: Callable[[], float],
        wall_ms: Callable[[], int],
    ) -> None:
        self.network = network
        self.is_closed = False
        self._settings = settings
        self._group = group
        self._metrics = ConsumerMetrics()
        self._table = Table()
        self._subscription = Subscription(exclude_internal=settings.exclude_internal_topics)
        backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random)
        isolation_level = _READ_COMMITTED if settings.isolation_level == "read_committed" else 0
        self._is_committed_only = bool(isolation_level)

        def backoff_ms(attempts: int) -> int:
            return backoff.delay_ms(attempts + 1)

        self._positions = Positions(
            self,
            self._table,
            network,
            group,
            policy=settings.auto_offset_reset,
            isolation_level=isolation_level,
            wall_ms=wall_ms,
            backoff_ms=backoff_ms,
        )
        self._records = Records(
            self,
            self._table,
            network,
            settings,
            isolation_level=isolation_level,
            metrics=self._metrics,
            backoff_ms=backoff_ms,
        )
        self.delivery = Delivery(self._table, self._records, settings, self._metrics)
        self.queries = Queries(network, self._positions.offsets)
        self._sleepers: list[Pending] = []
        self._position_calls: list[tuple[Pending, TopicPartition]] = []
        self._auto_commit = (
            AutoCommit(settings.auto_commit_interval_ms, self.commit)
            if settings.enable_auto_commit and group is not None
            else None
        )
        self._polled_ms = 0
        # How far each partition had come when the application last asked for more: with what it
        # got since then it may not have done.
        self._done: dict[TopicPartition, Position] = {}
        self._has_failed = False
        # Those under way, with the time of the call.
        self._commits: list[tuple[Pending, int]] = []
        self._complaints = Complaints()
        self._has_new_metadata = False
        network.metadata.on_change(self._note_metadata)

    # What a machine does.

    def tick(self, now_ms: int) -> None:
        """Does what is due."""
        if self._has_new_metadata:
            self._has_new_metadata = False
            self._take_metadata(now_ms)
        group = self._group
        if group is not None:
            if self._sleepers and self._subscription.is_shared:
                # The application waits for records, which is progress.
                self._poll_group(now_ms)
            group.tick(now_ms)
            self._measure_commits(now_ms)
        self._positions.tick(now_ms)
        self._drop_stale()
        if not self.is_closed:
            self._records.tick(now_ms)
        self.queries.tick(now_ms)
        self._end_position_calls()
        self.network.tick(now_ms)
        if self._sleepers and self._has_something():
            self._wake()
        # Who gets records one by one polls as well, now and then.
        is_due = self.event is not None or now_ms >= self._polled_ms + _POLL_EACH_MS
        self.delivery.look(is_due=is_due)

    def next_deadline_ms(self) -> int | None:
        """Returns when something is due; ``None`` while there is nothing to wait for."""
        times = [
            self.network.next_deadline_ms(),
            self._positions.next_deadline_ms(),
            self._records.next_deadline_ms(),
            None if self._group is None else self._group.next_deadline_ms(),
        ]
        return min((one for one in times if one is not None), default=None)

    def _drop_stale(self) -> None:
        self._records.drop_stale()
        self.delivery.look(is_due=False)

    def _note_metadata(self) -> None:
        self._has_new_metadata = True

    def _take_metadata(self, now_ms: int) -> None:
        metadata = self.network.metadata
        if metadata.failure is not None:
            self.tell(metadata.failure)
        for one in self._table:
            if one.state is State.VALIDATING and not one.is_asked:
                one.not_before_ms = 0
        subscription = self._subscription
        if subscription.match(metadata) and not self._leaves_patterns_to_group:
            self._share(now_ms)
        for topic in self._topics():
            code = metadata.topic_error(topic)
            if code in _LASTING:
                self.tell(topic_error(code, topic))

    # What is read.

    def assign(self, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Reads exactly these partitions; those that stay keep their positions."""
        self._refuse_closed()
        wanted = [TopicPartition(*one) for one in partitions]
        for topic, number in wanted:
            if not topic or number < 0:
                raise IllegalArgumentError(
                    f"({topic!r}, {number}) is no partition: expected the name of a topic and a "
                    "number from 0"
                )
        self._subscription.assign()
        if self._table.partitions() - set(wanted):
            self._commit_automatically(now_ms)
        self._table.set(wanted)
        self._drop_stale()
        self.network.metadata.set_topics(self._topics())

    def subscribe(self, topics: Iterable[str], now_ms: int) -> None:
        """Reads the partitions of topics that the group assigns, from the next poll on."""
        self._refuse_closed()
        self._need_group("subscribe()")
        if isinstance(topics, str):
            raise IllegalArgumentError(
                f"subscribe() takes names of topics in a list, and got {topics!r}"
            )
        wanted = frozenset(topic_of(topic) for topic in topics)
        self._subscription.subscribe(wanted)
        self.network.metadata.set_topics(self._topics())
        self._share(now_ms)

    def subscribe_to_pattern(self, pattern: str, now_ms: int) -> None:
        """Reads the partitions of topics that match, as the group assigns them."""
        self._refuse_closed()
        group = self._need_group("subscribe()")
        self._subscription.subscribe_to_pattern(pattern)
        if self._leaves_patterns_to_group:
            group.membership.subscribe(frozenset(), now_ms, pattern=pattern)
            return
        self.network.metadata.follow_all_topics(follow=True)
        if self._subscription.match(self.network.metadata):
            self._share(now_ms)

    def unsubscribe(self, now_ms: int) -> Pending:
        """Reads nothing any longer; the call ends once the group is left."""
        if self._subscription.is_shared and self._group is not None:
            pending = self._group.membership.leave(now_ms, "the consumer unsubscribed")
        else:
            pending = Pending("unsubscribe")
            pending.end()
            self._table.set(())
        self._subscription.end()
        self.network.metadata.follow_all_topics(follow=False)
        self._drop_stale()
        return pending

    def assignment(self) -> frozenset[TopicPartition]:
        """Returns the partitions that are read."""
        return self._table.partitions()

    def subscription(self) -> frozenset[str]:
        """Returns the topics that are read by a subscription."""
        return self._subscription.topics

    @property
    def _leaves_patterns_to_group(self) -> bool:
        return self._group is not None and self._group.membership.matches_patterns

    def _share(self, now_ms: int) -> None:
        self._need_group("subscribe()").membership.subscribe(self._subscription.topics, now_ms)

    def _topics(self) -> frozenset[str]:
        return self._subscription.topics | {one.partition.topic for one in self._table}

    # Partitions that come and go.

    @property
    def event(self) -> Event | None:
        """What the group wants of the application next."""
        return None if self._group is None else self._group.membership.event

    def begin_event(self, now_ms: int) -> Pending | None:
        """Does what comes before the application's callback; returns a commit to wait for."""
        event = self.event
        if event is None:
            return None
        self._metrics.rebalanced()
        if event.kind is EventKind.REVOKE:
            for partition in event.partitions:
                one = self._table.get(partition)
                if one is not None:
                    one.is_revoked = True
            return self._commit_automatically(now_ms)
        if event.kind is EventKind.LOSE:
            self._table.remove(event.partitions)
            self._drop_stale()
        else:
            self._table.set([*self._table.partitions(), *event.partitions])
            self.network.metadata.add_topics(self._topics())
        return None

    def end_event(self, now_ms: int) -> None:
        """The application's callback has returned."""
        event = self.event
        if event is None or self._group is None:
            return
        if event.kind is EventKind.REVOKE:
            self._table.remove(event.partitions)
            self._drop_stale()
        self._group.membership.event_done(now_ms)

    # Records.

    def begin_poll(self, now_ms: int) -> None:
        """The application asks for records: it has done with those before."""
        self._refuse_closed()
        if self._subscription.kind is Kind.NONE:
            raise IllegalStateError("nothing is read: call subscribe() or assign() first")
        self._metrics.polled(now_ms)
        self._polled_ms = now_ms
        if self._subscription.is_shared:
            self._poll_group(now_ms)
        if self._auto_commit is not None:
            self._done = {one.partition: one.position for one in self._table if one.position}
            self._auto_commit.poll(now_ms, self.consumed)

    def something(self) -> Pending:
        """Returns what ends when a poll would come back with something."""
        pending = Pending("poll")
        self._sleepers.append(pending)
        if self._has_something():
            self._wake()
        return pending

    def complaint(self, now_ms: int, *, is_served: bool) -> str | None:
        """Returns what to tell an application that gets no records, now and then.

        Args:
            now_ms: the time.
            is_served: whether it got some.
        """
        if is_served:
            self._complaints.served()
        elif self._complaints.is_due(now_ms):
            found = self._obstacle()
            if found is not None:
                self._complaints.made(now_ms)
            return found
        return None

    def _obstacle(self) -> str | None:
        return obstacle(self.network, self._topics(), self._table.partitions())

    def wakeup(self) -> None:
        """Has the poll that waits, or the next one, raise a `WakeupError`."""
        self.tell(WakeupError())

    def tell(self, error: KafkaError | Exception) -> None:
        """The next poll raises an error, once."""
        self.delivery.tell(error)

    def look_at_leaders(self) -> None:
        """A leader or a topic may have changed, as an answer says."""
        self._positions.wants_look = True

    def out_of_range(self, assigned: Assigned) -> None:
        """No log has the position of a partition."""
        self._positions.out_of_range(assigned)

    def _has_something(self) -> bool:
        return self.event is not None or self.delivery.has_something()

    def _wake(self) -> None:
        sleepers, self._sleepers = self._sleepers, []
        for pending in sleepers:
            pending.end()

    def _poll_group(self, now_ms: int) -> None:
        if self._group is None:
            return
        try:
            self._group.membership.poll(now_ms)
        except KafkaError as error:
            self.tell(error)

    # Positions.

    def seek(self, partition: TopicPartition, position: Position) -> None:
        """Goes on from a position."""
        self._assigned(partition).seek(position)
        self._drop_stale()

    def seek_to_times(self, timestamps: Mapping[TopicPartition, int]) -> None:
        """Goes on from the first records of times or later; from the end where there is none."""
        self._reset(timestamps)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None) -> None:
        """Goes on from the first records; of all partitions by default."""
        self._reset(dict.fromkeys(self._named(partitions), EARLIEST))

    def seek_to_end(self, partitions: Iterable[TopicPartition] | None) -> None:
        """Goes on with the records to come; of all partitions by default."""
        self._reset(dict.fromkeys(self._named(partitions), LATEST))

    def seek_to_committed(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Goes on from what the group has committed; of all partitions by default."""
        for partition in self._named(partitions):
            self._assigned(partition).await_offset()
        self._drop_stale()

    def position(self, partition: TopicPartition) -> Pending:
        """Returns the offset of the next record, once that is known, with its epochs."""
        self._assigned(partition)
        pending = Pending("position")
        self._position_calls.append((pending, TopicPartition(*partition)))
        self._end_position_calls()
        return pending

    def lag(self, partition: TopicPartition) -> int | None:
        """Returns how many offsets there are to come; `None` before the first fetch."""
        one = self._assigned(partition)
        end = one.last_stable_offset if self._is_committed_only else one.high_watermark
        position = one.position
        return None if end < 0 or position is None else max(end - position.offset, 0)

    def pause(self, partitions: Iterable[TopicPartition], *, is_paused: bool = True) -> None:
        """Delivers nothing of partitions, and keeps what is fetched of them."""
        for one in [self._assigned(partition) for partition in partitions]:
            one.is_paused = is_paused
        self._drop_stale()

    def paused(self) -> frozenset[TopicPartition]:
        """Returns the partitions that are paused."""
        return frozenset(one.partition for one in self._table if one.is_paused)

    def _reset(self, timestamps: Mapping[TopicPartition, int]) -> None:
        found = [(self._assigned(partition), each) for partition, each in timestamps.items()]
        for one, timestamp in found:
            one.reset(timestamp)
        self._drop_stale()

    def _named(self, partitions: Iterable[TopicPartition] | None) -> list[TopicPartition]:
        return list(self._table.partitions() if partitions is None else partitions)

    def _assigned(self, partition: TopicPartition) -> Assigned:
        self._refuse_closed()
        one = self._table.get(partition)
        if one is None:
            topic, number = partition
            raise IllegalStateError(
                f"{topic}-{number} is not assigned to this consumer; it has "
                f"{len(self._table)} partitions, see assignment()"
            )
        return one

    def _end_position_calls(self) -> None:
        if not self._position_calls:
            return
        waiting: list[tuple[Pending, TopicPartition]] = []
        for pending, partition in self._position_calls:
            one = self._table.get(partition)
            if one is None:
                pending.end(IllegalStateError(f"{partition} is no longer assigned"))
            elif one.position is not None:
                position = one.position
                pending.end(value=OffsetAndOffsetEpoch(position.offset, position.offset_epoch()))
            elif one.error is not None:
                pending.end(type(one.error)(one.error.partitions))
            elif not pending.is_done:
                waiting.append((pending, partition))
        self._position_calls = waiting

    # Committed offsets.

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns how far each partition came, as a commit says it."""
        return {
            one.partition: one.position.to_commit()
            for one in self._table
            if one.position is not None and one.state is not State.FAILED
        }

    def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None, now_ms: int
    ) -> Pending:
        """Commits offsets; how far each partition came, by default."""
        group = self._need_group("commit()")
        wanted = self.consumed() if offsets is None else dict(offsets)
        if not wanted:
            pending = Pending("commit")
            pending.end()
            return pending
        pending = group.commit(wanted, now_ms)
        self._commits.append((pending, now_ms))
        return pending

    def committed(self, partitions: Iterable[TopicPartition], now_ms: int) -> Pending:
        """Looks up what the group has committed."""
        group = self._need_group("committed()")
        return group.committed([TopicPartition(*one) for one in partitions], now_ms)

    def group_metadata(self) -> GroupMetadata:
        """Returns the consumer as its group knows it."""
        return self._need_group("group_metadata()").membership.group_metadata()

    def enforce_rebalance(self, reason: str, now_ms: int) -> None:
        """Has the group assign anew."""
        self._need_group("enforce_rebalance()").membership.rejoin(reason, now_ms)

    def _commit_automatically(self, now_ms: int) -> Pending | None:
        offsets = self._done_offsets() if self._has_failed else self.consumed()
        if self._auto_commit is None or not offsets:
            return None
        return self._auto_commit.commit(now_ms, offsets)

    def _done_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns how far the application is done, or has gone back since."""
        return {
            one: min(self._done[one].to_commit(), consumed)
            for one, consumed in self.consumed().items()
            if one in self._done
        }

    def _measure_commits(self, now_ms: int) -> None:
        for pending, begun_ms in self._commits:
            if pending.is_done and pending.error is None:
                self._metrics.committed(now_ms - begun_ms, now_ms)
        self._commits = [one for one in self._commits if not one[0].is_done]

    def _need_group(self, call: str) -> Group:
        if self._group is None:
            raise IllegalStateError(
                f"{call} needs a group: set group_id, or use assign() without commits"
            )
        return self._group

    # The end.

    def time_out(self, pending: Pending) -> BaseException:
        """The caller's time is over: ends the call, and returns what to raise."""
        asked: Iterable[TopicPartition] = ()
        if pending in self._sleepers:
            self._sleepers.remove(pending)
        elif self._group is not None and pending.name in _OF_GROUP:
            self._group.time_out(pending)
        else:
            asked = self.queries.time_out(pending)
        reason = obstacle(self.network, {topic for topic, _ in asked}, asked) or self._obstacle()
        late = KafkaTimeoutError(
            f"{pending.name}() was not answered in time"
            + (f", since {reason}" if reason else ": call again, or allow for more")
        )
        pending.end(late)
        return pending.error or late

    def begin_closing(
        self, now_ms: int, *, has_failed: bool = False
    ) -> tuple[Pending | None, Pending | None]:
        """Commits if that is automatic, and leaves the group, with an event for the application.

        Args:
            now_ms: the time.
            has_failed: whether the application ends in the midst of what it got last, which then
                is not committed.

        Returns:
            What ends with the commit, and what ends once the group is left.
        """
        self._has_failed = has_failed
        if self._subscription.is_shared:
            return None, self.unsubscribe(now_ms)
        return self._commit_automatically(now_ms), None

    def close(self, now_ms: int) -> None:
        """Ends everything that is under way."""
        if self.is_closed:
            return
        self.is_closed = True
        self._records.close(now_ms)
        self._table.set(())
        for pending, _ in self._position_calls:
            pending.end(IllegalStateError("the consumer is closed"))
        self._position_calls = []
        self._wake()

    def metrics(self, now_ms: int) -> dict[str, float]:
        """Returns what was measured, by Kafka's names."""
        values = self._metrics.values(now_ms)
        lags = [lag for one in self._table if (lag := self.lag(one.partition)) is not None]
        values["records-lag-max"] = max(lags, default=0)
        values["assigned-partitions"] = len(self._table)
        return values

    def _refuse_closed(self) -> None:
        if self.is_closed:
            raise IllegalStateError("the consumer is closed: make another one")
