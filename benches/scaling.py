"""`make bench-scaling`: an audit of many clean partitions of 11 KB with one thread and with two.

Both are timed in turn, and the least of each counts. What a second thread gains is bounded by what
holds the interpreter's lock; where callgrind is, the instructions of one partition say how much
that is, which no neighbour of the machine changes.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benches.instructions import EACH
from benches.partitions import write_partitions
from benches.whole import OTTLA, compile_before

THREADS = (1, 2)


def least_seconds(directory: Path, rounds: int) -> dict[int, float]:
    """Time an audit with each number of threads in turn; give the least for each."""
    least: dict[int, float] = {}
    for _ in range(rounds):
        for threads in THREADS:
            begin = time.perf_counter()
            command = [str(OTTLA), "audit", "--threads", str(threads), str(directory)]
            subprocess.run(command, capture_output=True, check=True)
            took = time.perf_counter() - begin
            least[threads] = min(took, least.get(threads, took))
    return least


def main() -> None:
    """Print the times, how many times as fast two threads are, and the instructions."""
    parser = argparse.ArgumentParser(prog="python -m benches.scaling", description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    compile_before()
    with tempfile.TemporaryDirectory(prefix="ottla-scaling-") as home:
        write_partitions(Path(home), asked.partitions)
        least = least_seconds(Path(home), asked.rounds)
    one, two = (least[threads] for threads in THREADS)
    print(f"{asked.partitions:,} partitions: {one:.2f} s with one thread, {two:.2f} s with two")
    print(f"two threads are {one / two:.2f} times as fast")
    if shutil.which("valgrind") is None:
        sys.exit()
    for name in ("clean partition", "clean partition, under the interpreter's lock"):
        print(f"{name}: {EACH[name].count():,} instructions")


if __name__ == "__main__":
    main()
