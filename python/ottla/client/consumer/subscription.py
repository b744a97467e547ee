"""What a consumer reads: partitions that it names itself, or topics that it shares with a group.

    NONE ◂──▸ ASSIGNED | TOPICS | PATTERN

One of them at a time: what was said before has to be taken back by `unsubscribe` first.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

from ottla.client.errors import IllegalArgumentError, IllegalStateError

if TYPE_CHECKING:
    from ottla.client.network.metadata import Metadata

__all__ = ["Kind", "Subscription"]


class Kind(Enum):
    """How a consumer says what it reads."""

    NONE = "neither"
    ASSIGNED = "assign()"
    TOPICS = "subscribe() to topics"
    PATTERN = "subscribe() to a pattern"


class Subscription:
    """What was said last.

    Attributes:
        kind: how.
        topics: that are named, or match.
        pattern: of topics.
    """

    def __init__(self, *, exclude_internal: bool) -> None:
        self.kind = Kind.NONE
        self.topics: frozenset[str] = frozenset()
        self.pattern: str | None = None
        self._compiled: re.Pattern[str] | None = None
        self._exclude_internal = exclude_internal

    @property
    def is_shared(self) -> bool:
        """Whether a group assigns the partitions."""
        return self.kind in {Kind.TOPICS, Kind.PATTERN}

    def assign(self) -> None:
        """Partitions are named."""
        self._become(Kind.ASSIGNED)

    def subscribe(self, topics: frozenset[str]) -> None:
        """Topics are named."""
        self._become(Kind.TOPICS)
        self.topics = topics

    def subscribe_to_pattern(self, pattern: str) -> None:
        """Topics are those that match a regular expression as a whole."""
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            raise IllegalArgumentError(
                f"the pattern {pattern!r} is no regular expression: {error}"
            ) from error
        self._become(Kind.PATTERN)
        self.pattern, self._compiled = pattern, compiled
        self.topics = frozenset()

    def end(self) -> None:
        """Nothing is read any longer."""
        self.kind = Kind.NONE
        self.topics = frozenset()
        self.pattern = self._compiled = None

    def match(self, metadata: Metadata) -> bool:
        """Looks for topics that match; returns whether they are others than before."""
        compiled = self._compiled
        if compiled is None:
            return False
        topics = frozenset(
            topic
            for topic in metadata.topics()
            if compiled.fullmatch(topic)
            and not (self._exclude_internal and metadata.is_internal(topic))
        )
        if topics == self.topics:
            return False
        self.topics = topics
        return True

    def _become(self, kind: Kind) -> None:
        if self.kind not in {Kind.NONE, kind}:
            raise IllegalStateError(
                f"the consumer reads what {self.kind.value} said, and {kind.value} is something "
                "else: call unsubscribe() first"
            )
        self.kind = kind
