"""The types of a table's rows are those of its columns."""

from pathlib import Path

import ottla
from audit.result.row_types import row_type, text
from ottla.audit.result import rows
from ottla.audit.result.columns import TABLES


def test_they_are_made_from_the_columns() -> None:
    page = Path(rows.__file__).read_text(encoding="utf-8")
    command = "python tests/audit/result/row_types.py > python/ottla/audit/result/rows.py"
    assert page == text(), f"write them anew: {command}"


def test_an_attribute_of_a_result_is_a_table_of_them() -> None:
    annotations = ottla.AuditResult.__annotations__
    assert {name: annotations[name] for name in TABLES} == {
        name: f"Table[{row_type(name)}]" for name in TABLES
    }


def test_a_row_has_what_its_type_names() -> None:
    row = next(iter(ottla.audit("examples/data").findings))
    assert list(row) == list(rows.FindingRow.__annotations__)
