"""Logs in which nothing is found, each judged in one call of the engine: what most logs are.

Only a log with something to tell goes the long way, on which Python takes part for each file and
finding. Both come to the same result; `tests/audit/judge/test_clean.py` holds them together.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ottla import _engine
from ottla.audit.judge.judge import JudgedLog
from ottla.audit.judge.merge import settings_of
from ottla.audit.judge.side_files import LogRange
from ottla.logs.names import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
)

if TYPE_CHECKING:
    from ottla.audit.judge.context import Surroundings
    from ottla.audit.plan.plan import Log

MAX_BYTES = 8 << 20
"""Of a log that is judged at once: as much as a thread reads before it looks whether to stop."""


def may_be_clean(log: Log) -> bool:
    """Whether a log is small, whole and on this machine, so that one call may do.

    Of a local log; its copies are not asked about.
    """
    partition = log.partition
    if partition is None or partition.topic is None or not (log.is_live and log.is_whole):
        return False
    if not partition.is_whole or partition.odd_files:
        return False
    return sum([file.size for file in log.files]) <= MAX_BYTES


def judge_clean_log(
    log: Log, surroundings: Surroundings, *, level: str, now_ms: int
) -> JudgedLog | None:
    """Reads and judges a log that may be clean; None if there is anything to tell of it."""
    partition = log.partition
    if partition is None or partition.topic is None:
        return None
    offsets, is_live = surroundings.checkpoints.offsets(partition), partition.state == "live"
    judged = _engine.judge_clean(
        partition.directory,
        partition.names,
        partition.sizes,
        state=partition.state,
        level=level,
        now_ms=now_ms,
        stopped_cleanly=partition.stopped_cleanly,
        is_consumer_offsets=log.is_consumer_offsets,
        topic=partition.topic,
        log_start_offset=offsets[LOG_START_OFFSETS],
        recovery_point=offsets[RECOVERY_POINTS] if is_live else None,
        high_watermark=offsets[HIGH_WATERMARKS] if is_live else None,
        first_dirty_offset=offsets[CLEANER_OFFSETS],
        **settings_of(surroundings.topic_config(partition.topic)),
    )
    if judged is None:
        return None
    packed, topic_id, (start, end) = judged
    return JudgedLog(
        packed=packed,
        findings=(),
        reasons={},
        has_small_files=True,
        topic_id=topic_id and sys.intern(topic_id),
        extent=LogRange(start, end),
    )
