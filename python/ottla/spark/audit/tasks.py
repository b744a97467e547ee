"""The work of the audit's tasks: scan the ranges of a bin, and judge logs from the scans.

Both are functions of their arguments, so a task that Spark runs again, or twice at once, returns
the same rows. A file that cannot be read is a row that says why, never an exception.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.audit.judge.comparison import Comparison
from ottla.audit.judge.context import Surroundings
from ottla.audit.pipeline import judge_scans
from ottla.audit.run.pace import Pace
from ottla.audit.run.scan import (
    join_ranges,
    judged_files,
    scan_range,
    scan_whole,
    start_files,
    unpack_scan,
)
from ottla.logs.checkpoints import Checkpoints
from ottla.spark.work.items import rows_of_work
from ottla.storage import HeldFiles, brought_ahead, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from ottla.audit.advice.partition import AdviceRequest, PartitionOptions
    from ottla.audit.catalogue.finding import PlacedFinding
    from ottla.audit.judge.judge import JudgedLog
    from ottla.audit.judge.restarts import StartRequest
    from ottla.audit.plan.logs import Log
    from ottla.audit.run.scan import ScanRequest, Segment, SegmentScan
    from ottla.logs.columns import Row
    from ottla.logs.inventory import Inventory
    from ottla.spark.audit.bins import Bins, LogItem, ScanItem
    from ottla.spark.work.items import Packed, Reader
    from ottla.storage import Files

CHUNK_COLUMNS = "`group` bigint, `log` bigint, `index` int, `number` int, kind string, data binary"
"""The chunk table: a row for every range (`chunk`), complete file (`scan`), file that could not be
read (`failed`, with the reason) and log (`log`)."""

CHUNK_NAMES = ("group", "log", "index", "number", "kind", "data")
"""Names of its columns."""

ChunkRow = tuple[int, int, int, int, str, bytes]
"""Values of `CHUNK_NAMES`."""

JUDGED_COLUMNS = "`group` bigint, data binary"
"""Judged groups of logs: pickled `JudgedGroup`s."""

ANSWER_COLUMNS = "id bigint, data binary"
"""Answers to single requests: number of the request, and the pickled answer."""

# Rows of a record batch; chunks are small.
_ROWS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Context:
    """What judging needs besides the chunks."""

    inventory: Inventory
    """Only what is needed for names; see `names_of`."""
    topic_configs: Mapping[str, Mapping[str, str]] | None


@dataclass(frozen=True, slots=True)
class JudgedGroup:
    """Logs that were judged together, and the result of comparing them."""

    logs: tuple[tuple[int, JudgedLog], ...]
    """By index into the plan's logs."""
    failures: tuple[tuple[bytes, str], ...]
    """Files that could not be read, and why."""
    differences: tuple[tuple[bytes, Mapping[str, Any]], ...]
    """Rows of `differences`, each with the directory of its partition."""
    findings: tuple[PlacedFinding, ...]
    """Findings about the copies."""
    read_again: int
    """Ranges that were scanned twice."""


def scan(bins: Bins) -> Reader:
    """Returns the work of a scanning task: from numbers of bins to rows of `CHUNK_COLUMNS`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pace, files = _pace_of(bins), HeldFiles(bins.files)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _record_batches(_scan_bin(*bins.load(number), files, pace))

    return run


def scan_rows(bins: Bins) -> Callable[[Iterator[int]], Iterator[ChunkRow]]:
    """Returns the same for an RDD: from numbers of bins to tuples of `CHUNK_NAMES`."""

    def run(numbers: Iterator[int]) -> Iterator[ChunkRow]:
        pace, files = _pace_of(bins), HeldFiles(bins.files)
        for number in numbers:
            yield from _scan_bin(*bins.load(number), files, pace)

    return run


def _pace_of(bins: Bins) -> Pace | None:
    return None if bins.max_mb_per_s is None else Pace(0, max_mb_per_s=bins.max_mb_per_s)


def judge(context: Context) -> Callable[[pa.Table], pa.Table]:
    """Returns the work of a judging task: from the chunks of a group to a `JudgedGroup`."""
    import pyarrow as pa

    held = HeldFiles(context.inventory.files)
    inventory = context.inventory._replace(files=held)
    surroundings = Surroundings(Checkpoints(held), context.topic_configs)

    def run(chunks: pa.Table) -> pa.Table:
        group = chunks.column("group")[0].as_py()
        judged = judge_group(chunks.to_pylist(), inventory, surroundings)
        data = pickle.dumps(judged, protocol=5)
        return pa.table({"group": pa.array([group], pa.int64()), "data": [data]})

    return run


def start(work: tuple[Files, Packed]) -> Reader:
    """Returns the work of a task: from the number of a `StartRequest` to its rows of `recovery`."""
    files, requests = work
    held = HeldFiles(files)

    def rows(request: StartRequest) -> Sequence[Row]:
        held.bring(start_files(request.partition))
        return request.rows(Checkpoints(held), held)

    return _answering(requests, rows)


def price(work: tuple[Files, Packed]) -> Reader:
    """The work of a task: an `AdviceRequest` by number in, its options out."""
    files, requests = work
    held = HeldFiles(files)

    def options(request: AdviceRequest) -> PartitionOptions | str:
        held.bring(start_files(request.partition))
        return request.options(Checkpoints(held), held)

    return _answering(requests, options)


def read(work: tuple[None, Packed]) -> Reader:
    """Returns the work of a task: from the number of a `ReadRequest` to its answer."""
    return _answering(work[1], lambda request: request.rows())


def _answering(requests: Packed, run: Callable[[Any], Any]) -> Reader:
    import pyarrow as pa

    def answer(number: int, request: Any) -> Iterator[pa.RecordBatch]:
        data = pickle.dumps(run(request), protocol=5)
        columns = {"id": pa.array([number], pa.int64()), "data": pa.array([data], pa.binary())}
        yield pa.RecordBatch.from_pydict(columns)

    return rows_of_work(requests, answer)


def judge_group(
    rows: Iterable[Mapping[str, Any]], inventory: Inventory, surroundings: Surroundings
) -> JudgedGroup:
    """Judges the logs of a group from all their rows in the chunk table."""
    items: dict[int, LogItem] = {}
    by_log: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["kind"] == "log":
            # Pickled by `make_bins`, and passed through the chunk table.
            items[row["log"]] = pickle.loads(row["data"]).read_by(inventory.files)
        else:
            by_log[row["log"]].append(row)
    copies = next((item.copies for item in items.values() if item.copies is not None), None)
    comparison = Comparison(
        inventory, () if copies is None else (copies,), surroundings.checkpoints, lambda _: True
    )
    for item in items.values():
        if item.value.partition is not None:
            surroundings.checkpoints.know(item.value.partition, item.offsets)
        _bring(item.value, inventory.files)
    logs: list[tuple[int, JudgedLog]] = []
    failures: list[tuple[bytes, str]] = []
    read_again = 0
    for index in sorted(items):
        item = items[index]
        files = _LogFiles(item)
        files.join(by_log[index])
        failures += files.failures
        read_again += files.read_again
        judged = judge_scans(item.value, files.scans, inventory, surroundings, comparison)
        logs.append((index, judged))
    comparison.finish()
    return JudgedGroup(
        logs=tuple(logs),
        failures=tuple(failures),
        differences=tuple(comparison.rows),
        findings=tuple(comparison.findings),
        read_again=read_again,
    )


def _bring(log: Log, files: Files) -> None:
    """Requests the objects that judging a log reads, if `files` hold objects."""
    if isinstance(files, HeldFiles) and log.is_live and log.partition is not None:
        files.bring(judged_files(log.partition))


class _LogFiles:
    """The files of a log whose chunks are being joined."""

    def __init__(self, item: LogItem) -> None:
        self._log: Log = item.value
        self._requests = item.requests
        self.scans: dict[int, SegmentScan] = {}
        self.failures: list[tuple[bytes, str]] = []
        self.read_again = 0

    def join(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Joins the rows of all files, given in any order."""
        by_file: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
        for row in rows:
            by_file[row["index"]].append(row)
        for index in sorted(by_file):
            ranges = sorted(by_file[index], key=lambda row: row["number"])
            failed = next((row for row in ranges if row["kind"] == "failed"), None)
            if failed is not None:
                self._fail(index, failed["data"].decode())
            elif ranges[0]["kind"] == "scan":
                self.scans[index] = unpack_scan(ranges[0]["data"])
            else:
                try:
                    self._join(index, [row["data"] for row in ranges])
                except OSError as error:
                    self._fail(index, reason_of(error))

    def _join(self, index: int, ranges: Sequence[bytes]) -> None:
        self.scans[index], read_again = join_ranges(self._requests[index], ranges)
        self.read_again += read_again

    def _fail(self, index: int, reason: str) -> None:
        self.failures.append((self._log.files[index].path, reason))


def _scan_bin(
    logs: Iterable[LogItem],
    items: Sequence[ScanItem],
    files: HeldFiles,
    pace: Pace | None = None,
) -> Iterator[ChunkRow]:
    """Yields rows of the chunk table."""
    for log in logs:
        yield log.group, log.log, -1, -1, "log", pickle.dumps(log, protocol=5)
    opened: tuple[ScanRequest, Segment] | None = None
    for item in brought_ahead(items, files, lambda item: item.request.objects):
        try:
            if opened is None or opened[0] != item.request:
                opened = item.request, _held(item.request, files).open()
            kind, data = _scan_item(opened[1], item, pace)
        except OSError as error:
            opened = None
            kind, data = _failed(error)
        yield item.group, item.log, item.index, item.number, kind, data


def _held(request: ScanRequest, files: HeldFiles) -> ScanRequest:
    """The same request, which takes small objects from those that are held."""
    return request if request.place.is_local else request.read_by(files)


def _failed(error: OSError) -> tuple[str, bytes]:
    return "failed", reason_of(error).encode()


def _scan_item(segment: Segment, item: ScanItem, pace: Pace | None) -> tuple[str, bytes]:
    # Each counts from 0; the last bytes of a range or file come after the last call.
    progress = None if pace is None else pace.again()
    if item.count == 1:
        scanned = "scan", scan_whole(segment, progress)
    else:
        scanned = "chunk", scan_range(segment, item.start, item.stop, progress)
    if progress is not None:
        progress(item.size)
    return scanned


def _record_batches(
    rows: Iterable[ChunkRow],
) -> Iterator[pa.RecordBatch]:
    held: list[ChunkRow] = []
    for row in rows:
        held.append(row)
        if len(held) == _ROWS_AT_ONCE:
            yield _record_batch(held)
            held.clear()
    if held:
        yield _record_batch(held)


def _record_batch(rows: Sequence[ChunkRow]) -> pa.RecordBatch:
    import pyarrow as pa

    group, log, index, number, kind, data = zip(*rows, strict=True)
    columns = {
        "group": pa.array(group, pa.int64()),
        "log": pa.array(log, pa.int64()),
        "index": pa.array(index, pa.int32()),
        "number": pa.array(number, pa.int32()),
        "kind": pa.array(kind, pa.string()),
        "data": pa.array(data, pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)
