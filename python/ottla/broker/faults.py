"""Faults under a test's control.

A fault stands in for something that a broker cannot be made to do on purpose: an error, a lost
answer, a delay. It is checked where Kafka would find the error itself: before any work is done for
the topic, partition, group or transactional id that it names, or, with ``after``, once all work is
done and the answer is about to go out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ottla.broker.api import Api
    from ottla.broker.context import Context
    from ottla.broker.image import Topic

__all__ = ["SELECTORS", "Fault", "Faults", "Names"]

SELECTORS = ("topic", "partition", "group", "transactional_id")


class Names(NamedTuple):
    """What a request speaks of, as far as a fault may be limited to it."""

    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None


class Fault:
    """What happens to requests that match.

    Attributes:
        api: the row of the API, or `None` for every API.
        error: Kafka's error code, 0 for none.
        names: what it is limited to.
        client: the client id that it is limited to.
        times: how often it strikes; `None` for as long as it is there.
        when: called with the request; it strikes where that returns true.
        after: strikes once the work is done: it happened, and the client is not told.
        disconnect: closes the connection.
        delay_ms: answers that much later, by the broker's clock.
        corrupt: inverts the last byte of the answer.
        observe: changes nothing, only counts.
        hits: how often it has struck.
        is_paused: requests that match wait until it is released.
    """

    def __init__(
        self,
        api: Api | None,
        *,
        error: int = 0,
        names: Names = Names(),  # noqa: B008 - immutable
        client: str | None = None,
        times: int | None = None,
        when: Callable[[Any], bool] | None = None,
        after: bool = False,
        disconnect: bool = False,
        delay_ms: int = 0,
        corrupt: bool = False,
        observe: bool = False,
    ) -> None:
        self.api = api
        self.error = error
        self.names = names
        self.client = client
        self.times = times
        self.when = when
        self.after = after
        self.disconnect = disconnect
        self.delay_ms = delay_ms
        self.corrupt = corrupt
        self.observe = observe
        self.hits = 0
        self.is_paused = False

    def strike(self) -> None:
        """Counts that it has struck."""
        self.hits += 1

    @property
    def is_spent(self) -> bool:
        """Whether it will not strike again."""
        return self.times is not None and self.hits >= self.times

    @property
    def is_of_an_entity(self) -> bool:
        """Whether its error is one topic's, partition's, group's or transactional id's."""
        return any(name is not None for name in self.names)

    @property
    def is_an_error_of_an_entity(self) -> bool:
        """Whether a handler finds it, beside the error that it stands for."""
        return bool(self.error) and self.is_of_an_entity and not (self.after or self.observe)

    def is_for(self, context: Context) -> bool:
        """Whether it may strike a request, as far as its API, client and condition go."""
        return (
            not self.is_spent
            and (self.api is None or self.api.key == context.api.key)
            and self.client in {None, context.client_id}
            and self not in context.spared_by
        )

    def covers(self, names: Names) -> bool:
        """Whether it is about what these names say; a name that is not given matches."""
        return all(
            own is None or other is None or own == other
            for own, other in zip(self.names, names, strict=True)
        )


class Faults:
    """The faults that are set, in the order in which they were."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self.are_set = False
        """Whether there is any."""

    def __bool__(self) -> bool:
        return self.are_set

    def __iter__(self) -> Iterator[Fault]:
        return iter(tuple(self._faults))

    def add(self, fault: Fault) -> Fault:
        """Sets a fault; returns it."""
        self._faults.append(fault)
        self.are_set = True
        return fault

    def remove(self, fault: Fault) -> None:
        """Takes a fault away; nothing if it is gone already."""
        if fault in self._faults:
            self._faults.remove(fault)
            self.are_set = bool(self._faults)

    def clear(self) -> None:
        """Takes all faults away."""
        self._faults.clear()
        self.are_set = False

    def of_request(
        self,
        context: Context,
        request: object,
        session: Callable[[], Iterable[tuple[str, int]]] = tuple,
    ) -> Fault | None:
        """Returns the fault that strikes a request as a whole, and counts it.

        Faults that only observe are counted on the way, and conditions are asked once a request.

        Args:
            context, request: the request.
            session: returns the topics and partitions of the fetch session that it is of.
        """
        found, spared = None, []
        topics = context.image.topics_by_id
        for fault in self._faults:
            if not fault.is_for(context):
                continue
            if not fault.is_an_error_of_an_entity and not _speaks_of(
                request, fault.names, topics, session
            ):
                continue
            if fault.when is not None and not fault.when(request):
                spared.append(fault)
                continue
            if fault.is_an_error_of_an_entity:
                continue
            if fault.observe:
                fault.strike()
            elif found is None:
                fault.strike()
                found = fault
        context.spared_by = tuple(spared)
        return found

    def error(
        self,
        context: Context,
        *,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
    ) -> int:
        """Returns the error that an entity of a request is to fail with, and counts it; 0 for none.

        A handler calls it for each entity where Kafka would look for the entity's own errors.
        """
        names = Names(topic, partition, group, transactional_id)
        for fault in self._faults:
            if (
                fault.is_an_error_of_an_entity
                and fault.is_for(context)
                and fault.covers(names)
                and any(
                    own is not None and other is not None
                    for own, other in zip(fault.names, names, strict=True)
                )
            ):
                fault.strike()
                return fault.error
        return 0

    def of_partitions(
        self, context: Context, partitions: Iterable[tuple[str, int]]
    ) -> dict[tuple[str, int], int]:
        """Returns the errors of those partitions of a request that are to fail, and counts them."""
        found = {}
        for topic, partition in partitions:
            error = self.error(context, topic=topic, partition=partition)
            if error:
                found[topic, partition] = error
        return found


_SELECTOR_OF_FIELD = {
    **dict.fromkeys(("name", "topic", "topics", "topic_name", "topic_names"), "topic"),
    **dict.fromkeys(
        ("partition", "partitions", "index", "partition_index", "partition_indexes"), "partition"
    ),
    **dict.fromkeys(("group_id", "group_ids", "groups", "groups_names"), "group"),
    **dict.fromkeys(
        ("transactional_id", "transactional_ids", "v3_and_below_transactional_id"),
        "transactional_id",
    ),
}
"""What fields of requests name, be it one or a list."""
_TOPIC_RESOURCE = 2
_SELECTOR_OF_KEY = {0: "group", 1: "transactional_id"}
"""By the type of the key whose coordinator is looked for."""


def _speaks_of(
    request: object,
    names: Names,
    topics: Mapping[bytes, Topic],
    session: Callable[[], Iterable[tuple[str, int]]],
) -> bool:
    """Whether a request names everything that a fault is limited to."""
    if names == Names():
        return True
    found: dict[str, set[object]] = {name: set() for name in SELECTORS}
    _collect(request, found, topics, 0)
    if names.topic is not None or names.partition is not None:
        for topic, partition in session():
            found["topic"].add(topic)
            found["partition"].add(partition)
    return all(
        wanted is None or wanted in found[name]
        for name, wanted in zip(SELECTORS, names, strict=True)
    )


_MAX_DEPTH = 8


def _collect(
    value: object, found: dict[str, set[object]], topics: Mapping[bytes, Topic], depth: int
) -> None:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list | tuple):
        for item in value:
            _collect(item, found, topics, depth + 1)
        return
    for name in getattr(type(value), "__slots__", ()):
        item = getattr(value, name)
        if name == "topic_id" and item in topics:
            found["topic"].add(topics[item].name)
        selector = _selector(value, name)
        if selector is not None:
            kind = int if selector == "partition" else str
            items = item if isinstance(item, list | tuple) else (item,)
            found[selector].update(each for each in items if isinstance(each, kind))
        if isinstance(item, list | tuple):
            _collect(item, found, topics, depth + 1)


def _selector(value: object, name: str) -> str | None:
    """Returns what a field names, which may depend on the one beside it."""
    if name == "resource_name":
        return "topic" if getattr(value, "resource_type", 0) == _TOPIC_RESOURCE else None
    if name in {"key", "coordinator_keys"}:
        return _SELECTOR_OF_KEY.get(getattr(value, "key_type", -1))
    return _SELECTOR_OF_FIELD.get(name)
