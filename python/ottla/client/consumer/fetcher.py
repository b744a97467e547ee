"""Fetches ahead of the application: a request at a time to each node, within bounds.

Of a partition, one answer is delivered while another is fetched ahead. No more is asked for while
`fetch_max_bytes` wait to be delivered, so as much again of each node is kept at most. What is
fetched of a paused partition is kept. Answers whose partition was moved meanwhile are dropped.

What goes wrong with a fetch ahead is nobody's business yet: it is made again once what came before
is delivered, and then counts.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, Protocol

from ottla.client.consumer.answer import Answer
from ottla.client.consumer.errors import InvalidPartitionEpochError
from ottla.client.consumer.fetch import Asked, Fetch, FetchSettings
from ottla.client.consumer.reactions import SESSION, Reaction, fetch_reaction
from ottla.client.consumer.session import Entry, Session
from ottla.client.consumer.table import State
from ottla.client.errors import RetriableError, error_of
from ottla.client.network.metadata import Leader, Node
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.wire import NO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.client.consumer.metrics import ConsumerMetrics
    from ottla.client.consumer.session import Said
    from ottla.client.consumer.table import Assigned, Table
    from ottla.client.errors import KafkaError
    from ottla.client.network.exchange import Network
    from ottla.client.partitions import TopicPartition

__all__ = ["Records"]

_WITH_IDS = 13


class RecordSettings(FetchSettings, Protocol):
    """The options of a consumer that fetching has."""

    max_partition_fetch_bytes: int
    metadata_max_age_ms: int
    check_crcs: bool


class Owner(Protocol):
    """What has to be decided elsewhere."""

    def out_of_range(self, assigned: Assigned) -> None:
        """No log has the position."""

    def look_at_leaders(self) -> None:
        """A leader or a topic may have changed, as an answer says."""

    def tell(self, error: KafkaError | Exception) -> None:
        """The next poll raises an error, once."""


class Records:
    """What is fetched, and not delivered yet.

    Attributes:
        buffered: answers in the order in which they came.
        buffered_bytes: of all of them.
    """

    def __init__(
        self,
        owner: Owner,
        table: Table,
        network: Network,
        settings: RecordSettings,
        *,
        isolation_level: int,
        metrics: ConsumerMetrics,
        backoff_ms: Callable[[int], int],
    ) -> None:
        self.buffered: deque[Answer] = deque()
        self.buffered_bytes = 0
        self._owner = owner
        self._table = table
        self._network = network
        self._settings = settings
        self._isolation_level = isolation_level
        self._metrics = metrics
        self._backoff_ms = backoff_ms
        self._sessions: dict[int, Session] = {}
        self._under_way: dict[int, Fetch] = {}

    def tick(self, now_ms: int) -> None:
        """Sends what is due."""
        if self._is_full:
            return
        wanted = self._wanted(now_ms)
        for node_id, asked in wanted.items():
            session = self._sessions.setdefault(node_id, Session())
            said = session.fetch({one: each.entry for one, each in asked.items()})
            fetch = self._fetch(node_id, said, asked, now_ms)
            self._under_way[node_id] = fetch
            for each in asked.values():
                each.assigned.is_asked = True
            self._network.send(node_id, fetch, now_ms)

    def next_deadline_ms(self) -> int | None:
        """Returns when a partition is due that something went wrong with."""
        if self._is_full:
            return None
        return min(
            (
                one.not_before_ms
                for one in self._table
                if one.not_before_ms
                and one.state is State.FETCHING
                and not (one.is_asked or one.is_paused or one.is_revoked)
            ),
            default=None,
        )

    def close(self, now_ms: int) -> None:
        """Has brokers forget the sessions."""
        self.buffered.clear()
        self.buffered_bytes = 0
        for node_id, session in self._sessions.items():
            said = session.close()
            if said is not None:
                self._network.send(node_id, self._fetch(node_id, said, {}, now_ms), now_ms)

    def drop(self, answer: Answer) -> None:
        """Takes out an answer that is delivered."""
        self._remove(answer)
        answer.assigned.drain()

    def refetch(self, answer: Answer) -> None:
        """Takes out an answer that cannot be read, to fetch it again."""
        answer.assigned.refetch()
        self.drop_stale()

    def drop_stale(self) -> None:
        """Takes out the answers of partitions that were moved, or are not assigned any longer."""
        for answer in [one for one in self.buffered if not self._is_of_use(one)]:
            self._remove(answer)

    def _is_of_use(self, answer: Answer) -> bool:
        one = answer.assigned
        is_kept = one.answer is answer or one.ahead is answer
        return is_kept and self._table.get(one.partition) is one

    def _remove(self, answer: Answer) -> None:
        self.buffered_bytes -= answer.size_bytes
        self.buffered.remove(answer)

    @property
    def _is_full(self) -> bool:
        return self.buffered_bytes >= self._settings.fetch_max_bytes

    # What to ask for.

    def _fetch(
        self, node_id: int, said: Said, asked: Mapping[TopicPartition, Asked], now_ms: int
    ) -> Fetch:
        return Fetch(
            self,
            self._settings,
            isolation_level=self._isolation_level,
            node_id=node_id,
            said=said,
            asked=asked,
            now_ms=now_ms,
        )

    def _wanted(self, now_ms: int) -> dict[int, dict[TopicPartition, Asked]]:
        wanted: dict[int, dict[TopicPartition, Asked]] = defaultdict(dict)
        metadata = self._network.metadata
        max_bytes = self._settings.max_partition_fetch_bytes
        for one in self._table:
            if (
                one.state is not State.FETCHING
                or one.is_asked
                or one.is_paused
                or one.is_revoked
                or now_ms < one.not_before_ms
            ):
                continue
            one.not_before_ms = 0
            node_id = self._node_of(one, now_ms)
            if node_id in self._under_way:
                continue
            position = one.fetch_position
            if position is None:
                continue
            # By the id it was read from: a broker that has another topic of that name refuses.
            topic_id = position.topic_id
            if topic_id == NO_UUID:
                topic_id = metadata.topic_id(one.partition.topic)
            entry = Entry(topic_id, position.offset, one.leader.leader_epoch, max_bytes)
            wanted[node_id][one.partition] = Asked(
                one, one.term, entry, node_id == one.leader.node_id
            )
        return wanted

    def _node_of(self, one: Assigned, now_ms: int) -> int:
        if one.replica is not None:
            node_id, until_ms = one.replica
            if now_ms < until_ms and node_id in self._network.metadata.nodes:
                return node_id
            one.replica = None
        return one.leader.node_id

    # What becomes of it.

    def failed(self, fetch: Fetch, error: KafkaError | Exception, now_ms: int) -> None:
        """No answer comes."""
        self._end(fetch)
        if not fetch.asked:
            return
        self._sessions[fetch.node_id].broke()
        if isinstance(error, RetriableError):
            self._network.metadata.request_update()
        else:
            self._owner.tell(error)
        for asked in fetch.asked.values():
            if self._is_current(asked):
                asked.assigned.replica = None
                asked.assigned.retry(now_ms + self._backoff_ms(asked.assigned.attempts))

    def fetched(self, fetch: Fetch, response: Any, version: int, now_ms: int) -> None:
        """An answer has come."""
        self._end(fetch)
        if not fetch.asked:
            return
        session = self._sessions[fetch.node_id]
        if response.error_code:
            self._refused(fetch, session, response.error_code, now_ms)
            return
        session.answered(response.session_id)
        if response.node_endpoints:
            self._network.metadata.learn_nodes(
                Node(one.node_id, one.host, one.port, one.rack) for one in response.node_endpoints
            )
        for asked in fetch.asked.values():
            if self._is_current(asked):
                asked.assigned.is_asked = False
        records_bytes = 0
        for asked, data in fetch.parts(response, version):
            if self._is_current(asked) and asked.assigned.state is State.FETCHING:
                records_bytes += len(data.records or b"")
                self._take(asked, data, version, now_ms)
        self._metrics.fetched(
            now_ms - fetch.sent_ms, records_bytes, response.throttle_time_ms, now_ms
        )

    def _end(self, fetch: Fetch) -> None:
        if self._under_way.get(fetch.node_id) is fetch:
            del self._under_way[fetch.node_id]

    def _is_current(self, asked: Asked) -> bool:
        one = asked.assigned
        return one.term == asked.term and self._table.get(one.partition) is one

    def _refused(self, fetch: Fetch, session: Session, code: int, now_ms: int) -> None:
        session.broke(code)
        if code in SESSION:
            wait_ms = 0
        else:
            wait_ms = self._backoff_ms(0)
            if fetch_reaction(code) is Reaction.RAISE:
                self._owner.tell(error_of(code))
            self._network.metadata.request_update()
        for asked in fetch.asked.values():
            if self._is_current(asked):
                asked.assigned.is_asked = False
                asked.assigned.not_before_ms = now_ms + wait_ms if wait_ms else 0

    def _take(self, asked: Asked, data: Any, version: int, now_ms: int) -> None:
        one, position = asked.assigned, asked.assigned.fetch_position
        if position is None or position.offset != asked.entry.offset:
            return
        epoch = data.partition_epoch
        is_other = -1 not in {epoch, position.partition_epoch} and epoch != position.partition_epoch
        if one.answer is not None and (is_other or data.error_code):
            one.retry(now_ms + self._backoff_ms(one.attempts))
            return
        if is_other:
            one.fail(InvalidPartitionEpochError({one.partition: epoch}))
            return
        if data.error_code:
            self._take_error(asked, data, now_ms)
            return
        one.went_well()
        one.high_watermark = data.high_watermark
        one.last_stable_offset = data.last_stable_offset
        one.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0:
            one.replica = (
                data.preferred_read_replica,
                now_ms + self._settings.metadata_max_age_ms,
            )
        # By name, the answer may be of another topic: the metadata decides.
        one.is_doubted = version < _WITH_IDS
        read_from = position._replace(
            partition_epoch=position.partition_epoch if epoch < 0 else epoch,
            topic_id=asked.entry.topic_id,
        )
        if one.answer is None and read_from != position:
            one.learn(read_from)
        if data.records:
            aborted = None
            if self._isolation_level:
                transactions = data.aborted_transactions or ()
                aborted = [(each.producer_id, each.first_offset) for each in transactions]
            answer = Answer(
                one, read_from, data.records, aborted, check_crcs=self._settings.check_crcs
            )
            if one.answer is None:
                one.answer = answer
            else:
                one.ahead = answer
            self.buffered.append(answer)
            self.buffered_bytes += answer.size_bytes
            self._table.put_last(one)

    def _take_error(self, asked: Asked, data: Any, now_ms: int) -> None:
        one, code = asked.assigned, data.error_code
        metadata = self._network.metadata
        reaction = fetch_reaction(code)
        if reaction is Reaction.RECREATED:
            one.fail(InvalidPartitionEpochError({one.partition: data.partition_epoch}))
            return
        if reaction is Reaction.OUT_OF_RANGE and asked.is_of_leader:
            self._owner.out_of_range(one)
            return
        if not asked.is_of_leader:
            # Only the leader's word counts, and it names another replica if need be.
            one.replica = None
            one.is_asked = False
            return
        if code in {ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID}:
            one.is_doubted = True
        if reaction is Reaction.RAISE:
            self._owner.tell(error_of(code, f"{one.partition.topic}-{one.partition.partition}"))
        leader = data.current_leader
        hint = Leader(leader.leader_id, leader.leader_epoch)
        if metadata.learn_leader(*one.partition, hint):
            self._owner.look_at_leaders()
        elif reaction is Reaction.REFRESH:
            metadata.request_update()
        one.retry(now_ms + self._backoff_ms(one.attempts))
