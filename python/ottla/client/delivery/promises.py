"""Who waits for the records of a batch.

What a record's fate is told to is the shell's own: futures, callbacks, a receipt of many rows. A
batch keeps them as *runs*, each for records that follow each other, so that a thousand rows of one
call cost as much as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Place", "Run", "pieces", "split_runs"]


class Place(NamedTuple):
    """Where a batch is in a log.

    Attributes:
        topic: its name.
        partition: its number.
        base_offset: of the first record; -1 where the leader did not say, or no longer knows.
        log_append_time_ms: where the topic has the leader's times; -1 elsewhere.
    """

    topic: str
    partition: int
    base_offset: int
    log_append_time_ms: int


class Run(Protocol):
    """Those who wait for some records of a batch that follow each other."""

    def __len__(self) -> int:
        """How many records they are."""

    def part(self, start: int, stop: int) -> Run:
        """Returns those who wait for some of them."""

    def succeed(self, place: Place) -> None:
        """The records are in the log, from ``place.base_offset`` on."""

    def fail(self, error: BaseException) -> None:
        """They are not, or nobody knows."""


def split_runs(runs: Iterable[Run], at: int) -> tuple[list[Run], list[Run]]:
    """Returns the runs of the first records, and those of the others."""
    before: list[Run] = []
    behind: list[Run] = []
    for run in runs:
        size = len(run)
        if at <= 0:
            behind.append(run)
        elif at >= size:
            before.append(run)
        else:
            before.append(run.part(0, at))
            behind.append(run.part(at, size))
        at -= size
    return before, behind


def pieces(runs: Iterable[Run], indexes: Iterable[int]) -> Iterator[tuple[int | None, Run]]:
    """Yields runs of one record with their index, for those that are named, and the runs between.

    Args:
        runs: of a batch.
        indexes: of records, in ascending order.
    """
    named = iter(indexes)
    index = next(named, None)
    begin = 0
    for run in runs:
        size = len(run)
        done = 0
        while index is not None and index < begin + size:
            at = index - begin
            if at > done:
                yield None, run.part(done, at)
            yield index, run.part(at, at + 1)
            done = at + 1
            index = next(named, None)
        if done == 0:
            yield None, run
        elif done < size:
            yield None, run.part(done, size)
        begin += size
