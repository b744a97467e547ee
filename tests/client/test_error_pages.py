"""The page of the errors is that of the classes and of the tables, and has advice for each."""

from pathlib import Path

from client.error_pages import ADVICE, advice, classes, errors_markdown


def test_the_page_is_current(root: Path) -> None:
    documented = (root / "docs" / "client" / "errors.md").read_text(encoding="utf-8")
    assert documented == errors_markdown(), (
        "write it anew: python tests/client/error_pages.py > docs/client/errors.md"
    )


def test_there_is_advice_for_every_class_and_none_for_others() -> None:
    assert all(map(advice, classes().values()))
    assert ADVICE.keys() <= classes().keys()


def test_what_is_fatal_is_not_retriable() -> None:
    both = [
        name
        for name, one in classes().items()
        if getattr(one, "fatal", False) and getattr(one, "retriable", False)
    ]
    assert both == []
