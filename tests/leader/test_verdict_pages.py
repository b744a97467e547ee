"""The page on verdicts says what the engine decides today, of every code."""

import re
from pathlib import Path

import ottla
import pytest
from leader.test_vectors_of_the_specification import NOW
from leader.verdict_pages import MEANINGS, codes, example, verdicts_markdown


def test_the_page_on_verdicts_is_current(root: Path) -> None:
    documented = (root / "docs" / "verdicts.md").read_text(encoding="utf-8")
    assert documented == verdicts_markdown(), (
        "write it anew: python tests/leader/verdict_pages.py > docs/verdicts.md"
    )


def test_every_code_that_the_tests_expect_has_an_example() -> None:
    assert codes() == set(MEANINGS)


def test_every_code_that_the_engine_knows_has_an_example(root: Path) -> None:
    source = root / "rust" / "ottla-format" / "src" / "error_code.rs"
    known = re.findall(r'^    \w+ = (-?\d+), "', source.read_text(encoding="utf-8"), re.MULTILINE)
    # An offset that is asked for is no record set, and has its error elsewhere.
    assert {*map(int, known), 1} == set(MEANINGS)


@pytest.mark.parametrize("code", sorted(MEANINGS))
def test_the_example_of_a_code_is_answered_with_it(code: int) -> None:
    _, found = example(code)
    assert code == (found.error if isinstance(found, ottla.Verdict) else found.error_code)


def test_the_introduction_names_the_clock_of_the_examples() -> None:
    assert f"the\nbroker's clock stands at {NOW}" in verdicts_markdown()
