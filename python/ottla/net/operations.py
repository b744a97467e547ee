"""What a test asks of a running broker and does to it, in its own process or by HTTP.

Arguments and results are plain values, so that they can be sent. Faults go by numbers.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.broker.faults import SELECTORS, Fault, Names
from ottla.broker.topics import TopicError
from ottla.errors import KafkaError
from ottla.net.wanted import Wanted, listed, wanted_group, wanted_records, wanted_transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeVar

    from ottla.broker.api import Api
    from ottla.broker.broker import Broker
    from ottla.broker.image import Partition, Topic
    from ottla.broker.inspection import Group, Producer, Transaction
    from ottla.broker.journal import RequestEntry
    from ottla.net.server import Server

    Result = TypeVar("Result")

__all__ = ["ALL_BYTES", "FaultEntry", "LogPart", "Operations", "text_of"]

MAX_FAULTS = 1_000
"""Each is looked at for each request."""

ALL_BYTES = 1 << 31
"""More than a log in memory has."""

MAX_ADVANCE_S = 1_000_000_000
"""Some 30 years: times stay far from the end of 64 bits."""


class LogPart(NamedTuple):
    """Whole batches of a partition.

    Attributes:
        partition: its index.
        data: batches, as they are stored.
        next_offset: where to go on.
        end_offset: of the log.
    """

    partition: int
    data: bytes
    next_offset: int
    end_offset: int


class LogRecord(NamedTuple):
    """A record of a partition."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class FaultEntry(NamedTuple):
    """A fault that is set.

    Attributes:
        fault: its number.
        api: name of the API; empty for every API.
        error: Kafka's error code, 0 for none.
        is_spent: whether it will not strike again.
    """

    fault: int
    api: str
    error: int
    topic: str | None
    partition: int | None
    group: str | None
    transactional_id: str | None
    client: str | None
    hits: int
    is_paused: bool
    is_spent: bool


class Operations:
    """All of it; each may be called on any thread, and is done on the server's."""

    def __init__(self, server: Server[Broker], *, max_bytes: int = ALL_BYTES) -> None:
        """Asks a server.

        Args:
            max_bytes: of a log, in one answer.
        """
        self._server = server
        self._max_bytes = max_bytes
        self._faults: dict[int, Fault] = {}
        self._numbers = count(1)

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
        """

        def compact(broker: Broker) -> None:
            known = broker.image.topics
            topics = known.values() if topic is None else [_topic(broker, topic)]
            broker.cleaner.compact(topics, self.now_ms())

        self._asking(compact)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic.

        Raises:
            KafkaError: there is no such topic.
        """

        def delete(broker: Broker) -> None:
            _topic(broker, name)
            broker.topics.delete([name])
            broker.tick(self.now_ms())

        self._asking(delete)

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
            for each in _partitions(broker, topic, partition):
                parts.append(_log_part(broker, each, offset, left_bytes))
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

        parts = self.log(topic, partition, offset, max_bytes)
        return {
            "records": [
                LogRecord(
                    part.partition,
                    record.offset,
                    record.timestamp,
                    record.key,
                    record.value,
                    tuple(record.headers),
                )
                for part in parts
                for record in read(part.data)
                if record.offset >= offset
            ],
            "left_out": sum(part.end_offset - part.next_offset for part in parts),
        }

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
            return producers(broker, *_partitions(broker, topic, partition))

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
            raise _kafka_error(error, f"group {group} cannot be deleted")

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
            raise _kafka_error(69, f"there is no group {group}; {listed('groups', known)}")

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

    # Faults.

    def fail(
        self,
        api: str | int | None = None,
        *,
        error: int | str = 0,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        client: str | None = None,
        times: int | None = None,
        when: Callable[[Any], bool] | None = None,
        after: bool = False,
        disconnect: bool = False,
        delay: float = 0.0,
        corrupt: bool = False,
        observe: bool = False,
    ) -> int:
        """Sets a fault, see `ottla.testing.Broker.fail`; returns its number.

        Raises:
            ValueError: no such API or error, or a limit that the API's requests do not name.
        """
        code = _error_code(error)
        names = Names(topic, partition, group, transactional_id)
        if times is not None and times < 1:
            raise ValueError(f"times is {times}: a fault strikes once at least")
        if not 0 <= delay <= MAX_ADVANCE_S:
            raise ValueError(f"delay is {delay}, expected 0 to {MAX_ADVANCE_S:,} seconds")

        def add(broker: Broker) -> int:
            row = None if api is None else _api(broker, api)
            _check_names(row, names)
            self._make_room(broker)
            number = next(self._numbers)
            self._faults[number] = broker.faults.add(
                Fault(
                    row,
                    error=code,
                    names=names,
                    client=client,
                    times=times,
                    when=when,
                    after=after,
                    disconnect=disconnect,
                    delay_ms=round(delay * 1000),
                    corrupt=corrupt,
                    observe=observe,
                )
            )
            return number

        return self._server.run(add)

    def _make_room(self, broker: Broker) -> None:
        """Forgets a fault that strikes no more; what it has struck can be read until then."""
        if len(self._faults) < MAX_FAULTS:
            return
        set_now = set(broker.faults)
        for number, fault in self._faults.items():
            if fault not in set_now:
                del self._faults[number]
                return
        raise ValueError(f"{MAX_FAULTS:,} faults are set already: remove some")

    def faults(self) -> list[FaultEntry]:
        """Returns all faults that are set."""
        return self._server.run(
            lambda broker: [
                FaultEntry(
                    number,
                    "" if fault.api is None else fault.api.title,
                    fault.error,
                    *fault.names,
                    fault.client,
                    fault.hits,
                    fault.is_paused,
                    fault.is_spent,
                )
                for number, fault in self._faults.items()
                if fault in set(broker.faults)
            ]
        )

    def hits(self, fault: int) -> int:
        """Returns how often a fault has struck."""
        return self._server.run(lambda _: self._fault(fault).hits)

    def pause(self, fault: int) -> None:
        """Has requests that match wait, unanswered, until `release` or `remove`."""

        def pause(_: Broker) -> None:
            self._fault(fault).is_paused = True

        self._server.run(pause)

    def release(self, fault: int) -> None:
        """Lets requests go on that wait, and those to come."""

        def release(broker: Broker) -> None:
            self._fault(fault).is_paused = False
            broker.waiting.wake(("fault", self._fault(fault)))

        self._server.run(release)

    def remove(self, fault: int) -> None:
        """Takes a fault away; nothing if it is gone."""

        def remove(broker: Broker) -> None:
            found = self._faults.get(fault)
            if found is not None:
                broker.faults.remove(found)
                broker.waiting.wake(("fault", found))

        self._server.run(remove)

    def _fault(self, number: int) -> Fault:
        found = self._faults.get(number)
        if found is None:
            numbers = ", ".join(map(str, self._faults)) or "none"
            raise ValueError(f"there is no fault {number}: set are {numbers}")
        return found

    # What is waited for.

    def wait(self, fault: int, hits: int = 1) -> Wanted:
        """Returns what to wait for until a fault has struck so often."""
        found = self._server.run(lambda _: self._fault(fault))

        def look() -> str:
            return "" if found.hits >= hits else f"it has struck {found.hits} times"

        return Wanted(f"the fault was to strike {hits} times", look)

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
        name = topic or ""
        return wanted_records(lambda: self._counts(name), name, partition, records or 0)

    def _counts(self, topic: str) -> dict[int, int] | None:
        """Returns how many records each partition of a topic has; nothing without a topic."""

        def counts(broker: Broker) -> dict[int, int] | None:
            found = broker.image.topics.get(topic)
            if found is None:
                return None
            return {each.partition_index: _record_count(broker, each) for each in found.partitions}

        return self._server.run(counts)

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


def _kafka_error(code: int, message: str) -> KafkaError:
    from ottla.protocol.error_code import name_of

    return KafkaError(message, code, name_of(code))


def _allow(what: str, conditions: str, others: Iterable[object]) -> None:
    if any(other is not None for other in others):
        raise ValueError(f"what is waited for of a {what} is its {conditions}")


def _topic(broker: Broker, name: str) -> Topic:
    topic = broker.image.topics.get(name)
    if topic is None:
        known = listed("topics", broker.image.topics)
        raise TopicError(3, f"there is no topic {name}; {known}")
    return topic


def _partitions(broker: Broker, topic: str, partition: int | None) -> tuple[Partition, ...]:
    found = _topic(broker, topic)
    if partition is None:
        return found.partitions
    one = found.partition(partition)
    if one is None:
        count = len(found.partitions)
        raise TopicError(3, f"topic {topic} has no partition {partition}; it has {count}")
    return (one,)


def _log_part(broker: Broker, partition: Partition, offset: int, max_bytes: int) -> LogPart:
    from ottla.records import read_batches

    start_offset, _, _, end_offset = broker.plane.offsets(partition.handle)
    next_offset = max(offset, start_offset)
    data = b""
    if next_offset < end_offset and max_bytes > 0:
        data = bytes(broker.plane.read(partition.handle, next_offset, max_bytes))
    for batch in read_batches(data):
        next_offset = batch.last_offset + 1
    return LogPart(partition.partition_index, data, next_offset, max(next_offset, end_offset))


def _record_count(broker: Broker, partition: Partition) -> int:
    """Returns how many records a log has, those of control batches left out."""
    from ottla.records import read_batches

    start_offset, _, _, end_offset = broker.plane.offsets(partition.handle)
    if start_offset == end_offset:
        return 0
    data = broker.plane.read(partition.handle, start_offset, ALL_BYTES)
    return sum(batch.record_count or 0 for batch in read_batches(data) if not batch.is_control)


def _error_code(error: int | str) -> int:
    from ottla.protocol.error_code import ErrorCode, name_of

    if isinstance(error, int):
        name_of(error)
        return error
    code = getattr(ErrorCode, error.upper(), None)
    if not isinstance(code, int):
        raise ValueError(f"{error!r} is no error of Kafka's protocol")  # noqa: TRY004
    return code


def _api(broker: Broker, api: str | int) -> Api:
    plain = str(api).replace("_", "").lower()
    for row in broker.apis.values():
        if row.key == api or row.name.replace("_", "") == plain:
            return row
    raise ValueError(f"{api!r} is no API that this broker serves")


def _check_names(api: Api | None, names: Names) -> None:
    for selector, value in zip(SELECTORS, names, strict=True):
        if value is not None and api is not None and selector not in api.selectors:
            known = ", ".join(sorted(api.selectors)) or "nothing"
            raise ValueError(
                f"requests of {api.name} name no {selector}: a fault of theirs can be limited "
                f"to {known}, and to a client"
            )
