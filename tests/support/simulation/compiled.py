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
    command = [sys.executable, "-m", "support.simulation.play", kind, str(folder)]
    return subprocess.run(
        [*command, *map(str, seeds)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, [*packages, TESTS, *sys.path])),
            **({} if preload is None else {"LD_PRELOAD": str(preload)}),
        },
        capture_output=True,
        text=True,
        check=False,
    )
