"""A group as its consumer has it: its coordinator, the membership, and committed offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.client.groups.membership import Membership
    from ottla.client.partitions import OffsetAndMetadata, TopicPartition
    from ottla.client.pending import Pending

__all__ = ["Group"]


class Group(Protocol):
    """What the consumer's core has of its group, where it has a `group_id`.

    Attributes:
        membership: used once the consumer subscribes; one that assigns itself only commits.
    """

    membership: Membership

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], now_ms: int) -> Pending:
        """Commits; several go out in the order of the calls, and end in it.

        The call fails with `OffsetCommitFailedError` where the member is out of its group,
        `RebalanceInProgressError` where the same commit may be made again after the next `poll`,
        another `KafkaError` otherwise; what is retriable was sent again until `time_out`.
        """

    def committed(self, partitions: Iterable[TopicPartition], now_ms: int) -> Pending:
        """Looks up what the group has committed: a dict, without what it has not."""

    def time_out(self, pending: Pending) -> None:
        """The caller's time is over: the call ends with a `KafkaTimeoutError`, unless it ended."""

    def tick(self, now_ms: int) -> None:
        """Does what is due."""

    def next_deadline_ms(self) -> int | None:
        """Returns when there is something to do though nothing comes in."""
