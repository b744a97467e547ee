"""The rows of judged logs, packed by the engine until they are read.

A broker has up to hundreds of thousands of partitions, each with rows in several tables. As Python
objects they would take gigabytes; packed, a partition takes a few hundred bytes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla import _engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ottla.audit.plan.plan import Log
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


_COLUMNS = dict(_engine.partition_tables())

ENGINE_TABLES = tuple(_COLUMNS)
"""Tables whose rows the engine makes when it merges the segments of a partition."""


class PackedLogs:
    """Files and rows of the logs of a plan, each added once, in any order.

    Only one thread at a time may add; reading is in the order of the plan.
    """

    def __init__(self, logs: Sequence[Log]) -> None:
        self._logs = logs
        self._packed: list[_engine.PackedLog | None] = [None] * len(logs)
        self._counts = [0] * len(ENGINE_TABLES)
        self.file_count = 0
        self.batches = 0
        """Batches of all files, as `records` and `bytes`."""
        self.records = 0
        self.bytes = 0

    def add(self, index: int, packed: _engine.PackedLog) -> None:
        """Adds a log."""
        self._packed[index] = packed
        self.file_count += packed.file_count
        self.batches += packed.batches
        self.records += packed.records
        self.bytes += packed.bytes
        if self._logs[index].partition is not None:
            for number, count in enumerate(packed.counts):
                self._counts[number] += count

    def files(self, index: int) -> dict[bytes, ScannedFile]:
        """Returns the scanned files of a log, by path."""
        packed = self._packed[index]
        if packed is None:
            return {}
        files = self._logs[index].files
        return {files[row[0]].path: ScannedFile(*row[1:]) for row in _all_rows(packed.files)}

    def all_files(self) -> Iterator[tuple[bytes, ScannedFile]]:
        """Yields every scanned file with its path."""
        for index in range(len(self._logs)):
            yield from self.files(index).items()

    def count(self, table: str) -> int:
        """Returns the number of rows of a table."""
        return self._counts[ENGINE_TABLES.index(table)]

    def rows(self, table: str) -> Iterator[tuple[Partition, dict[str, Any]]]:
        """Yields the rows of a table, each with its partition; a column `file` has paths."""
        if not self.count(table):
            return
        columns = _COLUMNS[table]
        for log, packed in zip(self._logs, self._packed, strict=True):
            if log.partition is None or packed is None:
                continue
            for values in _all_rows(partial(packed.rows, table)):
                row = dict(zip(columns, values, strict=True))
                if "file" in row:
                    row["file"] = log.files[row["file"]].path
                yield log.partition, row


def _all_rows(unpacked: Callable[[int], Sequence[Row] | None]) -> Iterator[Row]:
    """Yields the rows of a table of a log, of which a piece is unpacked at a time."""
    piece = 0
    while (rows := unpacked(piece)) is not None:
        yield from rows
        piece += 1


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

    @property
    def sums(self) -> tuple[int, int, int]:
        """Batches, records and bytes of all files."""
        return self._logs.batches, self._logs.records, self._logs.bytes

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
