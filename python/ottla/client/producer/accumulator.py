"""Records on their way into batches, and how much memory they may take.

    put ─▸ the batch that grows in the partition: the quick way of nearly all records
    append ─┬▸ a new batch
            ├▸ waits for metadata: the topic, or its partition, is not known
            └▸ waits for memory, behind those that came before

A batch grows only where records are taken: before a transaction ends, on a flush, after an error
and on closing, all of them are closed. So the quick way asks nothing.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ottla.client.delivery.batch import Batch
from ottla.client.delivery.partition import PartitionQueue
from ottla.client.errors import KafkaError, RecordTooLargeError, topic_error
from ottla.client.partitions import topic_of
from ottla.client.pending import Pending
from ottla.client.producer.compression import Ratio
from ottla.client.producer.partitioners import RoundRobin, Sticky, partition_of_key
from ottla.protocol.error_code import ErrorCode, is_retriable
from ottla.records import BatchBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ottla.client.delivery.partition import Producer
    from ottla.client.network.metadata import Metadata

__all__ = ["ANY_PARTITION", "Accumulator", "Row", "Settings", "Topic", "Waiter"]

ANY_PARTITION = -1
"""The partitioner chooses."""

_AVAILABLE_FOR_MS = 100


Row: TypeAlias = "tuple[int, Any, Any, Any]"
"""A record as the engine takes it: time, key, value, headers."""


class Settings(Protocol):
    """Those of the producer's settings that records in memory need."""

    batch_size: int
    buffer_memory: int
    compression_type: str
    max_request_size: int
    partitioner: Any
    partitioner_adaptive_partitioning_enable: bool
    partitioner_ignore_keys: bool


class Topic:
    """A topic that records are sent to.

    Attributes:
        name: of the topic.
        count: of its partitions.
        queues: by partition.
        sticky: where records without a key go.
        limit: how many bytes a batch may have.
    """

    def __init__(self, name: str, batch_size: int, random: Callable[[], float]) -> None:
        self.name = name
        self.count = 0
        self.queues: dict[int, PartitionQueue] = {}
        self.sticky = Sticky(random)
        self.round_robin = RoundRobin()
        self.ratio = Ratio()
        self.limit = batch_size
        self.available: list[int] = []
        self.available_ms = -_AVAILABLE_FOR_MS

    def observe(self, ratio: float, batch_size: int) -> None:
        """A batch was compressed."""
        self.ratio.observe(ratio)
        self.limit = self.ratio.limit(batch_size)


class Waiter(Pending):
    """A call whose records wait for room, or for metadata.

    Its value is whether all of its records are in batches once it has ended; if not, what it waited
    for was metadata, and the call is to be made again.

    Attributes:
        topic: of the records.
        partition: of the records, the highest of them.
        since_ms: when it began to wait.
    """

    def __init__(self, name: str, topic: str) -> None:
        super().__init__(name)
        self.topic = topic
        self.partition = ANY_PARTITION
        self.since_ms = 0

    def advance(self, accumulator: Accumulator, topic: Topic, now_ms: int) -> bool:
        """Puts as much into batches as there is room for; returns whether that was all.

        Raises:
            KafkaError: the records cannot be sent.
        """
        raise NotImplementedError

    def fail_rest(self, error: BaseException) -> None:
        """The caller waits no longer: what is in no batch yet is not sent."""


class RecordWaiter(Waiter):
    """One record, of a known partition or of any."""

    def __init__(self, topic: str, partition: int, row: Row, promise: Any) -> None:
        super().__init__("send", topic)
        self.partition = partition
        self.row = row
        self._promise = promise

    def advance(self, accumulator: Accumulator, topic: Topic, now_ms: int) -> bool:
        """Puts the record into a batch, where there is room."""
        partition = self.partition
        while True:
            if self.partition == ANY_PARTITION:
                partition = accumulator.stick(topic, now_ms)
            queue = accumulator.queue(topic, partition)
            batch = queue.growing
            if batch is None:
                break
            if batch.records.append(*self.row) >= 0:
                break
            accumulator.close(queue)
        if batch is None:
            if not accumulator.has_room(topic):
                return False
            records = BatchBuilder(topic.limit)
            accumulator.require_sendable(records.append(*self.row))
            batch = accumulator.begin(topic, queue, records, now_ms)
        if batch is None:
            return False
        tail = accumulator.tail(batch)
        tail.promises.append(self._promise)
        tail.times.append(self.row[0])
        return True


class Accumulator:
    """The batches of all partitions.

    Args:
        settings: of the producer.
        producer: what partitions share.
        metadata: the cluster.
        new_run: makes what keeps those who wait for a record each: a run with lists `promises`
            and `times`.
        random: draws from [0, 1).
        is_slow: whether a node has taken no batch for too long.
        on_batch: called where a batch begins.
        on_refused: called where one row of many cannot be sent.

    Attributes:
        topics: those that records were sent to, by name.
        active: the queues that may have something to do.
        free_bytes: what is left of the buffer.
        unsettled: where batches came from whose records' fates are not all known, in order.
        waited_ms: how long calls have waited for memory, together.
        is_new: whether there may be something to do since this was last set back.
    """

    def __init__(
        self,
        settings: Settings,
        producer: Producer,
        metadata: Metadata,
        *,
        new_run: Callable[[], Any],
        random: Callable[[], float],
        is_slow: Callable[[int, int], bool],
        on_batch: Callable[[str, int], None],
        on_refused: Callable[[KafkaError], None],
    ) -> None:
        self.topics: dict[str, Topic] = {}
        self.active: dict[PartitionQueue, None] = {}
        self.free_bytes = settings.buffer_memory
        self.unsettled: dict[Any, None] = {}
        self.waited_ms = 0
        self.is_new = False
        self._settings = settings
        self._producer = producer
        self._metadata = metadata
        self._new_run = new_run
        self._random = random
        self._is_slow = is_slow
        self._on_batch = on_batch
        self.on_refused = on_refused
        self._for_metadata: list[Waiter] = []
        self._for_memory: deque[Waiter] = deque()
        self._partitioner = settings.partitioner
        self._ignores_keys = settings.partitioner_ignore_keys
        self._by_key = settings.partitioner == "default"

    # Records in.

    def put(  # noqa: PLR0917 - one call a record, and none is quicker
        self,
        topic: str,
        partition: int,
        key: Any,
        value: Any,
        timestamp_ms: int,
        headers: Any,
        promise: Any,
    ) -> int | None:
        """Puts a record into the batch that grows in its partition, if there is room in one.

        Returns:
            `None` if so; otherwise the partition to `append` it to.
        """
        found = self.topics.get(topic)
        if found is None:
            return partition
        if partition < 0:
            if not self._by_key:
                if found.count == 0:
                    return partition
                chosen = partition = self.choose(found, key, value, 0)
            elif key is None or self._ignores_keys:
                chosen = found.sticky.partition
            else:
                chosen = partition = partition_of_key(key, found.count)
        else:
            chosen = partition
        queue = found.queues.get(chosen)
        if queue is None:
            return partition
        batch = queue.growing
        if batch is None:
            return partition
        tail = batch.tail
        if tail is None:
            return partition
        try:
            if batch.records.append(timestamp_ms, key, value, headers) < 0:
                return partition
            tail.promises.append(promise)
            tail.times.append(timestamp_ms)
        except BaseException:
            _even_out(batch, promise, timestamp_ms)
            raise
        return None

    def append(
        self,
        topic: str,
        partition: int,
        row: Row,
        promise: Any,
        now_ms: int,
    ) -> Waiter | None:
        """Puts a record into a batch, a new one if need be.

        Returns:
            What to wait for, if anything.

        Raises:
            KafkaError: the record cannot be sent.
        """
        waiter = RecordWaiter(topic, partition, row, promise)
        found = self.topic(topic)
        if found is None or partition >= found.count:
            return self.wait_for_metadata(waiter, now_ms)
        key = row[1]
        if partition == ANY_PARTITION and not self.is_sticky(key):
            waiter.partition = self.choose(found, key, row[2], now_ms)
        return self.add(waiter, found, now_ms)

    def add(self, waiter: Waiter, topic: Topic, now_ms: int) -> Waiter | None:
        """Puts records into batches; returns what to wait for, if anything.

        Raises:
            KafkaError: the records cannot be sent.
        """
        if not self._for_memory and waiter.advance(self, topic, now_ms):
            return None
        waiter.since_ms = now_ms
        self._for_memory.append(waiter)
        self.is_new = True
        return waiter

    def wait_for_metadata(self, waiter: Waiter, now_ms: int) -> Waiter:
        """Has a call wait until more is known of its topic."""
        self._metadata.add_topics(frozenset({waiter.topic}))
        if waiter.topic in self.topics:
            self._metadata.request_update()
        waiter.since_ms = now_ms
        self._for_metadata.append(waiter)
        self.is_new = True
        return waiter

    def withdraw(self, waiter: Waiter) -> bool:
        """The caller waits no longer. Returns whether it waited for memory."""
        if waiter in self._for_memory:
            self._for_memory.remove(waiter)
            return True
        if waiter in self._for_metadata:
            self._for_metadata.remove(waiter)
        return False

    def proceed(self, now_ms: int) -> None:
        """Goes on with calls that wait, as far as there is what they wait for."""
        for topic in self.topics.values():
            topic.count = self._metadata.partition_count(topic.name) or topic.count
        waiting, self._for_metadata = self._for_metadata, []
        for waiter in waiting:
            if self._is_known(waiter):
                waiter.end(value=False)
            else:
                self._for_metadata.append(waiter)
        while self._for_memory and self._proceed_with(self._for_memory[0], now_ms):
            self._for_memory.popleft()

    def _is_known(self, waiter: Waiter) -> bool:
        count = self._metadata.partition_count(waiter.topic)
        if count:
            return count > waiter.partition
        code = self._metadata.topic_error(waiter.topic)
        return code != ErrorCode.NONE and not is_retriable(code)

    def _proceed_with(self, waiter: Waiter, now_ms: int) -> bool:
        """Goes on with a call that waits for memory; returns whether it has ended."""
        try:
            if not waiter.advance(self, self.topics[waiter.topic], now_ms):
                return False
        except (KafkaError, TypeError, ValueError) as error:
            waiter.end(error)
        else:
            waiter.end(value=True)
        self.waited_ms += now_ms - waiter.since_ms
        return True

    def fail_waiters(self, error: BaseException) -> None:
        """Ends all calls that wait."""
        waiters = [*self._for_memory, *self._for_metadata]
        self._for_memory.clear()
        self._for_metadata.clear()
        for waiter in waiters:
            waiter.end(error)

    @property
    def waiting_count(self) -> int:
        """How many calls wait."""
        return len(self._for_memory) + len(self._for_metadata)

    @property
    def is_short_of_memory(self) -> bool:
        """Whether calls wait for memory: batches then linger no longer."""
        return bool(self._for_memory)

    # What waiters ask.

    def topic(self, name: str) -> Topic | None:
        """Returns a topic; `None` before its metadata is known.

        Raises:
            ApiError: there is no such topic for this user.
        """
        count = self._metadata.partition_count(name)
        found = self.topics.get(name)
        if not count:
            self._metadata.add_topics(frozenset({topic_of(name)}))
            code = self._metadata.topic_error(name)
            if code != ErrorCode.NONE and not is_retriable(code):
                raise topic_error(code, name)
            if found is None or found.count == 0:
                return None
        if found is None:
            found = Topic(name, self._limit_bytes, self._random)
            self.topics[name] = found
        found.count = count or found.count
        return found

    def is_sticky(self, key: Any) -> bool:
        """Whether a record without a partition goes where the last one went."""
        return self._by_key and (key is None or self._ignores_keys)

    def choose(self, topic: Topic, key: Any, value: Any, now_ms: int) -> int:
        """Returns the partition of a record without one.

        Raises:
            ValueError: a partitioner of the user's returns what is no partition.
        """
        if self._by_key:
            if key is not None and not self._ignores_keys:
                return partition_of_key(key, topic.count)
            return self.stick(topic, now_ms)
        if self._partitioner == "round_robin":
            return topic.round_robin.next(self._available(topic, now_ms))
        partition = self._partitioner(topic.name, key, value, topic.count)
        if not isinstance(partition, int) or not 0 <= partition < topic.count:
            raise ValueError(
                f"the partitioner returned {partition!r} for topic {topic.name}; expected an "
                f"integer from 0 to {topic.count - 1}"
            )
        return partition

    def stick(self, topic: Topic, now_ms: int) -> int:
        """Returns where records without a key go: elsewhere once a batch is full (KIP-794)."""
        sticky = topic.sticky
        queues = topic.queues
        if sticky.partition >= 0:
            queue = queues.get(sticky.partition)
            if queue is None or queue.growing is not None:
                return sticky.partition
            if queue.closed_bytes - sticky.closed_bytes < self._limit_bytes:
                return sticky.partition
        available = self._available(topic, now_ms)
        waiting = None
        if self._settings.partitioner_adaptive_partitioning_enable:
            waiting = [queues[p].waiting_count if p in queues else 0 for p in available]
        chosen = sticky.choose(available, waiting)
        sticky.closed_bytes = queues[chosen].closed_bytes if chosen in queues else 0
        return chosen

    def queue(self, topic: Topic, partition: int) -> PartitionQueue:
        """Returns the queue of a partition."""
        found = topic.queues.get(partition)
        if found is None:
            found = PartitionQueue(topic.name, partition, self._producer)
            topic.queues[partition] = found
        return found

    def close(self, queue: PartitionQueue) -> None:
        """The batch that grows in a partition is full."""
        queue.close_growing()
        self.is_new = True

    def has_room(self, topic: Topic) -> bool:
        """Whether there is memory for a batch of a topic's."""
        return self.free_bytes >= min(topic.limit, self._settings.buffer_memory)

    def require_sendable(self, size: int) -> None:
        """Refuses a record that no request may carry, or that never finds room.

        Raises:
            RecordTooLargeError: it is so.
        """
        for option in ("max_request_size", "buffer_memory"):
            most = getattr(self._settings, option)
            if size > most:
                raise RecordTooLargeError(
                    f"a record makes a batch of {size} bytes, more than {option} ({most})"
                )

    def begin(self, topic: Topic, queue: PartitionQueue, records: Any, now_ms: int) -> Batch | None:
        """Begins a batch with what is in a builder; returns `None` where there is no memory."""
        needed = min(max(topic.limit, records.size_bytes), self._settings.buffer_memory)
        if needed > self.free_bytes:
            return None
        self._on_batch(topic.name, queue.partition)
        self.free_bytes -= needed
        batch = Batch(records, [], now_ms, needed)
        queue.growing = batch
        self.active[queue] = None
        self.unsettled[batch.origin] = None
        self.is_new = True
        return batch

    def tail(self, batch: Batch) -> Any:
        """Returns what takes those who wait for one record each, at the end of a batch."""
        if batch.tail is None:
            batch.tail = self._new_run()
            batch.runs.append(batch.tail)
        return batch.tail

    # What becomes of batches.

    def ended(self, batch: Batch) -> bool:
        """A batch has ended. Returns whether it was the last of where it came from."""
        self.free_bytes += batch.reserved_bytes
        batch.origin.unsettled -= 1
        if batch.origin.unsettled == 0:
            del self.unsettled[batch.origin]
            return True
        return False

    def close_all(self) -> None:
        """No batch takes more records."""
        for queue in self.active:
            queue.close_growing()

    def queues(self) -> Iterable[PartitionQueue]:
        """Returns those that may have something to do, and forgets the others."""
        for queue in [one for one in self.active if one.is_empty]:
            del self.active[queue]
        return [*self.active]

    # Within.

    @property
    def _limit_bytes(self) -> int:
        return min(self._settings.batch_size, self._settings.max_request_size)

    def _available(self, topic: Topic, now_ms: int) -> Sequence[int]:
        """The partitions that have a leader which takes batches; all of them where none has."""
        if now_ms - topic.available_ms >= _AVAILABLE_FOR_MS or not topic.available:
            topic.available_ms = now_ms
            topic.available = [
                number for number in range(topic.count) if self._has_leader(topic, number, now_ms)
            ] or [*range(topic.count)]
        return topic.available

    def _has_leader(self, topic: Topic, partition: int, now_ms: int) -> bool:
        leader = self._metadata.leader(topic.name, partition)
        if leader is None or leader.node_id < 0:
            return False
        return not self._is_slow(leader.node_id, now_ms)


def _even_out(batch: Batch, promise: Any, timestamp_ms: int) -> None:
    """Ends what Ctrl-C has cut short: behind it, each promise must still be that of its record."""
    if sum(len(run) for run in batch.runs) < batch.count:
        batch.tail.promises.append(promise)
    if len(batch.tail.times) < len(batch.tail.promises):
        batch.tail.times.append(timestamp_ms)
