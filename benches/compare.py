"""`make bench-compare REV=…`: this tree against another revision, in one run.

The other revision is built into a directory of its own and imported from there by a worker with
the same interpreter and the same peers; ours is a worker too. Ratios above 1: this tree is faster.
`--only counts` counts instructions instead.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from benches.cases import Case
from benches.compare_counts import print_table
from benches.machine import demand_release
from benches.race import race
from benches.table import chosen
from benches.worker import ROOT, Worker, WorkerError, python_worker


@contextmanager
def built(revision: str) -> Iterator[Path]:
    """Return a directory that holds the package of a revision, while it is needed."""
    with tempfile.TemporaryDirectory(prefix="ottla-compare-") as home:
        tree, site = Path(home) / "tree", Path(home) / "site"
        add = ["git", "worktree", "add", "--quiet", "--detach", str(tree), revision]
        subprocess.run(add, cwd=ROOT, check=True)
        try:
            subprocess.run(
                [
                    *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"),
                    *("--no-build-isolation", "--target", str(site), str(tree)),
                ],
                check=True,
                env={
                    **os.environ,
                    # What both revisions depend on is compiled once.
                    "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target")),
                    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                },
            )
            yield site
        finally:
            remove = ["git", "worktree", "remove", "--force", str(tree)]
            subprocess.run(remove, cwd=ROOT, check=True)


def _other(case: Case, site: Path) -> Worker:
    worker = python_worker(
        case.job, case.data, environment={"PYTHONPATH": str(site), **_level(case)}
    )
    if str(site) not in worker.name:
        worker.close()
        raise WorkerError(f"imported {worker.name}, not what was built in {site}")
    return worker


def _level(case: Case) -> dict[str, str]:
    return {"OTTLA_KERNELS": case.level} if case.level else {}


def main() -> None:
    """Build the other revision and race."""
    parser = argparse.ArgumentParser(prog="python -m benches.compare", description=__doc__)
    parser.add_argument("revision")
    parser.add_argument("words", nargs="*", help="only cases whose title has one of these words")
    parser.add_argument("--rounds", type=int, default=51)
    parser.add_argument("--only", choices=("times", "counts"), default="times")
    asked = parser.parse_args()
    demand_release()
    with built(asked.revision) as site:
        if asked.only == "counts":
            print_table(site, asked.revision)
            return
        print(f"| case | size | this tree × {asked.revision} |\n| --- | --- | --- |")
        for case in chosen(asked.words):
            row = f"| {case.title} | {case.size_name} |"
            try:
                with (
                    closing(python_worker(case.job, case.data, environment=_level(case))) as this,
                    closing(_other(case, site)) as other,
                ):
                    times = race({"this": this, "other": other}, asked.rounds)
            except WorkerError as error:
                print(f"{row} {error} |", flush=True)
                continue
            print(f"{row} {times['this'].faster_than(times['other']):.2f} |", flush=True)


if __name__ == "__main__":
    main()
