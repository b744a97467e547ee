"""`ottla inspect`: what one file of a log holds, or a capture: as kafka-dump-log, but readable."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import click

from ottla.cli.inspecting.batches import lines_of
from ottla.cli.options import OFFSET, Verb, storage_option
from ottla.cli.terminal import complain
from ottla.errors import MalformedFrameError
from ottla.logs.names import classify, display
from ottla.logs.segment import find_offset, first_batch
from ottla.logs.side_entries import KINDS as SIDE_KINDS
from ottla.logs.side_files import MAX_FILE_BYTES
from ottla.storage import files_of, full_path
from ottla.words import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.storage import Files, Place

STANDARD_INPUT = "-"
IO_ERROR = 3

WITH_BATCHES = ("segment", "metadata-snapshot")
CAPTURED = ("produce-request", "produce-response", "fetch-request", "fetch-response")
NAMED = (*WITH_BATCHES, *SIDE_KINDS, *CAPTURED[:-1])
MAX_CAPTURE_BYTES = 256 << 20
"""Of a capture, which is read into memory: more than any broker takes or sends at once."""


@click.command(cls=Verb)
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--records", is_flag=True, help="Print records instead of batches.")
@click.option("-o", "--offset", type=OFFSET, help="Offset of the log to start at.")
@click.option(
    "-a",
    "--as",
    "kind",
    metavar="KIND",
    type=click.Choice([*WITH_BATCHES, *SIDE_KINDS, *CAPTURED]),
    help=f"What FILE is, where its name does not say it: {', '.join(NAMED)} or {CAPTURED[-1]}."
    "  [default: as its name says, else segment]",
)
@click.option(
    "--api-version",
    type=click.IntRange(min=0, max=32767),
    help="Version of the messages of a capture, where it has no requests with headers and several"
    " versions fit.",
)
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
@click.option("-J", "--json", "is_json", is_flag=True, help="Short for --output-format jsonl.")
def inspect(
    file: str,
    records: bool,
    offset: int | None,
    kind: str | None,
    api_version: int | None,
    storage_options: dict[str, str],
    form: Literal["text", "jsonl"],
    is_json: bool,
) -> int:
    """Print what a file of a log holds, or a capture.

    FILE is a segment (.log), of which batches or records are printed; a file beside segments
    (.index, .timeindex, .txnindex, .snapshot, checkpoints); or, with --as, the body of a Produce or
    Fetch message, or all that a connection sent in one direction. - is standard input. Bytes that
    are not a batch are skipped; `ottla audit` reports what is wrong with them.

    \b
    Exit status:
      0   printed
      3   not read to its end, or the offset is beyond it
      64  invalid command line
    """  # noqa: D301 - click's mark of lines to keep
    is_json = is_json or form == "jsonl"
    with _opened(file, kind, storage_options) as (place, said, base_offset):
        if place is None:
            complain(f"{_name(file)}: {said}")
            return IO_ERROR
        has_batches = said in (*WITH_BATCHES, "unknown")
        _check_options(said, has_batches, records=records, offset=offset, version=api_version)
        if has_batches:
            return _print_batches(place, file, said, offset, has_records=records, is_json=is_json)
        limit = MAX_CAPTURE_BYTES if said in CAPTURED else MAX_FILE_BYTES
        data = _content(place, limit)
        if len(data) > limit:
            complain(f"{_name(file)}: more than {limit:,} bytes, too many for a {_words(said)}")
            return IO_ERROR
        if said in CAPTURED:
            return _print_messages(
                data, file, said, api_version, has_records=records, is_json=is_json
            )
        from ottla.cli.inspecting.entries import print_entries

        return print_entries(data, _name(file), said, base_offset, is_json=is_json)


@contextmanager
def _opened(
    file: str, kind: str | None, storage_options: dict[str, str]
) -> Iterator[tuple[Place | None, str, int | None]]:
    """Yields a file, its kind, and its base offset; or no file, and why there is none."""
    if file == STANDARD_INPUT:
        from ottla.cli.inspecting.standard_input import spooled

        with spooled() as place:
            yield place, kind or "segment", None
        return
    path = full_path(file)
    files = files_of(file, storage_options)
    reason = _fault(path, files, kind)
    if reason is not None:
        yield None, reason, None
        return
    named, _, base_offset = classify(os.path.basename(path))
    yield files.place(path), kind or named, base_offset


def _fault(path: bytes, files: Files, kind: str | None) -> str | None:
    """Returns why a file cannot be inspected. A FIFO must not be opened, which would block."""
    entry = files.stat(path)
    if entry.is_directory:
        return "a directory: give a segment in it, or use `ottla audit`"
    if entry.fault is not None:
        return "not a file"
    named = classify(entry.name)[0]
    if kind is None and named not in (*WITH_BATCHES, *SIDE_KINDS, "unknown"):
        return f"{_words(named)}, not a segment: give its .log file"
    return None


def _check_options(
    said: str, has_batches: bool, *, records: bool, offset: int | None, version: int | None
) -> None:
    """Raises UsageError if an option does not go with a kind."""
    if offset is not None and not has_batches:
        raise click.UsageError(f"--offset is of a segment, not of a {_words(said)}")
    if records and not has_batches and said not in CAPTURED:
        raise click.UsageError(f"a {_words(said)} has no --records")
    if version is None:
        return
    if said not in CAPTURED:
        raise click.UsageError("--api-version is of a capture: say --as, too")
    from ottla.cli.inspecting.captures import versions_of

    known = versions_of(said)
    if version not in known:
        raise click.UsageError(
            f"a {_words(said)} has the versions {known[0]} to {known[-1]}, not {version}"
        )


def _print_batches(
    place: Place, file: str, said: str, offset: int | None, *, has_records: bool, is_json: bool
) -> int:
    position: int | None = 0
    if offset is not None:
        position = find_offset(place, offset)
        if position is None:
            complain(f"{_name(file)}: offset {offset} is beyond its last batch")
            return IO_ERROR
    elif said == "unknown" or file == STANDARD_INPUT:
        size = place.size
        if size and first_batch(place, 0) is None:
            complain(
                f"{_name(file)}: no record batch in its {count(size, 'byte')}; --as says what else"
                " it is"
            )
            return IO_ERROR
    lines = lines_of(place, position or 0, has_records=has_records, is_json=is_json, offset=offset)
    sys.stdout.writelines(line + "\n" for line in lines)
    return 0


def _print_messages(
    data: bytes, file: str, said: str, version: int | None, *, has_records: bool, is_json: bool
) -> int:
    from ottla.cli.inspecting.captures import captured
    from ottla.cli.inspecting.messages import message_json, message_lines

    try:
        for found in captured(said, data, version):
            if is_json:
                sys.stdout.write(message_json(said, found, has_records=has_records) + "\n")
                continue
            lines = message_lines(said, found, has_records=has_records)
            sys.stdout.writelines(line + "\n" for line in lines)
    except MalformedFrameError as error:
        complain(f"{_name(file)}: {error}")
        return IO_ERROR
    return 0


def _content(place: Place, limit: int) -> bytes:
    """Returns the bytes of a file; of a larger one than the limit more than that."""
    with place.open() as opened:
        return opened.read(limit + 1)


def _words(kind: str) -> str:
    return kind.replace("-", " ")


def _name(file: str) -> str:
    return "standard input" if file == STANDARD_INPUT else display(os.fsencode(file))
