"""Every row of the broker and of the client in the KIPs has a test that is there and runs."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from kips.kip_pages import KIPS, OWNERS, TESTS, Row, kips, kips_markdown, parsed

if TYPE_CHECKING:
    from pathlib import Path

HELD = ("broker", "engine", "client")
ROWS = [(f"{kip.number}-{row.number}", row) for kip in kips() for row in kip.rows]


@pytest.fixture(scope="module")
def collected() -> set[str]:
    """The tests that pytest finds in the files that rows name, with parameters and without."""
    files = sorted({test.partition("::")[0] for _, row in ROWS for test in row.tests})
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-m",
        "",
        "-p",
        "no:randomly",
    ]
    root = TESTS.parent
    done = subprocess.run(
        [*command, *(f"tests/{file}" for file in files)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    names = [line.removeprefix("tests/") for line in done.stdout.splitlines() if "::" in line]
    return {*names, *(name.partition("[")[0] for name in names)}


def without_test(rows: list[tuple[str, Row]], collected: set[str]) -> list[str]:
    """Rows that nothing holds, and tests that are not there."""
    bare = [name for name, row in rows if row.owner in HELD and not row.tests]
    gone = [f"{name}: {test}" for name, row in rows for test in row.tests if test not in collected]
    return bare + gone


def test_every_row_of_the_broker_and_the_client_names_a_test_that_runs(collected: set[str]) -> None:
    assert without_test(ROWS, collected) == []


def test_a_row_without_a_test_or_with_one_that_is_not_there_is_found() -> None:
    text = "# x\n\n01 broker\n    A.\n02 client\n    B.\n03 engine\n    C.\n    - a.py::test_c\n"
    rows = [(f"1-{row.number}", row) for row in parsed("1", text).rows]
    assert without_test(rows, {"a.py::test_b"}) == ["1-01", "1-02", "1-03: a.py::test_c"]
    assert without_test(rows, {"a.py::test_c"}) == ["1-01", "1-02"]


def test_no_test_that_is_named_leaves_itself_out(root: Path) -> None:
    """A row whose test is skipped wherever something is missing is held by nobody there."""
    skipping = []
    for name, row in ROWS:
        for test in row.tests:
            path, _, function = test.partition("[")[0].partition("::")
            text = (root / "tests" / path).read_text(encoding="utf-8")
            body = text.partition(f"def {function.rpartition('::')[2]}(")[2].partition("\ndef ")[0]
            if "pytest.skip(" in body or "importorskip" in text:
                skipping.append(f"{name}: {test}")
    assert skipping == []


def test_the_page_is_current(root: Path) -> None:
    documented = (root / "docs" / "kips.md").read_text(encoding="utf-8")
    assert documented == kips_markdown(), (
        "write it anew: python tests/kips/kip_pages.py > docs/kips.md"
    )


def test_rows_are_numbered_from_1_and_say_something() -> None:
    for kip in kips():
        assert [int(row.number) for row in kip.rows] == list(range(1, len(kip.rows) + 1))
        assert all(row.says for row in kip.rows)
    assert [kip.title.split(":")[0][:4] for kip in kips()] == ["KIP-"] * len(KIPS)


@pytest.mark.parametrize("line", ["1 nobody", "x broker", "01"])
def test_a_row_of_nobody_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="expected a number and one of"):
        parsed("1", f"# KIP-1: x\n\n{line}\n    A.\n")
    assert "nobody" not in OWNERS
