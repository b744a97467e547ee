"""A test's own part of a broker that many tests share."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.records import Record
    from ottla.testing.broker import Broker
    from ottla.testing.fault import FaultHandle

__all__ = ["Scope"]

_NUMBERS = count()


class Scope:
    """Names that no other test has, on one broker; what it made is gone when it is left.

    Attributes:
        broker: which many tests share.
    """

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._prefix = f"t{next(_NUMBERS)}"
        self._faults: list[FaultHandle] = []

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to."""
        return self.broker.bootstrap_servers

    def name(self, name: str) -> str:
        """Returns a name that is this test's own: of a topic, a group or a transactional id."""
        return f"{self._prefix}-{name}"

    def topic(self, name: str, partitions: int = 1, **configs: object) -> str:
        """Creates a topic, and returns its name, which is this test's own.

        Raises:
            KafkaError: Kafka would not create it.
        """
        own = self.name(name)
        self.broker.create_topic(own, partitions, **configs)
        return own

    def records(self, topic: str, partition: int | None = None) -> list[Record]:
        """Returns the records of a topic, as `ottla.testing.Broker.records` does."""
        return self.broker.records(topic, partition)

    def fail(self, api: str | int | None = None, **options: Any) -> FaultHandle:
        """Sets a fault, as `ottla.testing.Broker.fail` does; it is gone at the end of the test."""
        fault = self.broker.fail(api, **options)
        self._faults.append(fault)
        return fault

    def __enter__(self) -> Scope:  # noqa: PYI034 - no Self in 3.10
        return self

    def __exit__(self, *_: object) -> None:
        for fault in self._faults:
            fault.remove()
        for name in self.broker.topics:
            if name.startswith(f"{self._prefix}-"):
                self.broker.delete_topic(name)
