"""A data plane whose logs take nothing when a test says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.plane import DataPlane


class FailingPlane:
    """Does as another one, but for these errors.

    Attributes:
        append_error: what appends of coordinators fail with; 0 for nothing.
        marker_error: what markers fail with.
        read_error: what a coordinator's log fails with when it is read.
        compact_error: what compactions fail with.
    """

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane
        self.append_error = 0
        self.marker_error = 0
        self.read_error = 0
        self.compact_error = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plane, name)

    def append(self, *args: Any, **options: Any) -> Any:
        _fail(self.append_error)
        return self._plane.append(*args, **options)

    def end_transaction(self, *args: Any, **options: Any) -> Any:
        _fail(self.marker_error)
        return self._plane.end_transaction(*args, **options)

    def compacted(self, *args: Any, **options: Any) -> Any:
        _fail(self.compact_error)
        return self._plane.compacted(*args, **options)

    def read(self, *args: Any, **options: Any) -> Any:
        _fail(self.read_error)
        return self._plane.read(*args, **options)


def _fail(error: int) -> None:
    if error:
        raise KafkaError("a failure that was set", error)


def failing(broker: Any) -> FailingPlane:
    """Gives a broker a plane that can fail; returns it."""
    plane = FailingPlane(broker.plane)
    broker.plane = plane
    return plane
