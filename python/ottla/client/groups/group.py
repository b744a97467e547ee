"""A group as its consumer has it: its coordinator, the membership, and committed offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.errors import IllegalStateError, KafkaTimeoutError
from ottla.client.groups.classic import ClassicMembership
from ottla.client.groups.commits import Commits
from ottla.client.groups.committed import CommittedOffsets
from ottla.client.groups.consumer_protocol import ConsumerProtocolMembership
from ottla.client.groups.coordinator import GroupCoordinator
from ottla.client.network.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ottla.client.groups.membership import Membership
    from ottla.client.network.exchange import Network
    from ottla.client.options.settings import ConsumerSettings
    from ottla.client.partitions import OffsetAndMetadata, TopicPartition
    from ottla.client.pending import Pending

__all__ = ["Group"]


class Group:
    """What the consumer's core has of its group, where it has a `group_id`.

    Args:
        settings: of the consumer.
        network: sends requests.
        random: draws from [0, 1).

    Attributes:
        membership: used once the consumer subscribes; one that assigns itself only commits.
    """

    membership: Membership

    def __init__(
        self, settings: ConsumerSettings, network: Network, *, random: Callable[[], float]
    ) -> None:
        if not settings.group_id:
            raise IllegalStateError("a consumer without a group_id has no group")
        backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random)
        backoff_ms = backoff.delay_ms
        self._coordinator = GroupCoordinator(settings.group_id, network, backoff_ms)
        if settings.group_protocol == "consumer":
            self.membership = ConsumerProtocolMembership(
                settings, network, self._coordinator, backoff_ms, random
            )
        else:
            self.membership = ClassicMembership(settings, network, self._coordinator, backoff_ms)
        parts = (settings, network, self._coordinator, self.membership, backoff_ms)
        self._commits = Commits(*parts)
        self._committed = CommittedOffsets(*parts)

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], now_ms: int) -> Pending:
        """Commits; several go out in the order of the calls, and end in it.

        The call fails with `OffsetCommitFailedError` where the member is out of its group,
        `RebalanceInProgressError` where the same commit may be made again after the next `poll`,
        another `KafkaError` otherwise. What is retriable is sent again until `time_out`, or for
        `default_api_timeout_ms`.
        """
        return self._commits.commit(offsets, now_ms)

    def committed(self, partitions: Iterable[TopicPartition], now_ms: int) -> Pending:
        """Looks up what the group has committed: a dict, without what it has not."""
        return self._committed.look_up(partitions, now_ms)

    def time_out(self, pending: Pending) -> None:
        """The caller's time is over: the call ends with a `KafkaTimeoutError`, unless it ended."""
        pending.end(
            KafkaTimeoutError(
                f"the group's coordinator has not answered {pending.name} in time: call again, or "
                "allow for more"
            )
        )

    def tick(self, now_ms: int) -> None:
        """Does what is due."""
        self._coordinator.tick(now_ms)
        self.membership.tick(now_ms)
        self._commits.tick(now_ms)
        self._committed.tick(now_ms)

    def next_deadline_ms(self) -> int | None:
        """Returns when there is something to do though nothing comes in."""
        parts = (self._coordinator, self.membership, self._commits, self._committed)
        deadlines = [part.next_deadline_ms() for part in parts]
        return min((each for each in deadlines if each is not None), default=None)
