"""One table says which word and which exit status an audit has, in the code and in the docs."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from ottla.audit.result.verdict import VERDICTS, exit_code_of, verdict_of, verdicts_markdown

if TYPE_CHECKING:
    from ottla.severity import Severity


@pytest.mark.parametrize(
    ("errors", "warnings", "not_read", "word", "status"),
    [
        (0, 0, 0, "SOUND", 0),
        (0, 3, 0, "SUSPECT", 1),
        (1, 3, 0, "DAMAGED", 2),
        (1, 3, 1, "INCOMPLETE", 3),
        (1, 0, 1, "INCOMPLETE", 3),
    ],
)
def test_the_gravest_finding_decides_unless_something_was_not_read(
    errors: int, warnings: int, not_read: int, word: str, status: int
) -> None:
    counts: dict[Severity, int] = {"error": errors, "warning": warnings, "info": 7}
    assert verdict_of(counts, not_read) == word
    assert exit_code_of(counts, not_read) == status


def test_the_docs_have_the_table_of_the_code(root: Path) -> None:
    assert verdicts_markdown() in (root / "docs" / "decisions.md").read_text()


def test_every_status_of_a_verdict_is_in_the_help(root: Path) -> None:
    helped = (root / "python" / "ottla" / "cli" / "audit.py").read_text()
    for row in VERDICTS:
        assert f"      {row.exit_code}    " in helped
