"""Guides run: every console block of `docs/guide.md` and `docs/cli` prints what stands there.

`python tests/examples/test_guide.py` writes the output into them anew.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDES = [ROOT / "docs" / "guide.md", ROOT / "docs" / "cli" / "README.md"]
BLOCK = re.compile(r"(?<=```console\n).*?(?=```\n)", re.DOTALL)
ELAPSED = re.compile(r"in \d+\.\d\d s\b")


def commands(block: str) -> list[str]:
    """The commands of a block: from a dollar on, to the end of its quotes."""
    found: list[str] = []
    for line in block.splitlines(keepends=True):
        is_open = bool(found) and found[-1].count("'") % 2 == 1
        if is_open:
            found[-1] += line
        elif line.startswith("$ "):
            found.append(line.removeprefix("$ "))
    return found


def run(command: str, directory: Path, tools: Path) -> str:
    environment = {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "LINES": "24",
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return ELAPSED.sub("in 0.01 s", done.stdout)


def rendered(text: str, directory: Path) -> str:
    """A guide with what its commands print now."""
    tools = directory / "bin"
    tools.mkdir()
    # No link to the interpreter: by that it would not find its environment.
    for name, arguments in (("python", ""), ("ottla", ' -c "from ottla.cli import main; main()"')):
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable}{arguments} "$@"\n')
        (tools / name).chmod(0o755)
    shutil.copytree(ROOT / "examples" / "data", directory / "examples" / "data")

    def render(block: re.Match[str]) -> str:
        return "".join(
            f"$ {command}{run(command, directory, tools)}" for command in commands(block[0])
        )

    return BLOCK.sub(render, text)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.parent.name)
def test_a_guide_prints_what_stands_in_it(guide: Path, tmp_path: Path) -> None:
    text = guide.read_text(encoding="utf-8")
    assert len(BLOCK.findall(text)) >= 3
    assert rendered(text, tmp_path) == text


if __name__ == "__main__":
    for page in GUIDES:
        with tempfile.TemporaryDirectory() as temporary:
            page.write_text(rendered(page.read_text(encoding="utf-8"), Path(temporary)), "utf-8")
