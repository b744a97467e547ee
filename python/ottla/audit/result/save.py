"""Writes tables as files of a directory that appears complete or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from ottla.audit.result.tables import arrow_stream
from ottla.errors import MissingDependencyError
from ottla.storage.directory import check_new_directory, new_directory
from ottla.text import json_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.audit.result.tables import Table

Format = Literal["jsonl", "parquet"]

# Size of a Parquet row group: large enough for fast reading, small enough for memory.
ROW_GROUP_BYTES = 32 << 20


def save_tables(
    tables: Sequence[Table],
    summary: Mapping[str, Any],
    directory: str | os.PathLike[str],
    formats: Sequence[Format],
) -> None:
    """Writes each table in each format, and `summary.json`.

    Raises:
        FileExistsError: the directory exists and is not empty.
        MissingDependencyError: Parquet is requested without pyarrow.
    """
    target = os.path.abspath(directory)
    check_new_directory(target)
    if "parquet" in formats:
        check_parquet()
    with new_directory(target) as partial:
        for table in tables:
            if "jsonl" in formats:
                _write_jsonl(table, os.path.join(partial, f"{table.name}.jsonl"))
            if "parquet" in formats:
                _write_parquet(table, os.path.join(partial, f"{table.name}.parquet"))
        with open(os.path.join(partial, "summary.json"), "w", encoding="utf-8") as file:
            file.write(json_text(summary, indent=2) + "\n")


def default_format() -> Format:
    """Returns Parquet where it can be written, else JSON lines."""
    try:
        check_parquet()
    except MissingDependencyError:
        return "jsonl"
    return "parquet"


def check_parquet() -> None:
    """Raises MissingDependencyError if Parquet cannot be written."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "Parquet needs pyarrow: pip install 'ottla[arrow]', or write jsonl"
        ) from error


def _write_jsonl(table: Table, path: str) -> None:
    with open(path, "wb") as file:
        file.writelines(table.json_lines())


def _write_parquet(table: Table, path: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.table(arrow_stream(table.columns, [])).schema
    # Its path need not be UTF-8, and pyarrow takes no other.
    with open(path, "wb") as file, pq.ParquetWriter(file, schema) as writer:
        pieces: list[Any] = []
        size = 0
        for batch in table.arrow_batches():
            pieces.append(batch)
            size += batch.nbytes
            if size >= ROW_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(pieces))
                pieces.clear()
                size = 0
        if pieces:
            writer.write_table(pa.Table.from_batches(pieces))
