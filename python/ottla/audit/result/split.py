"""Splits the records of a file by the findings about it: valid records, and quarantine.

`split_file` is a function of one file and its findings, so threads and tasks of a cluster share it.
Certain findings send the bytes of their range to quarantine; if such a finding names a record and
the rest of the batch can be read, only that record.
"""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from ottla.audit.catalogue.explain import explain
from ottla.errors import RecordBatchError
from ottla.logs.columns import RECORD_COLUMNS
from ottla.logs.segment import record_chunks
from ottla.records import read_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ottla.audit.catalogue.finding import PlacedFinding
    from ottla.logs.columns import Row
    from ottla.storage import Place

PIECE_BYTES = 4 << 20
"""Size of the bytes in one row of quarantine; a longer range continues in the next row."""

BATCH_BYTES = 64 << 20
"""A range up to this size may be a batch whose records can be read."""

# Rows of quarantine returned at a time.
_ROWS_AT_ONCE = 1_024

_POSITION = [column.name for column in RECORD_COLUMNS].index("batch_position")
_RECORD = attrgetter(*(c.name for c in RECORD_COLUMNS if c.name != "batch_position"))
_NO_RECORD = (None,) * (len(RECORD_COLUMNS) - 1)


def condemns(finding: PlacedFinding) -> bool:
    """Whether a finding sends records or bytes to quarantine."""
    return finding.severity == "error" and explain(finding.name).condemns


def split_file(
    place: Place, prefix: Row, findings: Sequence[PlacedFinding]
) -> tuple[Iterator[list[Row]], Iterator[list[Row]]]:
    """Splits the records of a file.

    Args:
        place: the file, as the engine reads it.
        prefix: values of the columns `file`, `topic` and `partition`.
        findings: the audit's findings in this file; those that condemn nothing are ignored.

    Returns:
        Rows of `records` that are valid, and rows of `quarantine`, both in chunks and in the order
        of the file. The file is read while iterating.

    Raises:
        OSError: while iterating, if the file cannot be read.
    """
    condemning = [finding for finding in findings if condemns(finding)]
    ranges = cache(lambda: _ranges(place, condemning))
    return _valid(place, prefix, ranges), _pieces(_quarantine(place, prefix, ranges))


class _Range(NamedTuple):
    """Bytes in quarantine: all of the range, or some records of the batch it is."""

    start: int
    stop: int
    finding: PlacedFinding
    by_index: dict[int, PlacedFinding]
    """Findings by record, if only these are in quarantine; empty for the whole range."""


def _ranges(place: Place, findings: Iterable[PlacedFinding]) -> list[_Range]:
    """Returns the ranges in quarantine, in the order of the file and without overlaps."""
    size = place.size
    ranges: list[_Range] = []
    last: dict[str, tuple[int, PlacedFinding]] = {}
    known: dict[tuple[int, int], list[PlacedFinding]] = {}
    counted = []
    for finding in findings:
        if finding.position is None:
            counted.append(finding)
            continue
        stop = min(size, finding.position + (finding.size or 0))
        known.setdefault((finding.position, stop), []).append(finding)
        last[finding.name] = max(last.get(finding.name, (0, finding)), (stop, finding), key=_stop)
    for finding in counted:
        # The rest of a kind with too many findings: nothing after the last is known to be valid.
        start, _ = last.get(finding.name, (0, finding))
        known.setdefault((start, size), []).append(finding)
    end = 0
    for (start, stop), several in sorted(known.items(), key=lambda item: item[0]):
        if stop <= max(start, end):
            continue
        by_index = {f.record_index: f for f in several if f.record_index is not None}
        is_by_index = len(by_index) == len(several) and start >= end
        readable = _records(place.read_at(start, stop - start)) if is_by_index else None
        if readable is None or max(by_index) >= len(readable):
            by_index = {}
        ranges.append(_Range(max(start, end), stop, several[0], by_index))
        end = stop
    return ranges


def _stop(pair: tuple[int, PlacedFinding]) -> int:
    return pair[0]


def _valid(place: Place, prefix: Row, found: Callable[[], list[_Range]]) -> Iterator[list[Row]]:
    """Yields the records outside the ranges in quarantine."""
    ranges = found()
    at = 0
    for rows in record_chunks(place):
        good: list[Row] = []
        position, index = -1, 0
        for row in rows:
            # A chunk of the table holds complete batches.
            index = index + 1 if row[_POSITION] == position else 0
            position = row[_POSITION]
            while at < len(ranges) and ranges[at].stop <= position:
                at += 1
            if at < len(ranges) and ranges[at].start <= position:
                by_index = ranges[at].by_index
                if not by_index or index in by_index:
                    continue
            good.append((*prefix, *row))
        if good:
            yield good


def _quarantine(place: Place, prefix: Row, found: Callable[[], list[_Range]]) -> Iterator[Row]:
    for condemned in found():
        start, size = condemned.start, condemned.stop - condemned.start
        finding = condemned.finding
        records = None
        if size <= BATCH_BYTES:
            records = _records(place.read_at(start, size))
        if records is not None:
            for index, record in enumerate(records):
                blamed = condemned.by_index.get(index, finding)
                if condemned.by_index and index not in condemned.by_index:
                    continue
                reason = (blamed.name, blamed.message, index, None, None)
                yield (*prefix, start, *record, *reason)
            continue
        for position in range(start, condemned.stop, PIECE_BYTES):
            data = bytes(place.read_at(position, min(PIECE_BYTES, condemned.stop - position)))
            whole = (finding.name, finding.message, finding.record_index, len(data), data)
            yield (*prefix, position, *_NO_RECORD, *whole)


def _records(data: memoryview) -> list[Row] | None:
    """Returns the records if the bytes are exactly one batch that can be decoded, else None."""
    try:
        batches = list(read_batches(data))
        if len(batches) != 1 or batches[0].size != len(data):
            return None
        batches[0].verify()
        return [_RECORD(record) for record in batches[0].records()]
    except RecordBatchError:
        return None


def _pieces(rows: Iterator[Row]) -> Iterator[list[Row]]:
    held: list[Row] = []
    size = 0
    for row in rows:
        held.append(row)
        size += sum(len(value) for value in row if isinstance(value, bytes))
        if len(held) >= _ROWS_AT_ONCE or size >= PIECE_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held
