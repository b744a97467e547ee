"""What a call of an admin client asks, of whom, and what it makes of the answers.

A call is about some keys: names of topics, partitions, groups. Each key has a route, and ends with
a result of its own, which may have an error. Keys that go to the same node share a request.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ottla.client.network.metadata import Node
    from ottla.client.partitions import TopicPartition
    from ottla.protocol.wire import Message

__all__ = [
    "AGAIN",
    "DONE_PERHAPS",
    "Anywhere",
    "ByKey",
    "Controller",
    "CoordinatorOf",
    "KeyType",
    "LeaderOf",
    "OnNode",
    "Operation",
    "Outcome",
    "Results",
    "Route",
    "Single",
]

K = TypeVar("K")
R = TypeVar("R")
V = TypeVar("V")


class KeyType(Enum):
    """What a coordinator coordinates, by Kafka's number."""

    GROUP = 0
    TRANSACTION = 1


class Anywhere(NamedTuple):
    """To any broker."""


class Controller(NamedTuple):
    """To the controller, or a broker that asks it."""


class OnNode(NamedTuple):
    """To one broker."""

    node_id: int


class LeaderOf(NamedTuple):
    """To the leader of a partition."""

    partition: TopicPartition


class CoordinatorOf(NamedTuple):
    """To the coordinator of a group or transactional id."""

    key_type: KeyType
    key: str


Route = Anywhere | Controller | OnNode | LeaderOf | CoordinatorOf


class _Again(Enum):
    AGAIN = "again"


AGAIN = _Again.AGAIN
"""Of a key that is to be asked again, at once, as its operation will have it now."""

Outcome = Any
"""Of a key: its result, why it failed, or `AGAIN`."""


class Results(dict[K, R]):
    """Results by key; each has an `error`, which is ``None`` where all went well."""

    @property
    def errors(self) -> dict[K, Exception]:
        """Those that failed, and why."""
        failed = ((key, getattr(result, "error", None)) for key, result in self.items())
        return {key: error for key, error in failed if error is not None}

    def check(self) -> Results[K, R]:
        """Returns these results.

        Raises:
            KafkaError: the first that failed, if any.
        """
        for error in self.errors.values():
            raise error
        return self


class Operation(ABC, Generic[K, V]):
    """One call.

    Attributes:
        name: of the call, as messages have it.
        final: retriable error codes that are no reason to ask again.
        is_shared: whether keys of one route share a request.
        timeout_ms: for a broker to do it; set before a request is made.
    """

    name: ClassVar[str]
    final: ClassVar[frozenset[int]] = frozenset()
    is_shared: ClassVar[bool] = True
    timeout_ms = 30_000

    @abstractmethod
    def keys(self, nodes: Mapping[int, Node]) -> Sequence[K] | None:
        """Returns the keys; ``None`` where the nodes of the cluster have to be known first."""

    @abstractmethod
    def route(self, key: K) -> Route:
        """Returns where a key's request goes."""

    @abstractmethod
    def request(self, key: K) -> tuple[type[Message], range | None]:
        """Returns the class of a key's request, and the versions it can be made in."""

    @abstractmethod
    def fields(self, keys: Sequence[K]) -> dict[str, Any]:
        """Returns the fields of the request for some keys of one route, of all versions."""

    @abstractmethod
    def read(self, keys: Sequence[K], response: Any) -> Iterable[tuple[K, Outcome]]:
        """Returns what an answer has of each key."""

    @abstractmethod
    def failure(self, outcomes: dict[K, Outcome]) -> Exception | None:
        """Returns why the call failed as a whole; ``None`` where it returns something."""

    @abstractmethod
    def value(self, outcomes: dict[K, Outcome]) -> V:
        """Returns what the call returns."""

    def ask_otherwise(self, _keys: Sequence[K]) -> bool:
        """Whether keys can be asked for otherwise, as the broker does not know the request."""
        return False


class ByKey(Operation[K, Results[K, R]], Generic[K, R]):
    """A call that returns a result for each key, and never fails as a whole."""

    @abstractmethod
    def failed(self, key: K, error: Exception) -> R:
        """Returns the result of a key that failed."""

    def failure(self, _outcomes: dict[K, Outcome]) -> Exception | None:
        """Returns nothing: a failure is the result of its key."""
        return None

    def value(self, outcomes: dict[K, Outcome]) -> Results[K, R]:
        """Returns the results, in the order of the keys."""
        return Results(
            {
                key: self.failed(key, found) if isinstance(found, Exception) else found
                for key, found in outcomes.items()
            }
        )


class Single(Operation[K, V], Generic[K, V]):
    """A call that returns one value of all answers, and fails where one of them does."""

    def failure(self, outcomes: dict[K, Outcome]) -> Exception | None:
        """Returns the first failure of a key."""
        return next((found for found in outcomes.values() if isinstance(found, Exception)), None)


DONE_PERHAPS = frozenset({int(ErrorCode.REQUEST_TIMED_OUT)})
"""Of what is not asked for twice, as it may have been done."""
