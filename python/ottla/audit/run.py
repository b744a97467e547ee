"""Carries a plan out with threads: the only module of the audit with threads and a clock.

Each thread takes the next file, or the next range of a large one, and lets the engine scan it
without the interpreter's lock. Ranges are joined from the left as they come. What a file leaves
behind is its row and its findings; when the last file of a log is done, the log is merged
(sequences, transactions and gaps across files) and the engine's state of it is let go.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ottla import _engine
from ottla.audit import sidefiles
from ottla.audit.context import Surroundings
from ottla.audit.findings import UNREADABLE, Finding, by_place, from_engine
from ottla.audit.kept import KeptFiles, KeptLogs, KeptRows, ScannedFile
from ottla.audit.replicas import Comparison
from ottla.audit.restarts import Starts
from ottla.errors import AuditCancelledError

if TYPE_CHECKING:
    from ottla.audit.inventory import FileEntry, FileKind, Inventory, Partition
    from ottla.audit.plan import Log, Plan, ScanTask

ENGINE_TABLES = ("gaps", "transactions", "producers", "epochs", "timeline", "metrics")
"""Tables whose rows the engine gives when it merges the segments of a partition."""

OUTCOME_TABLES = (*ENGINE_TABLES, "differences")
"""Those, and what copies of partitions show together."""

Progress = Callable[[int, int], object]
"""Called with the bytes read so far and the bytes to be read, by one thread at a time."""


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


def default_threads() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_plan(
    plan: Plan,
    *,
    level: str,
    threads: int,
    max_mb_per_s: float | None = None,
    progress: Progress | None = None,
    topic_configs: Mapping[str, Mapping[str, str]] | None = None,
) -> Outcome:
    """Scans every file of the plan.

    Args:
        plan: what to scan.
        level: ``crc``, ``decode`` or ``full``.
        threads: how many files and ranges are scanned at once.
        max_mb_per_s: bound on the bytes read a second by all threads together, in 10⁶ bytes.
        progress: told how far the run is, at least every 8 MiB a thread.
        topic_configs: settings of topics, by pattern.

    Raises:
        KeyboardInterrupt: after Ctrl-C, as soon as each thread is through its current 8 MiB.
    """
    surroundings = Surroundings(sidefiles.Checkpoints(), topic_configs)
    return _Run(plan, level, max_mb_per_s, progress, surroundings).outcome(threads)


@dataclass(slots=True)
class _LogState:
    """A log on its way: the scans of its files, by index, until all are there."""

    pending: int
    beside: Mapping[tuple[FileKind, int], FileEntry]
    """As of the log."""
    scans: dict[int, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _FileState:
    """A file on its way: its ranges, which are joined from the left by one thread at a time."""

    task: ScanTask
    count: int
    changed: threading.Condition = field(default_factory=threading.Condition)
    segment: _engine.Segment | None = None
    chunks: dict[int, _engine.Chunk | None] = field(default_factory=dict)
    """Those that wait for the ones before them; `None` is a range that could not be read."""
    left: _engine.Chunk | None = None
    """All up to `joined`."""
    joined: int = 0
    is_joining: bool = False
    reason: str | None = None
    """Why the file cannot be read."""

    def next_chunk(self) -> tuple[bool, _engine.Chunk | None]:
        """Whether the range that follows those joined is there, and what it shows."""
        with self.changed:
            if self.joined not in self.chunks:
                self.is_joining = False
                return False, None
            return True, self.chunks.pop(self.joined)


class _Throttle:
    """Lets bytes pass at a rate: each amount pushes the moment of the next one back."""

    def __init__(self, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._lock = threading.Lock()
        self._free_at = time.monotonic()

    def delay_s(self, size: int) -> float:
        """How long to wait after having read so many bytes."""
        with self._lock:
            now = time.monotonic()
            self._free_at = max(self._free_at, now) + size / self._bytes_per_s
            return self._free_at - now


class _Run:
    def __init__(
        self,
        plan: Plan,
        level: str,
        max_mb_per_s: float | None,
        progress: Progress | None,
        surroundings: Surroundings,
    ) -> None:
        self._plan = plan
        self._level = level
        self._throttle = None if max_mb_per_s is None else _Throttle(max_mb_per_s * 1e6)
        self._progress = progress
        self._now_ms = time.time_ns() // 1_000_000
        self._lock = threading.Lock()
        self._progress_lock = threading.Lock()
        self._cancelled = threading.Event()
        self._work_items = (
            (state, number, *span)
            for task in plan.tasks
            for state in [_FileState(task, len(task.ranges))]
            for number, span in enumerate(task.ranges)
        )
        self._read_again = 0
        self._read = 0
        self._total = plan.byte_count
        self._kept = KeptLogs(plan.logs, ENGINE_TABLES)
        self._reasons: dict[bytes, str] = {}
        self._findings: list[Finding] = []
        self._ranges: dict[bytes, sidefiles.LogRange] = {}
        self._topic_ids: dict[bytes, str | None] = {}
        """Of the partitions whose small files were looked at, by directory."""
        self._surroundings = surroundings
        self._comparison = Comparison(
            plan.inventory, plan.copies, surroundings.checkpoints, self._may_read
        )
        self._logs: dict[int, _LogState] = {}
        """Those of which some files are scanned, or are being scanned."""

    def outcome(self, threads: int) -> Outcome:
        start = time.monotonic()
        ranges = sum(len(task.ranges) for task in self._plan.tasks)
        self._threads = min(threads, max(1, ranges))
        self._scan_all(self._threads)
        self._findings += self._around_the_segments()
        self._comparison.finish()
        self._findings += self._comparison.findings
        self._findings.sort(key=by_place)
        tables = {name: KeptRows(self._kept, name) for name in ENGINE_TABLES}
        return Outcome(
            files=KeptFiles(self._kept),
            reasons=self._reasons,
            findings=tuple(self._findings),
            tables=tables | {"differences": self._comparison.sorted_rows()},
            recovery=self._restarts(
                Starts(self._plan, self._findings, tables, self._surroundings.checkpoints)
            ),
            elapsed_s=time.monotonic() - start,
            read_again=self._read_again,
        )

    def _restarts(self, starts: Starts) -> tuple[tuple[Any, ...], ...]:
        """What the next start makes of each suspect, some at once."""
        if not starts.suspects:
            return ()
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(self._threads, thread_name_prefix="ottla-restart") as executor:
            try:
                told = executor.map(
                    lambda partition: starts.rows(partition, self._throttled()), starts.suspects
                )
                return tuple(row for rows in told for row in rows)
            finally:
                self._cancelled.set()

    def _scan_all(self, threads: int) -> None:
        # Loaded here: it brings `logging`, a good part of what `import ottla` may cost.
        from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

        with ThreadPoolExecutor(threads, thread_name_prefix="ottla-audit") as executor:
            futures = [executor.submit(self._work) for _ in range(threads)]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                # Reached by Ctrl-C and by a fault in a thread: the others stop at the next window.
                self._cancelled.set()
        for future in futures:
            future.result()
        # What is read from here on can be stopped too.
        self._cancelled.clear()

    def _work(self) -> None:
        try:
            while not self._cancelled.is_set():
                with self._lock:
                    item = next(self._work_items, None)
                if item is None:
                    return
                self._scan(*item)
        except AuditCancelledError:
            if not self._cancelled.is_set():
                raise
        except BaseException:
            self._cancelled.set()
            raise

    def _scan(self, state: _FileState, number: int, start: int, stop: int) -> None:
        """Scans one range of a file, and joins what can be joined."""
        size = min(stop, state.task.file.size) - start
        reported = 0

        def advance(read: int) -> bool:
            nonlocal reported
            # A few bytes behind a range are read for it too.
            done = read if state.count == 1 else min(read, size)
            self._advance(done - reported)
            reported = done
            return not self._cancelled.is_set()

        self._wait_for_room(state, number)
        scan = None
        chunk = None
        try:
            segment = self._open(state)
            if state.count == 1:
                scan = segment.scan(progress=advance)
                advance(scan.bytes)
            elif state.reason is None:
                chunk = segment.scan_range(start, stop, progress=advance)
        except OSError as error:
            self._fail(state, error)
        self._report(size - reported)
        if state.count == 1:
            self._keep(state.task, scan)
        else:
            self._join(state, number, chunk)

    def _wait_for_room(self, state: _FileState, number: int) -> None:
        """Waits while too many ranges wait to be joined: what they show is held in memory."""
        with state.changed:
            while number - state.joined > 2 * self._threads and not self._cancelled.is_set():
                state.changed.wait(0.1)

    def _open(self, state: _FileState) -> _engine.Segment:
        with state.changed:
            if state.segment is None:
                task = state.task
                log = self._plan.logs[task.log]
                beside = self._log_state(task.log).beside
                state.segment = _engine.Segment(
                    task.file.path,
                    base_offset=task.base_offset,
                    next_base_offset=task.next_base_offset,
                    is_active=task.is_active,
                    stopped_cleanly=log.partition is not None and log.partition.stopped_cleanly,
                    is_consumer_offsets=log.is_consumer_offsets,
                    is_compared=log.is_whole and self._comparison.wants(log.partition),
                    offset_index=_path_beside(beside, "offset-index", task.base_offset),
                    time_index=_path_beside(beside, "time-index", task.base_offset),
                    level=self._level,
                    now_ms=self._now_ms,
                )
            return state.segment

    def _log_state(self, index: int) -> _LogState:
        with self._lock:
            state = self._logs.get(index)
            if state is None:
                log = self._plan.logs[index]
                count = sum(file.fault is None for file in log.files)
                state = self._logs[index] = _LogState(count, log.beside)
            return state

    def _fail(self, state: _FileState, error: OSError) -> None:
        reason = error.strerror or str(error)
        state.reason = reason[:1].lower() + reason[1:]
        with self._lock:
            self._reasons[state.task.file.path] = state.reason

    def _join(self, state: _FileState, number: int, chunk: _engine.Chunk | None) -> None:
        """Joins the ranges that follow those joined before; the last one completes the file."""
        with state.changed:
            state.chunks[number] = chunk
            if state.is_joining:
                return
            state.is_joining = True
        while True:
            is_there, right = state.next_chunk()
            if not is_there:
                return
            left = self._joined(state, right)
            with state.changed:
                state.left = left
                state.joined += 1
                is_last = state.joined == state.count
                state.changed.notify_all()
            if is_last:
                self._keep(state.task, self._finish(state))
                return

    def _joined(self, state: _FileState, right: _engine.Chunk | None) -> _engine.Chunk | None:
        if state.left is None or right is None or state.segment is None:
            return right if state.joined == 0 else None
        left = state.left.merge(right)
        if left.pieces == 1:
            return left
        with self._lock:
            self._read_again += 1
        try:
            return state.segment.resolve(left, progress=self._throttled())
        except OSError as error:
            self._fail(state, error)
            return None

    def _finish(self, state: _FileState) -> _engine.SegmentScan | None:
        if state.left is None or state.segment is None:
            return None
        try:
            return state.segment.finish(state.left, progress=self._throttled())
        except OSError as error:
            self._fail(state, error)
            return None

    def _throttled(self) -> Callable[[int], bool]:
        """Counts what is read a second time for the bound on speed alone."""
        known = 0

        def advance(read: int) -> bool:
            nonlocal known
            self._slow_down(read - known)
            known = read
            return not self._cancelled.is_set()

        return advance

    def _advance(self, size: int) -> None:
        """Counts bytes read, and waits where they came too fast."""
        self._report(size)
        self._slow_down(size)

    def _slow_down(self, size: int) -> None:
        if self._throttle is not None:
            self._cancelled.wait(self._throttle.delay_s(size))

    def _may_read(self, size: int) -> bool:
        """Before bytes are read to compare copies: waits, and says whether to go on."""
        self._slow_down(size)
        return not self._cancelled.is_set()

    def _report(self, size: int) -> None:
        if self._progress is not None and size:
            with self._progress_lock:
                self._read += size
                self._progress(self._read, self._total)

    def _keep(self, task: ScanTask, scan: Any | None) -> None:
        """Keeps the scan of a file until its log is complete, then merges the log."""
        state = self._log_state(task.log)
        log = self._plan.logs[task.log]
        with self._lock:
            if scan is not None:
                state.scans[task.index] = scan
            state.pending -= 1
            if state.pending:
                return
            del self._logs[task.log]
        self._merge(task.log, log, state)

    def _merge(self, index: int, log: Log, state: _LogState) -> None:
        """Judges the files of a log together, and keeps what remains of them."""
        inventory = self._plan.inventory
        partition = log.partition
        scans = state.scans
        small = None
        if log.is_live and partition is not None:
            small = sidefiles.read_small_files(partition, inventory)
        epochs = small and small.leader_epochs
        findings: list[Finding] = []
        tables: dict[str, list[Mapping[str, Any]]] = {name: [] for name in ENGINE_TABLES}
        runs = list(_unbroken(log.files, scans))
        for run in runs:
            merged = _engine.merge_partition(
                [(inventory.display(file.path), scan) for file, scan in run],
                **self._surroundings.of(log, run[0][0], epochs or []),
                **(_beside(log, state.beside) if len(run) == len(log.files) else {}),
            )
            findings += (_named(finding, partition) for finding in merged.findings)
            if run[0][0].kind == "segment" and run[0][0].state == "live":
                for name in ENGINE_TABLES:
                    tables[name] += getattr(merged, name)
        for file, scan in (pair for run in runs for pair in run):
            if file.base_offset is None and not scan.batches and scan.bytes:
                # A file of another kind, named by mistake.
                reason = f"no log: not one record batch in its {scan.bytes:,} bytes"
                with self._lock:
                    self._reasons[file.path] = reason
        files = {number: _scanned(scans[number]) for number in sorted(scans)}
        packed = self._kept.pack(files, tables)
        extent = None
        if log.is_whole and len(scans) == len(log.files):
            start_offset, end_offset = merged.log_start_offset, merged.log_end_offset
            if start_offset is not None and end_offset is not None:
                extent = sidefiles.LogRange(start_offset, end_offset)
        if partition is not None and partition.is_whole and small is not None:
            findings += sidefiles.check_partition(partition, inventory, extent, small)
        with self._lock:
            self._kept.add(index, packed, files, tables)
            self._findings += findings
            if partition is not None:
                if small is not None:
                    self._topic_ids[partition.directory] = small.topic_id
                if extent is not None:
                    self._ranges[partition.directory] = extent
        if partition is not None and log.is_whole and self._comparison.wants(partition):
            is_read = len(scans) == len(log.files)
            self._comparison.add(partition, log, merged if is_read else None)

    def _around_the_segments(self) -> Iterable[Finding]:
        """What the names and the small files tell, and what could not be read."""
        plan = self._plan
        yield from plan.findings
        yield from _unread(plan, self._reasons)
        for partition in plan.partitions:
            # Those with a segment that was read are done.
            if partition.is_whole and partition.directory not in self._topic_ids:
                small = sidefiles.read_small_files(partition, plan.inventory)
                self._topic_ids[partition.directory] = small.topic_id
                yield from sidefiles.check_partition(partition, plan.inventory, None, small)
        yield from sidefiles.check_topic_ids(plan.inventory, plan.partitions, self._topic_ids)
        ranges = self._ranges_with_sound_ends()
        for directory in plan.log_directories:
            yield from sidefiles.check_log_directory(directory, plan.inventory, ranges)

    def _ranges_with_sound_ends(self) -> dict[bytes, sidefiles.LogRange]:
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


def _path_beside(
    beside: Mapping[tuple[FileKind, int], FileEntry], kind: FileKind, base_offset: int | None
) -> bytes | None:
    """Path of the file of a kind beside a segment, if there is one and it holds anything."""
    file = None if base_offset is None else beside.get((kind, base_offset))
    return None if file is None or not file.size else file.path


def _beside(log: Log, beside: Mapping[tuple[FileKind, int], FileEntry]) -> dict[str, Any]:
    """What is to be held against the segments of a log when they are put together."""
    if log.partition is None or not log.partition.is_whole or not log.is_whole:
        return {}
    snapshots = sorted(
        (offset, file.path)
        for (kind, offset), file in beside.items()
        if kind == "producer-snapshot"
    )
    indexes = [
        None if (file := beside.get(("transaction-index", base))) is None else file.path
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
