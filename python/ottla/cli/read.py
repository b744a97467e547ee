"""`ottla read`: the records of a partition that a consumer would receive."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Literal, get_args

import click

from ottla.audit.result.tables import json_line, jsonable
from ottla.cli.inspect import record_line, time_text
from ottla.cli.options import OFFSET, Verb, storage_option
from ottla.cli.terminal import complain
from ottla.errors import NotAPartitionError
from ottla.logs.columns import RECORD_COLUMNS
from ottla.logs.names import INTERNAL_TOPICS, LOG_START_OFFSETS, display, parse_partition_name
from ottla.logs.reading import Damage, Isolation, log_start_offset, read_partition
from ottla.records import decode_record
from ottla.storage import full_path
from ottla.text import json_text
from ottla.words import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ottla.records import Record

# Bytes collected before they are written.
WRITE_BYTES = 1 << 16

ASK_AUDIT = (
    "; what indexes, leader epochs, consumer groups and other copies know of it was not looked at:"
    " ottla audit does"
)
"""Behind what is said of the end of a log that nothing looked at shows to have gone on."""

EXIT_CODES = {"info": 0, "warning": 1, "error": 2}

COLUMNS = tuple(
    column
    for column in RECORD_COLUMNS
    if column.name in ("offset", "timestamp", "key", "value", "headers")
)


@click.command(cls=Verb)
@click.argument("directory", metavar="DIRECTORY", type=click.Path())
@click.option(
    "--isolation",
    type=click.Choice(get_args(Isolation)),
    default="read_uncommitted",
    show_default=True,
    help="All records, or only those that are not part of an aborted or open transaction.",
)
@click.option("--from", "from_offset", type=OFFSET, help="First offset to read.")
@click.option("--to", "to_offset", type=OFFSET, help="Offset to stop before.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "jsonl", "raw"]),
    default="text",
    show_default=True,
    help="Readable text; one JSON object per line; or each value as it is, followed by a newline"
    " (a tombstone is an empty line).",
)
@storage_option
@click.option(
    "--decode",
    is_flag=True,
    help="Decode keys and values of __consumer_offsets and __transaction_state.",
)
def read(
    directory: str,
    isolation: Isolation,
    from_offset: int | None,
    to_offset: int | None,
    form: Literal["text", "jsonl", "raw"],
    storage_options: dict[str, str],
    decode: bool,
) -> int:
    """Print the records that a consumer would receive.

    DIRECTORY is a partition directory, or one segment file. Reading starts at the log start offset.
    After damage it continues at the next valid batch, and reports on standard error what is lost.

    \b
    Exit status:
      0    nothing worse than info
      1    damage at which a consumer would stop
      2    records are lost, or were deleted while the log was read
      3    the log could not be read
      64   invalid command line
      130  Ctrl-C
    """  # noqa: D301 - click's mark of lines to keep
    lines = _decoded_lines(directory, form) if decode else _LINES[form]
    status = 0

    def report(damage: Damage) -> None:
        nonlocal status
        status = max(status, EXIT_CODES[damage.severity])
        is_open = damage.severity != "error" and damage.next_good_offset is None
        complain(f"{damage}{ASK_AUDIT}" if is_open and damage.first_offset is not None else damage)

    try:
        records = read_partition(
            directory,
            isolation=isolation,
            from_offset=from_offset,
            to_offset=to_offset,
            on_damage=report,
            storage_options=storage_options,
        )
    except NotAPartitionError as error:
        complain(error)
        return 3
    written = _write(lines(records))
    is_all = from_offset is None and to_offset is None
    if is_all and not written and (start := log_start_offset(directory, storage_options)):
        complain(
            f"{display(os.fsencode(directory))}: no record from its log start offset {start} on,"
            f" which {display(LOG_START_OFFSETS)} beside it has; a .log file alone is read from its"
            " beginning"
        )
    end = records.log_end_offset
    if from_offset is not None and end is not None and from_offset > end:
        complain(
            f"{display(os.fsencode(directory))}: the log ends at offset {end}, before the first one"
            f" asked for, {from_offset}"
        )
    if records.stopped_by is not None:
        offset, producer_id = records.stopped_by
        end = to_offset if end is None else end
        held_back = 0 if end is None else end - offset
        complain(
            f"{display(os.fsencode(directory))}: read_committed ends at offset {offset},"
            f" where the open transaction of producer {producer_id} begins; it holds back"
            f" {count(held_back, 'offset')}, up to offset {offset + held_back - 1}"
        )
    return status


def _text_lines(records: Iterable[Record]) -> Iterator[bytes]:
    encoding = sys.stdout.encoding or "utf-8"
    for r in records:
        line = record_line(r.offset, r.timestamp, r.key, r.value, r.headers)
        yield line.encode(encoding, "backslashreplace")


def _json_lines(records: Iterable[Record]) -> Iterator[bytes]:
    for r in records:
        row = (r.offset, r.timestamp, r.key, r.value, r.headers)
        yield json_line(COLUMNS, row).encode()


def _values(records: Iterable[Record]) -> Iterator[bytes]:
    return (record.value or b"" for record in records)


_LINES = {"text": _text_lines, "jsonl": _json_lines, "raw": _values}


def _decoded_lines(directory: str, form: str) -> Callable[[Iterable[Record]], Iterator[bytes]]:
    """Returns a formatter for the records of an internal topic.

    Raises:
        UsageError: the partition is of another topic, or the format is raw.
    """
    path = full_path(directory)
    named = parse_partition_name(os.path.basename(path)) or parse_partition_name(
        os.path.basename(os.path.dirname(path))
    )
    if named is None or named[0] not in INTERNAL_TOPICS:
        raise click.UsageError(f"--decode works on partitions of {', '.join(INTERNAL_TOPICS)}")
    if form == "raw":
        raise click.UsageError("--decode does not support raw: use jsonl")
    topic = named[0]

    def lines(records: Iterable[Record]) -> Iterator[bytes]:
        for r in records:
            decoded = decode_record(topic, r.key, r.value) or {}
            if "fault" in decoded:
                decoded |= {"key": r.key, "value": r.value}
            if form == "jsonl":
                row = {"offset": r.offset, "timestamp": r.timestamp, **decoded}
                yield json_text(jsonable(row)).encode()
            else:
                yield _decoded_text(r, decoded).encode()

    return lines


def _decoded_text(record: Record, decoded: Mapping[str, Any]) -> str:
    key, value = (json_text(jsonable(decoded[name])) for name in ("key", "value"))
    what = decoded.get("type") or f"({decoded['fault']})"
    return f"{record.offset:>10} {time_text(record.timestamp):<24} {what} {key} {value}"


def _write(lines: Iterator[bytes]) -> int:
    """Writes lines in large pieces, and returns their number.

    Those read before an error are written, too.
    """
    sys.stdout.flush()
    out = sys.stdout.buffer
    held: list[bytes] = []
    size = written = 0
    try:
        for written, line in enumerate(lines, 1):  # noqa: B007 - the last one is returned
            held.append(line)
            size += len(line) + 1
            if size >= WRITE_BYTES:
                piece = b"\n".join((*held, b""))
                held.clear()
                size = 0
                out.write(piece)
    except BrokenPipeError:
        raise
    except OSError:
        out.writelines(line + b"\n" for line in held)
        raise
    out.writelines(line + b"\n" for line in held)
    out.flush()
    return written
