"""What the results of an audit cost to write, in instructions of the whole process.

    python -m benches.output

Each row is a slope between a small log and a larger one, so that what a process costs before it
reads anything does not count. Needs valgrind.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benches.data import Shape, generate, renumbered
from benches.partitions import write_beside, write_checkpoints
from benches.whole import OTTLA

AUDIT = ("audit", "--threads", "1")
WAYS: dict[str, tuple[str, ...]] = {
    "on the terminal": (),
    "--format json": ("--format", "json"),
    "--output": ("--output",),
    "--output, batches in JSON lines": ("--table-format", "jsonl", "--batches", "--output"),
    "--output, batches in Parquet": ("--table-format", "parquet", "--batches", "--output"),
}
"""Options of an audit by what they write; the directory follows the last one."""

_RECORDS = Shape(100, 10)
# Fewer than the findings of one name that a file may have listed.
_DAMAGED = 200, 900
_BATCHES = 1_000, 5_000


def instructions(directory: Path, options: tuple[str, ...], site: Path | None = None) -> int:
    """Return the instructions of one audit of a directory, its start included.

    A site is a directory of packages that come before those of this tree.
    """
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    if site is not None:
        environment["PYTHONPATH"] = str(site)
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as home:
        target = [f"{home}/tables"] if "--output" in options else []
        program = [str(OTTLA), *AUDIT, str(directory), *options, *target]
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *program]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
    counted = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if counted is None or done.returncode not in (0, 2):
        raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr[-500:]}")
    return int(counted.group(1))


@contextmanager
def log(batches: int, *, is_damaged: bool) -> Iterator[Path]:
    """Yield a log directory; if it is damaged, every second batch has a wrong checksum."""
    batch = generate(_RECORDS, 1).batches
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as home:
        folder = Path(home) / "bench-0"
        folder.mkdir()
        offset = 0
        with (folder / f"{0:020d}.log").open("wb") as file:
            for number in range(batches):
                run, offset = renumbered(batch, offset)
                file.write(run[:-1] + b"\xff" if is_damaged and number % 2 else run)
        write_beside(folder, 0)
        write_checkpoints(Path(home), {("bench", 0): offset})
        yield Path(home)


def slopes() -> Iterator[tuple[str, float, float]]:
    """Yield what a batch and what a finding takes, by the way in which the result is written."""
    (few, many), (few_damaged, many_damaged) = _BATCHES, _DAMAGED
    with (
        log(few, is_damaged=False) as small,
        log(many, is_damaged=False) as large,
        log(2 * few_damaged, is_damaged=True) as damaged,
        log(2 * many_damaged, is_damaged=True) as worse,
    ):
        for way, options in WAYS.items():
            of_batches = instructions(large, options) - instructions(small, options)
            of_findings = instructions(worse, options) - instructions(damaged, options)
            yield (
                way,
                of_batches / (many - few),
                of_findings / (many_damaged - few_damaged),
            )


def main() -> None:
    """Print the table."""
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is not installed")
    print("| an audit, written | instructions a batch | a finding |\n| --- | --- | --- |")
    for way, batch, finding in slopes():
        print(f"| {way} | {batch:,.0f} | {finding:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
