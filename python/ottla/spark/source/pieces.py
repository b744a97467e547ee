"""`batches` and `records` of segments in pieces: large files are split where an index allows it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

from ottla.audit.plan.plan import ENDLESS
from ottla.errors import SparkError
from ottla.logs.segment import first_batch, segment_cuts, segment_table
from ottla.spark.source.filters import Bounds, PushedFilters
from ottla.spark.source.options import check_inputs
from ottla.spark.work.ahead import work_ahead
from ottla.spark.work.packing import group_items
from ottla.storage import AnyFiles, again

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from ottla.audit.plan.plan import Log, Plan
    from ottla.logs.inventory import FileEntry
    from ottla.spark.source.options import Request
    from ottla.storage import Files, Place

POSITION_COLUMNS = {"batches": "position", "records": "batch_position"}
"""Columns with the position of a row's batch."""

TASK_BYTES = 128 << 20
"""Size of the files that a task reads."""

# The cost of opening a file, in bytes that could be read in that time.
OPENING_BYTES = 1 << 20

# Brokers write 10 MiB by default.
MAX_INDEX_BYTES = 64 << 20

SMALL_BYTES = 1 << 20
"""Objects up to this size are read in parallel, because the requests take most of the time."""

SMALL_AT_ONCE = 8
"""Number of small objects read in parallel."""

MAX_CUTS = 256
"""A split costs some milliseconds while a query is planned; this many make enough tasks."""


class Piece(NamedTuple):
    """Bytes of a file, from one batch to another."""

    place: Place
    file: str
    topic: str | None
    partition: int | None
    start: int
    stop: int
    size: int
    """Bytes to read, by the listing."""
    is_cut: bool = False
    """Whether another piece of the file follows."""


@dataclass(frozen=True, slots=True)
class PiecesTask:
    """Pieces of `batches` or `records` that a task reads."""

    pieces: tuple[Piece, ...]
    bounds: Bounds

    def rows(self, request: Request) -> Iterator[pa.RecordBatch]:
        """Yields the record batches of all pieces.

        Raises:
            SparkError: a file cannot be read, and `fail_on_data_loss` is true.
        """
        files = AnyFiles(request.storage_options)
        # Spark sends pieces by itself, without secrets of stores.
        pieces = (sent._replace(place=again(sent.place, files)) for sent in self.pieces)
        for is_small, group in groupby(pieces, _is_small_object):
            if is_small:
                read = partial(_rows_at_once, request=request, bounds=self.bounds)
                for rows in work_ahead(read, group, SMALL_AT_ONCE):
                    yield from rows
            else:
                for piece in group:
                    yield from _rows_or_none(piece, request, self.bounds)


def _is_small_object(piece: Piece) -> bool:
    return piece.size <= SMALL_BYTES and not piece.is_cut and not piece.place.is_local


def _rows_at_once(piece: Piece, *, request: Request, bounds: Bounds) -> list[pa.RecordBatch]:
    return list(_rows_or_none(piece, request, bounds))


def _rows_or_none(piece: Piece, request: Request, bounds: Bounds) -> Iterator[pa.RecordBatch]:
    """Yields the record batches of a piece; none of a file that cannot be read and may be lost."""
    try:
        yield from piece_rows(piece, request, bounds)
    except OSError as error:
        if request.fail_on_data_loss:
            raise cannot_read(piece.file, error) from error


def cannot_read(file: str, error: OSError) -> SparkError:
    """Returns the error for a listed file that cannot be read."""
    reason = error.strerror or str(error)
    return SparkError(
        f"{file}: {reason[:1].lower()}{reason[1:]}; the option fail_on_data_loss=false skips files"
        " that cannot be read"
    )


def piece_rows(piece: Piece, request: Request, bounds: Bounds) -> Iterator[pa.RecordBatch]:
    """Yields the record batches of a piece of a file.

    Raises:
        OSError: the file cannot be read.
        SparkError: the piece ends inside a batch.
    """
    import pyarrow as pa

    at = POSITION_COLUMNS[request.table]
    names = list(request.columns)
    read = [*names, at] if piece.is_cut and at not in names else names
    last = piece.start
    piece.place.expect(piece.start, piece.stop)
    for rows in segment_table(
        piece.place,
        request.table,
        columns=read,
        prefix=(piece.file, piece.topic, piece.partition),
        start=piece.start,
        stop=piece.stop,
        **bounds._asdict(),
    ):
        batch = pa.record_batch(rows)
        if piece.is_cut and batch.num_rows:
            last = batch.column(read.index(at))[-1].as_py()
        yield batch if read is names else batch.select(names)
    if piece.is_cut:
        _check_end(piece, last)


def _check_end(piece: Piece, position: int) -> None:
    """Raises SparkError unless the batches from a position on lead to the end of a piece.

    Otherwise the index used for splitting points into a batch, such as one whose value holds
    batches, and the next piece does not continue this one.
    """
    following = position
    while following < piece.stop:
        batch = first_batch(piece.place, following)
        if batch is None or batch.position >= piece.stop:
            return
        following = batch.position + batch.size
        if following > piece.stop:
            raise SparkError(
                f"{piece.file}: the offset index points to byte {piece.stop}, which is inside the"
                f" batch at {batch.position}: read with a partition_bytes larger than the file"
            )


def plan_pieces(plan: Plan, pushed: PushedFilters, piece_bytes: int) -> Iterator[Piece]:
    """Yields the files of a plan in order, large ones split at batches listed in an index."""
    files = plan.inventory.files
    piece_bytes = max(piece_bytes, plan.byte_count // MAX_CUTS)
    for log in plan.logs:
        partition = log.partition
        topic, number = (partition.topic, partition.partition) if partition else (None, None)
        for file in log.files:
            if file.fault is not None or not _may_hold(log, file, pushed.bounds):
                continue
            name = plan.inventory.display(file.path)
            if not pushed.wants(file=name, topic=topic, partition=number):
                continue
            place = files.place(file.path, file.size)
            # With rows filtered out, the end of a piece cannot be checked; and each look into an
            # object takes as long as a task.
            is_cut = pushed.bounds == Bounds() and place.is_local
            cuts = [0, *(_cuts(log, file, files, piece_bytes) if is_cut else ()), ENDLESS]
            for start, stop in pairwise(cuts):
                size = min(stop, file.size) - start
                is_last = stop == ENDLESS
                yield Piece(place, name, topic, number, start, stop, size, is_cut=not is_last)


def _may_hold(log: Log, file: FileEntry, bounds: Bounds) -> bool:
    """Whether a file may hold offsets within bounds, by the names of the segments."""
    if not log.is_live or log.partition is None or file.base_offset is None:
        return True
    next_base = log.partition.next_base_offset(file)
    if bounds.min_offset is not None and next_base is not None and next_base <= bounds.min_offset:
        return False
    return bounds.max_offset is None or file.base_offset <= bounds.max_offset


def _cuts(log: Log, file: FileEntry, files: Files, piece_bytes: int) -> list[int]:
    """Returns positions of batches about `piece_bytes` apart."""
    if not log.is_live or log.partition is None or file.size < 2 * piece_bytes:
        return []
    index = next(
        (
            other
            for other in log.partition.files
            if other.kind == "offset-index"
            and other.state == "live"
            and other.base_offset == file.base_offset
        ),
        None,
    )
    if index is None:
        return []
    try:
        return segment_cuts(
            files.place(file.path, file.size),
            files.read(index.path, MAX_INDEX_BYTES),
            base_offset=file.base_offset or 0,
            size=file.size,
            apart=piece_bytes,
        )
    except OSError:
        return []


def pieces_of(request: Request, plan: Plan, pushed: PushedFilters) -> Iterator[PiecesTask]:
    """Yields the pieces of `batches` or `records` that each task reads."""
    size = request.partition_bytes or TASK_BYTES
    for pieces in group_pieces(plan_pieces(plan, pushed, size), size):
        yield PiecesTask(pieces, pushed.bounds)


def task_pieces(request: Request) -> Iterator[PiecesTask]:
    """Yields the pieces of each task without pushed filters.

    Raises:
        SparkError: a given path has no logs, or a pattern matches no topic.
    """
    plan = request.plan()
    check_inputs(request, plan)
    return pieces_of(request, plan, PushedFilters())


def group_pieces(pieces: Iterable[Piece], task_bytes: int) -> Iterator[tuple[Piece, ...]]:
    """Groups neighbouring pieces into tasks."""
    for group in group_items(
        pieces, lambda piece: piece.size + OPENING_BYTES, max_bytes=task_bytes
    ):
        yield tuple(group)
