"""One definition of columns; every form of a table says the same."""

import json
import sys
from pathlib import Path

import duckdb
import ottla
import polars as pl
import pyarrow as pa
import pytest
from ottla.audit.catalogue.finding import Finding, PlacedFinding
from ottla.audit.result.columns import FILE_COLUMNS, TABLES, tables_markdown
from ottla.audit.result.tables import CHUNK_ROWS, Table, json_line, jsonable
from ottla.errors import MissingDependencyError
from ottla.logs.columns import Row

ARROW_TYPES = {
    "string": pa.string(),
    "int64": pa.int64(),
    "int32": pa.int32(),
    "bool": pa.bool_(),
    "binary": pa.binary(),
    "list": pa.string(),
}

RECORD: Row = (
    "orders-0/00000000000000000000.log",
    "orders",
    0,
    61,
    2**62,
    1_760_000_000_000,
    None,
    b"\xff\x00",
    [("price", b"12.50"), ("none", None)],
    -1,
    None,
)


def test_every_table_has_columns_that_are_told_apart_and_explained() -> None:
    for columns in TABLES.values():
        names = [column.name for column in columns]
        assert len(set(names)) == len(names)
        assert all(column.doc for column in columns)


def test_findings_have_the_fields_of_a_finding() -> None:
    assert Finding._fields == tuple(column.name for column in TABLES["findings"])


def test_a_finding_says_at_its_place_what_it_says_in_the_table() -> None:
    """Two lists of fields: where it is told by paths, and where by names."""
    placed, shown = dict(PlacedFinding.__annotations__), dict(Finding.__annotations__)
    for name in ("path", "directory", "pattern"):
        del placed[name]
    for name in ("file", "topic", "partition", "event"):
        del shown[name]
    assert placed == shown


def test_files_batches_and_records_begin_with_the_place() -> None:
    for name in ("files", "batches", "records"):
        names = [column.name for column in TABLES[name][:FILE_COLUMNS]]
        assert names == ["file", "topic", "partition"]


@pytest.mark.parametrize("name", TABLES)
def test_an_empty_table_has_its_schema_in_arrow(name: str) -> None:
    table = Table.of_rows(name, [])
    assert len(table) == 0
    assert not table
    assert list(table) == []
    schema = table.to_arrow().schema
    assert schema.names == [column.name for column in table.columns]
    assert schema.types == [ARROW_TYPES[column.type] for column in table.columns]
    assert pa.table(table).schema == schema


def read_by_duckdb(rows: Table) -> list[dict[str, object]]:
    with duckdb.connect() as connection:
        found = connection.register("rows", rows).sql("select * from rows")
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def test_a_row_is_the_same_in_every_form() -> None:
    table = Table.of_rows("records", [RECORD])
    assert bool(table)
    (row,) = table
    assert row["value"] == b"\xff\x00"
    assert row["headers"] == [("price", b"12.50"), ("none", None)]
    headers = '[["price", "12.50"], ["none", null]]'
    for (as_read,) in (
        table.to_arrow().to_pylist(),
        pa.table(table).to_pylist(),
        table.to_polars().to_dicts(),
        pl.DataFrame(table).to_dicts(),
        read_by_duckdb(table),
    ):
        assert as_read == {**row, "headers": headers}
    as_json = json.loads(json_line(table.columns, RECORD))
    assert as_json["value"] == {"base64": "/wA="}
    assert as_json["headers"] == [["price", "12.50"], ["none", None]]
    assert as_json["offset"] == 2**62


def test_a_table_larger_than_a_chunk_is_whole_in_arrow() -> None:
    rows = [(*RECORD[:4], offset, *RECORD[5:]) for offset in range(CHUNK_ROWS + 1)]
    table = Table.of_rows("records", rows)
    assert len(table) == CHUNK_ROWS + 1
    assert table.to_arrow()["offset"].to_pylist() == list(range(CHUNK_ROWS + 1))


def test_a_table_says_how_many_rows_it_has_where_that_is_known(root: Path) -> None:
    result = ottla.audit(root / "examples" / "data")
    assert repr(result.findings).startswith("<Table findings: 8 rows of name, severity, ")
    assert repr(result.batches).startswith("<Table batches: file, ")
    assert repr(result) == "<AuditResult SUSPECT: 0 errors and 2 warnings in 14 partitions>"


def test_a_table_that_reads_files_counts_them_once() -> None:
    calls = []

    def chunks() -> list[list[Row]]:
        calls.append(1)
        return [[RECORD], [], [RECORD, RECORD]]

    table = Table("records", chunks)
    assert calls == []
    assert (len(table), len(table), len(calls)) == (3, 3, 1)
    assert [len(chunk) for chunk in table.chunks()] == [1, 2]


@pytest.mark.parametrize("package", ["pyarrow", "polars", "pandas"])
def test_a_missing_package_is_named_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    table = Table.of_rows("findings", [])
    convert = {
        "pyarrow": table.to_arrow,
        "polars": table.to_polars,
        "pandas": table.to_pandas,
    }[package]
    with pytest.raises(MissingDependencyError, match=f"^{package} is not installed: pip install"):
        convert()


def test_bytes_are_text_in_json_where_they_are_utf8() -> None:
    assert jsonable("größe".encode()) == "größe"
    assert jsonable(b"\xff") == {"base64": "/w=="}
    assert jsonable((b"a", None, 1)) == ["a", None, 1]


def test_the_documentation_of_the_tables_is_current(root: Path) -> None:
    documented = (root / "docs" / "tables.md").read_text(encoding="utf-8")
    assert documented == tables_markdown(), (
        "write it anew: python -c 'from ottla.audit.result import columns;"
        ' print(columns.tables_markdown(), end="")\' > docs/tables.md'
    )
