"""Times at which something of a group falls due, by key, in the broker's one list."""

from collections.abc import Callable

from ottla.broker.waiting import Waiting, WaitingList

Action = Callable[[int], None]
Key = tuple[str, ...]


class Timers:
    """Timers by key, of which there is one each."""

    def __init__(self, waiting: WaitingList) -> None:
        self._waiting = waiting
        self._timers: dict[Key, tuple[Waiting, Action]] = {}

    def __len__(self) -> int:
        return len(self._timers)

    def deadline_ms(self, key: Key) -> int | None:
        """Returns when a timer is due, `None` where there is none."""
        timer = self._timers.get(key)
        return None if timer is None else timer[0].deadline_ms

    def start(self, key: Key, deadline_ms: int, action: Action) -> None:
        """Has `action(now_ms)` called at a time, instead of what was set for this key."""
        timer = self._timers.get(key)
        if timer is not None:
            self._waiting.postpone(timer[0], deadline_ms)
            self._timers[key] = (timer[0], action)
            return

        def attempt(is_due: bool, now_ms: int) -> bool:
            if is_due:
                # It is over before it acts, since what it does may set the next.
                self._timers.pop(key)[1](now_ms)
            return is_due

        self._timers[key] = (self._waiting.add(Waiting(deadline_ms, attempt)), action)

    def stop(self, key: Key) -> None:
        """Forgets a timer."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            self._waiting.cancel(timer[0])

    def fire(self, key: Key, now_ms: int) -> None:
        """Has what is due for a key happen now; nothing where there is none."""
        timer = self._timers.get(key)
        if timer is not None:
            self.stop(key)
            timer[1](now_ms)
