"""A naive twin of splitting captured record sets: one set, one part, one record at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ottla.audit.result.tables import jsonable
from ottla.records import validate_each
from ottla.spark.captured.options import NO_RECORDS, no_config
from ottla.spark.captured.split import VALID_COLUMNS
from ottla.text import json_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.records import Record, RecordError, SetPart

NOT_JUDGED = "not-judged"


@dataclass(slots=True)
class Halves:
    """Rows of `VALID_COLUMNS` and of `QUARANTINE_COLUMNS` from one record set."""

    valid: list[tuple[Any, ...]] = field(default_factory=list)
    quarantine: list[tuple[Any, ...]] = field(default_factory=list)


_RECORD = attrgetter("offset", "timestamp", "key", "value", "headers", "sequence", "control")
_NO_RECORD = (None,) * (len(VALID_COLUMNS) - 1)
_HEADERS_AT = [column.name for column in VALID_COLUMNS].index("headers") - 1


def _record_row(position: int, record: Record) -> tuple[Any, ...]:
    row = list(_RECORD(record))
    row[_HEADERS_AT] = json_text(jsonable(row[_HEADERS_AT]))
    return (position, *row)


def split_set(records: bytes | None, config: Any, options: Mapping[str, Any]) -> Halves:
    """Return the halves of one record set; a topic's name in place of a configuration has none."""
    halves = Halves()
    parts: list[SetPart] = []
    why = None
    if records is None:
        why = NO_RECORDS
    elif isinstance(config, str):
        why = no_config(config)
    elif missing := [name for name in ("now_ms", "origin") if options[name] is None]:
        why = f"nothing was judged: {missing[0]} is null"
    else:
        try:
            parts = validate_each(records, config, **options)
        except ValueError as error:
            why = f"nothing was judged: {error}"
    if why is not None or records is None:
        halves.quarantine.append(_rejected_bytes(0, records, None, NOT_JUDGED, why))
        return halves
    for part in parts:
        if part.reason is not None:
            data = records[part.position : part.position + part.size]
            bad = _rejected_bytes(
                part.position,
                data,
                part.error,
                part.reason,
                part.message,
                record_index=part.record_index,
            )
            halves.quarantine.append(bad)
        else:
            errors = {error.batch_index: error for error in part.record_errors}
            _add_records(halves, part, errors)
    return halves


def _add_records(halves: Halves, part: SetPart, errors: Mapping[int, RecordError]) -> None:
    """Add the records of a batch to their halves; those with errors go to quarantine."""
    for index, record in enumerate(part.records() or ()):
        row = _record_row(part.position, record)
        if index in errors:
            error = errors[index]
            bad = (*row, error.error, error.error_name, error.message, index, None, None)
            halves.quarantine.append(bad)
        else:
            halves.valid.append(row)


def _rejected_bytes(
    position: int,
    data: bytes | None,
    error: int | None,
    reason: str,
    message: str | None,
    *,
    record_index: int | None = None,
) -> tuple[Any, ...]:
    """Return the row of quarantine for bytes that are rejected as a whole."""
    size = None if data is None else len(data)
    return (position, *_NO_RECORD, error, reason, message, record_index, size, data)
