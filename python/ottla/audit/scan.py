"""How one file is scanned, in one pass or in ranges: what it takes, and how ranges are joined.

A request is data: it is carried out by a thread of this process, or by a task of a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla import _engine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.audit.inventory import FileEntry, FileKind
    from ottla.audit.plan import Log, ScanTask


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """One file, and all that is known about it beside its bytes."""

    path: bytes
    base_offset: int | None
    next_base_offset: int | None
    is_active: bool
    stopped_cleanly: bool
    is_consumer_offsets: bool
    is_compared: bool
    """Whether the partition will be compared with its copies."""
    offset_index: bytes | None
    time_index: bytes | None
    level: str
    now_ms: int

    def open(self) -> _engine.Segment:
        """The segment, whose size is taken now.

        Raises:
            OSError: the file cannot be opened.
        """
        return _engine.Segment(
            self.path,
            base_offset=self.base_offset,
            next_base_offset=self.next_base_offset,
            is_active=self.is_active,
            stopped_cleanly=self.stopped_cleanly,
            is_consumer_offsets=self.is_consumer_offsets,
            is_compared=self.is_compared,
            offset_index=self.offset_index,
            time_index=self.time_index,
            level=self.level,
            now_ms=self.now_ms,
        )


def scan_request(
    task: ScanTask,
    log: Log,
    beside: Mapping[tuple[FileKind, int], FileEntry],
    *,
    level: str,
    now_ms: int,
    is_compared: bool,
) -> ScanRequest:
    """What it takes to scan the file of a task; `beside` is what its log has beside segments."""
    return ScanRequest(
        path=task.file.path,
        base_offset=task.base_offset,
        next_base_offset=task.next_base_offset,
        is_active=task.is_active,
        stopped_cleanly=log.partition is not None and log.partition.stopped_cleanly,
        is_consumer_offsets=log.is_consumer_offsets,
        is_compared=is_compared,
        offset_index=_path_beside(beside, "offset-index", task.base_offset),
        time_index=_path_beside(beside, "time-index", task.base_offset),
        level=level,
        now_ms=now_ms,
    )


def reason_of(error: OSError) -> str:
    """Why a file cannot be read, as findings say it."""
    reason = error.strerror or str(error)
    return reason[:1].lower() + reason[1:]


def _path_beside(
    beside: Mapping[tuple[FileKind, int], FileEntry], kind: FileKind, base_offset: int | None
) -> bytes | None:
    """Path of the file of a kind beside a segment, if there is one and it holds anything."""
    file = None if base_offset is None else beside.get((kind, base_offset))
    return None if file is None or not file.size else file.path
