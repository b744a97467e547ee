"""Times at which something of a group falls due, by key, in the broker's one list.

A session is extended at every heartbeat. So a timer that is set to a later time stays in the list
where it is, and only when it comes up does it look at the time it is due by now.
"""

from collections.abc import Callable
from typing import Protocol

Action = Callable[[int], None]


class Alarm:
    """An entry of the broker's list of what waits."""

    __slots__ = ("_timers", "deadline_ms", "key", "watched")

    def __init__(self, timers: "Timers", key: tuple[str, ...], deadline_ms: int) -> None:
        self._timers = timers
        self.key = key
        self.deadline_ms = deadline_ms
        self.watched: tuple[object, ...] = ()

    def attempt(self, is_due: bool, now_ms: int) -> bool:
        """Returns whether the alarm has gone off; its timer may have set another."""
        if is_due:
            self._timers.ring(self, now_ms)
        return is_due


class AlarmList(Protocol):
    """What timers need of the broker's list."""

    def add(self, waiting: Alarm, /) -> None:
        """Adds an entry."""

    def cancel(self, waiting: Alarm, /) -> None:
        """Takes an entry out, if it is there."""


class Timers:
    """Timers by key, of which there is one each."""

    def __init__(self, alarms: AlarmList) -> None:
        self._alarms = alarms
        self._timers: dict[tuple[str, ...], tuple[Alarm, int, Action]] = {}

    def __len__(self) -> int:
        return len(self._timers)

    def deadline_ms(self, key: tuple[str, ...]) -> int | None:
        """Returns when a timer is due, `None` where there is none."""
        timer = self._timers.get(key)
        return None if timer is None else timer[1]

    def start(self, key: tuple[str, ...], deadline_ms: int, action: Action) -> None:
        """Has `action(now_ms)` called at a time, instead of what was set for this key."""
        timer = self._timers.get(key)
        if timer is not None and timer[0].deadline_ms <= deadline_ms:
            alarm = timer[0]
        else:
            if timer is not None:
                self._alarms.cancel(timer[0])
            alarm = self._arm(key, deadline_ms)
        self._timers[key] = (alarm, deadline_ms, action)

    def stop(self, key: tuple[str, ...]) -> None:
        """Forgets a timer."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            self._alarms.cancel(timer[0])

    def ring(self, alarm: Alarm, now_ms: int) -> None:
        """Runs the timer of an alarm if it is due, and sets the alarm anew otherwise."""
        timer = self._timers.get(alarm.key)
        if timer is None or timer[0] is not alarm:
            return
        _, deadline_ms, action = timer
        if now_ms < deadline_ms:
            self._timers[alarm.key] = (self._arm(alarm.key, deadline_ms), deadline_ms, action)
            return
        del self._timers[alarm.key]
        action(now_ms)

    def _arm(self, key: tuple[str, ...], deadline_ms: int) -> Alarm:
        alarm = Alarm(self, key, deadline_ms)
        self._alarms.add(alarm)
        return alarm
