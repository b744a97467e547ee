"""What is kept of logs that were judged: rows, packed until somebody reads them.

A broker has up to hundreds of thousands of partitions, and each fills rows of several tables. As
objects of Python they would take gigabytes; packed, a few hundred bytes a partition.
"""

from __future__ import annotations

import pickle
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ottla.audit.inventory import Partition
    from ottla.audit.plan import Log

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """What the scan of one file says about it as a whole."""

    size: int
    batches: int
    records: int
    first_offset: int | None
    next_offset: int | None
    min_timestamp: int | None
    max_timestamp: int | None
    magics: tuple[int, ...]
    codecs: tuple[str, ...]


def _unpacked(packed: bytes) -> tuple[dict[int, Row], list[list[Row]]]:
    # Bytes of this process, which never left it.
    files, tables = pickle.loads(packed)  # noqa: S301
    return files, tables


class KeptLogs:
    """Files and rows of the logs of a plan, each added once, in any order.

    One thread at a time may add; what was added is read in the order of the plan.
    """

    def __init__(self, logs: Sequence[Log], tables: Sequence[str]) -> None:
        self._logs = logs
        self._packed: list[bytes | None] = [None] * len(logs)
        self._columns: dict[str, tuple[str, ...]] = {}
        self._tables = {name: number for number, name in enumerate(tables)}
        self._counts = dict.fromkeys(tables, 0)
        self.file_count = 0

    def pack(
        self, files: Mapping[int, ScannedFile], tables: Mapping[str, Sequence[Mapping[str, Any]]]
    ) -> bytes:
        """The files of a log by their index, and rows of every table, as bytes for `add`."""
        rows = []
        for name in self._tables:
            if tables[name] and name not in self._columns:
                self._columns[name] = tuple(tables[name][0])
            rows.append([tuple(row.values()) for row in tables[name]])
        return pickle.dumps(({i: astuple(file) for i, file in files.items()}, rows), protocol=5)

    def add(
        self,
        index: int,
        packed: bytes,
        files: Mapping[int, ScannedFile],
        tables: Mapping[str, Sequence[Mapping[str, Any]]],
    ) -> None:
        """Keeps what `pack` gave of these files and rows of a log."""
        self._packed[index] = packed
        self.file_count += len(files)
        if self._logs[index].partition is not None:
            for name, rows in tables.items():
                self._counts[name] += len(rows)

    def files(self, index: int) -> dict[bytes, ScannedFile]:
        """The scanned files of a log, by path."""
        packed = self._packed[index]
        if packed is None:
            return {}
        files = self._logs[index].files
        return {files[i].path: ScannedFile(*row) for i, row in _unpacked(packed)[0].items()}

    def all_files(self) -> Iterator[tuple[bytes, ScannedFile]]:
        """Every scanned file with its path."""
        for index in range(len(self._logs)):
            yield from self.files(index).items()

    def count(self, table: str) -> int:
        """Rows of a table."""
        return self._counts[table]

    def rows(self, table: str) -> Iterator[tuple[Partition, dict[str, Any]]]:
        """The rows of a table, each with its partition."""
        number = self._tables[table]
        columns = self._columns.get(table, ())
        for log, packed in zip(self._logs, self._packed, strict=True):
            if log.partition is not None and packed is not None:
                for row in _unpacked(packed)[1][number]:
                    yield log.partition, dict(zip(columns, row, strict=True))


class KeptFiles:
    """Every scanned file, by path."""

    def __init__(self, logs: KeptLogs) -> None:
        self._logs = logs

    def __len__(self) -> int:
        return self._logs.file_count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeptFiles) and list(self.items()) == list(other.items())

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, path: bytes) -> ScannedFile:
        """A file; goes through all of them."""
        return dict(self.items())[path]

    def items(self) -> Iterator[tuple[bytes, ScannedFile]]:
        """Path and file, in the order of the plan."""
        return self._logs.all_files()

    def values(self) -> Iterator[ScannedFile]:
        """The files, in the order of the plan."""
        return (file for _, file in self.items())

    def of_log(self, index: int) -> Mapping[bytes, ScannedFile]:
        """The scanned files of a log of the plan."""
        return self._logs.files(index)


class KeptRows:
    """The rows of one table, each with its partition, in the order of the partitions."""

    def __init__(self, logs: KeptLogs, table: str) -> None:
        self._logs = logs
        self._table = table

    def __len__(self) -> int:
        return self._logs.count(self._table)

    def __iter__(self) -> Iterator[tuple[Partition, dict[str, Any]]]:
        return self._logs.rows(self._table)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeptRows) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]
