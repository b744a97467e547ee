"""Collects the results of all logs, added in any order by threads, and puts them in order."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla import _engine
from ottla.audit.catalogue.findings import UNREADABLE, Findings, make_finding
from ottla.audit.judge import side_files
from ottla.audit.judge.bound import bounded
from ottla.audit.judge.packed import ENGINE_TABLES, PackedLogs, PackedRows, ScannedFiles
from ottla.logs.listing import MAX_DEPTH
from ottla.logs.live import start_behind
from ottla.logs.near import near_names, near_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ottla.audit.advice.deed import Deed
    from ottla.audit.catalogue.finding import PlacedFinding
    from ottla.audit.judge.judge import JudgedLog
    from ottla.audit.judge.whole import WholeLog
    from ottla.audit.plan.logs import Log
    from ottla.audit.plan.plan import Plan
    from ottla.logs.checkpoints import Checkpoints
    from ottla.logs.columns import Row
    from ottla.logs.inventory import FileEntry, Inventory, Partition

_BESIDE = ("offset-index", "time-index", "transaction-index", "producer-snapshot")
"""Files that are compared with the segments."""

_DAMAGE = frozenset(("crc-mismatch", "damaged-range", "magic-fault", "out-of-segment"))
"""Findings of bytes inside a log whose records it still counts, by their offsets."""

OUTCOME_TABLES = (*ENGINE_TABLES, "differences")
"""Tables with rows of the engine: those of logs, and the differences of copies."""


class TableRows(Protocol):
    """Rows of a table, each with its partition."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[tuple[Partition, Mapping[str, Any]]]: ...


class Outcome(NamedTuple):
    """The results of running a plan."""

    files: ScannedFiles
    """Scanned files by path; without those that could not be read."""
    reasons: Mapping[bytes, str]
    """Why files could not be read, by path."""
    findings: Findings
    """Sorted by file and position."""
    tables: Mapping[str, TableRows]
    """Rows of `OUTCOME_TABLES`, each with its partition."""
    recovery: tuple[Row, ...] = ()
    """Rows of the table `recovery`."""
    advice: tuple[Deed, ...] = ()
    """Deeds before the next start, the best first for each log directory."""
    elapsed_s: float = 0.0
    started_ms: int = 0
    """When the run began, in ms since 1970."""
    read_again: int = 0
    """Ranges that were read twice because they do not continue the ones before."""


class Collector:
    """The results of logs judged so far, in any order; safe to share between threads."""

    def __init__(self, plan: Plan, checkpoints: Checkpoints) -> None:
        self._plan = plan
        self._lock = threading.Lock()
        self._packed = PackedLogs(plan.logs)
        self._checkpoints = checkpoints
        self._reasons: dict[bytes, str] = {}
        self._findings: list[_engine.PlacedFindings] = []
        """Those of logs, and those of directories."""
        self._compared: list[PlacedFinding] = []
        self._differences: list[tuple[bytes, Mapping[str, Any]]] = []
        self._read_again = 0
        self._ends: dict[bytes, int] = {}
        """Where logs of which every segment was read end, by directory; not those that end behind
        all that checkpoints know of them."""
        self._topic_ids: dict[bytes, str | None] = {}
        """Topic ids of the partitions whose small files were read, by directory."""

    def add_unreadable(self, path: bytes, reason: str) -> None:
        """Adds a file that could not be read."""
        with self._lock:
            self._reasons[path] = reason

    def add(self, index: int, judged: JudgedLog) -> None:
        """Adds the result of a log of the plan."""
        partition = self._plan.logs[index].partition
        with self._lock:
            self._packed.add(index, judged.packed)
            self._findings += judged.findings
            if judged.reasons:
                self._reasons |= judged.reasons
            if partition is not None:
                if judged.has_small_files:
                    self._topic_ids[partition.directory] = judged.topic_id
                if judged.end_offset is not None:
                    self._ends[partition.directory] = judged.end_offset

    def add_whole(self, logs: Iterable[tuple[tuple[int, Partition], WholeLog]]) -> None:
        """Adds logs of the plan that were judged in one call, by index and partition."""
        with self._lock:
            for (index, partition), (packed, topic_id, found) in logs:
                self._packed.add(index, packed)
                if found is not None:
                    self._findings.append(found)
                # All partitions of a topic share one string.
                self._topic_ids[partition.directory] = topic_id and sys.intern(topic_id)

    def add_compared(
        self,
        differences: Iterable[tuple[bytes, Mapping[str, Any]]],
        findings: Iterable[PlacedFinding],
    ) -> None:
        """Adds the result of comparing copies: rows of `differences` by directory, and findings."""
        with self._lock:
            self._differences += differences
            self._compared += findings

    def add_read_again(self, count: int) -> None:
        """Adds a number of ranges that were read twice."""
        with self._lock:
            self._read_again += count

    def outcome(self) -> Outcome:
        """Returns the results of all logs, in order. Called once, after the last is added."""
        beside = [*bounded(self._directory_findings()), *self._compared]
        self._findings.append(_engine.PlacedFindings(beside))
        tables: dict[str, TableRows] = {
            name: PackedRows(self._packed, name) for name in ENGINE_TABLES
        }
        return Outcome(
            files=ScannedFiles(self._packed),
            reasons=self._reasons,
            findings=Findings.in_order(self._findings),
            tables=tables | {"differences": self._differences_in_order()},
            read_again=self._read_again,
        )

    def _differences_in_order(self) -> tuple[tuple[Partition, Mapping[str, Any]], ...]:
        """Returns rows of `differences` with their partitions, sorted."""
        if not self._differences:
            return ()
        partitions = {partition.directory: partition for partition in self._plan.partitions}
        in_order = sorted(self._differences, key=lambda row: (row[0], row[1]["first_offset"]))
        return tuple((partitions[directory], row) for directory, row in in_order)

    def _directory_findings(self) -> Iterable[PlacedFinding]:
        """Yields findings about names and small files, and what could not be read."""
        plan = self._plan
        yield from plan.findings
        yield from _unread(plan, self._reasons)
        for partition in plan.partitions:
            # Partitions with a segment that was read are done already.
            if partition.is_whole and partition.directory not in self._topic_ids:
                small = side_files.read_small_files(partition, plan.inventory)
                self._topic_ids[partition.directory] = small.topic_id
                yield from side_files.check_partition(partition, None, small)
                yield from side_files.check_segments(partition, self._checkpoints)
        yield from side_files.check_topic_ids(plan.inventory, plan.partitions, self._topic_ids)
        ends = self._ends_with_damage()
        yield from side_files.check_log_directories(
            plan.log_directories, plan.inventory, self._checkpoints, ends
        )

    def _ends_with_damage(self) -> dict[bytes, int]:
        """Returns the ends of logs; damage at the end belongs to the log, as far as it reaches.

        A tail does not: what a checkpoint knows of it is why it is an error.
        """
        ends = dict(self._ends)
        found = (f for part in self._findings for f in Findings(part).named(_DAMAGE))
        damage = (f for f in found if f.severity == "error")
        for f in sorted(damage, key=lambda f: f.first_offset or 0):
            first, last, path = f.first_offset, f.last_offset, f.directory
            if path not in ends or first is None or last is None:
                continue
            if first <= ends[path] <= last:
                ends[path] = last + 1
        return ends


def _unread(plan: Plan, reasons: Mapping[bytes, str]) -> Iterable[PlacedFinding]:
    inventory = plan.inventory
    for unreadable in inventory.unreadable:
        missing = unreadable.reason + near_paths(unreadable.path)
        yield _unreadable(inventory, unreadable.path, missing, None)
    # All files of the others were there when they were listed.
    for log in plan.logs if reasons else plan.logs.made():
        if not reasons and log.partition is not None and not log.partition.odd_files:
            continue
        for file in log.files:
            reason = file.fault or reasons.get(file.path)
            if reason is not None:
                meanwhile = _deleted_meanwhile(inventory, log, file) if not file.fault else None
                yield meanwhile or _unreadable(inventory, file.path, reason, log.partition)
    if not plan.partitions and not inventory.unreadable and not plan.unmatched_topics:
        message = f"{inventory.display(inventory.base) or '/'}: no segment to audit"
        yield make_finding(UNREADABLE, message, path=inventory.base)
    if inventory.too_deep:
        first, count = inventory.too_deep[0], len(inventory.too_deep)
        more = f" nor into {count - 1:,} more such directories" if count > 1 else ""
        yield make_finding(
            "limit-exceeded",
            f"{inventory.display(first)}: the directories in it were not looked into{more}:"
            f" more than {MAX_DEPTH} levels below what was given, logs are not looked for",
            path=first,
        )
    for partition in plan.partitions:
        for file in partition.odd_files:
            if file.fault is not None and file.state == "live" and file.kind in _BESIDE:
                yield _unreadable(inventory, file.path, file.fault, partition)
    for pattern in plan.unmatched_topics:
        names = {p.topic for p in inventory.partitions if p.topic is not None}
        message = f"no topic matches {pattern!r}{near_names(pattern, names, 'topics')}"
        yield make_finding(UNREADABLE, message, path=None, pattern=pattern)


def _deleted_meanwhile(inventory: Inventory, log: Log, file: FileEntry) -> PlacedFinding | None:
    """The finding about a segment that is not there any more, if a broker may have deleted it."""
    partition = log.partition
    if not log.is_live or partition is None or partition.stopped_cleanly:
        return None
    start = start_behind(partition, file, inventory.files) if partition.state == "live" else None
    if start is None:
        return None
    return make_finding(
        "deleted-meanwhile",
        f"{inventory.display(file.path)}: deleted while it was audited: the log starts at offset"
        f" {start} now",
        path=file.path,
        directory=partition.directory,
        first_offset=file.base_offset,
    )


def _unreadable(
    inventory: Inventory, path: bytes, reason: str, partition: Partition | None
) -> PlacedFinding:
    directory = partition.directory if partition else None
    message = f"{inventory.display(path)}: {reason}"
    return make_finding(UNREADABLE, message, path=path, directory=directory)
