"""The files of the repository, as the tests of its own rules read them."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Bytes of a broker or a fuzzer, kept as they are.
DATA = ("examples/data/", "fuzz/seeds/")


def tracked() -> list[Path]:
    """Files of the repository: those git has and those it would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout.decode()
    names = sorted(set(listed.split("\0")) - {""})
    return [ROOT / name for name in names if (ROOT / name).is_file()]


FILES = tracked()


@cache
def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def python_trees(under: str) -> Iterator[tuple[str, ast.Module]]:
    for path in FILES:
        name = name_of(path)
        if name.startswith(under) and path.suffix == ".py":
            yield name, _tree_of(path)


@cache
def _tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), name_of(path))


@cache
def rust_sources(*crates: str) -> tuple[Path, ...]:
    """Files of the crates, those of tests left out."""
    places = tuple(f"rust/{crate}/src/" for crate in crates)
    return tuple(
        path
        for path in FILES
        if path.suffix == ".rs" and name_of(path).startswith(places) and path.name != "tests.rs"
    )
