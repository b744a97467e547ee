"""A test's own part of a broker that many tests share."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from ottla.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeVar

    from typing_extensions import Unpack

    from ottla.broker.inspection import Group, Producer, Transaction
    from ottla.broker.journal import RequestEntry
    from ottla.records import Columns, Record
    from ottla.testing.arguments import FaultArguments, WaitArguments
    from ottla.testing.broker import Broker
    from ottla.testing.fault import FaultHandle

    Kind = TypeVar("Kind")

__all__ = ["Scope"]

_NUMBERS = count()


class Scope:
    """Names that no other test has, on one broker; what it made is gone when it is left.

    What is of the broker as a whole, such as its clock, is asked of the `broker` itself.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, Scope(broker) as kafka:
        ...     topic = kafka.topic("orders", partitions=2)
        ...     sorted(kafka.topics.values()), topic in broker.topics
        ([2], True)

    Attributes:
        broker: which many tests share.
    """

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._prefix = f"t{next(_NUMBERS)}-"
        self._has_groups = False
        self._faults: list[FaultHandle] = []
        self._requests_before = broker.request_count

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, Scope(broker) as kafka:
        ...     kafka.bootstrap_servers == broker.bootstrap_servers
        True
        """
        return self.broker.bootstrap_servers

    def client_config(self, user: str | None = None, **settings: object) -> dict[str, Any]:
        """Returns what a client of librdkafka needs, as `ottla.testing.Broker.client_config`.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, Scope(broker) as kafka:
        ...     kafka.client_config(acks=1)["acks"]
        1
        """
        return self.broker.client_config(user, **settings)

    def client_arguments(self, user: str | None = None) -> dict[str, Any]:
        """Returns the arguments by which kafka-python and aiokafka connect.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, Scope(broker) as kafka:
        ...     sorted(kafka.client_arguments())
        ['bootstrap_servers']
        """
        return self.broker.client_arguments(user)

    def name(self, name: str) -> str:
        """Returns a name that is this test's own: of a topic, a group or a transactional id.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, Scope(broker) as kafka:
        ...     kafka.name("readers") == kafka.name("readers")
        ...     kafka.name("readers").endswith("-readers")
        True
        True
        """
        self._has_groups = True
        return self._prefix + name

    def topic(self, name: str, partitions: int = 1, **configs: object) -> str:
        """Creates a topic, and returns its name, which is this test's own.

            >>> from ottla.testing import Broker
            >>> with Broker() as broker, Scope(broker) as kafka:
            ...     topic = kafka.topic("orders", 2, cleanup_policy="compact")
            ...     kafka.topics[topic]
            2

        Raises:
            KafkaError: Kafka would not create it.
        """
        own = self._prefix + name
        self.broker.create_topic(own, partitions, **configs)
        return own

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
        """Appends a record, as `ottla.testing.Broker.produce` does, and returns its offset.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, Scope(broker) as kafka:
        ...     kafka.produce(kafka.topic("orders"), b"1", key=b"k")
        0
        """
        return self.broker.produce(
            topic, value, key=key, partition=partition, headers=headers, timestamp=timestamp
        )

    @property
    def topics(self) -> dict[str, int]:
        """Partitions of the topics that are this test's own.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, Scope(broker) as kafka:
        ...     broker.create_topic("shared")
        ...     kafka.topics
        {}
        """
        return self._own(self.broker.topics)

    @property
    def groups(self) -> dict[str, Group]:
        """Groups that are this test's own, as `ottla.testing.Broker.groups`.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, Scope(broker) as kafka:
        ...     kafka.groups
        {}
        """
        return self._own(self.broker.groups)

    @property
    def transactions(self) -> dict[str, Transaction]:
        """Transactional ids that are this test's own, as `ottla.testing.Broker.transactions`.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, Scope(broker) as kafka:
        ...     kafka.transactions
        {}
        """
        return self._own(self.broker.transactions)

    def _own(self, named: Mapping[str, Kind]) -> dict[str, Kind]:
        return {name: each for name, each in named.items() if name.startswith(self._prefix)}

    def producers(self, topic: str, partition: int) -> tuple[Producer, ...]:
        """Returns the producers of a partition, as `ottla.testing.Broker.producers` does.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, Scope(broker) as kafka:
        ...     kafka.producers(kafka.topic("orders"), 0)
        ()
        """
        return self.broker.producers(topic, partition)

    def columns(self, topic: str, partition: int | None = None) -> Columns:
        """Returns the records of a topic as `ottla.testing.Broker.columns` does.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, Scope(broker) as kafka:
        ...     len(kafka.columns(kafka.topic("orders")))
        0
        """
        return self.broker.columns(topic, partition)

    def records(self, topic: str, partition: int | None = None) -> list[Record]:
        """Returns the records of a topic, as `ottla.testing.Broker.records` does.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, Scope(broker) as kafka:
        ...     topic = kafka.topic("orders")
        ...     _ = kafka.produce(topic, b"1")
        ...     [record.value for record in kafka.records(topic)]
        [b'1']
        """
        return self.broker.records(topic, partition)

    def wait_for(self, *, timeout_s: float = 10.0, **wanted: Unpack[WaitArguments]) -> None:
        """Returns once something is as wanted, as `ottla.testing.Broker.wait_for` does.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, Scope(broker) as kafka:
        ...     topic = kafka.topic("orders")
        ...     _ = kafka.produce(topic, b"1")
        ...     kafka.wait_for(topic=topic, records=1)
        """
        __tracebackhide__ = True
        self.broker.wait_for(timeout_s=timeout_s, **wanted)

    async def wait_for_async(
        self, *, timeout_s: float = 10.0, **wanted: Unpack[WaitArguments]
    ) -> None:
        """Waits as `wait_for` does, and lets other coroutines go on meanwhile.

        >>> import asyncio
        >>> from ottla.testing import Broker
        >>> async def test():
        ...     async with Broker() as broker:
        ...         with Scope(broker) as kafka:
        ...             topic = kafka.topic("orders")
        ...             kafka.produce(topic, b"1")
        ...             await kafka.wait_for_async(topic=topic, records=1)
        >>> asyncio.run(test())
        """
        __tracebackhide__ = True
        await self.broker.wait_for_async(timeout_s=timeout_s, **wanted)

    @property
    def requests(self) -> tuple[RequestEntry, ...]:
        """The requests that the broker has got since the test began, oldest first.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, Scope(broker) as kafka:
        ...     kafka.requests
        ()
        """
        return self.broker.last_requests(self.broker.request_count - self._requests_before)

    def fail(self, api: str | int | None = None, **options: Unpack[FaultArguments]) -> FaultHandle:
        """Sets a fault, as `ottla.testing.Broker.fail` does; it is gone at the end of the test.

        >>> from ottla.testing import Broker
        >>> with Broker() as broker, Scope(broker) as kafka:
        ...     kafka.fail("Produce", error="NOT_LEADER_OR_FOLLOWER").hits
        0
        """
        fault = self.broker.fail(api, **options)
        self._faults.append(fault)
        return fault

    def fail_disk(
        self, kind: str, *, topic: str | None = None, partition: int | None = None
    ) -> FaultHandle:
        """Has the disk fail until the end of the test, as `ottla.testing.Broker.fail_disk` does.

        >>> import tempfile
        >>> from ottla.testing import Broker
        >>> with tempfile.TemporaryDirectory() as home:
        ...     with Broker(data=home) as broker, Scope(broker) as kafka:
        ...         kafka.fail_disk("full", topic=kafka.topic("orders")).hits
        0
        """
        fault = self.broker.fail_disk(kind, topic=topic, partition=partition)
        self._faults.append(fault)
        return fault

    if not TYPE_CHECKING:
        # A checker of types knows what there is, and tells a name that is not.

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_") and (hasattr(type(self.broker), name) or name == "clock"):
                raise AttributeError(
                    f"kafka has no {name}, which is of the whole broker that tests share: take "
                    f"kafka.broker.{name}"
                )
            raise AttributeError(f"kafka has no {name}", name=name, obj=self)

    def __enter__(self) -> Scope:  # noqa: PYI034 - no Self in 3.10
        return self

    def __exit__(self, *_: object) -> None:
        for fault in self._faults:
            fault.remove()
        for topic in self.broker.topics:
            if topic.startswith(self._prefix):
                self.broker.delete_topic(topic)
        # A test that asked for no other name has no group of its own.
        for group in self.broker.groups if self._has_groups else ():
            if group.startswith(self._prefix):
                # A client that is still there has its group for itself.
                with suppress(KafkaError):
                    self.broker.expire(group=group)
                    self.broker.delete_group(group)
