"""Captured sets in tables of Delta and Iceberg: what was deleted is not judged."""

from pathlib import Path
from typing import Any

import ottla
import ottla.spark
import pyarrow.parquet as pq
import pytest
from support.logs import TIMESTAMP, segment
from support.table_streams import Kind, table_name, table_path

pytestmark = pytest.mark.tables

ROWS = 60
# A delete writes the rows that are left into new files, or marks the others in the old ones.
PROPERTIES = {
    ("delta", "written anew"): {"delta.enableDeletionVectors": "false"},
    ("delta", "marked"): {"delta.enableDeletionVectors": "true"},
    ("iceberg", "written anew"): {"write.delete.mode": "copy-on-write"},
    ("iceberg", "marked"): {"write.delete.mode": "merge-on-read", "format-version": "2"},
}


def captures(spark: Any, kind: Kind, name: str, properties: dict[str, str]) -> str:
    """Return a table of record sets, some deleted, and one replaced by a damaged one."""
    table = table_name(kind, name)
    said = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    columns = "number INT, records BINARY"
    spark.sql(f"CREATE TABLE {table} ({columns}) USING {kind} TBLPROPERTIES ({said})")
    sets = [(number, bytearray(segment(1, records=1 + number % 5))) for number in range(ROWS)]
    spark.createDataFrame(sets, columns).coalesce(1).writeTo(table).append()
    damaged = "concat(substring(records, 1, length(records) - 1), X'7F')"
    for change in (
        "DELETE FROM {table} WHERE number % 3 = 0",
        f"UPDATE {{table}} SET records = {damaged} WHERE number = 7",  # noqa: S608 (no input)
        "DELETE FROM {table} WHERE number = 8",
    ):
        spark.sql(change.format(table=table))
    return table


@pytest.mark.parametrize(("kind", "way"), PROPERTIES)
def test_verdicts_of_a_table_are_those_of_the_rows_it_has(
    tables: Any, root: Path, kind: Kind, way: str
) -> None:
    name = f"{kind}_{way.replace(' ', '_')}"
    table = captures(tables, kind, name, PROPERTIES[kind, way])
    rows = {row.number: bytes(row.records) for row in tables.read.table(table).collect()}
    assert sorted(rows) == [n for n in range(ROWS) if n % 3 and n != 8]
    judged = ottla.spark.validate(tables.read.table(table), now_ms=TIMESTAMP).collect()
    found = sorted((row.number, row.accepted, row.error_name, row.last_offset) for row in judged)
    verdicts = [(n, ottla.validate(rows[n], now_ms=TIMESTAMP)) for n in sorted(rows)]
    assert found == [(n, v.accepted, v.error_name, v.last_offset) for n, v in verdicts]
    assert [number for number, accepted, *_ in found if not accepted] == [7]

    # The files hold more than the table, so their path is no way to it.
    path = table_path(kind, root, name)
    in_files = sum(pq.read_metadata(file).num_rows for file in path.rglob("*.parquet"))
    assert in_files > len(rows)
    with pytest.raises(ottla.SparkError, match=f"is in the {kind.capitalize()} table"):
        ottla.spark.validate_parquet(tables, str(path), now_ms=TIMESTAMP)
    with pytest.raises(ottla.SparkError, match=f"is in the {kind.capitalize()} table"):
        ottla.spark.split_parquet(tables, str(path), now_ms=TIMESTAMP)
