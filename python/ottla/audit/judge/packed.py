"""The rows of judged logs, packed by the engine until they are read.

A broker has up to hundreds of thousands of partitions, each with rows in several tables. As Python
objects they would take gigabytes; packed, a partition takes a few hundred bytes.
"""

from __future__ import annotations

from functools import cached_property, partial
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla import _engine

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from ottla.audit.plan.logs import Log, Logs
    from ottla.logs.columns import Row
    from ottla.logs.inventory import Partition


class ScannedFile(NamedTuple):
    """The result of scanning one file, as far as it concerns the file alone."""

    size: int
    batches: int
    records: int
    first_offset: int | None
    next_offset: int | None
    min_timestamp: int | None
    max_timestamp: int | None
    magics: tuple[int, ...]
    codecs: tuple[str, ...]


class Totals(NamedTuple):
    """What logs come to together."""

    files: int
    batches: int
    records: int
    bytes: int
    committed_transactions: int
    aborted_transactions: int
    held_back_segments: int
    """Segments that a timestamp in the future keeps from retention."""


class Beside(NamedTuple):
    """Columns of a table that the engine does not know."""

    columns: tuple[str, ...]
    values: Callable[[Partition, Row], Sequence[Any]]
    """Those of a row, by its partition and its values in the order of `columns_of_engine`."""


NOTHING_BESIDE = Beside((), lambda *_: ())

_COLUMNS = dict(_engine.partition_tables())

ENGINE_TABLES = tuple(_COLUMNS)
"""Tables whose rows the engine makes when it merges the segments of a partition."""


def columns_of_engine(table: str) -> Sequence[str]:
    """Returns the columns of one of `ENGINE_TABLES`, in the order of the engine."""
    return _COLUMNS[table]


class PackedLogs:
    """Files and rows of the logs of a plan, each added once, in any order.

    Only one thread at a time may add; once all are added, reading is in the order of the plan.
    """

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._packed: list[_engine.PackedLog | None] = [None] * len(logs)

    def add(self, index: int, packed: _engine.PackedLog) -> None:
        """Adds a log."""
        self._packed[index] = packed

    def totals(self, indexes: Iterable[int]) -> Totals:
        """Returns what some logs come to together."""
        return Totals(*_engine.PackedLog.totals([self._packed[index] for index in indexes])[0])

    def file_counts(self) -> list[int]:
        """Returns how many files of each log were scanned."""
        return [0 if packed is None else packed.file_count for packed in self._packed]

    @cached_property
    def _sums(self) -> tuple[Totals, Sequence[int]]:
        """What all logs come to, and the rows of each of `ENGINE_TABLES`.

        To these, logs without a partition add none.
        """
        totals, counts = _engine.PackedLog.totals(self._packed)
        return Totals(*totals), counts

    @property
    def all_totals(self) -> Totals:
        """What all logs come to."""
        return self._sums[0]

    def files(self, index: int) -> dict[bytes, ScannedFile]:
        """Returns the scanned files of a log, by path."""
        packed = self._packed[index]
        if packed is None:
            return {}
        files = self._logs[index].files
        rows = chain.from_iterable(_pieces(packed.files))
        return {files[row[0]].path: ScannedFile(*row[1:]) for row in rows}

    def all_files(self) -> Iterator[tuple[bytes, ScannedFile]]:
        """Yields every scanned file with its path."""
        for index in range(len(self._logs)):
            yield from self.files(index).items()

    def count(self, table: str) -> int:
        """Returns the number of rows of a table."""
        return self._sums[1][ENGINE_TABLES.index(table)]

    def rows(
        self, table: str, directories: Container[bytes] | None = None
    ) -> Iterator[tuple[Partition, dict[str, Any]]]:
        """Yields the rows of a table, each with its partition; a column `file` has paths.

        Those of partitions outside the directories stay packed.
        """
        columns = _COLUMNS[table]
        for log, partition, piece in self._unpacked(table, directories):
            files = log.files if "file" in columns else ()
            for values in piece:
                row = dict(zip(columns, values, strict=True))
                if files:
                    row["file"] = files[row["file"]].path
                yield partition, row

    def rows_in(
        self,
        table: str,
        columns: Sequence[str],
        show: Callable[[bytes], str],
        beside: Beside = NOTHING_BESIDE,
    ) -> Iterator[Row]:
        """Yields the rows of a table with some columns, among them topic and partition.

        A column `file` has what `show` makes of the path; `beside` tells of those that the engine
        does not know.
        """
        known = [*_COLUMNS[table], "topic", "partition", *beside.columns]
        file_at = known.index("file") if "file" in known else None
        wanted = itemgetter(*(known.index(column) for column in columns))
        more = beside.values if beside.columns else None
        for log, partition, piece in self._unpacked(table):
            place = (partition.topic, partition.partition)
            files = log.files if file_at is not None else ()
            for values in piece:
                row = [*values, *place]
                if file_at is not None:
                    row[file_at] = show(files[row[file_at]].path)
                if more is not None:
                    row += more(partition, values)
                yield wanted(row)

    def _unpacked(
        self, table: str, directories: Container[bytes] | None = None
    ) -> Iterator[tuple[Log, Partition, Sequence[Row]]]:
        """Yields the rows of a table as the engine has them, some of a log at a time."""
        for index, partition in enumerate(self._logs.partitions if self.count(table) else ()):
            packed = self._packed[index]
            if partition is None or packed is None:
                continue
            if directories is None or partition.directory in directories:
                log: Log | None = None
                for piece in _pieces(partial(packed.rows, table)):
                    log = log or self._logs[index]
                    yield log, partition, piece


def _pieces(unpacked: Callable[[int], Sequence[Row] | None]) -> Iterator[Sequence[Row]]:
    """Yields rows of a log, of which a piece is unpacked at a time; a piece without any is none."""
    number = 0
    while (piece := unpacked(number)) is not None:
        if piece:
            yield piece
        number += 1


class ScannedFiles:
    """All scanned files, by path."""

    def __init__(self, logs: PackedLogs) -> None:
        self._logs = logs

    def __len__(self) -> int:
        return self._logs.all_totals.files

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScannedFiles) and list(self.items()) == list(other.items())

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, path: bytes) -> ScannedFile:
        """Returns a file; takes time in proportion to the number of files."""
        return dict(self.items())[path]

    @property
    def totals(self) -> Totals:
        """What all files come to."""
        return self._logs.all_totals

    def totals_of(self, indexes: Iterable[int]) -> Totals:
        """Returns what the files of some logs of the plan come to."""
        return self._logs.totals(indexes)

    def counts_of_logs(self) -> Sequence[int]:
        """Returns how many files of each log of the plan were scanned."""
        return self._logs.file_counts()

    def items(self) -> Iterator[tuple[bytes, ScannedFile]]:
        """Yields path and file, in the order of the plan."""
        return self._logs.all_files()

    def values(self) -> Iterator[ScannedFile]:
        """Yields the files, in the order of the plan."""
        return (file for _, file in self.items())

    def of_log(self, index: int) -> Mapping[bytes, ScannedFile]:
        """Returns the scanned files of a log of the plan."""
        return self._logs.files(index)


class PackedRows:
    """The rows of one table, each with its partition, in the order of the partitions."""

    def __init__(self, logs: PackedLogs, table: str) -> None:
        self._logs = logs
        self._table = table

    def __len__(self) -> int:
        return self._logs.count(self._table)

    def __iter__(self) -> Iterator[tuple[Partition, dict[str, Any]]]:
        return self._logs.rows(self._table)

    def has(self, columns: Iterable[str], beside: Beside = NOTHING_BESIDE) -> bool:
        """Whether `rows_in` knows all of some columns."""
        return {*columns} <= {*_COLUMNS[self._table], "topic", "partition", *beside.columns}

    def rows_in(
        self,
        columns: Sequence[str],
        show: Callable[[bytes], str],
        beside: Beside = NOTHING_BESIDE,
    ) -> Iterator[Row]:
        """See `PackedLogs.rows_in`."""
        return self._logs.rows_in(self._table, columns, show, beside)

    def about(self, directories: Container[bytes]) -> Iterator[tuple[Partition, dict[str, Any]]]:
        """Yields the rows of the partitions in some directories."""
        return self._logs.rows(self._table, directories)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackedRows) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


def rows_about(
    rows: Iterable[tuple[Partition, Mapping[str, Any]]], directories: Container[bytes]
) -> Iterator[tuple[Partition, Mapping[str, Any]]]:
    """Yields the rows of a table that are about the partitions in some directories, in order."""
    if isinstance(rows, PackedRows):
        return rows.about(directories)
    return (row for row in rows if row[0].directory in directories)
