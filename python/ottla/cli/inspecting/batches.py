"""Batches and records of a file, as lines."""

from __future__ import annotations

from itertools import dropwhile
from typing import TYPE_CHECKING, Any

from ottla.audit.result.tables import json_line
from ottla.cli.record_text import record_line, time_text
from ottla.logs.columns import BATCH_COLUMNS, RECORD_COLUMNS, Column, Row
from ottla.logs.segment import batch_chunks, record_chunks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ottla.storage import Place

__all__ = ["batch_dicts", "lines_of", "record_dicts"]

CURRENT_MAGIC = 2


def lines_of(
    place: Place, position: int = 0, *, has_records: bool, is_json: bool, offset: int | None = None
) -> Iterator[str]:
    """The batches of a file from a position on, or their records from an offset on."""
    columns = RECORD_COLUMNS if has_records else BATCH_COLUMNS
    rows = _rows(place, position, has_records=has_records)
    if has_records and offset is not None:
        rows = _from_offset(rows, offset)
    if is_json:
        return (json_line(columns, row) for row in rows)
    if has_records:
        return _record_lines(_as_dicts(columns, rows))
    return _batch_lines(_as_dicts(columns, rows), position, place.size)


def batch_dicts(place: Place) -> Iterator[dict[str, Any]]:
    """The batches of a file by the names of their columns."""
    return _as_dicts(BATCH_COLUMNS, _rows(place, 0, has_records=False))


def record_dicts(place: Place) -> Iterator[dict[str, Any]]:
    """The records of a file by the names of their columns."""
    return _as_dicts(RECORD_COLUMNS, _rows(place, 0, has_records=True))


def _rows(place: Place, position: int, *, has_records: bool) -> Iterator[Row]:
    chunks = record_chunks(place, position) if has_records else batch_chunks(place, position)
    return (row for chunk in chunks for row in chunk)


def _as_dicts(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    names = [column.name for column in columns]
    return (dict(zip(names, row, strict=True)) for row in rows)


def _from_offset(rows: Iterable[Row], offset: int) -> Iterator[Row]:
    """Skips rows up to the offset; all rows after the first match pass, whatever their offset."""
    index = [column.name for column in RECORD_COLUMNS].index("offset")
    return dropwhile(lambda row: bool(row[index] < offset), rows)


def _batch_lines(batches: Iterable[dict[str, Any]], position: int, size: int) -> Iterator[str]:
    yield (
        f"{'position':>10} {'size':>8} {'offsets':<23} {'records':>7} {'codec':<6}"
        f" {'max timestamp':<24} attributes"
    )
    for batch in batches:
        if batch["position"] != position:
            yield f"{position:>10} {batch['position'] - position:>8} not a batch"
        position = batch["position"] + batch["size"]
        offsets = _span(batch["base_offset"], batch["last_offset"])
        count = "-" if batch["record_count"] is None else batch["record_count"]
        yield (
            f"{batch['position']:>10} {batch['size']:>8} {offsets:<23} {count:>7}"
            f" {batch['compression']:<6} {time_text(batch['max_timestamp']):<24}"
            f" {_attributes(batch)}"
        ).rstrip()
    if position < size:
        yield f"{position:>10} {size - position:>8} not a batch"


def _attributes(batch: dict[str, Any]) -> str:
    """The attributes of a batch that not every batch has."""
    attributes = []
    if batch["is_valid"] is False:
        attributes.append("CRC MISMATCH")
    if batch["magic"] != CURRENT_MAGIC:
        attributes.append(f"magic {batch['magic']}")
    if batch["is_control"]:
        attributes.append("control")
    if batch["is_transactional"]:
        attributes.append("transactional")
    if batch["timestamp_type"] == "LogAppendTime":
        attributes.append("LogAppendTime")
    if batch["producer_id"] is not None and batch["producer_id"] >= 0:
        attributes.append(f"producer {batch['producer_id']}/{batch['producer_epoch']}")
    if batch["base_sequence"] is not None and batch["base_sequence"] >= 0:
        attributes.append(f"seq {_span(batch['base_sequence'], batch['last_sequence'])}")
    if batch["partition_leader_epoch"]:
        attributes.append(f"leader epoch {batch['partition_leader_epoch']}")
    if batch["delete_horizon_ms"] is not None:
        attributes.append(f"delete horizon {time_text(batch['delete_horizon_ms'])}")
    return " ".join(attributes)


def _record_lines(records: Iterable[dict[str, Any]]) -> Iterator[str]:
    for record in records:
        line = record_line(
            record["offset"],
            record["timestamp"],
            record["key"],
            record["value"],
            record["headers"],
            control=record["control"],
        )
        if record["sequence"] is not None and record["sequence"] >= 0:
            line += f" seq {record['sequence']}"
        yield line


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"
