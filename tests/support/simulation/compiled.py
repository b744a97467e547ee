"""The compiled `disk.c`, and processes that it is preloaded in."""

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from support.simulation.disk import SHIM

TESTS = Path(__file__).resolve().parents[2]


def compiled(folder: Path) -> Path:
    """What tells a disk of what is synced."""
    library = folder / "disk.so"
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror"]
    subprocess.run(["cc", *flags, "-o", str(library), str(SHIM)], check=True)
    return library


def played(
    kind: str,
    folder: Path,
    seeds: Iterable[int],
    *,
    preload: Path | None = None,
    packages: Sequence[Path] = (),
) -> subprocess.CompletedProcess[str]:
    """Play seeds in a process of their own, with other packages before the usual ones."""
    arguments = ["-m", "support.simulation.play", kind, str(folder), *map(str, seeds)]
    return run(arguments, preload=preload, packages=packages)


def run(
    arguments: Sequence[str], *, preload: Path | None = None, packages: Sequence[Path] = ()
) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, with other packages before the usual ones."""
    return subprocess.run(
        [sys.executable, *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, [*packages, TESTS, *sys.path])),
            **({} if preload is None else {"LD_PRELOAD": str(preload)}),
        },
        capture_output=True,
        text=True,
        check=False,
    )
