"""Records made of numbers, and whether the same came back, as columns or as objects."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ottla.records import ConsumerRecord, FetchedColumns

# Of records without a known content, so that some are empty and some are larger than a page.
_MEAN_BYTES = 1000
_LETTERS = np.frombuffer(b"abcdefghijklmnop", np.uint8)
# 2023-11-14, so that no record is from the future.
_BEGINS_MS = 1_700_000_000_000

Variable = tuple[NDArray[np.int64], NDArray[np.uint8]]


@dataclass(frozen=True)
class Block:
    """Rows as columns: offsets and bytes, as Arrow has them."""

    keys: Variable
    values: Variable
    timestamps_ms: NDArray[np.int64]

    def rows(self) -> Iterator[tuple[bytes, bytes, int]]:
        """Yields key, value and time of each."""
        keys, values = listed(self.keys), listed(self.values)
        yield from zip(keys, values, self.timestamps_ms.tolist(), strict=True)


def block(number: int, rows: int = 1000) -> Block:
    """The rows of a number, always the same; values can be compressed to half their size."""
    chance = np.random.default_rng(number)
    lengths = chance.integers(0, 2 * _MEAN_BYTES, rows)
    values = _LETTERS[chance.integers(0, 16, int(lengths.sum()), np.uint8)]
    first = number * rows
    keys = np.arange(first, first + rows, dtype=">i8").view(np.uint8)
    times = _BEGINS_MS + first + chance.integers(0, 100, rows)
    return Block(
        (np.arange(rows + 1, dtype=np.int64) * 8, keys),
        (np.concatenate(([0], np.cumsum(lengths))), values),
        times.astype(np.int64),
    )


def listed(column: Variable) -> list[bytes]:
    """The values of a column."""
    offsets, data = column
    text = data.tobytes()
    return [text[start:end] for start, end in pairwise(offsets.tolist())]


@dataclass
class Digest:
    """Equal for the same records in the same order."""

    count: int = 0
    size_bytes: int = 0
    _hashes: list[Any] = field(default_factory=lambda: [blake2b() for _ in range(5)], repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digest) and self.told() == other.told()

    __hash__ = None  # type: ignore[assignment]

    def told(self) -> tuple[int, int, list[str]]:
        """Counts and checksums."""
        return self.count, self.size_bytes, [one.hexdigest() for one in self._hashes]

    def add(self, rows: Block) -> None:
        """Takes rows as columns."""
        (key_offsets, keys), (value_offsets, values) = rows.keys, rows.values
        self._add(
            np.diff(key_offsets),
            keys[key_offsets[0] : key_offsets[-1]],
            np.diff(value_offsets),
            values[value_offsets[0] : value_offsets[-1]],
            rows.timestamps_ms,
        )

    def add_records(self, records: Sequence[ConsumerRecord]) -> None:
        """Takes records as objects."""
        keys = [one.key or b"" for one in records]
        values = [one.value or b"" for one in records]
        times = [one.timestamp_ms for one in records]
        self._add([*map(len, keys)], b"".join(keys), [*map(len, values)], b"".join(values), times)

    def _add(
        self, key_lengths: Any, keys: Any, value_lengths: Any, values: Any, times: Any
    ) -> None:
        self.count += len(times)
        self.size_bytes += len(keys) + len(values)
        columns = (
            np.asarray(key_lengths, np.int64),
            np.frombuffer(keys, np.uint8),
            np.asarray(value_lengths, np.int64),
            np.frombuffer(values, np.uint8),
            np.asarray(times, np.int64),
        )
        for one, column in zip(self._hashes, columns, strict=True):
            one.update(np.ascontiguousarray(column).data)


def runs(columns: FetchedColumns) -> Iterator[tuple[int, NDArray[np.int64], Block]]:
    """Yields partition, offsets and rows of each run of one partition."""
    partitions = columns.partition
    ends = [*(np.flatnonzero(np.diff(partitions)) + 1), len(partitions)] if len(columns) else []
    for start, end in pairwise([0, *map(int, ends)]):
        rows = slice(start, end)
        yield (
            int(partitions[start]),
            columns.offset[rows],
            Block(
                _part(columns.key, start, end),
                _part(columns.value, start, end),
                columns.timestamp_ms[rows],
            ),
        )


def _part(column: tuple[Any, ...], start: int, end: int) -> Variable:
    return column[0][start : end + 1], column[1]
