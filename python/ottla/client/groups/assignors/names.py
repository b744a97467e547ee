"""The assignors by the names that `partition_assignment_strategy` has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.errors import InvalidConfigurationError
from ottla.client.groups.assignors.plain import RangeAssignor, RoundRobinAssignor
from ottla.client.groups.assignors.sticky import CooperativeStickyAssignor, StickyAssignor

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.groups.assignors.assignor import Assignor

__all__ = ["assignor_of"]

_BUILT_IN: dict[str, Callable[[], Assignor]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
# The files of Java's users have these names.
_JAVA_PREFIX = "org.apache.kafka.clients.consumer."
_JAVA = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}


def assignor_of(strategy: str | Assignor) -> Assignor:
    """Returns a new assignor of a name, also of Java's classes; one of an application as it is.

    Raises:
        InvalidConfigurationError: there is none of the name.

    >>> assignor_of("org.apache.kafka.clients.consumer.StickyAssignor").name
    'sticky'
    """
    if not isinstance(strategy, str):
        return strategy
    name = strategy.removeprefix(_JAVA_PREFIX)
    new = _BUILT_IN.get(_JAVA.get(name, name))
    if new is None:
        raise InvalidConfigurationError(
            f"partition_assignment_strategy has {strategy!r}, which is none of "
            f"{', '.join(_BUILT_IN)}, nor an assignor"
        )
    return new()
