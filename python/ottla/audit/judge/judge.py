"""The scanned files of a log judged together: sequences, transactions and gaps across files.

`judge_log` is a function of what was scanned and of the small files beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla import _engine
from ottla.audit.catalogue.findings import Finding, from_engine
from ottla.audit.judge import side_files
from ottla.audit.judge.packed import PackedLog, ScannedFile, pack_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ottla.audit.judge.context import Surroundings
    from ottla.audit.plan.plan import Log
    from ottla.logs.inventory import FileEntry, Inventory, Partition
    from ottla.logs.names import FileKind
    from ottla.storage import Files

ENGINE_TABLES = ("gaps", "transactions", "producers", "epochs", "timeline", "metrics")
"""Tables whose rows the engine gives when it merges the segments of a partition."""


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
