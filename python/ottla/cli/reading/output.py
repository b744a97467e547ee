"""Where records are written: standard output, a file, or a directory with a file a partition."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.reading.lines import csv_head, csv_lines, json_lines, text_lines, values
from ottla.errors import OttlaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from ottla.cli.reading.lines import Lines
    from ottla.cli.reading.run import Reading
    from ottla.cli.reading.sources import Source
    from ottla.cli.reading.tables import TableForm

    # Records, or record batches of pyarrow where a table is written.
    Parts = Iterable[tuple[Source, Iterator[Any]]]

__all__ = ["ENDINGS", "FORMS", "Output"]

FORMS = ("text", "jsonl", "csv", "parquet", "arrow", "raw")
ENDINGS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".txt": "text",
}
"""What names of files say of their format."""

WRITE_BYTES = 1 << 16
"""Collected before they are written."""


class Output:
    """Writes records in a format.

    Args:
        form: one of `FORMS`.
        lines: what writes lines in a form of its own, in place of that.
        parsed: whether keys, and values, are JSON in place of bytes.

    Attributes:
        has_titles: whether lines of text say where a record is from.

    Raises:
        MissingDependencyError: the format needs what is not installed.
    """

    def __init__(
        self,
        form: str,
        lines: Lines | None = None,
        *,
        parsed: tuple[bool, bool] = (False, False),
    ) -> None:
        self._form = form
        self._lines = lines
        self._parsed = parsed
        self.has_titles = False
        self._table: TableForm | None = None
        if lines is None and form in {"arrow", "parquet"}:
            from ottla.cli.reading.tables import check_pyarrow

            self._table = "arrow" if form == "arrow" else "parquet"
            check_pyarrow(self._table)

    def to_standard_output(self, reading: Reading) -> None:
        """Writes to standard output, and what was read before an error, too.

        Raises:
            UsageError: a terminal would get what it cannot show.
        """
        is_terminal = sys.stdout.isatty()
        if self._table is not None and is_terminal:
            raise click.UsageError(
                f"{self._form} is nothing for a terminal: send it to a file or a program, or use"
                " --output"
            )
        sys.stdout.flush()
        self._write(
            sys.stdout.buffer, self._parts(reading), is_terminal=is_terminal, is_stream=True
        )
        sys.stdout.buffer.flush()

    def to_file(self, target: str, reading: Reading) -> None:
        """Writes a new file, whole or not at all.

        Raises:
            FileExistsError: it is there already.
        """
        from ottla.storage.directory import new_file

        with new_file(target) as file:
            self._write(file, self._parts(reading))

    def to_directory(self, target: str, reading: Reading) -> None:
        """Writes a new directory, whole or not at all, in the layout of Hive.

        Raises:
            FileExistsError: it is there already, and not empty.
        """
        from ottla.storage.directory import new_directory

        with new_directory(os.path.abspath(target)) as partial:
            for source, records in self._parts(reading):
                path = os.path.join(partial, *_hive(source))
                os.makedirs(path, exist_ok=True)
                with open(os.path.join(path, f"part-0.{self._ending()}"), "xb") as file:
                    self._write(file, [(source, records)], has_place=False)

    def _parts(self, reading: Reading) -> Parts:
        if self._table is None:
            return reading.partitions()
        from ottla.cli.reading.tables import BATCH_BYTES, tabulated

        if reading.has_batches:
            return reading.batches(BATCH_BYTES)
        return tabulated(reading.partitions(), self._parsed)

    def _ending(self) -> str:
        return {"text": "txt", "raw": "bin"}.get(self._form, self._form)

    def _write(
        self,
        sink: BinaryIO,
        parts: Parts,
        *,
        is_terminal: bool = False,
        is_stream: bool = False,
        has_place: bool = True,
    ) -> None:
        if self._table is not None:
            from ottla.cli.reading.tables import write_table

            write_table(
                sink,
                self._table,
                parts,
                parsed=self._parsed,
                has_place=has_place,
                is_stream=is_stream,
            )
            return
        lines = self._lines or self._named_lines(is_terminal, has_place)
        if self._lines is None and self._form == "csv":
            sink.write(csv_head(has_place=has_place))
        _write_pieces(sink, (line for source, records in parts for line in lines(source, records)))

    def _named_lines(self, is_terminal: bool, has_place: bool) -> Lines:
        if self._form == "csv":
            return csv_lines(is_terminal=is_terminal, has_place=has_place)
        if self._form == "jsonl":
            return json_lines(has_place=has_place)
        if self._form == "raw":
            return values
        return text_lines(has_title=self.has_titles and has_place)


def _hive(source: Source) -> tuple[str, ...]:
    """The directories of a partition, as Hive, Spark, DuckDB and pyarrow find their columns."""
    from urllib.parse import quote

    topic = quote(source.topic or source.name, safe="")
    number = "" if source.partition is None else str(source.partition)
    return (f"topic={topic}", f"partition={number or '__HIVE_DEFAULT_PARTITION__'}")


def _write_pieces(sink: BinaryIO, lines: Iterable[bytes]) -> None:
    """Writes lines in large pieces; those read before an error are written, too."""
    held: list[bytes] = []
    size = 0
    try:
        for line in lines:
            held.append(line)
            size += len(line)
            if size >= WRITE_BYTES:
                piece = b"".join(held)
                held.clear()
                size = 0
                sink.write(piece)
    except BrokenPipeError:
        raise
    except (OSError, OttlaError):
        sink.write(b"".join(held))
        raise
    sink.write(b"".join(held))
