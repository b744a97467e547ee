"""The recipes run as they are, and print what stands below them.

`python tests/examples/test_recipes.py` writes below each block what it prints.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "recipes").glob("*.md"))
RECIPE = re.compile(
    r"^## (?P<title>.*?)$.*?^```python\n(?P<code>.*?)^```$"
    r"(?:\n\n```text\n(?P<printed>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
OF_PYTEST = "# test_"


class Recipe(NamedTuple):
    """A block, and what it prints."""

    title: str
    code: str
    printed: str


def recipes(page: Path) -> Iterator[Recipe]:
    for found in RECIPE.finditer(page.read_text(encoding="utf-8")):
        yield Recipe(found["title"], found["code"], found["printed"] or "")


def printed_by(code: str, folder: Path) -> str:
    """Run a block in a folder that has the demo data."""
    (folder / "examples").symlink_to(ROOT / "examples")
    if code.startswith(OF_PYTEST):
        (folder / "test_recipe.py").write_text(code, encoding="utf-8")
        command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_recipe.py"]
    else:
        command = ["-c", code]
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return "" if code.startswith(OF_PYTEST) else done.stdout


ALL = [recipe for page in PAGES for recipe in recipes(page)]


@pytest.mark.parametrize("recipe", ALL, ids=lambda recipe: recipe.title)
def test_a_recipe_prints_what_stands_below_it(recipe: Recipe, tmp_path: Path) -> None:
    printed = printed_by(recipe.code, tmp_path)
    assert printed == recipe.printed
    assert printed or recipe.code.startswith(OF_PYTEST)


def test_there_are_ten_for_each_reader_and_every_block_is_one_of_them() -> None:
    counts = {page.stem: len(list(recipes(page))) for page in PAGES}
    assert counts == {"client-authors": 10, "data-engineers": 10}
    blocks = {page.stem: page.read_text().count("```python\n") for page in PAGES}
    assert blocks == counts


def main() -> None:
    """Write what the blocks print."""
    for page in PAGES:

        def filled(found: re.Match[str]) -> str:
            with tempfile.TemporaryDirectory() as folder:
                printed = printed_by(found["code"], Path(folder))
            block = found[0].partition("\n\n```text\n")[0]
            return f"{block}\n\n```text\n{printed}```" if printed else block

        text = page.read_text(encoding="utf-8")
        page.write_text(RECIPE.sub(filled, text), encoding="utf-8")


if __name__ == "__main__":
    main()
