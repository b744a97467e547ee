"""The arguments of what waits and fails, for those who hand them on to `ottla.testing.Broker`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["FaultArguments", "WaitArguments"]


class WaitArguments(TypedDict, total=False):
    """What `ottla.testing.Broker.wait_for` waits for."""

    group: str | None
    members: int | None
    transactional_id: str | None
    state: str | None
    topic: str | None
    partition: int | None
    records: int | None


class FaultArguments(TypedDict, total=False):
    """What `ottla.testing.Broker.fail` takes beside the API."""

    error: int | str
    topic: str | None
    partition: int | None
    group: str | None
    transactional_id: str | None
    client: str | None
    times: int | None
    when: Callable[[Any], bool] | None
    after: bool
    disconnect: bool
    delay: float
    corrupt: bool
    observe: bool
