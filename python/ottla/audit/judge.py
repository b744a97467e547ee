"""The scanned files of a log judged together, and what all logs show put in order.

`judge_log` is a function of what was scanned and of the small files beside it: threads (`run`) call
it, and tasks of a cluster. `Gathered` takes its answers in any order and makes the outcome.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ottla import _engine
from ottla.audit import side_files
from ottla.audit.findings import UNREADABLE, Finding, by_place, from_engine
from ottla.audit.kept import KeptFiles, KeptLogs, KeptRows, PackedLog, ScannedFile, pack_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ottla.audit.context import Surroundings
    from ottla.audit.plan import Log, Plan
    from ottla.logs.inventory import FileEntry, Inventory, Partition
    from ottla.logs.names import FileKind
    from ottla.storage import Files

ENGINE_TABLES = ("gaps", "transactions", "producers", "epochs", "timeline", "metrics")
"""Tables whose rows the engine gives when it merges the segments of a partition."""

OUTCOME_TABLES = (*ENGINE_TABLES, "differences")
"""Those, and what copies of partitions show together."""


class TableRows(Protocol):
    """Rows of a table, each with its partition."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[tuple[Partition, Mapping[str, Any]]]: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the run of a plan has shown."""

    files: KeptFiles
    """By path; a file that could not be read is not there."""
    reasons: Mapping[bytes, str]
    """Why a file could not be read, by path."""
    findings: tuple[Finding, ...]
    """By file and position."""
    tables: Mapping[str, TableRows]
    """Rows of `OUTCOME_TABLES`, each with its partition."""
    recovery: tuple[tuple[Any, ...], ...]
    """Rows of the table of that name."""
    elapsed_s: float
    read_again: int = 0
    """Ranges that did not fit to what is before them, and so were read twice."""


@dataclass(frozen=True, slots=True)
class JudgedLog:
    """What the files of a log show together; small, and picklable."""

    packed: PackedLog
    findings: tuple[Finding, ...]
    reasons: Mapping[bytes, str]
    """Why a file is no log after all, by path."""
    has_small_files: bool
    """Whether the text files of the partition were read."""
    topic_id: str | None
    extent: side_files.LogRange | None
    """Where the log starts and ends, if every segment was read."""


def judge_log(
    log: Log, scans: Mapping[int, Any], inventory: Inventory, surroundings: Surroundings
) -> tuple[JudgedLog, Any | None]:
    """Judges the scans of a log's files, by index: sequences, transactions and gaps across files.

    Gives the engine's state, too, where every file was scanned; copies are compared by it. The
    inventory is asked for names alone, and where files are read.
    """
    partition = log.partition
    small = None
    if log.is_live and partition is not None:
        small = side_files.read_small_files(partition, inventory)
    epochs = small and small.leader_epochs
    findings: list[Finding] = []
    reasons: dict[bytes, str] = {}
    tables: dict[str, list[Mapping[str, Any]]] = {name: [] for name in ENGINE_TABLES}
    runs = list(_unbroken(log.files, scans))
    merged = None
    beside = log.beside
    for run in runs:
        merged = _engine.merge_partition(
            [(inventory.display(file.path), scan) for file, scan in run],
            **surroundings.of(log, run[0][0], epochs or []),
            **(_beside(log, beside, inventory.files) if len(run) == len(log.files) else {}),
        )
        findings += (_named(finding, partition) for finding in merged.findings)
        if run[0][0].kind == "segment" and run[0][0].state == "live":
            for name in ENGINE_TABLES:
                tables[name] += getattr(merged, name)
    for file, scan in (pair for run in runs for pair in run):
        if file.base_offset is None and not scan.batches and scan.bytes:
            # A file of another kind, named by mistake.
            reasons[file.path] = f"no log: not one record batch in its {scan.bytes:,} bytes"
    is_read = len(scans) == len(log.files)
    extent = None
    if log.is_whole and is_read and merged is not None:
        start_offset, end_offset = merged.log_start_offset, merged.log_end_offset
        if start_offset is not None and end_offset is not None:
            extent = side_files.LogRange(start_offset, end_offset)
    if partition is not None and partition.is_whole and small is not None:
        findings += side_files.check_partition(partition, inventory, extent, small)
    files = {number: _scanned(scans[number]) for number in sorted(scans)}
    judged = JudgedLog(
        packed=pack_log(files, tables),
        findings=tuple(findings),
        reasons=reasons,
        has_small_files=small is not None,
        topic_id=None if small is None else small.topic_id,
        extent=extent,
    )
    return judged, merged if is_read else None


class Gathered:
    """What was judged so far, in any order; several threads may add."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lock = threading.Lock()
        self._kept = KeptLogs(plan.logs, ENGINE_TABLES)
        self._reasons: dict[bytes, str] = {}
        self._findings: list[Finding] = []
        self._ranges: dict[bytes, side_files.LogRange] = {}
        self._topic_ids: dict[bytes, str | None] = {}
        """Of the partitions whose small files were looked at, by directory."""

    @property
    def tables(self) -> dict[str, TableRows]:
        """Rows of `ENGINE_TABLES`."""
        return {name: KeptRows(self._kept, name) for name in ENGINE_TABLES}

    @property
    def files(self) -> KeptFiles:
        """Every scanned file."""
        return KeptFiles(self._kept)

    @property
    def reasons(self) -> Mapping[bytes, str]:
        """Why a file could not be read, by path."""
        return self._reasons

    def cannot_read(self, path: bytes, reason: str) -> None:
        """Keeps why a file could not be read."""
        with self._lock:
            self._reasons[path] = reason

    def add(self, index: int, judged: JudgedLog) -> None:
        """Keeps what a log of the plan shows."""
        partition = self._plan.logs[index].partition
        with self._lock:
            self._kept.add(index, judged.packed)
            self._findings += judged.findings
            self._reasons |= judged.reasons
            if partition is not None:
                if judged.has_small_files:
                    self._topic_ids[partition.directory] = judged.topic_id
                if judged.extent is not None:
                    self._ranges[partition.directory] = judged.extent

    def findings(self, compared: Iterable[Finding]) -> list[Finding]:
        """All findings in order: of the logs, about what lies around them, and about copies."""
        self._findings += self._around_the_segments()
        self._findings += compared
        return sorted(self._findings, key=by_place)

    def _around_the_segments(self) -> Iterable[Finding]:
        """What the names and the small files tell, and what could not be read."""
        plan = self._plan
        yield from plan.findings
        yield from _unread(plan, self._reasons)
        for partition in plan.partitions:
            # Those with a segment that was read are done.
            if partition.is_whole and partition.directory not in self._topic_ids:
                small = side_files.read_small_files(partition, plan.inventory)
                self._topic_ids[partition.directory] = small.topic_id
                yield from side_files.check_partition(partition, plan.inventory, None, small)
        yield from side_files.check_topic_ids(plan.inventory, plan.partitions, self._topic_ids)
        ranges = self._ranges_with_sound_ends()
        for directory in plan.log_directories:
            yield from side_files.check_log_directory(directory, plan.inventory, ranges)

    def _ranges_with_sound_ends(self) -> dict[bytes, side_files.LogRange]:
        """Without the logs whose end damage took: a checkpoint beyond it is no second finding."""
        lost: dict[str, list[tuple[int, int]]] = {}
        for f in self._findings:
            if f.severity == "error" and f.first_offset is not None and f.last_offset is not None:
                place = os.path.dirname(f.file or "")
                lost.setdefault(place, []).append((f.first_offset, f.last_offset))
        if not lost:
            return self._ranges
        return {
            path: log
            for path, log in self._ranges.items()
            if not any(
                first <= log.end_offset <= last
                for first, last in lost.get(self._plan.inventory.display(path), ())
            )
        }


def _scanned(scan: Any) -> ScannedFile:
    return ScannedFile(
        size=scan.bytes,
        batches=scan.batches,
        records=scan.records,
        first_offset=scan.first_offset,
        next_offset=scan.next_offset,
        min_timestamp=scan.min_timestamp,
        max_timestamp=scan.max_timestamp,
        magics=tuple(scan.magics),
        codecs=tuple(scan.codecs),
    )


def _beside(
    log: Log, beside: Mapping[tuple[FileKind, int], FileEntry], files: Files
) -> dict[str, Any]:
    """What is to be held against the segments of a log when they are put together."""
    if log.partition is None or not log.partition.is_whole or not log.is_whole:
        return {}
    snapshots = [
        (offset, files.place(file.path, file.size))
        for (kind, offset), file in sorted(beside.items(), key=lambda item: item[0])
        if kind == "producer-snapshot"
    ]
    indexes = [
        None
        if (file := beside.get(("transaction-index", base))) is None
        else files.place(file.path, file.size)
        for base in (f.base_offset or 0 for f in log.files)
    ]
    return {"snapshots": snapshots, "transaction_indexes": indexes}


def _unbroken(
    files: Sequence[FileEntry], scans: Mapping[int, Any]
) -> Iterable[Sequence[tuple[FileEntry, Any]]]:
    """The scanned files in runs without an unread file between: its offsets are not missing."""
    run: list[tuple[FileEntry, Any]] = []
    for index, file in enumerate(files):
        if index in scans:
            run.append((file, scans[index]))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _named(finding: Mapping[str, Any], partition: Partition | None) -> Finding:
    return from_engine(
        finding,
        file=finding["file"],
        topic=partition.topic if partition else None,
        partition=partition.partition if partition else None,
    )


def _unread(plan: Plan, reasons: Mapping[bytes, str]) -> Iterable[Finding]:
    inventory = plan.inventory
    for unreadable in inventory.unreadable:
        yield _unreadable(inventory, unreadable.path, unreadable.reason, None)
    for log in plan.logs:
        for file in log.files:
            reason = file.fault or reasons.get(file.path)
            if reason is not None:
                yield _unreadable(inventory, file.path, reason, log.partition)
    for pattern in plan.unmatched_topics:
        yield Finding(
            name=UNREADABLE,
            severity="error",
            file=None,
            topic=pattern,
            partition=None,
            message=f"no topic matches {pattern!r}",
        )


def _unreadable(
    inventory: Inventory, path: bytes, reason: str, partition: Partition | None
) -> Finding:
    name = inventory.display(path)
    return Finding(
        name=UNREADABLE,
        severity="error",
        file=name,
        topic=partition.topic if partition else None,
        partition=partition.partition if partition else None,
        message=f"{name}: {reason}",
    )
