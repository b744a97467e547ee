"""`batches` and `records` of segments in pieces: large files are split where an index allows it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

from ottla.audit.plan.logs import ENDLESS
from ottla.errors import SparkError
from ottla.logs.segment import first_batch, segment_cuts, segment_table
from ottla.spark.source.damage import DamageHandler
from ottla.spark.source.options import check_inputs
from ottla.spark.source.spans import MAX_TRANSACTIONS, Span, place_in_log, plan_spans
from ottla.spark.work.ahead import work_ahead
from ottla.spark.work.packing import group_items
from ottla.storage import AnyFiles, HeldPlace, again

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    import pyarrow as pa

    from ottla.audit.plan.logs import Log
    from ottla.audit.plan.plan import Plan
    from ottla.logs.inventory import FileEntry
    from ottla.spark.source.bounds import Bounds
    from ottla.spark.source.options import Request
    from ottla.storage import Files, Place

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
    place_in_log: tuple[int | None, int | None, bool] | None = None
    """Base offset of the segment and of the next one, and whether the broker stopped cleanly: then
    records out of their place are left out, as by `ottla.read_partition`."""
    span: Span = Span()
    """What is asked for of the partition; transactions are those with records in the file."""

    def is_before(self, other: Piece) -> bool:
        """Whether the other piece is of the same log, and follows."""
        if self.place_in_log is None or other.place_in_log is None:
            return False
        if self.is_cut:
            return self.file == other.file and self.stop == other.start
        above = [name.rpartition("/")[0] for name in (self.file, other.file)]
        return above[0] == above[1] and self.place_in_log[1] == other.place_in_log[0]


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
        expected: int | None = None
        for piece, following in zip(_read_ahead(pieces), (*self.pieces[1:], None), strict=True):
            is_known = following is not None and piece.is_before(following)
            try:
                expected = yield from piece_rows(
                    piece, request, self.bounds, expected, is_followed=is_known
                )
            except OSError as error:
                if request.fail_on_data_loss:
                    raise cannot_read(piece.file, error) from error
            if not is_known:
                expected = None


def _read_ahead(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yields pieces as they are, those of small objects with their bytes, which threads read."""
    for is_small, group in groupby(pieces, _is_small_object):
        if is_small:
            yield from work_ahead(_held, group, SMALL_AT_ONCE)
        else:
            yield from group


def _is_small_object(piece: Piece) -> bool:
    return not piece.place.is_local and piece.place.size <= SMALL_BYTES


def _held(piece: Piece) -> Piece:
    try:
        piece.place.expect(0, piece.place.size)
        return piece._replace(place=HeldPlace.of(piece.place))
    except OSError:
        # In its turn it is read once more, and then it is an error.
        return piece


def cannot_read(file: str, error: OSError) -> SparkError:
    """Returns the error for a listed file that cannot be read."""
    reason = error.strerror or str(error)
    return SparkError(
        f"{file}: {reason[:1].lower()}{reason[1:]}; the option fail_on_data_loss=false skips files"
        " that cannot be read"
    )


def piece_rows(
    piece: Piece,
    request: Request,
    bounds: Bounds,
    expected: int | None = None,
    *,
    is_followed: bool = False,
) -> Generator[pa.RecordBatch, None, int | None]:
    """Yields the record batches of a piece of a file, and returns the offset behind it.

    `expected` is the offset behind the piece before, if that is known. With `is_followed`, the
    piece behind this one will be told, too.

    Raises:
        OSError: the file cannot be read.
        SparkError: the piece ends inside a batch.
    """
    import pyarrow as pa

    piece.place.expect(piece.start, piece.stop)
    prefix = (piece.file, piece.topic, piece.partition)
    asked = bounds.within(piece.span.min_offset, piece.span.max_offset)
    table = segment_table(
        piece.place,
        request.engine_table,
        columns=request.engine_columns,
        prefix=prefix,
        start=piece.start,
        stop=piece.stop,
        impossible_timestamps=request.impossible_timestamps,
        place_in_log=piece.place_in_log,
        expected=expected,
        without_controls=request.is_without_controls,
        aborted=piece.span.aborted,
        **asked._asdict(),
    )
    damage = DamageHandler(request.on_damage, request.columns, piece.place, prefix)
    schema = pa.schema(table)
    try:
        for rows in table:
            yield from damage.rows(table.take_damage(), schema)
            yield damage.complete(pa.record_batch(rows))
    except ValueError as error:
        raise SparkError(
            f"{piece.file}: {error}; the option impossible_timestamps=null or clamp reads on"
        ) from error
    yield from damage.rows(table.take_damage(), schema)
    if piece.is_cut:
        _check_end(piece, table.last_position or piece.start)
    reached = table.next_offset
    if not is_followed or piece.span.is_part:
        _check_order(piece, reached, asked.max_offset)
    return expected if reached is None else reached


def _check_order(piece: Piece, next_offset: int | None, max_offset: int | None) -> None:
    """Raises SparkError if the piece behind this one has offsets that came before.

    They would be returned twice: each task knows its own files. Beyond the last one that is asked
    for, nothing is returned.
    """
    if next_offset is None or piece.place_in_log is None:
        return
    following = piece.place_in_log[1]
    if piece.is_cut:
        batch = first_batch(piece.place, piece.stop)
        following = None if batch is None else batch.base_offset
    end = next_offset if max_offset is None else min(next_offset, max_offset + 1)
    if following is not None and following < end:
        what = (
            f"{piece.file}: offsets {following} to {next_offset - 1} are here and again behind it"
        )
        if piece.span.is_part:
            raise SparkError(
                f"{what}: of more than {MAX_TRANSACTIONS} aborted transactions of a partition, a"
                " task knows only those that a segment has by its name; ottla.read_partition reads"
                " this one with read_committed"
            )
        raise SparkError(f"{what}: one task must read both; read with a larger partition_bytes")


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


def plan_pieces(request: Request, plan: Plan, piece_bytes: int) -> Iterator[Piece]:
    """Yields the files of a plan in order, large ones split at batches listed in an index."""
    files = plan.inventory.files
    piece_bytes = max(piece_bytes, plan.byte_count // MAX_CUTS)
    is_of_records = request.table == "records"
    spans = plan_spans(request, plan)
    for log in plan.logs:
        partition = log.partition
        if is_of_records and partition is not None and partition.is_whole and not log.is_live:
            # Consumers do not get what a cleaner or a split has not put in place yet.
            continue
        span = spans.of(partition)
        bounds = request.bounds.within(span.min_offset, span.max_offset)
        topic, number = (partition.topic, partition.partition) if partition else (None, None)
        for file in log.files:
            if file.fault is not None or not _may_hold(log, file, bounds):
                continue
            name = plan.inventory.display(file.path)
            place = files.place(file.path, file.size)
            # Each look into an object takes as long as a task.
            inner = _cuts(log, file, files, piece_bytes) if place.is_local else ()
            cuts = [0, *inner, ENDLESS]
            where = None
            if is_of_records and log.is_live and partition is not None:
                where = place_in_log(partition, file)
                last = None if where[1] is None else where[1] - 1
                span = spans.of(partition).within(where[0], last)
            for start, stop in pairwise(cuts):
                size = min(stop, file.size) - start
                is_last = stop == ENDLESS
                yield Piece(
                    *(place, name, topic, number, start, stop, size),
                    is_cut=not is_last,
                    place_in_log=where,
                    span=span,
                )


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


def pieces_of(request: Request, plan: Plan) -> Iterator[PiecesTask]:
    """Yields the pieces of `batches` or `records` that each task reads."""
    size = request.partition_bytes or TASK_BYTES
    for pieces in group_pieces(plan_pieces(request, plan, size), size):
        yield PiecesTask(pieces, request.bounds)


def task_pieces(request: Request) -> Iterator[PiecesTask]:
    """Yields the pieces of each task.

    Raises:
        SparkError: a given path has no logs, or a pattern matches no topic.
    """
    plan = request.plan()
    check_inputs(request, plan)
    return pieces_of(request, plan)


def group_pieces(pieces: Iterable[Piece], task_bytes: int) -> Iterator[tuple[Piece, ...]]:
    """Groups neighbouring pieces into tasks."""
    for group in group_items(
        pieces, lambda piece: piece.size + OPENING_BYTES, max_bytes=task_bytes
    ):
        yield tuple(group)
