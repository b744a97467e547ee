"""Faults under a test's control.

A fault stands in for something that a broker cannot be made to do on purpose: an error, a lost
answer, a delay. It is checked where Kafka would find the error itself: before any work is done for
the topic, partition, group or transactional id that it names, or, with ``after``, once all work is
done and the answer is about to go out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ottla.broker.api import Api
    from ottla.broker.context import Context

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

    def is_for(self, api: Api, client_id: str) -> bool:
        """Whether it may strike a request of that API and client."""
        return (
            not self.is_spent
            and (self.api is None or self.api.key == api.key)
            and self.client in {None, client_id}
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

    def of_request(self, context: Context, request: object) -> Fault | None:
        """Returns the fault that strikes a request as a whole, and counts it.

        Faults that only observe are counted on the way.
        """
        found = None
        for fault in self._faults:
            if not fault.is_for(context.api, context.client_id):
                continue
            if fault.is_an_error_of_an_entity:
                continue
            if not _speaks_of(request, fault.names):
                continue
            if fault.when is not None and not fault.when(request):
                continue
            if fault.observe:
                fault.strike()
            elif found is None:
                fault.strike()
                found = fault
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
                and fault.is_for(context.api, context.client_id)
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


_NAMES_OF_TOPICS = ("name", "topic", "topic_name")
_NAMES_OF_PARTITIONS = ("partition", "index", "partition_index")
_NAMES_OF_GROUPS = ("group_id", "groups_names", "group_ids", "groups")


def _speaks_of(request: object, names: Names) -> bool:
    """Whether a request names everything that a fault is limited to."""
    if names == Names():
        return True
    found: dict[str, set[object]] = {name: set() for name in SELECTORS}
    _collect(request, found, 0)
    return all(
        wanted is None or wanted in found[name]
        for name, wanted in zip(SELECTORS, names, strict=True)
    )


_MAX_DEPTH = 8


def _collect(value: object, found: dict[str, set[object]], depth: int) -> None:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list | tuple):
        for item in value:
            _collect(item, found, depth + 1)
        return
    for name in getattr(type(value), "__slots__", ()):
        item = getattr(value, name, None)
        if name in _NAMES_OF_TOPICS and isinstance(item, str):
            found["topic"].add(item)
        elif name in {"topics", "topic_names"} and isinstance(item, list | tuple):
            found["topic"].update(each for each in item if isinstance(each, str))
        elif name in _NAMES_OF_PARTITIONS and isinstance(item, int):
            found["partition"].add(item)
        elif name in {"partitions", "partition_indexes"} and isinstance(item, list | tuple):
            found["partition"].update(each for each in item if isinstance(each, int))
        elif name in _NAMES_OF_GROUPS and isinstance(item, str):
            found["group"].add(item)
        elif name in _NAMES_OF_GROUPS and isinstance(item, list | tuple):
            found["group"].update(each for each in item if isinstance(each, str))
        elif name == "transactional_id" and isinstance(item, str):
            found["transactional_id"].add(item)
        if isinstance(item, list | tuple):
            _collect(item, found, depth + 1)
