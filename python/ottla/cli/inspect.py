"""`ottla inspect`: the batches or records of one file, as kafka-dump-log, but readable."""

from __future__ import annotations

import os
import sys
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, Literal

import click

from ottla.audit.result.tables import json_line
from ottla.cli.options import OFFSET, Verb, storage_option
from ottla.cli.record_text import record_line, time_text
from ottla.cli.terminal import complain
from ottla.logs.columns import BATCH_COLUMNS, RECORD_COLUMNS, Column, Row
from ottla.logs.names import classify, display, may_hold_batches
from ottla.logs.segment import batch_chunks, find_offset, record_chunks
from ottla.storage import files_of, full_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ottla.storage import Files

CURRENT_MAGIC = 2


@click.command(cls=Verb)
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--records", is_flag=True, help="Print records instead of batches.")
@click.option("-o", "--offset", type=OFFSET, help="Offset of the log to start at.")
@storage_option
@click.option(
    "--format",
    "--output-format",
    "form",
    type=click.Choice(["text", "jsonl"]),
    default="text",
    show_default=True,
    help="Readable text, or one JSON object per line with the columns of the audit's tables.",
)
def inspect(
    file: str,
    records: bool,
    offset: int | None,
    storage_options: dict[str, str],
    form: Literal["text", "jsonl"],
) -> int:
    """Print the batches or records of a segment.

    FILE is a segment (.log). Bytes that are not a batch are skipped; `ottla audit` reports what is
    wrong with them.

    \b
    Exit status:
      0   printed
      3   the file could not be read, or the offset is beyond its end
      64  invalid command line
    """  # noqa: D301 - click's mark of lines to keep
    path = full_path(file)
    files = files_of(file, storage_options)
    reason = _fault(path, files)
    position: int | None = 0
    if reason is None:
        place = files.place(path)
    if reason is None and offset is not None:
        position = find_offset(place, offset)
        reason = f"offset {offset} is beyond its last batch" if position is None else None
    if reason is not None or position is None:
        complain(f"{display(os.fsencode(file))}: {reason}")
        return 3
    columns = RECORD_COLUMNS if records else BATCH_COLUMNS
    chunks = record_chunks(place, position) if records else batch_chunks(place, position)
    rows: Iterator[Row] = (row for chunk in chunks for row in chunk)
    if records and offset is not None:
        rows = _from_offset(rows, offset)
    if form == "jsonl":
        lines: Iterable[str] = (json_line(columns, row) for row in rows)
    elif records:
        lines = _record_lines(_as_dicts(columns, rows))
    else:
        lines = _batch_lines(_as_dicts(columns, rows), position)
    sys.stdout.writelines(line + "\n" for line in lines)
    return 0


def _fault(path: bytes, files: Files) -> str | None:
    """Returns why a file cannot be inspected. A FIFO must not be opened, which would block."""
    entry = files.stat(path)
    if entry.is_directory:
        return "a directory: give a segment in it, or use `ottla audit`"
    if entry.fault is not None:
        return "not a file"
    if not may_hold_batches(entry.name):
        kind = classify(entry.name)[0]
        return f"{kind.replace('-', ' ')}, not a segment: give its .log file"
    return None


def _as_dicts(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    names = [column.name for column in columns]
    return (dict(zip(names, row, strict=True)) for row in rows)


def _from_offset(rows: Iterable[Row], offset: int) -> Iterator[Row]:
    """Skips rows up to the offset; all rows after the first match pass, whatever their offset."""
    index = [column.name for column in RECORD_COLUMNS].index("offset")
    return dropwhile(lambda row: bool(row[index] < offset), rows)


def _batch_lines(batches: Iterable[dict[str, Any]], position: int) -> Iterator[str]:
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
