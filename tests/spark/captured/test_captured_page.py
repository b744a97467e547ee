"""`docs/spark/captured.md` tells the columns there are."""

from collections.abc import Sequence
from pathlib import Path

import ottla.spark
import pytest
from ottla.audit.result.columns import RECORDS
from ottla.spark import CapturedColumn


def table(columns: Sequence[CapturedColumn]) -> str:
    lines = ["| column | type | |", "| --- | --- | --- |"]
    return "\n".join(lines + [f"| `{c.name}` | {c.type} | {c.doc} |" for c in columns])


@pytest.mark.parametrize(
    "columns",
    [
        ottla.spark.VERDICT_COLUMNS,
        ottla.spark.VALID_COLUMNS,
        ottla.spark.QUARANTINE_COLUMNS[len(ottla.spark.VALID_COLUMNS) :],
    ],
    ids=["verdict", "valid", "quarantine"],
)
def test_the_page_has_the_table_of_the_columns(
    root: Path, columns: tuple[CapturedColumn, ...]
) -> None:
    page = (root / "docs" / "spark" / "captured.md").read_text(encoding="utf-8")
    assert f"\n\n{table(columns)}\n\n" in page


def test_decoded_records_are_named_as_those_of_the_audit() -> None:
    place = 3
    assert [c.name for c in ottla.spark.VALID_COLUMNS] == [c.name for c in RECORDS[place:]]
    known = ottla.spark.QUARANTINE_COLUMNS[: len(ottla.spark.VALID_COLUMNS)]
    assert known == ottla.spark.VALID_COLUMNS
