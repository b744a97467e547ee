"""The pages about the broker tell what is there."""

from pathlib import Path

from ottla.broker.api import apis_markdown

DOCS = Path(__file__).parents[2] / "docs" / "broker"


def test_the_page_of_apis_is_that_of_the_table() -> None:
    """`python -c "from ottla.broker.api import *; print(apis_markdown(), end='')"` writes it."""
    assert (DOCS / "apis.md").read_text() == apis_markdown()
