"""What an application is told of partitions that come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ottla.client.partitions import TopicPartition

__all__ = ["RebalanceListener"]


class RebalanceListener:
    """Is called in a poll when partitions come and go; override what is of interest.

    Of an `AsyncConsumer` its methods may be coroutines. They may use the consumer, to commit or to
    seek, but must not poll.
    """

    def on_partitions_revoked(
        self, partitions: frozenset[TopicPartition]
    ) -> Awaitable[None] | None:
        """These go to other members next: the time to commit what was done with them."""

    def on_partitions_assigned(
        self, partitions: frozenset[TopicPartition]
    ) -> Awaitable[None] | None:
        """These came; nothing of them is delivered yet."""

    def on_partitions_lost(self, partitions: frozenset[TopicPartition]) -> Awaitable[None] | None:
        """These are gone already, and commits of them fail; tells of a revocation by default."""
        return self.on_partitions_revoked(partitions)
