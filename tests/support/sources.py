"""The files of the repository, as the tests of its own rules read them."""

import ast
import subprocess
from collections.abc import Iterator
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


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def python_trees(under: str) -> Iterator[tuple[str, ast.Module]]:
    for path in FILES:
        name = name_of(path)
        if name.startswith(under) and path.suffix == ".py":
            yield name, ast.parse(path.read_text(encoding="utf-8"), name)


def rust_sources(*crates: str) -> list[Path]:
    """Files of the crates, those of tests left out."""
    return [
        path
        for path in FILES
        if path.suffix == ".rs"
        and any(name_of(path).startswith(f"rust/{crate}/src/") for crate in crates)
        and path.name != "tests.rs"
    ]
