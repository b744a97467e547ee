"""`ottla validate`: a leader's decision on produce requests."""

from __future__ import annotations

import base64
import binascii
import errno
import json
import os
import sys
import time
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import click

from ottla.cli.options import Verb, storage_option
from ottla.cli.terminal import complain
from ottla.errors import OttlaError, StorageError
from ottla.logs.names import SEGMENT_SUFFIX, display
from ottla.records import TopicConfig, validate, validate_stored
from ottla.storage import files_of, full_path
from ottla.text import json_text, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from ottla.records import Verdict
    from ottla.storage import Place

ACCEPTED, REJECTED, NOT_READ = 0, 2, 3

# Kafka counts the bytes of a record set in an int32; base64 needs four characters for three bytes.
MAX_RECORD_SET = 2**31 - 1
MAX_LINE = MAX_RECORD_SET // 3 * 4 + 1024

# Read at once from an object, for reading it line by line or batch by batch.
BUFFER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _RecordSet:
    """The record set of one partition in a produce request, or a batch of a segment."""

    file: str
    records: bytes
    line: int | None = None
    position: int | None = None
    base_offset: int | None = None
    """Base offset of a batch in a segment; None for a produce request."""

    @property
    def place(self) -> str:
        if self.line is not None:
            return f"{self.file}, line {self.line}"
        return self.file if self.position is None else f"{self.file}, position {self.position}"


@dataclass(frozen=True, slots=True)
class _ReadFailure:
    """An input without a verdict, and the reason."""

    place: str
    reason: str


@click.command("validate", cls=Verb)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option(
    "-X",
    "--config",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Setting of the topic, such as max.message.bytes=1000. May be repeated.",
)
@click.option(
    "--now-ms", type=int, help="Time of the broker, in ms since 1970.  [default: the time now]"
)
@click.option(
    "--profile",
    type=click.Choice(["strict", "kafka"]),
    default="strict",
    show_default=True,
    help="Decide as strict or exactly as Kafka; `ottla explain --profiles` lists differences.",
)
@click.option(
    "--kafka-version",
    metavar="VERSION",
    help="Release of Kafka whose rules hold, as 4.4 or 4.2.2; the newest that is known by default. "
    "`ottla explain --releases` lists what they decide otherwise.",
)
@click.option(
    "--api-version",
    type=click.IntRange(min=-1),
    default=11,
    show_default=True,
    help="Version of the produce request; -1 for writes of the broker itself.",
)
@click.option("--transactional-id", help="Transactional id of the request.")
@storage_option
@click.option(
    "--format",
    "--output-format",
    "form",
    type=click.Choice(["text", "jsonl"]),
    default="text",
    show_default=True,
    help="Readable text, or one JSON object per verdict, with the bytes a leader would store.",
)
def validate_files(
    files: tuple[str, ...],
    settings: tuple[str, ...],
    now_ms: int | None,
    profile: str,
    kafka_version: str | None,
    api_version: int,
    transactional_id: str | None,
    storage_options: dict[str, str],
    form: Literal["text", "jsonl"],
) -> int:
    """Decide on produce requests as a partition leader does.

    Prints for each record set whether a leader accepts it, and which records are faulty.

    FILE is the record set of a produce request; or, with the suffix .jsonl or as - for standard
    input, lines of {"records": BASE64}; or a segment (.log). Each batch of a segment is judged as
    if its producer sent it again, with base offset 0 and for any version, or as if the coordinator
    wrote it. Batches that no producer may send are rejected: those with records removed by
    compaction, and those with LogAppendTime.

    \b
    Exit status:
      0    all accepted
      2    some rejected
      3    an input could not be read
      64   invalid command line
      130  Ctrl-C
    """  # noqa: D301 - click's mark of lines to keep
    config = _config(settings)
    request = {
        "now_ms": time.time_ns() // 1_000_000 if now_ms is None else now_ms,
        "profile": profile,
        "kafka_version": kafka_version,
        "api_version": None if api_version < 0 else api_version,
        "transactional_id": transactional_id,
    }
    _check(config, request)
    status = ACCEPTED
    for found in (found for file in files for found in _record_sets(file, storage_options)):
        if isinstance(found, _ReadFailure):
            complain(f"{found.place}: {found.reason}")
            status = NOT_READ
            continue
        verdict = _decide(found, config, request)
        text = map(visible, _text(found, verdict))
        lines = text if form == "text" else [_json(found, verdict)]
        sys.stdout.writelines(line + "\n" for line in lines)
        if not verdict.accepted:
            status = max(status, REJECTED)
    return status


def _decide(found: _RecordSet, config: TopicConfig, request: dict[str, Any]) -> Verdict:
    if found.base_offset is None:
        return validate(found.records, config, **request)
    return validate_stored(
        found.records,
        config,
        now_ms=request["now_ms"],
        base_offset=found.base_offset,
        profile=request["profile"],
        kafka_version=request["kafka_version"],
    )


def _check(config: TopicConfig, request: dict[str, Any]) -> None:
    """Checks options before files are read, not after the first of them."""
    try:
        validate(b"", config, **request)
    except (ValueError, OverflowError) as error:
        raise click.UsageError(str(error)) from error


def _config(settings: Iterable[str]) -> TopicConfig:
    """Returns a topic's configuration from `key=value`, with numbers converted."""
    defaults = {setting.name: setting.default for setting in fields(TopicConfig)}
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise click.BadParameter(f"{setting!r} is not KEY=VALUE", param_hint="--config")
        name = key.strip().replace(".", "_")
        is_number = isinstance(defaults.get(name), int)
        try:
            values[name] = int(value) if is_number else value
        except ValueError:
            message = f"{key} must be a whole number, not {value!r}"
            raise click.BadParameter(message, param_hint="--config") from None
    try:
        return TopicConfig(**values)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(str(error), param_hint="--config") from error


def _record_sets(file: str, storage_options: dict[str, str]) -> Iterator[_RecordSet | _ReadFailure]:
    if file == "-":
        yield from _from_lines("-", sys.stdin.buffer)
        return
    path = full_path(file)
    files = files_of(file, storage_options)
    name = display(os.fsencode(file))
    try:
        entry = files.stat(path)
        # A FIFO must not be opened: that would block.
        if entry.is_directory or entry.fault is not None:
            yield _ReadFailure(name, "not a file")
            return
        place = files.place(path, entry.size)
        with place.open(BUFFER_BYTES) as source:
            if path.endswith(SEGMENT_SUFFIX):
                yield from _from_segment(name, place, source)
            elif path.endswith(b".jsonl"):
                yield from _from_lines(name, source)
            else:
                yield _from_record_set(name, source)
    except StorageError:
        raise
    except (OSError, OttlaError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        yield _ReadFailure(name, reason or str(error))


def _from_record_set(place: str, source: BinaryIO) -> _RecordSet | _ReadFailure:
    if source.seek(0, os.SEEK_END) > MAX_RECORD_SET:
        return _ReadFailure(place, f"larger than a record set can be, {MAX_RECORD_SET} bytes")
    source.seek(0)
    return _RecordSet(place, source.read())


def _from_lines(place: str, source: BinaryIO) -> Iterator[_RecordSet | _ReadFailure]:
    number = 0
    while line := source.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            yield _ReadFailure(f"{place}, line {number}", f"longer than {MAX_LINE} bytes")
            return
        if not line.strip():
            continue
        try:
            records = json.loads(line)["records"]
            data = base64.b64decode(records, validate=True)
        except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
            reason = f'not {{"records": BASE64}}: {type(error).__name__}: {error}'
            yield _ReadFailure(f"{place}, line {number}", reason)
        else:
            yield _RecordSet(place, data, line=number)


def _from_segment(name: str, place: Place, source: BinaryIO) -> Iterator[_RecordSet | _ReadFailure]:
    from ottla.logs.columns import BATCH_COLUMNS
    from ottla.logs.segment import batch_chunks

    names = [column.name for column in BATCH_COLUMNS]
    end = 0
    for row in (row for chunk in batch_chunks(place, 0) for row in chunk):
        batch = dict(zip(names, row, strict=True))
        if batch["position"] != end:
            yield _gap(name, end, batch["position"])
        source.seek(batch["position"])
        data = source.read(batch["size"])
        end = batch["position"] + batch["size"]
        yield _RecordSet(
            name, data, position=batch["position"], base_offset=batch["base_offset"] or 0
        )
    if _has_more_than_zeros(source, end):
        yield _gap(name, end, source.seek(0, os.SEEK_END))


def _has_more_than_zeros(source: BinaryIO, position: int) -> bool:
    while (data := _next_data(source, position)) is not None:
        source.seek(data)
        piece = source.read(1 << 20)
        if piece.strip(b"\0"):
            return True
        if not piece:
            break
        position = data + len(piece)
    return False


def _next_data(source: BinaryIO, position: int) -> int | None:
    """Where a hole of a sparse file ends that holds a position, None at the end of the file."""
    try:
        return os.lseek(source.fileno(), position, os.SEEK_DATA)
    except OSError as error:
        # An object has no descriptor, and not every file system tells.
        return None if error.errno == errno.ENXIO else position


def _gap(place: str, start: int, end: int) -> _ReadFailure:
    reason = f"{end - start} bytes are not a batch; `ottla audit` reports what is wrong with them"
    return _ReadFailure(f"{place}, position {start}", reason)


def _text(found: _RecordSet, verdict: Verdict) -> Iterator[str]:
    if verdict.accepted:
        if verdict.base_offset < 0:
            yield f"{found.place}: accepted, nothing to store"
            return
        how = "rebuilt" if verdict.is_rebuilt else "in place"
        yield (
            f"{found.place}: accepted, offsets {verdict.base_offset} to {verdict.last_offset},"
            f" {len(verdict.stored)} bytes stored {how}"
        )
        return
    scope = ", the whole request" if verdict.is_request_wide else ""
    yield f"{found.place}: refused{scope}, {verdict.error_name} ({verdict.error})"
    yield f"  {verdict.error_message}"
    for error in verdict.record_errors:
        code = f" ({error.error})" if error.error != verdict.error else ""
        named = f"record {error.batch_index}"
        yield f"  {named}{code}: {error.message.removeprefix(f'{named}: ')}"


def _json(found: _RecordSet, verdict: Verdict) -> str:
    return json_text(
        {
            "file": found.file,
            "line": found.line,
            "position": found.position,
            "accepted": verdict.accepted,
            "error": verdict.error,
            "error_name": verdict.error_name,
            "error_message": verdict.error_message,
            "record_errors": [
                {"batch_index": e.batch_index, "message": e.message, "error": e.error}
                for e in verdict.record_errors
            ],
            "is_request_wide": verdict.is_request_wide,
            "base_offset": verdict.base_offset,
            "last_offset": verdict.last_offset,
            "max_timestamp_ms": verdict.max_timestamp_ms,
            "log_append_time_ms": verdict.log_append_time_ms,
            "is_rebuilt": verdict.is_rebuilt,
            "stored": base64.b64encode(verdict.stored).decode(),
            "metrics": verdict.metrics,
        }
    )
