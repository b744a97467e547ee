"""The page of the options is that of the declarations."""

from pathlib import Path

from client.options.option_pages import options_markdown


def test_the_page_is_current(root: Path) -> None:
    documented = (root / "docs" / "client" / "options.md").read_text(encoding="utf-8")
    assert documented == options_markdown(), (
        "write it anew: python tests/client/options/option_pages.py > docs/client/options.md"
    )
