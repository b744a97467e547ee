"""The partitions that a member owns, and those that come and go, one event at a time."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ottla.client.groups.events import Event, EventKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.client.partitions import TopicPartition

__all__ = ["Handover"]

_NOTHING: frozenset[TopicPartition] = frozenset()


class Handover:
    """What `Membership` says of `assignment` and `event`.

    Attributes:
        assignment: the partitions that are owned.
    """

    def __init__(self) -> None:
        self.assignment = _NOTHING
        self._events: deque[Event] = deque()

    @property
    def event(self) -> Event | None:
        """What the consumer has to do first."""
        return self._events[0] if self._events else None

    def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        """Has partitions given up; nothing is told where there are none."""
        if found := self.assignment.intersection(partitions):
            self._tell(EventKind.REVOKE, found)

    def assign(self, partitions: frozenset[TopicPartition]) -> None:
        """Adds partitions, after those that are to be given up before."""
        self._tell(EventKind.ASSIGN, partitions)

    def lose(self) -> None:
        """Everything is gone; of events, only that which the consumer is at goes on."""
        while len(self._events) > 1:
            self._events.pop()
        lost, self.assignment = self.assignment, _NOTHING
        if self.event is not None and self.event.kind is EventKind.REVOKE:
            lost -= self.event.partitions
        if lost:
            self._tell(EventKind.LOSE, lost)

    def give_up(self) -> None:
        """Has everything given up; of events, only that which the consumer is at goes on."""
        while len(self._events) > 1:
            self._events.pop()
        owned = self.assignment
        if self.event is not None and self.event.kind is EventKind.REVOKE:
            owned -= self.event.partitions
        self.revoke(owned)

    def done(self) -> None:
        """The first event is done, and the next appears."""
        if not self._events:
            return
        done = self._events.popleft()
        if done.kind is EventKind.REVOKE:
            self.assignment -= done.partitions
        if self._events:
            self._appear()

    def _tell(self, kind: EventKind, partitions: frozenset[TopicPartition]) -> None:
        self._events.append(Event(kind, partitions))
        if len(self._events) == 1:
            self._appear()

    def _appear(self) -> None:
        if self._events[0].kind is EventKind.ASSIGN:
            self.assignment |= self._events[0].partitions
