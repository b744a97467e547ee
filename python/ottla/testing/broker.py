"""A Kafka broker in the process of a test."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ottla.broker.faults import SELECTORS, Fault, Names
from ottla.broker.topics import TopicError
from ottla.errors import KafkaError
from ottla.net.clock import Clock
from ottla.net.serving import broker_server
from ottla.net.settings import ListenerSettings
from ottla.testing.clock import BrokerClock
from ottla.testing.fault import FaultHandle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeVar

    from ottla.broker.api import Api
    from ottla.broker.broker import Broker as Core
    from ottla.broker.image import Topic
    from ottla.broker.journal import RequestEntry
    from ottla.net.server import Server
    from ottla.records import Columns, Record

    Result = TypeVar("Result")

__all__ = ["Broker"]

_ALL_BYTES = 1 << 31


class Broker:
    """A Kafka broker on a port of 127.0.0.1, with its logs in memory.

    It is ready as soon as it is entered, by ``with`` or ``async with``, and gone when it is left.

        >>> with Broker(topics={"orders": 3}) as broker:
        ...     sorted(broker.topics)
        ['orders']

    Args:
        topics: names, or partitions by name.
        config: settings by Kafka's names, as ``{"auto.create.topics.enable": False}``.
        host, port: where it listens; 0 for a free port.
        kafka_version: a release to imitate, from 2.4 on: its versions of APIs and its verdicts.
        profile: ``"strict"``, or ``"kafka"`` for Kafka's own verdicts, oddities included
            (`ottla explain --profiles`).
        frozen_at_ms: has its clock stand still at this moment, until it is advanced.
        seed: of its random numbers, so that ids are the same in each run.
        log: takes a line, at most one a second, about clients and the system.

    Raises:
        InvalidConfigError: a setting that Kafka does not know, or may not have this value.
        ListenError: the port is taken.
        KafkaError: a topic that Kafka would not create.
    """

    def __init__(
        self,
        topics: Mapping[str, int] | Iterable[str] = (),
        *,
        config: Mapping[str, object] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        kafka_version: str | None = None,
        profile: str = "strict",
        frozen_at_ms: int | None = None,
        seed: int | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        texts = {name: _text(value) for name, value in (config or {}).items()}
        self._server: Server[Core] = broker_server(
            texts,
            listeners=(ListenerSettings(host=host, port=port),),
            clock=Clock(frozen_at_ms),
            kafka_version=kafka_version,
            profile=profile,
            seed=seed,
            log=log,
        )
        named = topics.items() if hasattr(topics, "items") else ((name, 1) for name in topics)
        self._topics: dict[str, int] = dict(named)
        self.clock = BrokerClock(self._server)

    # Its life.

    def start(self) -> Broker:
        """Begins to serve; returns itself.

        Raises:
            KafkaError: a topic that Kafka would not create.
        """
        self._server.start()
        try:
            for name, partitions in self._topics.items():
                self.create_topic(name, partitions)
        except BaseException:
            self._server.stop()
            raise
        return self

    def stop(self) -> None:
        """Ends it. Close clients first: they see refused connections, and try again."""
        self._server.stop()

    def __enter__(self) -> Broker:  # noqa: PYI034 - no Self in 3.10
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Broker:  # noqa: PYI034
        return self.start()

    async def __aexit__(self, *_: object) -> None:
        import asyncio  # noqa: PLC0415 - whoever awaits has it

        await asyncio.to_thread(self.stop)

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to: ``host:port``."""
        address = self._server.addresses[0]
        return f"{address.host}:{address.port}"

    def run(self, job: Callable[[Core], Result]) -> Result:
        """Runs ``job(broker)`` on the broker's own thread, and returns its result.

        It is the way to everything that has no name here; see `ottla.broker.broker.Broker`.
        """
        return self._server.run(job)

    # Topics.

    @property
    def topics(self) -> dict[str, int]:
        """Partitions by topic, internal topics left out."""

        def topics(broker: Core) -> dict[str, int]:
            named = broker.image.topics.items()
            return {n: len(topic.partitions) for n, topic in named if not topic.is_internal}

        return self.run(topics)

    def create_topic(self, name: str, partitions: int = 1, **configs: object) -> None:
        """Creates a topic; settings have Kafka's names with underscores.

            >>> with Broker() as broker:
            ...     broker.create_topic("orders", 2, cleanup_policy="compact")
            ...     broker.topics
            {'orders': 2}

        Raises:
            KafkaError: Kafka would not create it.
        """
        texts = {key.replace("_", "."): _text(value) for key, value in configs.items()}

        def create(broker: Core) -> None:
            count, checked = broker.topics.check(name, partitions, -1, texts)
            broker.topics.create(name, count, checked, self.clock.now_ms)
            broker.tick(self.clock.now_ms)

        self._asking(create)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic.

        Raises:
            KafkaError: there is no such topic.
        """

        def delete(broker: Core) -> None:
            _topic(broker, name)
            broker.topics.delete([name])
            broker.tick(self.clock.now_ms)

        self._asking(delete)

    def _asking(self, job: Callable[[Core], Result]) -> Result:
        try:
            return self.run(job)
        except TopicError as refusal:
            from ottla.protocol.error_code import name_of  # noqa: PLC0415 - an error alone needs it

            name = name_of(refusal.error)
            raise KafkaError(refusal.message, refusal.error, name) from None

    # What it holds.

    def records(self, topic: str, partition: int | None = None) -> list[Record]:
        """Returns the records of a topic, by partition and offset, without control records.

        Records of transactions that were aborted or are not over are among them.

        Raises:
            KafkaError: there is no such topic or partition.
        """
        from ottla.records import read  # noqa: PLC0415 - it is half of the start

        return [record for data in self._logs(topic, partition) for record in read(data)]

    def columns(self, topic: str, partition: int | None = None) -> Columns:
        """Returns the records of a topic as columns, as `ottla.read_columns` does.

        Raises:
            KafkaError: there is no such topic or partition.
        """
        from ottla.records import read_columns  # noqa: PLC0415 - as above

        return read_columns(b"".join(self._logs(topic, partition)))

    def _logs(self, topic: str, partition: int | None) -> list[bytes]:
        def logs(broker: Core) -> list[bytes]:
            found = _topic(broker, topic)
            if partition is None:
                wanted = found.partitions
            else:
                one = found.partition(partition)
                if one is None:
                    raise TopicError(3, f"topic {topic} has no partition {partition}")
                wanted = (one,)
            plane = broker.plane
            return [
                bytes(plane.read(each.handle, plane.offsets(each.handle)[0], _ALL_BYTES))
                for each in wanted
            ]

        return self._asking(logs)

    @property
    def requests(self) -> tuple[RequestEntry, ...]:
        """The last requests that it has got, oldest first."""
        return self.run(lambda broker: broker.journal.entries())

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
    ) -> FaultHandle:
        """Has requests fail, or only counts them, until the fault is removed or has struck enough.

            >>> with Broker(topics=["orders"]) as broker:
            ...     fault = broker.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)
            ...     fault.hits
            0

        Args:
            api: Kafka's name of the API, or its key; every API by default.
            error: Kafka's error code, or its name.
            topic, partition, group, transactional_id, client: what it is limited to.
            times: how often it strikes; for ever by default.
            when: called with the request, on the broker's thread; it strikes where that is true.
            after: the work is done, and the client gets the error, or no answer, instead of it.
            disconnect: closes the connection.
            delay: seconds of the broker's clock until the answer.
            corrupt: inverts the last byte of the answer.
            observe: changes nothing, only counts.

        Raises:
            ValueError: no such API or error, or a limit that the API's requests do not name.
        """
        code = _error_code(error)
        names = Names(topic, partition, group, transactional_id)

        def add(broker: Core) -> Fault:
            row = None if api is None else _api(broker, api)
            _check_names(row, names)
            return broker.faults.add(
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

        return FaultHandle(self._server, self.run(add))

    def until(
        self,
        condition: Callable[[Core], bool],
        *,
        timeout_s: float = 10.0,
        interval_s: float = 0.01,
    ) -> None:
        """Returns once a condition on the broker holds; it is asked on the broker's thread.

        Raises:
            TimeoutError: it does not.
        """
        pause = threading.Event()
        for _ in range(max(1, round(timeout_s / interval_s))):
            if self.run(condition):
                return
            pause.wait(interval_s)
        raise TimeoutError(f"the condition did not hold within {timeout_s:g} s")

    def __repr__(self) -> str:
        return f"<Broker {self.bootstrap_servers}>"


def _text(value: object) -> str:
    """Returns a value as Kafka writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def _topic(broker: Core, name: str) -> Topic:
    topic = broker.image.topics.get(name)
    if topic is None:
        raise TopicError(3, f"there is no topic {name}")
    return topic


def _error_code(error: int | str) -> int:
    from ottla.protocol.error_code import ErrorCode, name_of  # noqa: PLC0415

    if isinstance(error, int):
        name_of(error)
        return error
    code = getattr(ErrorCode, error.upper(), None)
    if not isinstance(code, int):
        raise ValueError(f"{error!r} is no error of Kafka's protocol")  # noqa: TRY004
    return code


def _api(broker: Core, api: str | int) -> Api:
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
