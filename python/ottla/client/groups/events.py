"""What the consumer has to do as its partitions come and go."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ottla.client.partitions import TopicPartition

__all__ = ["Event", "EventKind"]


class EventKind(Enum):
    """What the consumer has to do with partitions."""

    REVOKE = "revoke"
    ASSIGN = "assign"
    LOSE = "lose"


class Event(NamedTuple):
    """Partitions that come or go."""

    kind: EventKind
    partitions: frozenset[TopicPartition]
