"""Reads a file batch by batch or record by record, in chunks that fit in memory.

The audit keeps neither batches nor records: the tables of them, and `ottla inspect`, read the file
again with these functions.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from ottla import _engine
from ottla.logs.columns import BATCH_COLUMNS, RECORD_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.logs.columns import Row
    from ottla.storage import Place

segment_table = _engine.segment_table
"""The rows of `batches` or `records` of a file as Arrow record batches."""

segment_cuts = _engine.segment_cuts
"""Positions at which the offset index of a segment allows cutting it."""

lawful_hole = _engine.lawful_hole
"""What explains that a log has no batch of some offsets, in words; None where nothing does."""

partition_transactions = _engine.partition_transactions
"""Aborted transactions of segments, and the open one that comes first."""

# Rows read from a file at a time. Records include their values, which may be large.
BATCHES_AT_ONCE = 16_384
RECORDS_AT_ONCE = 1_024


def batch_chunks(place: Place, position: int = 0) -> Iterator[list[Row]]:
    """Yields the batches from a position as rows of `BATCH_COLUMNS`; damage is skipped.

    Raises:
        OSError: the file cannot be read.
    """
    following: int | None = position
    while following is not None:
        rows, following = _engine.segment_batches(place, following, BATCHES_AT_ONCE)
        yield rows


def record_chunks(place: Place, position: int = 0) -> Iterator[list[Row]]:
    """Yields the records from a batch's position as rows of `RECORD_COLUMNS`; damage is skipped.

    Raises:
        OSError: the file cannot be read.
    """
    following: int | None = position
    while following is not None:
        rows, following = _engine.segment_records(place, following, RECORDS_AT_ONCE)
        yield rows


def offset_of_timestamp(place: Place, position: int, timestamp: int) -> int | None:
    """Returns the offset of the first record with a timestamp in the batch at a position.

    Raises:
        OSError: the file cannot be read.
    """
    names = [column.name for column in RECORD_COLUMNS]
    batch, offset, time = (names.index(n) for n in ("batch_position", "offset", "timestamp"))
    rows, _ = _engine.segment_records(place, position, 1)
    for row in rows:
        if row[batch] == position and row[time] == timestamp:
            return int(row[offset])
    return None


class Followed(NamedTuple):
    """A run of batches whose offsets continue each other, by their headers alone."""

    last: int
    """Position where the last of them begins, or where the run began if there is none."""
    end: int
    """Position where the last of them ends."""
    batches: int
    first_offset: int | None
    """Base offset of the first one."""
    next_offset: int | None
    """The last offset plus one, or what was expected if there is no batch."""
    leader_epoch: int
    """Of the last one; -1 below magic 2 and without a batch."""
    rewritten: int
    """How many the cleaner rewrote: fewer records than offsets, or a delete horizon."""
    digest: int
    """A sum of hashes of their headers, modulo 2^64."""
    stop: str
    """Why it ends: `end`, `limit`, `torn`, `no-batch`, `hole` or `back`."""
    found_offset: int | None
    """For `hole` and `back` the base offset of the batch that it ends before."""


def follow_batches(
    place: Place,
    position: int,
    stop: int,
    *,
    max_bytes: int | None = None,
    next_offset: int | None = None,
    has_holes: bool = False,
) -> Followed:
    """Follows whole batches from one on, up to a position or a number of bytes.

    Args:
        place: the segment.
        position: where a batch begins.
        stop: no batch that ends after this position is whole.
        max_bytes: ends with the batch that reaches this number of bytes.
        next_offset: the base offset that the first batch must have; any without it.
        has_holes: whether offsets may be missing between batches, as compaction leaves them.

    Raises:
        OSError: the file cannot be read.
    """
    return Followed(
        *_engine.follow_batches(
            place,
            position,
            stop,
            max_bytes=max_bytes,
            next_offset=next_offset,
            has_holes=has_holes,
        )
    )


def find_offset(place: Place, offset: int, position: int = 0) -> int | None:
    """Returns the position of the first batch that ends at or after an offset, None if none does.

    Batches are looked at from a position on. One beyond the offset that the next batch contradicts
    is passed: no checksum covers its own offset.

    Raises:
        OSError: the file cannot be read.
    """
    beyond: tuple[int, int] | None = None
    for chunk in batch_chunks(place, position):
        for row in chunk:
            found, base_offset, last_offset = _offsets_of(row)
            if beyond is not None and (last_offset < offset or base_offset >= beyond[1]):
                return beyond[0]
            if last_offset >= offset:
                if base_offset <= offset:
                    return found
                beyond = found, base_offset
    return None if beyond is None else beyond[0]


def _offsets_of(row: Row) -> tuple[int, int, int]:
    """Returns the position of a batch, and its first and last offset."""
    position, base_offset, last_offset = _places(row)
    return int(position), int(base_offset), int(last_offset)


_places = itemgetter(
    *map(
        [column.name for column in BATCH_COLUMNS].index, ("position", "base_offset", "last_offset")
    )
)


class FoundBatch(NamedTuple):
    """The place of a batch, and whether its checksum is correct."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    is_valid: bool


_found_batch = itemgetter(*map([column.name for column in BATCH_COLUMNS].index, FoundBatch._fields))


def first_batch(place: Place, position: int) -> FoundBatch | None:
    """Returns the first batch at or after a position, None if there is none.

    Raises:
        OSError: the file cannot be read.
    """
    following: int | None = position
    while following is not None:
        rows, following = _engine.segment_batches(place, following, 1)
        if rows:
            return FoundBatch(*_found_batch(rows[0]))
    return None
