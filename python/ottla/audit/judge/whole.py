"""Small logs, many judged in one call of the engine: what most logs are.

Only a log of which something cannot be read, or is not as ever, goes the long way, on which Python
takes part for each file. Both come to the same result; `tests/audit/judge/test_whole.py` holds them
together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla import _engine
from ottla.audit.judge.context import settings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from ottla.audit.judge.context import Surroundings
    from ottla.logs.inventory import Partition

    WholeLog: TypeAlias = tuple[_engine.PackedLog, str | None, _engine.PlacedFindings | None]
    """What a log adds to tables, the topic's id, and its findings. No checkpoint knows of an offset
    beyond the end of such a log."""

MAX_BYTES = 8 << 20
"""Of logs that are judged at once: as much as a thread reads before it looks whether to stop."""


def may_be_judged_whole(partition: Partition) -> bool:
    """Whether the engine may judge the log of a partition alone, which is all of it and local.

    Its copies are not asked about.
    """
    if partition.topic is None or not partition.is_whole or partition.odd_files:
        return False
    return sum(partition.sizes) <= MAX_BYTES


def judge_whole_logs(
    partitions: Sequence[Partition],
    surroundings: Surroundings,
    *,
    level: str,
    now_ms: int,
    progress: Callable[[int], bool],
) -> list[WholeLog | None]:
    """Reads and judges whole logs; None for one that takes more than this.

    Args:
        partitions: those of the logs.
        surroundings: what is known besides their files.
        level: ``crc``, ``decode`` or ``full``.
        now_ms: the time of the audit.
        progress: called with the bytes of the logs judged so far; returns whether to continue.

    Raises:
        AuditCancelledError: `progress` returned false.
    """
    offsets = surroundings.checkpoints.offsets
    return _engine.judge_whole_logs(
        [(partition, offsets(partition)) for partition in partitions],
        settings={
            topic: settings_of(config)
            for topic in {partition.topic or "" for partition in partitions}
            if (config := surroundings.topic_config(topic))
        },
        level=level,
        now_ms=now_ms,
        progress=progress,
    )
