"""What the parts of a group read of the consumer's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.client.groups.assignors import Assignor

__all__ = ["GroupSettings", "backoff"]


class GroupSettings(Protocol):
    """Kafka's options, with underscores.

    Attributes:
        group_id: the group; a consumer without one has no `Group`.
        partition_assignment_strategy: names of `ottla.client.groups.assignors`, or assignors of the
            application's own, the preferred first.
    """

    group_id: str | None
    group_instance_id: str | None
    group_protocol: str
    group_remote_assignor: str | None
    client_rack: str | None
    partition_assignment_strategy: Sequence[str | Assignor]
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    request_timeout_ms: int
    default_api_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int


_JITTER = 0.2
_DOUBLINGS = 30


def backoff(settings: GroupSettings, random: Callable[[], float]) -> Callable[[int], int]:
    """Returns how long to wait before an attempt, by the number of those that failed (KIP-580)."""

    def backoff_ms(attempts: int) -> int:
        doubled = settings.retry_backoff_ms << min(max(attempts - 1, 0), _DOUBLINGS)
        jitter = 1 + _JITTER * (2 * random() - 1)
        return int(min(doubled, settings.retry_backoff_max_ms) * jitter)

    return backoff_ms
