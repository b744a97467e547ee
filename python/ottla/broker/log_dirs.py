"""Where the logs of this broker are, as clients are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.broker.image import Partition
    from ottla.broker.state import State

__all__ = ["MEMORY", "log_dirs_of", "log_size"]

MEMORY: Final = "memory"
"""Stands for the directory of logs that are in no file; Kafka's own have absolute paths."""


def log_dirs_of(_broker: State) -> tuple[str, ...]:
    """Returns the directories that a broker keeps its logs in."""
    return (MEMORY,)


def log_size(broker: State, partition: Partition) -> int:
    """Returns the bytes of a partition's segments."""
    return sum(size for _, size in broker.plane.segments(partition.handle))
