"""Races: every round runs each candidate once, in turn; ratios are taken round by round.

The clock is the CPU time of the thread, since a wall clock counts the neighbours too. A slow moment
of the machine hits both sides of a round's ratio, and the median of the rounds leaves it out.
"""

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

# A candidate's turn takes at least this long: several runs of a short one, which then finds its
# data in the cache. Data of 16 MiB get one run, after the others have used the cache.
SHORTEST_TURN_S = 0.0005

Turn = Callable[[], float]


@dataclass(frozen=True)
class Times:
    """CPU seconds of one run, for each round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Return the median of the rounds, in seconds."""
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        """Return the fastest round, in seconds."""
        return min(self.seconds)

    def faster_than(self, base: "Times") -> float:
        """Return the median of the rounds' ratios: 2.0 is twice as fast as the base."""
        return statistics.median(
            theirs / ours for theirs, ours in zip(base.seconds, self.seconds, strict=True)
        )


def turn(run: Callable[[], object]) -> Turn:
    """Make a turn of a function: it runs it for a while and returns the seconds of one run."""
    run()
    repeats = 1
    while (took := _seconds(run, repeats)) < SHORTEST_TURN_S:
        repeats = max(repeats * 2, int(repeats * SHORTEST_TURN_S / took) + 1)
    return lambda: _seconds(run, repeats) / repeats


def _seconds(run: Callable[[], object], repeats: int) -> float:
    begin = time.thread_time()
    for _ in range(repeats):
        run()
    return max(time.thread_time() - begin, 1e-9)


def race(turns: Mapping[str, Turn], rounds: int) -> dict[str, Times]:
    """Return the times of each candidate over some rounds, after one that only warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for number in range(rounds + 1):
            for name, take in turns.items():
                took = take()
                if number:
                    seconds[name].append(took)
    finally:
        if was_enabled:
            gc.enable()
    return {name: Times(tuple(taken)) for name, taken in seconds.items()}
