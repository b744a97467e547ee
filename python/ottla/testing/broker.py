"""A Kafka broker in a test's hand."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ottla.net.operations import text_of
from ottla.testing.clock import BrokerClock
from ottla.testing.desk import InProcess
from ottla.testing.fault import FaultHandle
from ottla.testing.inspection import Inspection
from ottla.testing.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from tempfile import TemporaryDirectory
    from typing import TypeVar

    from typing_extensions import Unpack

    from ottla.broker.broker import Broker as Core
    from ottla.testing.arguments import WaitArguments
    from ottla.testing.certificates import Certificates
    from ottla.testing.desk import Desk

    Result = TypeVar("Result")

__all__ = ["Broker"]


class Broker(Inspection):
    """A Kafka broker on a port of 127.0.0.1, with its logs in memory or in a directory.

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
        users: passwords by name: clients have to log in, by PLAIN or SCRAM; see `client_config`.
        tls: whether it speaks TLS, with a certificate made for it.
        process: whether it runs in a process of its own, which ends with this one.
        log: takes a line, at most one a second, about clients and the system; one in a process of
            its own writes them to standard error.
        data: the directory that its logs are in, as Kafka's; by default they are in memory. Topics
            that are there already stay as they are.

    Raises:
        LogDirectoryError: the directory cannot be used.
        InvalidConfigError: a setting that Kafka does not know, or may not have this value.
        ListenError: the port is taken.
        KafkaError: a topic that Kafka would not create.
        MissingDependencyError: TLS is asked for, and there is no program openssl.
        ValueError: a release that cannot be imitated, listeners among the settings, or a host or
            directory without a name.
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
        users: Mapping[str, str] | None = None,
        tls: bool = False,
        process: bool = False,
        log: Callable[[str], None] | None = None,
        data: str | os.PathLike[str] | None = None,
    ) -> None:
        if isinstance(topics, str):
            # Its characters would be names of topics.
            raise TypeError(f"topics are names or partitions by name, not {topics!r}: [{topics!r}]")
        if not host:
            raise ValueError("host is empty; 127.0.0.1 is this machine, 0.0.0.0 every interface")
        if data is not None and not os.fspath(data):
            raise ValueError("data is empty; give a directory, or leave it out for logs in memory")
        if kafka_version is not None and not isinstance(kafka_version, str):
            raise TypeError(f"kafka_version is a text such as '4.1', not {kafka_version!r}")
        named = topics.items() if hasattr(topics, "items") else ((name, 1) for name in topics)
        for name in ("listeners", "advertised.listeners"):
            if name in (config or {}):
                raise ValueError(f"{name} has no effect here: use host, port, users and tls")
        self._folders: list[TemporaryDirectory[str]] = []
        self._certificates = self._made_certificates(host) if tls else None
        self._options = Options(
            topics=dict(named),
            config={name: text_of(value) for name, value in (config or {}).items()},
            host=host,
            port=port,
            kafka_version=kafka_version,
            profile=profile,
            frozen_at_ms=frozen_at_ms,
            seed=seed,
            users=dict(users or {}),
            certificate=None if self._certificates is None else self._certificates.own,
            data=None if data is None else os.fspath(data),
        )
        self._desk = _desk(self._options, log, has_own_process=process)
        self.clock = BrokerClock(self._desk)

    def _made_certificates(self, host: str) -> Certificates:
        from tempfile import TemporaryDirectory  # noqa: PLC0415 - for who asks for TLS

        from ottla.testing.certificates import make_certificates  # noqa: PLC0415 - as above

        home = TemporaryDirectory(prefix="ottla-")
        self._folders.append(home)
        try:
            return make_certificates(home.name, host)
        except BaseException:
            home.cleanup()
            raise

    # Its life.

    def start(self) -> Broker:
        """Begins to serve; returns itself.

            >>> broker = Broker(topics=["orders"]).start()
            >>> broker.topics
            {'orders': 1}
            >>> broker.stop()

        Raises:
            KafkaError: a topic that Kafka would not create.
        """
        self._desk.start()
        return self

    def stop(self) -> None:
        """Ends it. Close clients first: they see refused connections, and try again.

        >>> broker = Broker().start()
        >>> broker.stop()
        """
        self._desk.stop()
        for folder in self._folders:
            folder.cleanup()

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
        """What clients connect to: ``host:port``.

        >>> with Broker(topics=["orders"]) as broker:
        ...     broker.bootstrap_servers.partition(":")[0]
        '127.0.0.1'
        """
        return self._desk.bootstrap_servers

    def client_config(self, user: str | None = None, **settings: object) -> dict[str, Any]:
        """Returns what a client of librdkafka needs to connect, by its names of settings.

            >>> with Broker(topics=["orders"]) as broker:
            ...     sorted(broker.client_config(group_id="readers"))
            ['bootstrap.servers', 'group.id']

        Args:
            user: one of `users`, where there are any; the first by default.
            settings: further ones, with underscores: ``group_id="readers"``.
        """
        from ottla.testing.clients import librdkafka_config  # noqa: PLC0415 - for who asks

        return {
            **librdkafka_config(self.bootstrap_servers, self._options, self._authority, user),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }

    def client_arguments(self, user: str | None = None) -> dict[str, Any]:
        """Returns the arguments by which kafka-python and aiokafka connect.

        >>> with Broker(topics=["orders"]) as broker:
        ...     list(broker.client_arguments())
        ['bootstrap_servers']
        """
        from ottla.testing.clients import python_arguments  # noqa: PLC0415 - for who asks

        return python_arguments(self.bootstrap_servers, self._options, self._authority, user)

    @property
    def _authority(self) -> str | None:
        return None if self._certificates is None else self._certificates.authority

    def run(self, job: Callable[[Core], Result]) -> Result:
        """Runs ``job(broker)`` on the broker's own thread, and returns its result.

            >>> with Broker(topics=["orders"]) as broker:
            ...     broker.run(lambda core: core.node_id)
            1

        It is the way to everything that has no name here; see `ottla.broker.broker.Broker`.

        Raises:
            ValueError: the broker is in another process.
        """
        return self._desk.server.run(job)

    async def run_async(self, job: Callable[[Core], Result]) -> Result:
        """Awaits what `run` returns.

        >>> import asyncio
        >>> async def node_id():
        ...     async with Broker() as broker:
        ...         return await broker.run_async(lambda core: core.node_id)
        >>> asyncio.run(node_id())
        1
        """
        return await self._desk.server.run_async(job)

    # Topics and what they hold.

    @property
    def topics(self) -> dict[str, int]:
        """Partitions by topic, internal topics left out.

        >>> with Broker(topics=["orders"]) as broker:
        ...     broker.topics
        {'orders': 1}
        """
        topics: dict[str, int] = self._desk.call("topics")
        return topics

    def create_topic(self, name: str, partitions: int = 1, **configs: object) -> None:
        """Creates a topic; settings have Kafka's names with underscores.

            >>> with Broker() as broker:
            ...     broker.create_topic("orders", 2, cleanup_policy="compact")
            ...     broker.topics
            {'orders': 2}

        Raises:
            KafkaError: Kafka would not create it.
        """
        self._desk.call("create_topic", name=name, partitions=partitions, configs=configs)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic.

            >>> with Broker(topics=["orders"]) as broker:
            ...     broker.delete_topic("orders")
            ...     broker.topics
            {}

        Raises:
            KafkaError: there is no such topic.
        """
        self._desk.call("delete_topic", name=name)

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
        """Appends a record, for a test of who reads it; returns its offset.

        No client is involved, and no request: faults do not strike it.

            >>> with Broker(topics=["orders"]) as broker:
            ...     broker.produce("orders", b"1", key=b"k", headers=[("trace", b"7")])
            ...     broker.produce("orders", b"2")
            0
            1

        Args:
            topic, partition: where to.
            value, key: ``None`` for null.
            headers: pairs of name and value.
            timestamp: ms since 1970; by default the broker's time.

        Raises:
            KafkaError: there is no such topic or partition, or it refuses the record.
        """
        offset: int = self._desk.call(
            "produce",
            topic=topic,
            value=value,
            key=key,
            partition=partition,
            headers=headers,
            timestamp=timestamp,
        )
        return offset

    def compact(self, topic: str | None = None) -> None:
        """Compacts the logs of a topic, or of all, as they are now.

        Kafka's cleaner waits until there is enough to do, and leaves the active segment alone; here
        it begins a new one first. Topics whose ``cleanup.policy`` does not say so are left alone,
        and what ``min.compaction.lag.ms`` and open transactions keep is kept.

            >>> with Broker() as broker:
            ...     broker.create_topic("prices", cleanup_policy="compact")
            ...     broker.compact("prices")

        Raises:
            KafkaError: there is no such topic.
            ValueError: the topic is not one that is compacted.
        """
        self._desk.call("compact", topic=topic)

    def expire(self, *, group: str) -> None:
        """Has the sessions of all members of a group end, as if they had been silent.

            >>> with Broker() as broker:
            ...     broker.expire(group="readers")
            Traceback (most recent call last):
            ottla.errors.KafkaError: there is no group readers; there are no groups

        The clock stays where it is. Members that wait for an answer of the broker stay.

        Raises:
            KafkaError: there is no such group.
        """
        self._desk.call("expire", group=group)

    def delete_group(self, group: str) -> None:
        """Deletes a group without members, and its offsets.

            >>> with Broker() as broker:
            ...     broker.delete_group("readers")
            Traceback (most recent call last):
            ottla.errors.KafkaError: there is no group readers; there are no groups

        Raises:
            KafkaError: there is no such group, or it has members.
        """
        self._desk.call("delete_group", group=group)

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
                Not for a broker in a process of its own.
            after: the work is done, and the client gets the error, or no answer, instead of it.
            disconnect: closes the connection.
            delay: seconds of the broker's clock until the answer.
            corrupt: inverts the last byte of the answer.
            observe: changes nothing, only counts; so does a fault without an error, `disconnect`,
                `delay` or `corrupt`, until it is paused.

        Raises:
            ValueError: no such API or error, a limit that the API's requests do not name, or
                `observe` beside what would change an answer.
        """
        # First of all, while these are the arguments and nothing else.
        arguments = {name: value for name, value in locals().items() if name != "self"}
        return FaultHandle(self._desk, self._desk.call("fail", **arguments), arguments)

    def fail_disk(
        self, kind: str, *, topic: str | None = None, partition: int | None = None
    ) -> FaultHandle:
        """Has the disk be full, or fail to sync, until the fault is removed.

            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as home, Broker(data=home) as broker:
            ...     with broker.fail_disk("full") as fault:
            ...         fault.hits
            0

        Where it is full, what would be written is answered with KAFKA_STORAGE_ERROR, and works
        again once there is room. A sync that fails takes the whole directory offline, as a real one
        does: removing the fault helps the next broker on the directory alone. Records of a topic
        are synced with each request at ``flush.messages=1`` only.

        Args:
            kind: ``"full"``, or ``"fsync"``.
            topic, partition: the logs that it is limited to; by default it is everything in the
                directory, also what is kept of topics and settings.

        Raises:
            ValueError: there is no such fault, or the broker has its logs in memory.
        """
        arguments = {"kind": kind, "topic": topic, "partition": partition}
        return FaultHandle(self._desk, self._desk.call("fail_disk", **arguments), arguments)

    # Waiting.

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
        timeout_s: float = 10.0,
    ) -> None:
        """Returns once a group, a transactional id or a topic is as wanted.

            broker.wait_for(group="readers", state="Stable", members=2)
            broker.wait_for(transactional_id="payments", state="CompleteCommit")

            >>> with Broker(topics=["orders"]) as broker:
            ...     broker.wait_for(topic="orders", records=0)

        Args:
            group: one in that state, with so many members.
            transactional_id: one in that state.
            state: Kafka's name of it.
            topic: one with so many records or more, in one partition or in all of them; control
                records do not count.
            timeout_s: for how long, in real time.

        Raises:
            TimeoutError: it is not, with what is there instead.
            ValueError: that cannot be waited for.
        """
        # First of all, while these are the arguments and nothing else.
        wanted = {name: value for name, value in locals().items() if name != "self"}
        __tracebackhide__ = True
        self._desk.wait("wait_for", wanted.pop("timeout_s"), **wanted)

    async def wait_for_async(
        self, *, timeout_s: float = 10.0, **wanted: Unpack[WaitArguments]
    ) -> None:
        """Waits as `wait_for` does, with its arguments; other coroutines go on meanwhile.

        >>> import asyncio
        >>> async def wait():
        ...     async with Broker(topics=["orders"]) as broker:
        ...         await broker.wait_for_async(topic="orders", records=0)
        >>> asyncio.run(wait())
        """
        __tracebackhide__ = True
        await self._desk.wait_async("wait_for", timeout_s, **wanted)

    def until(self, condition: Callable[[Core], bool], *, timeout_s: float = 10.0) -> None:
        """Returns once a condition on the broker holds; it is asked on the broker's thread.

            >>> with Broker(topics=["orders"]) as broker:
            ...     broker.until(lambda core: "orders" in core.image.topics)

        Raises:
            TimeoutError: it does not.
            ValueError: the broker is in another process.
        """
        if self._desk.server.wait(_looking(condition), timeout_s):
            raise TimeoutError(f"the condition did not hold within {timeout_s:g} s")

    async def until_async(
        self, condition: Callable[[Core], bool], *, timeout_s: float = 10.0
    ) -> None:
        """Waits as `until` does, and lets other coroutines go on meanwhile.

        >>> import asyncio
        >>> async def wait():
        ...     async with Broker(topics=["orders"]) as broker:
        ...         await broker.until_async(lambda core: "orders" in core.image.topics)
        >>> asyncio.run(wait())
        """
        if await self._desk.server.wait_async(_looking(condition), timeout_s):
            raise TimeoutError(f"the condition did not hold within {timeout_s:g} s")

    def __repr__(self) -> str:
        return f"<Broker {self.bootstrap_servers}>"


def _looking(condition: Callable[[Core], bool]) -> Callable[[Core], str]:
    return lambda broker: "" if condition(broker) else "it does not hold"


def _desk(options: Options, log: Callable[[str], None] | None, *, has_own_process: bool) -> Desk:
    if not has_own_process:
        return InProcess(options, log)
    from ottla.testing.own_process import OwnProcess  # noqa: PLC0415 - for who asks for it

    if log is not None:
        raise ValueError("a broker in a process of its own logs to standard error: leave out log")
    return OwnProcess(options)
