"""`ottla/audit/result/rows.py`: the types of a table's rows, from its columns.

python tests/audit/result/row_types.py > python/ottla/audit/result/rows.py
"""

import sys

from ottla.audit.result.columns import NEVER_NULL, TABLES

TYPES = {
    "string": "str",
    "int64": "int",
    "int32": "int",
    "bool": "bool",
    "binary": "bytes",
    "list": "list[Any]",
    "headers": "list[Any]",
}
HEAD = '''"""The rows of an audit's tables, as checkers of types know them; made from `columns.py`.

`docs/tables.md` says what the columns mean. `| Any` stands for a column that may be null: whether
it is depends on the row, and a checker would ask for more than is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from ottla.severity import Severity
'''


def row_type(table: str) -> str:
    """The name of the class of a table's rows."""
    singular = {"batches": "batch"}.get(table, table.removesuffix("s"))
    return "".join(word.capitalize() for word in singular.split("_")) + "Row"


def text() -> str:
    """The module."""
    names = sorted(row_type(table) for table in TABLES)
    parts = [HEAD, "__all__ = [\n" + "".join(f'    "{name}",\n' for name in names) + "]\n"]
    for table, columns in TABLES.items():
        lines = [f"\nclass {row_type(table)}(TypedDict):", f'    """A row of `{table}`."""', ""]
        for column in columns:
            is_there = column.name in NEVER_NULL.get(table, ())
            kind = "Severity" if column.name == "severity" else TYPES[column.type]
            lines.append(f"    {column.name}: {kind}{'' if is_there else ' | Any'}")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(text())
