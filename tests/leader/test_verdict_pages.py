"""The page on verdicts says what the engine decides today, of every code."""

from pathlib import Path

import ottla
import pytest
from leader.test_vectors_of_the_specification import NOW
from leader.verdict_pages import MEANINGS, codes, example, verdicts_markdown
from ottla.records import error_codes, leader_error_codes


def test_the_page_on_verdicts_is_current(root: Path) -> None:
    documented = (root / "docs" / "verdicts.md").read_text(encoding="utf-8")
    assert documented == verdicts_markdown(), (
        "write it anew: python tests/leader/verdict_pages.py > docs/verdicts.md"
    )


def test_every_code_that_the_tests_expect_has_an_example() -> None:
    assert codes() == set(MEANINGS)


def test_every_code_that_a_leader_answers_with_has_an_example() -> None:
    assert {error.code for error in leader_error_codes()} == set(MEANINGS)


def test_every_code_has_the_name_that_verdicts_give_it() -> None:
    names = {error.code: error.name for error in error_codes()}
    for code in MEANINGS:
        _, found = example(code)
        assert names[code] == (
            found.error_name if isinstance(found, ottla.Verdict) else found.error
        )


@pytest.mark.parametrize("code", sorted(MEANINGS))
def test_the_example_of_a_code_is_answered_with_it(code: int) -> None:
    _, found = example(code)
    assert code == (found.error if isinstance(found, ottla.Verdict) else found.error_code)


def test_the_introduction_names_the_clock_of_the_examples() -> None:
    assert f"the\nbroker's clock stands at {NOW}" in verdicts_markdown()
