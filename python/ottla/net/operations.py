"""What a test asks of a running broker and does to it, in its own process or by HTTP.

Arguments and results are plain values, so that they can be sent. Faults go by numbers.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ottla.broker.topics import TopicError
from ottla.errors import KafkaError, ServerError
from ottla.net.fault_operations import FaultOperations
from ottla.net.limits import MAX_ADVANCE_S
from ottla.net.log_parts import (
    ALL_BYTES,
    LogPart,
    LogRecord,
    RecordCounts,
    find_partitions,
    find_topic,
    log_part,
    log_record,
)
from ottla.net.wanted import Wanted, listed, shown, wanted_group, wanted_records, wanted_transaction
from ottla.protocol.error_code import ErrorCode, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeVar

    from ottla.broker.broker import Broker
    from ottla.broker.inspection import Group, Producer, Transaction
    from ottla.broker.journal import RequestEntry
    from ottla.net.server import Server

    Result = TypeVar("Result")

__all__ = ["Operations", "text_of"]

_COMPACTION_S = 60
"""How long who asks for a compaction waits for it."""

RECORD_BYTES = 100
"""What a record is taken for in an answer, beside its key and value."""


class Operations(FaultOperations):
    """All of it; each may be called on any thread, and is done on the server's."""

    def __init__(self, server: Server[Broker], *, max_bytes: int = ALL_BYTES) -> None:
        """Asks a server.

        Args:
            max_bytes: of a log, in one answer.
        """
        super().__init__(server)
        self._max_bytes = max_bytes

    # Topics and what they hold.

    def topics(self) -> dict[str, int]:
        """Returns partitions by topic, internal topics left out."""

        def topics(broker: Broker) -> dict[str, int]:
            named = broker.image.topics.items()
            return {name: len(topic.partitions) for name, topic in named if not topic.is_internal}

        return self._server.run(topics)

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, object] | None = None
    ) -> None:
        """Creates a topic; settings have Kafka's names, with underscores or dots.

        Raises:
            KafkaError: Kafka would not create it.
        """
        texts = {key.replace("_", "."): text_of(value) for key, value in (configs or {}).items()}

        def create(broker: Broker) -> None:
            now_ms = self.now_ms()
            wanted, checked = broker.topics.check(name, partitions, -1, texts)
            broker.topics.create(name, wanted, checked, now_ms)
            broker.tick(now_ms)

        self._asking(create)

    def compact(self, topic: str | None = None) -> None:
        """Compacts the logs of a topic, or of all, as they are now.

        Raises:
            KafkaError: there is no such topic.
            ValueError: the topic is not one that is compacted.
        """

        def compact(broker: Broker) -> None:
            known = broker.image.topics
            topics = known.values() if topic is None else [find_topic(broker, topic)]
            if topic is not None and not any(map(broker.cleaner.compacts, topics)):
                raise ValueError(f"topic {topic} is not compacted: its cleanup.policy is delete")
            broker.cleaner.compact(topics, self.now_ms())

        self._asking(compact)
        # By HTTP this is the server's own thread, which cannot wait for what the worker does.
        with suppress(ServerError):
            self._server.wait(
                lambda broker: "" if broker.cleaner.is_idle else "it goes on", _COMPACTION_S
            )

    def delete_topic(self, name: str) -> None:
        """Deletes a topic.

        Raises:
            KafkaError: there is no such topic.
        """

        def delete(broker: Broker) -> None:
            find_topic(broker, name)
            broker.topics.delete([name])
            broker.tick(self.now_ms())

        self._asking(delete)

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        *,
        key: bytes | None = None,
        partition: int = 0,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
    ) -> int:
        """Appends a record to a partition, and returns its offset.

        Args:
            timestamp: ms since 1970; by default the broker's time.

        Raises:
            KafkaError: there is no such topic or partition, or it refuses the record.
        """
        from ottla.records import NewRecord, build_batch

        def produce(broker: Broker) -> int:
            (place,) = find_partitions(broker, topic, partition)
            now_ms = self.now_ms()
            created_ms = now_ms if timestamp is None else timestamp
            batch = build_batch([NewRecord(key, value, created_ms, headers)])
            verdict = broker.plane.append(place.handle, batch, now_ms=now_ms)
            if verdict.error:
                reasons = [each.message for each in verdict.record_errors if each.message]
                why = "; ".join([verdict.error_message or "", *reasons]).strip("; ")
                raise TopicError(verdict.error, f"{topic}-{partition} refuses the record: {why}")
            broker.moved((place.handle,))
            broker.tick(now_ms)
            return verdict.base_offset

        return self._asking(produce)

    def log(
        self, topic: str, partition: int | None = None, offset: int = 0, max_bytes: int = 1 << 20
    ) -> list[LogPart]:
        """Returns batches of a partition, or of each, from an offset on, one at least if any.

        What does not fit is behind the `next_offset` of its partition.

        Raises:
            KafkaError: there is no such topic or partition.
        """

        def log(broker: Broker) -> list[LogPart]:
            parts, left_bytes = [], min(max_bytes, self._max_bytes)
            for each in find_partitions(broker, topic, partition):
                parts.append(log_part(broker, each, offset, left_bytes))
                left_bytes -= len(parts[-1].data)
            return parts

        return self._asking(log)

    def records(
        self, topic: str, partition: int | None = None, offset: int = 0, max_bytes: int = 1 << 20
    ) -> dict[str, object]:
        """Returns records of one partition, or of each, and how many offsets are behind them.

        Raises:
            KafkaError: there is no such topic or partition.
        """
        from ottla.records import read

        left_bytes = min(max_bytes, self._max_bytes)
        records: list[LogRecord] = []
        left_out = 0
        for part in self.log(topic, partition, offset, max_bytes):
            next_offset = part.next_offset
            for record in read(part.data):
                if record.offset < max(offset, part.start_offset):
                    continue
                # What is compressed may be much longer than its batch.
                if left_bytes <= 0 and records:
                    next_offset = record.offset
                    break
                records.append(log_record(part.partition, record))
                left_bytes -= RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
            left_out += part.end_offset - next_offset
        return {"records": records, "left_out": left_out}

    def logs(self) -> list[tuple[str, int]]:
        """Returns every topic and partition that has a log here, internal ones included."""
        return self._server.run(
            lambda broker: [
                (name, each.partition_index)
                for name, topic in sorted(broker.image.topics.items())
                for each in topic.partitions
            ]
        )

    def producers(self, topic: str, partition: int) -> tuple[Producer, ...]:
        """Returns the producers that a partition knows.

        Raises:
            KafkaError: there is no such topic or partition.
        """
        from ottla.broker.inspection import producers

        def known(broker: Broker) -> tuple[Producer, ...]:
            return producers(broker, *find_partitions(broker, topic, partition))

        return self._asking(known)

    def requests(self, last: int | None = None) -> tuple[RequestEntry, ...]:
        """Returns the last requests, oldest first."""

        def requests(broker: Broker) -> tuple[RequestEntry, ...]:
            entries = broker.journal.entries()
            return entries if last is None else entries[len(entries) - min(last, len(entries)) :]

        return self._server.run(requests)

    def request_count(self) -> int:
        """Returns how many requests there have been, those that are forgotten included."""
        return self._server.run(lambda broker: len(broker.journal) + broker.journal.dropped)

    # Groups and transactions.

    def groups(self) -> dict[str, Group]:
        """Returns all groups by id."""
        from ottla.broker.inspection import groups

        return self._server.run(groups)

    def delete_group(self, group: str) -> None:
        """Deletes a group without members, and its offsets.

        Raises:
            KafkaError: there is no such group, or it has members.
        """

        def delete(broker: Broker) -> int:
            error = broker.groups.delete(group, self.now_ms())
            broker.tick(self.now_ms())
            return error

        self._require_group(group)
        error = self._server.run(delete)
        if error:
            raise _kafka_error(error, f"group {shown(group)} cannot be deleted")

    def expire(self, group: str) -> None:
        """Has the sessions of all members of a group end now, as if they had been silent.

        Raises:
            KafkaError: there is no such group.
        """

        def expire(broker: Broker) -> None:
            broker.groups.expire(group, self.now_ms())
            broker.tick(self.now_ms())

        self._require_group(group)
        self._server.run(expire)

    def _require_group(self, group: str) -> None:
        known = self._server.run(lambda broker: sorted(broker.groups.store.groups))
        if group not in known:
            why = f"there is no group {shown(group)}; {listed('groups', known)}"
            raise _kafka_error(ErrorCode.GROUP_ID_NOT_FOUND, why)

    def transactions(self) -> dict[str, Transaction]:
        """Returns all transactional ids."""
        from ottla.broker.inspection import transactions

        return self._server.run(lambda broker: transactions(broker, self.now_ms()))

    # Time.

    def now_ms(self) -> int:
        """Returns the broker's time in milliseconds since 1970."""
        return self._server.clock.now_ms()

    def advance(self, seconds: float) -> int:
        """Moves the clock forward; what is due until then has happened at the return.

        That includes what a broker does from time to time only: retention, and forgetting
        producers. Returns the time.

        Raises:
            ValueError: the time is negative, or longer than a broker lives.
        """
        if not seconds <= MAX_ADVANCE_S:
            raise ValueError(f"seconds is {seconds}, where {MAX_ADVANCE_S:,} are the most")

        def advance(broker: Broker) -> int:
            self._server.advance(seconds)
            broker.expire(self.now_ms())
            return self.now_ms()

        return self._server.run(advance)

    def freeze(self) -> int:
        """Stops the clock where it is; returns the time."""
        self._server.run(lambda _: self._server.clock.freeze())
        return self.now_ms()

    def resume(self) -> int:
        """Lets the clock go on from where it is; returns the time."""
        self._server.run(lambda _: self._server.clock.resume())
        return self.now_ms()

    # What is waited for.

    def wait_for(
        self,
        *,
        group: str | None = None,
        members: int | None = None,
        transactional_id: str | None = None,
        state: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        records: int | None = None,
    ) -> Wanted:
        """Returns what to wait for; see `ottla.testing.Broker.wait_for`.

        Raises:
            ValueError: it is not one of a group, a transactional id and a topic.
        """
        if [group, transactional_id, topic].count(None) != 2:  # noqa: PLR2004
            raise ValueError("wait for one of: a group, a transactional_id, a topic")
        if group is not None:
            _allow("group", "state and members", (transactional_id, topic, partition, records))
            return wanted_group(self.groups, group, state, members)
        if transactional_id is not None:
            _allow("transactional_id", "state", (members, partition, records))
            return wanted_transaction(self.transactions, transactional_id, state)
        _allow("topic", "partition and records", (state, members))
        name, counts = topic or "", RecordCounts()
        return wanted_records(lambda: self._counts(name, counts), name, partition, records or 0)

    def _counts(self, topic: str, counts: RecordCounts) -> dict[int, int] | None:
        """Returns how many records each partition of a topic has; nothing without a topic."""

        def counted(broker: Broker) -> dict[int, int] | None:
            found = broker.image.topics.get(topic)
            if found is None:
                return None
            return {each.partition_index: counts.of(broker, each) for each in found.partitions}

        return self._server.run(counted)

    def _asking(self, job: Callable[[Broker], Result]) -> Result:
        try:
            return self._server.run(job)
        except TopicError as refusal:
            raise _kafka_error(refusal.error, refusal.message) from None


def text_of(value: object) -> str:
    """Returns the value of a setting as Kafka writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def _allow(what: str, conditions: str, others: Iterable[object]) -> None:
    if any(other is not None for other in others):
        raise ValueError(f"what is waited for of a {what} is its {conditions}")


def _kafka_error(code: int, message: str) -> KafkaError:
    return KafkaError(message, code, name_of(code))
