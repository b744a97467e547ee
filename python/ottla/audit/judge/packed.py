"""The rows of judged logs, packed until they are read.

A broker has up to hundreds of thousands of partitions, each with rows in several tables. As Python
objects they would take gigabytes; packed, a partition takes a few hundred bytes.
"""

from __future__ import annotations

import pickle
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ottla import _engine
    from ottla.audit.plan.plan import Log
    from ottla.logs.columns import Row
    from ottla.logs.inventory import Partition

EngineTable = tuple["Sequence[str]", "Sequence[Row]"]
"""Names of columns, and the values of each row; a column `file` has indexes of files in the log."""


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


PIECE_ROWS = 1024
"""Rows of a table that are unpacked at a time, where a log has more."""


class PackedLog(NamedTuple):
    """The scanned files of a log and its rows of every table; a few hundred bytes, picklable."""

    data: bytes
    """Files, and the rows of the tables that have few."""
    pieces: Mapping[str, tuple[bytes, ...]]
    """The rows of the other tables."""
    columns: Mapping[str, tuple[str, ...]]
    """Names of columns, of the tables with rows."""
    counts: Mapping[str, int]
    """Number of rows, of the tables with rows."""
    file_count: int


class LogPacker:
    """Packs the rows of a log as they come, so that no two tables are held as objects at once."""

    def __init__(self) -> None:
        self._few: dict[str, list[Row]] = {}
        self._pieces: dict[str, tuple[bytes, ...]] = {}
        self._columns: dict[str, tuple[str, ...]] = {}
        self._counts: dict[str, int] = {}

    def add_all(self, name: str, merged: _engine.PartitionScan) -> None:
        """Adds the rows of a partition, a piece at a time."""
        first, count = 0, PIECE_ROWS
        while count == PIECE_ROWS:
            table = merged.table(name, first, PIECE_ROWS)
            self.add(name, table)
            count = len(table[1])
            first += count

    def add(self, name: str, table: EngineTable) -> None:
        """Adds rows to a table, behind those that it has."""
        columns, rows = table
        if not rows:
            return
        self._columns.setdefault(name, tuple(columns))
        self._counts[name] = self._counts.get(name, 0) + len(rows)
        few = self._few.setdefault(name, [])
        if name not in self._pieces and len(few) + len(rows) <= PIECE_ROWS:
            few.extend(rows)
            return
        pieces: list[Sequence[Row]] = [few] if few else []
        pieces += [rows[at : at + PIECE_ROWS] for at in range(0, len(rows), PIECE_ROWS)]
        packed = tuple(map(_pack_rows, pieces))
        self._pieces[name] = self._pieces.get(name, ()) + packed
        self._few[name] = []

    def finish(self, files: Mapping[int, ScannedFile], tables: Sequence[str]) -> PackedLog:
        """Packs the files, by index; `tables` are the names of all tables, in order."""
        rows = [self._few.get(name, []) for name in tables]
        data = ({index: tuple(file) for index, file in files.items()}, rows)
        return PackedLog(
            data=pickle.dumps(data, protocol=5),
            pieces=self._pieces,
            columns=self._columns,
            counts=self._counts,
            file_count=len(files),
        )


def _unpack(packed: bytes) -> tuple[dict[int, Row], list[list[Row]]]:
    # Pickled by `LogPacker`, here or by a task of this audit.
    files, tables = pickle.loads(packed)  # noqa: S301
    return files, tables


def _pack_rows(rows: Sequence[Row]) -> bytes:
    # Rows of one log are much alike: the least effort takes a third of their room or less.
    return zlib.compress(pickle.dumps(rows, protocol=5), level=1)


def _unpack_rows(piece: bytes) -> list[Row]:
    rows: list[Row] = pickle.loads(zlib.decompress(piece))  # noqa: S301
    return rows


class PackedLogs:
    """Files and rows of the logs of a plan, each added once, in any order.

    Only one thread at a time may add; reading is in the order of the plan.
    """

    def __init__(self, logs: Sequence[Log], tables: Sequence[str]) -> None:
        self._logs = logs
        self._packed: list[bytes | None] = [None] * len(logs)
        self._pieces: dict[tuple[int, str], tuple[bytes, ...]] = {}
        self._columns: dict[str, tuple[str, ...]] = {}
        self._tables = {name: number for number, name in enumerate(tables)}
        self._counts = dict.fromkeys(tables, 0)
        self.file_count = 0

    def add(self, index: int, packed: PackedLog) -> None:
        """Adds a log whose rows are of the tables given to the constructor, in their order."""
        self._packed[index] = packed.data
        for name, pieces in packed.pieces.items():
            self._pieces[index, name] = pieces
        self.file_count += packed.file_count
        for name, columns in packed.columns.items():
            # The names are held once for all logs.
            self._columns.setdefault(name, columns)
        if self._logs[index].partition is not None:
            for name, count in packed.counts.items():
                self._counts[name] += count

    def files(self, index: int) -> dict[bytes, ScannedFile]:
        """Returns the scanned files of a log, by path."""
        packed = self._packed[index]
        if packed is None:
            return {}
        files = self._logs[index].files
        return {files[i].path: ScannedFile(*row) for i, row in _unpack(packed)[0].items()}

    def all_files(self) -> Iterator[tuple[bytes, ScannedFile]]:
        """Yields every scanned file with its path."""
        for index in range(len(self._logs)):
            yield from self.files(index).items()

    def count(self, table: str) -> int:
        """Returns the number of rows of a table."""
        return self._counts[table]

    def rows(self, table: str) -> Iterator[tuple[Partition, dict[str, Any]]]:
        """Yields the rows of a table, each with its partition; a column `file` has paths."""
        columns = self._columns.get(table, ())
        for index, log in enumerate(self._logs):
            if log.partition is not None:
                for values in self._values(index, table):
                    row = dict(zip(columns, values, strict=True))
                    if "file" in row:
                        row["file"] = log.files[row["file"]].path
                    yield log.partition, row

    def _values(self, index: int, table: str) -> Iterator[Row]:
        """Yields the rows that a log adds to a table."""
        pieces = self._pieces.get((index, table))
        if pieces is not None:
            for piece in pieces:
                yield from _unpack_rows(piece)
        elif (packed := self._packed[index]) is not None:
            yield from _unpack(packed)[1][self._tables[table]]


class ScannedFiles:
    """All scanned files, by path."""

    def __init__(self, logs: PackedLogs) -> None:
        self._logs = logs

    def __len__(self) -> int:
        return self._logs.file_count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScannedFiles) and list(self.items()) == list(other.items())

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, path: bytes) -> ScannedFile:
        """Returns a file; takes time in proportion to the number of files."""
        return dict(self.items())[path]

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackedRows) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]
