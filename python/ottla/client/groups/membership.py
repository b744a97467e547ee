"""A consumer as a member of its group: what the consumer's core asks of it, whichever protocol.

    subscribe, poll ─▸ membership ─▸ event ─▸ (the consumer revokes, or begins) ─▸ event_done

One event is open at a time, and the membership goes no further before `event_done`, though it keeps
the member alive meanwhile. What an event means for `assignment`:

- ``REVOKE``: its partitions are still owned. The consumer delivers no more records of them, commits
  how far it came, calls its listener; with `event_done` they are owned no longer.
- ``ASSIGN``: its partitions are owned from now on, beside those that were kept; one is told after
  each rebalance, also where nothing was added.
- ``LOSE``: its partitions are owned no longer: another member may have them, and commits of them
  fail. The consumer calls its listener, and forgets their records and positions.

Invariants:

- `assignment` grows only as an ``ASSIGN`` appears, and shrinks only as a ``REVOKE`` is done or a
  ``LOSE`` appears; no partition is in both of two events without an end of the first between them.
- No two members of a group that hear each other own the same partition at once.
- Nothing is joined before the first `poll`, nor while `max_poll_interval_ms` have passed without.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from ottla.client.groups.events import Event, EventKind

if TYPE_CHECKING:
    from ottla.client.groups.handover import Handover
    from ottla.client.groups.reactions import Reaction
    from ottla.client.partitions import GroupMetadata, TopicPartition
    from ottla.client.pending import Pending

__all__ = ["Event", "EventKind", "Membership"]


class Membership(ABC):
    """A member of a group, or one that wants to be."""

    _handover: Handover

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions it owns."""
        return self._handover.assignment

    @property
    def event(self) -> Event | None:
        """What the consumer has to do first; ``None`` for nothing."""
        return self._handover.event

    @abstractmethod
    def subscribe(self, topics: frozenset[str], now_ms: int, *, pattern: str | None = None) -> None:
        """Says which topics the consumer reads; a change makes the group assign anew.

        Args:
            topics: those it names, or those its pattern matches as far as it knows; they stand
                for themselves in every protocol.
            now_ms: the time.
            pattern: one in RE2's syntax, which the coordinator matches itself where it can
                (`matches_patterns`); ``topics`` is empty then.
        """

    @property
    @abstractmethod
    def matches_patterns(self) -> bool:
        """Whether the coordinator matches patterns itself (KIP-848, ConsumerGroupHeartbeat 1)."""

    @abstractmethod
    def poll(self, now_ms: int) -> None:
        """The application makes progress.

        Raises:
            KafkaError: what went wrong since the last time, once, and then it is tried again; or
                what cannot pass (`FencedInstanceIdError`, a missing ACL, …), each time.
        """

    @abstractmethod
    def event_done(self, now_ms: int) -> None:
        """The consumer has done what `event` asked; the next may be there at once."""

    @abstractmethod
    def rejoin(self, reason: str, now_ms: int) -> None:
        """Has the group assign anew (KIP-568), soon; a member of KIP-848's protocol cannot ask."""

    @abstractmethod
    def leave(self, now_ms: int, reason: str = "the consumer is being closed") -> Pending:
        """Gives up everything, and leaves the group; ends well whatever the coordinator says.

        What it owns is revoked first, by an event. A static member stays a member, by its name. It
        joins again after the next `subscribe` and `poll`.
        """

    @abstractmethod
    def group_metadata(self) -> GroupMetadata:
        """Returns what a commit has to say of the member; it is none where it was removed."""

    @property
    @abstractmethod
    def is_rebalancing(self) -> bool:
        """Whether what the member owns is about to change."""

    @abstractmethod
    def member_to_commit(self) -> GroupMetadata:
        """Returns who commits; no member for a consumer that has not subscribed.

        Raises:
            RebalanceInProgressError: the member is joining again.
            OffsetCommitFailedError: it is out of its group.
        """

    @abstractmethod
    def refused(self, found: Reaction, group: GroupMetadata, now_ms: int) -> None:
        """A request of ``group``'s member was refused, and what it means holds for all of it."""

    @abstractmethod
    def tick(self, now_ms: int) -> None:
        """Does what is due: heartbeats, joins, timeouts."""

    @abstractmethod
    def next_deadline_ms(self) -> int | None:
        """Returns when there is something to do though nothing comes in."""
