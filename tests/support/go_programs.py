"""Programs in Go, built below `target` with modules of Go's proxy."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from support.programs import leave_out, required

_TARGET = Path(__file__).resolve().parents[2] / "target"
# Only what hangs takes as long, on any machine.
PATIENCE_S: Final = 300


def go(folder: Path, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command of Go in the folder of a module, which Go may complete."""
    return subprocess.run(
        [required("go"), *arguments],
        cwd=folder,
        env={**os.environ, "GOFLAGS": "-mod=mod", "PATH": path or os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def copied(source: Path, folder: Path) -> None:
    """Puts a module into a folder, with all that Go fetches for it, or leaves the test out."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        shutil.copy(path, folder)
    done = go(folder, "mod", "tidy")
    if done.returncode:
        leave_out(f"go mod tidy: {done.stderr}")


def built(source: Path, name: str) -> Path:
    """The program of a module; a test without Go or its proxy is left out."""
    folder = _TARGET / "go" / name
    copied(source, folder)
    done = go(folder, "build", "-o", "program", ".")
    assert done.returncode == 0, done.stderr
    return folder / "program"
