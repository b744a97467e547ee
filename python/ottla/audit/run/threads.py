"""Runs a plan with threads of this process.

Each thread takes the next file, or the next range of a large one, and the engine scans it without
the interpreter's lock. Ranges are joined from the left as they arrive. After its last file, a log
is judged (sequences, transactions and gaps across files) and the engine's state of it is released;
only rows and findings remain.
"""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from ottla.arguments import check_kinds
from ottla.audit.judge.comparison import Comparison
from ottla.audit.judge.context import Surroundings
from ottla.audit.judge.whole import MAX_BYTES, judge_whole_logs, may_be_judged_whole
from ottla.audit.pipeline import check_arguments, judge_scans, run_audit
from ottla.audit.plan.logs import ENDLESS, tasks_of
from ottla.audit.plan.plan import SPLIT_BYTES, holding, plan_audit
from ottla.audit.run.crew import work_together
from ottla.audit.run.pace import Pace, check_rate
from ottla.errors import AuditCancelledError
from ottla.logs.checkpoints import Checkpoints
from ottla.storage import brought_ahead, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ottla import _engine
    from ottla.audit.advice.partition import AdviceRequest, PartitionOptions
    from ottla.audit.judge.collector import Collector
    from ottla.audit.judge.coordinators import ReadAnswer, ReadRequest
    from ottla.audit.judge.restarts import StartRequest
    from ottla.audit.pipeline import Level
    from ottla.audit.plan.logs import ScanTask
    from ottla.audit.plan.plan import Plan
    from ottla.audit.result.result import AuditResult
    from ottla.audit.run.pace import Progress
    from ottla.logs.columns import Row
    from ottla.logs.inventory import FileEntry, Partition
    from ottla.logs.names import FileKind
    from ottla.severity import Severity
    from ottla.storage import Source

Request = TypeVar("Request", "StartRequest", "AdviceRequest")
Answer = TypeVar("Answer")


def audit_by_threads(
    source: Source | Sequence[Source],
    *,
    topics: str | Sequence[str] | None,
    level: Level,
    threads: int | None,
    fail_on: Severity,
    progress: Progress | None,
    max_mb_per_s: float | None,
    replicas: Mapping[str, Source | Sequence[Source]] | None,
    topic_configs: Mapping[str, Mapping[str, str]] | None,
    split_bytes: int | None,
    storage_options: Mapping[str, str] | None,
    follow_links: bool,
    must_exist: bool,
) -> AuditResult:
    """See `ottla.audit`."""
    check_kinds(
        threads=threads,
        progress=progress,
        max_mb_per_s=max_mb_per_s,
        topic_configs=topic_configs,
        split_bytes=split_bytes,
    )
    check_arguments(level=level, fail_on=fail_on, split_bytes=split_bytes)
    if threads is not None and not 1 <= threads <= MAX_THREADS:
        raise ValueError(f"threads is {threads}, must be from 1 to {MAX_THREADS:,}")
    check_rate(max_mb_per_s)
    threads = threads or default_threads()
    plan = plan_audit(
        source,
        topics=topics,
        replicas=replicas,
        storage_options=storage_options,
        follow_links=follow_links,
        must_exist=must_exist,
        threads=threads,
    )
    with holding(plan.split(split_bytes or (SPLIT_BYTES if threads > 1 else None))) as held:
        runner = ThreadRunner(
            held,
            level=level,
            threads=threads,
            max_mb_per_s=max_mb_per_s,
            progress=progress,
            topic_configs=topic_configs,
        )
        return run_audit(runner, level=level, fail_on=fail_on)[1]


def default_threads() -> int:
    """Returns the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _LogState:
    """A log in progress: the scans of its files, by index, until all are complete.

    Args:
        pending: how many files are not complete.
        beside: see `Log.beside`.
    """

    def __init__(self, pending: int, beside: Mapping[tuple[FileKind, int], FileEntry]) -> None:
        self.pending = pending
        self.beside = beside
        self.scans: dict[int, _engine.SegmentScan] = {}


class _FileState:
    """A file in progress: its ranges, joined from the left by one thread at a time.

    Args:
        task: the file.
        count: how many ranges it has.
    """

    def __init__(self, task: ScanTask, count: int) -> None:
        self.task = task
        self.count = count
        self.changed = threading.Condition()
        self.segment: _engine.Segment | None = None
        self.chunks: dict[int, _engine.Chunk | None] = {}
        """Chunks that wait for the ones before them; `None` is a range that could not be read."""
        self.left: _engine.Chunk | None = None
        """All ranges up to `joined`, as one chunk."""
        self.joined = 0
        self.is_joining = False
        self.reason: str | None = None
        """Why the file cannot be read."""

    def next_chunk(self) -> tuple[bool, _engine.Chunk | None]:
        """Returns whether the range after the joined ones has arrived, and its chunk."""
        with self.changed:
            if self.joined not in self.chunks:
                self.is_joining = False
                return False, None
            return True, self.chunks.pop(self.joined)


LOGS_AT_ONCE = 128
"""Small logs that a thread takes at once: what it does under the interpreter's lock is small beside
them, and they are done in some milliseconds."""

SHARES = 8
"""So many times a thread comes back for small logs at least, so that all end together."""

MAX_THREADS = 1024
"""More than any disk serves at once; each takes some 10 MB."""


class ThreadRunner:
    """Runs a plan with threads of this process.

    Args:
        plan: what to scan.
        level: ``crc``, ``decode`` or ``full``.
        threads: how many files and ranges to scan in parallel.
        max_mb_per_s: limit on reading, over all threads, in 10⁶ bytes per second.
        progress: called at least every 8 MiB per thread.
        topic_configs: configuration of topics, by pattern.

    Every method raises KeyboardInterrupt after Ctrl-C, once each thread has finished its current
    8 MiB.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        level: str,
        threads: int,
        max_mb_per_s: float | None = None,
        progress: Progress | None = None,
        topic_configs: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._plan = plan
        self.level = level
        # Each file has one at least.
        ranges = sum(len(task.ranges) for task in plan.tasks[:threads])
        self.threads = min(threads, max(1, ranges))
        self.pace = Pace(plan.byte_count, max_mb_per_s=max_mb_per_s, progress=progress)
        self.surroundings = Surroundings(Checkpoints(plan.inventory.files), topic_configs)

    @property
    def plan(self) -> Plan:
        """See `Runner`."""
        return self._plan

    @property
    def checkpoints(self) -> Checkpoints:
        """See `Runner`."""
        return self.surroundings.checkpoints

    def scan(self, collector: Collector) -> None:
        """See `Runner`."""
        _PlanScan(self, collector).run()

    def predict_starts(self, requests: Sequence[StartRequest]) -> list[list[Row]]:
        """See `Runner`. Predicts several starts in parallel."""
        checkpoints, files = self.checkpoints, self._plan.inventory.files
        return self._each(lambda r: r.rows(checkpoints, files, self.pace.again()), requests)

    def price_options(self, requests: Sequence[AdviceRequest]) -> list[PartitionOptions | str]:
        """See `Runner`. Prices several partitions in parallel."""
        checkpoints, files = self.checkpoints, self._plan.inventory.files
        return self._each(lambda r: r.options(checkpoints, files, self.pace.again()), requests)

    def _each(
        self, carry_out: Callable[[Request], Answer], requests: Sequence[Request]
    ) -> list[Answer]:
        """Carries out several requests in parallel, which threads take one by one."""
        if not requests:
            return []
        from concurrent.futures import ThreadPoolExecutor

        from ottla.audit.run.scan import start_files

        files = self._plan.inventory.files
        numbered = enumerate(brought_ahead(requests, files, lambda r: start_files(r.partition)))
        lock = threading.Lock()

        def some_answers(_: int) -> list[tuple[int, Answer]]:
            answers = []
            while not self.pace.cancelled.is_set():
                with lock:
                    taken = next(numbered, None)
                if taken is None:
                    break
                answers.append((taken[0], carry_out(taken[1])))
            return answers

        with ThreadPoolExecutor(self.threads, thread_name_prefix="ottla-restart") as executor:
            try:
                found = list(executor.map(some_answers, range(self.threads)))
            except BaseException:
                self.pace.cancelled.set()
                raise
        answers = dict(chain.from_iterable(found))
        return [answers[number] for number in range(len(answers))]

    def read_coordinators(self, requests: Sequence[ReadRequest]) -> list[ReadAnswer | None]:
        """See `Runner`."""
        return [request.rows() for request in requests]


class _PlanScan:
    """A scan of a plan's files in progress."""

    def __init__(self, runner: ThreadRunner, collector: Collector) -> None:
        self._plan = plan = runner.plan
        self._level = runner.level
        self._threads = runner.threads
        self._pace = runner.pace
        self._surroundings = runner.surroundings
        self._collector = collector
        self._now_ms = time.time_ns() // 1_000_000
        self._lock = threading.Lock()
        self._looked_into: set[int] = set()
        """Logs whose files beside the segments were requested."""
        self._comparison = Comparison(
            plan.inventory, plan.copies, runner.surroundings.checkpoints, runner.pace.may_read
        )
        self._work_items = self._items()
        self._logs: dict[int, _LogState] = {}
        """Logs of which some files have been or are being scanned."""

    def run(self) -> None:
        self._scan_all(self._threads)
        self._comparison.finish()
        self._collector.add_compared(self._comparison.rows, self._comparison.findings)

    def _needed(self, task: ScanTask) -> Iterator[tuple[bytes, int]]:
        """Path and size of what a task reads; with the first task of a log, what judging does."""
        yield task.file.path, task.file.size
        partition = self._plan.logs[task.log].partition
        if partition is not None and task.log not in self._looked_into:
            from ottla.audit.run.scan import audited_files

            self._looked_into.add(task.log)
            yield from audited_files(partition)

    def _scan_all(self, threads: int) -> None:
        # The others stop at their next window.
        work_together(threads, self._work, self._pace.cancelled.set)

    def _work(self) -> None:
        try:
            while not self._pace.cancelled.is_set():
                with self._lock:
                    item = next(self._work_items, None)
                if item is None:
                    return
                item()
        except AuditCancelledError:
            if not self._pace.cancelled.is_set():
                raise

    def _items(self) -> Iterator[Callable[[], None]]:
        """Yields what the threads do: files or ranges of large logs, and some small logs."""
        small = self._small_logs()
        large = self._plan.tasks.outside(small)
        for task in brought_ahead(large, self._plan.inventory.files, self._needed):
            state = _FileState(task, len(task.ranges))
            for number, span in enumerate(task.ranges):
                yield partial(self._scan, state, number, *span)
        most = min(LOGS_AT_ONCE, len(small) // (SHARES * self._threads) + 1)
        together: list[tuple[int, Partition]] = []
        size = 0
        for log in small.items():
            together.append(log)
            size += sum(log[1].sizes)
            if len(together) == most or size >= MAX_BYTES:
                yield partial(self._judge_together, together)
                together, size = [], 0
        if together:
            yield partial(self._judge_together, together)

    def _small_logs(self) -> dict[int, Partition]:
        """Returns the partitions whose logs one call may judge, by the indexes of these."""
        if not self._plan.inventory.is_local:
            return {}
        in_ranges = self._plan.tasks.split_logs()
        return {
            index: partition
            for index, partition in self._plan.logs.whole_partitions()
            if may_be_judged_whole(partition)
            and index not in in_ranges
            and not self._comparison.has(partition)
        }

    def _judge_together(self, together: Sequence[tuple[int, Partition]]) -> None:
        """Judges logs in one call, and file by file those that take more than this."""
        read = 0

        def goes_on(read_so_far: int) -> bool:
            nonlocal read
            read = read_so_far
            return not self._pace.cancelled.is_set()

        judged = judge_whole_logs(
            [partition for _, partition in together],
            self._surroundings,
            level=self._level,
            now_ms=self._now_ms,
            progress=goes_on,
        )
        # Not by the engine, in which who is told of progress could not read a stream.
        self._pace.advance(read)
        found = list(zip(together, judged, strict=True))
        self._collector.add_whole((log, whole) for log, whole in found if whole)
        for (index, _), whole in found:
            for task in tasks_of(self._plan.logs[index], index) if whole is None else ():
                self._scan(_FileState(task, 1), 0, 0, ENDLESS)

    def _scan(self, state: _FileState, number: int, start: int, stop: int) -> None:
        """Scans one range of a file, and joins it if the ranges before it have arrived."""
        size = min(stop, state.task.file.size) - start
        reported = 0

        def advance(read: int) -> bool:
            nonlocal reported
            # Some bytes after a range are read for it too; they are not counted.
            done = read if state.count == 1 else min(read, size)
            self._pace.advance(done - reported)
            reported = done
            return not self._pace.cancelled.is_set()

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
        self._pace.report(size - reported)
        if state.count == 1:
            self._keep(state.task, scan)
        else:
            self._join(state, number, chunk)

    def _wait_for_room(self, state: _FileState, number: int) -> None:
        """Waits while too many ranges, which are held in memory, wait to be joined."""
        with state.changed:
            while number - state.joined > 2 * self._threads and not self._pace.cancelled.is_set():
                state.changed.wait(0.1)

    def _open(self, state: _FileState) -> _engine.Segment:
        from ottla.audit.run.scan import scan_request

        with state.changed:
            if state.segment is None:
                task = state.task
                log = self._plan.logs[task.log]
                state.segment = scan_request(
                    task,
                    log,
                    self._log_state(task.log).beside,
                    self._plan.inventory.files,
                    level=self._level,
                    now_ms=self._now_ms,
                    is_compared=self._comparison.wants(log),
                ).open()
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
        state.reason = reason_of(error)
        self._collector.add_unreadable(state.task.file.path, state.reason)

    def _join(self, state: _FileState, number: int, chunk: _engine.Chunk | None) -> None:
        """Joins the next ranges that have arrived; the last one completes the file."""
        with state.changed:
            state.chunks[number] = chunk
            if state.is_joining:
                return
            state.is_joining = True
        while True:
            has_arrived, right = state.next_chunk()
            if not has_arrived:
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
        self._collector.add_read_again(1)
        try:
            return state.segment.resolve(left, progress=self._pace.again())
        except OSError as error:
            self._fail(state, error)
            return None

    def _finish(self, state: _FileState) -> _engine.SegmentScan | None:
        if state.left is None or state.segment is None:
            return None
        try:
            return state.segment.finish(state.left, progress=self._pace.again())
        except OSError as error:
            self._fail(state, error)
            return None

    def _keep(self, task: ScanTask, scan: _engine.SegmentScan | None) -> None:
        """Stores the scan of a file; judges the log when it is complete."""
        state = self._log_state(task.log)
        log = self._plan.logs[task.log]
        with self._lock:
            if scan is not None:
                state.scans[task.file_index] = scan
            state.pending -= 1
            if state.pending:
                return
            del self._logs[task.log]
        judged = judge_scans(
            log, state.scans, self._plan.inventory, self._surroundings, self._comparison
        )
        self._collector.add(task.log, judged)
