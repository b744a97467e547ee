"""What waits: for a deadline, or for something that moves before it.

A fetch waits for records, a produce request for replicas, a member of a group for the others, a
transaction for its end, retention for its time. All of them are a `Waiting` in one `WaitingList`,
so a shell has one deadline to sleep until, and a virtual clock moves everything at once.

Invariants:

- A waiting is attempted when a key that it watches is woken, or when its deadline has passed, and
  is in the list until an attempt returns true or it is cancelled.
- An attempt may add, cancel and wake; what it wakes is attempted after it, not within it.
- Of two waitings that are due, the earlier deadline is attempted first; of equal deadlines, the
  one that was added first.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

__all__ = ["NEVER_MS", "Waiting", "WaitingList"]

NEVER_MS = 2**63 - 1
"""The deadline of what only something else ends."""


class Waiting:
    """One thing that waits.

    Args:
        deadline_ms: when it is due, in the time that `WaitingList.tick` is given.
        attempt: called with whether the deadline has passed, and the time; returns whether it is
            done. At its deadline it is done whatever it returns, unless it has moved the deadline.
        watched: keys of whatever may end it earlier.
    """

    __slots__ = ("_is_listed", "_place", "attempt", "deadline_ms", "watched")

    def __init__(
        self,
        deadline_ms: int,
        attempt: Callable[[bool, int], bool],
        watched: Iterable[Hashable] = (),
    ) -> None:
        self.deadline_ms = deadline_ms
        self.attempt = attempt
        self.watched = tuple(watched)
        self._is_listed = False
        self._place = (deadline_ms, 0)

    @property
    def is_listed(self) -> bool:
        """Whether it is still waited for."""
        return self._is_listed


class WaitingList:
    """Everything that waits, by deadline and by what it watches."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Waiting]] = []
        self._added = 0
        self._count = 0
        self._watchers: dict[Hashable, dict[Waiting, None]] = {}
        self._woken: deque[Waiting] = deque()

    def __len__(self) -> int:
        return self._count

    def add(self, waiting: Waiting) -> Waiting:
        """Waits for it; returns it."""
        waiting._is_listed = True  # noqa: SLF001 - the list and what is in it are one subject
        self._count += 1
        self._push(waiting)
        for key in waiting.watched:
            self._watchers.setdefault(key, {})[waiting] = None
        return waiting

    def do_at(self, deadline_ms: int, action: Callable[[], None]) -> None:
        """Does something once, at the first `tick` from a time on.

        With the time as it is, that is when what is under way is over.
        """

        def attempt(_is_due: bool, _now_ms: int) -> bool:
            action()
            return True

        self.add(Waiting(deadline_ms, attempt))

    def cancel(self, waiting: Waiting) -> None:
        """Waits for it no longer; nothing if it is done already."""
        if not waiting._is_listed:  # noqa: SLF001
            return
        waiting._is_listed = False  # noqa: SLF001
        self._count -= 1
        for key in waiting.watched:
            watchers = self._watchers.get(key)
            if watchers is not None:
                watchers.pop(waiting, None)
                if not watchers:
                    del self._watchers[key]
        # The heap is rid of it when its turn comes, or here once most of the heap is such.
        if len(self._heap) > 2 * self._count + 64:
            self._heap = [item for item in self._heap if self._is_current(item)]
            heapq.heapify(self._heap)

    def postpone(self, waiting: Waiting, deadline_ms: int) -> None:
        """Moves a deadline, earlier or later."""
        waiting.deadline_ms = deadline_ms
        # A later deadline is found when the earlier one comes up: heartbeats postpone all the time.
        if waiting._is_listed and deadline_ms < waiting._place[0]:  # noqa: SLF001
            self._push(waiting)

    def wake(self, key: Hashable) -> None:
        """Attempts, at the next `settle` or `tick`, whatever watches a key."""
        watchers = self._watchers.get(key)
        if watchers:
            self._woken.extend(watchers)

    def settle(self, now_ms: int) -> None:
        """Attempts what was woken, until nothing is left to attempt."""
        while self._woken:
            waiting = self._woken.popleft()
            if waiting._is_listed and waiting.attempt(False, now_ms):  # noqa: FBT003, SLF001
                self.cancel(waiting)

    def is_idle(self, now_ms: int) -> bool:
        """Whether nothing was woken, and nothing is due."""
        return not self._woken and (not self._heap or self._heap[0][0] > now_ms)

    def tick(self, now_ms: int) -> None:
        """Attempts what was woken and what is due."""
        self.settle(now_ms)
        while self._heap and self._heap[0][0] <= now_ms:
            item = heapq.heappop(self._heap)
            waiting = item[2]
            if not self._is_current(item):
                continue
            if waiting.deadline_ms > now_ms:
                self._push(waiting)
                continue
            is_done = waiting.attempt(True, now_ms)  # noqa: FBT003
            if is_done or waiting.deadline_ms <= now_ms:
                self.cancel(waiting)
            elif waiting._is_listed:  # noqa: SLF001
                self._push(waiting)
            self.settle(now_ms)

    def next_deadline_ms(self) -> int | None:
        """Returns when `tick` has something to do; `None` for never.

        It may be too early by what was postponed, never too late.
        """
        while self._heap and not self._is_current(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _push(self, waiting: Waiting) -> None:
        self._added += 1
        waiting._place = (waiting.deadline_ms, self._added)  # noqa: SLF001
        heapq.heappush(self._heap, (*waiting._place, waiting))  # noqa: SLF001

    @staticmethod
    def _is_current(item: tuple[int, int, Waiting]) -> bool:
        waiting = item[2]
        return waiting._is_listed and item[:2] == waiting._place  # noqa: SLF001
