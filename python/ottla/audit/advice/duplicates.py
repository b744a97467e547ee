"""Partitions that a broker has twice, in two log directories: it does not start with both.

One directory stays: that of the later leader epoch, and among those of the same, the one whose log
ends later. The others have to be moved away, and their price is what the one that stays lacks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ottla.audit.advice.candidates import MOVE_PARTITION, NOTHING
from ottla.audit.advice.partition import Option, PartitionOptions, Stays
from ottla.audit.advice.trial import moved_away
from ottla.audit.judge.packed import rows_about
from ottla.logs.names import display

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ottla.audit.judge.collector import Outcome
    from ottla.audit.plan.plan import Plan
    from ottla.logs.inventory import Partition


@dataclass(frozen=True, slots=True)
class _Log:
    """What tells two logs of one partition apart."""

    leader_epoch: int
    log_end_offset: int
    log_start_offset: int

    @property
    def rank(self) -> tuple[int, int, int]:
        return self.leader_epoch, self.log_end_offset, -self.log_start_offset

    def lacks(self, other: _Log) -> int:
        """The number of offsets that only the other log has."""
        below = min(self.log_start_offset, other.log_end_offset) - other.log_start_offset
        above = other.log_end_offset - max(self.log_end_offset, other.log_start_offset)
        return max(below, 0) + max(above, 0)


@dataclass(frozen=True, slots=True)
class _Pair:
    stays: bytes
    """The directory that stays."""
    log: _Log
    lacks: int
    """The number of offsets that only the directory has that goes."""


class Duplicates:
    """The directories that have to go."""

    def __init__(self, plan: Plan, outcome: Outcome) -> None:
        self._pairs: dict[bytes, _Pair] = {}
        self.partitions: list[Partition] = []
        logs = _logs(outcome, {p.directory for group in plan.repeated for p in group})
        for group in plan.repeated:
            # Of a log that could not be read nobody knows whether it is the one to keep.
            if any(partition.directory not in logs for partition in group):
                continue
            stays = max(group, key=lambda partition: logs[partition.directory].rank)
            log = logs[stays.directory]
            for partition in group:
                if partition is not stays:
                    lacks = log.lacks(logs[partition.directory])
                    self._pairs[partition.directory] = _Pair(stays.directory, log, lacks)
                    self.partitions.append(partition)

    def priced(self, directory: bytes, options: PartitionOptions) -> PartitionOptions:
        """The options of a directory, with the other one in mind."""
        pair = self._pairs.get(directory)
        if pair is None:
            return options
        both = f"{display(directory)} and {display(pair.stays)}"
        error = f"IllegalStateException: Duplicate log directories are found in both {both}"
        refused = options.nothing.effect._replace(opens=False, error=error)
        # The records that the other directory has are still there.
        away = moved_away(min(pair.lacks, options.readable))
        return replace(
            options,
            nothing=Option(NOTHING, refused, refused),
            best=Option(MOVE_PARTITION, away, away),
            mend=None,
            stays=Stays(display(pair.stays), pair.log.log_end_offset),
        )


def _logs(outcome: Outcome, wanted: Iterable[bytes]) -> Mapping[bytes, _Log]:
    """The logs of some directories, as far as they were read."""
    directories = frozenset(wanted)
    if not directories:
        return {}
    epochs: dict[bytes, int] = {}
    for partition, row in rows_about(outcome.tables["epochs"], directories):
        known = epochs.get(partition.directory, -1)
        epochs[partition.directory] = max(known, row["leader_epoch"])
    spans: dict[bytes, list[tuple[int, int]]] = {}
    for partition, row in rows_about(outcome.tables["metrics"], directories):
        span = row["log_start_offset"], row["log_end_offset"]
        spans.setdefault(partition.directory, []).append(span)
    return {directory: _log(epochs.get(directory, -1), found) for directory, found in spans.items()}


def _log(leader_epoch: int, spans: Sequence[tuple[int, int]]) -> _Log:
    start = min(first for first, _ in spans)
    return _Log(leader_epoch, max(end for _, end in spans), start)
