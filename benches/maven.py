"""Maven, as tests and benchmarks call it: its first complaints are the message of an error."""

import re
import subprocess
from collections.abc import Sequence
from os import PathLike
from pathlib import Path


class MavenError(Exception):
    """Maven has failed; the message is what it says first."""


def run_maven(
    pom: Path, arguments: Sequence[str | PathLike[str]], *, within_s: float | None = None
) -> None:
    """Run goals of a project.

    Raises:
        MavenError: it failed.
        subprocess.TimeoutExpired: it took longer than `within_s`.
    """
    done = subprocess.run(
        ["mvn", "--quiet", "--batch-mode", "-f", pom, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=within_s,
    )
    if done.returncode:
        said = re.findall(r"\[ERROR\] +(\S.*)", done.stdout + done.stderr)
        raise MavenError(f"Maven: {' '.join(said[:2]) or f'status {done.returncode}'}")
