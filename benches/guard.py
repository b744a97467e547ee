"""`make bench-guard`: what continuous integration holds, never an absolute time.

1. Every race of the speed table at 1 MiB, against its peer in the same run, reaches a share of its
   target. The share is far below 1, since a shared machine and another CPU move a ratio by a
   third; what it catches is a kernel that is no longer chosen or a copy that came in.
2. The kernels need no more instructions than `callgrind.json` says, and a margin. Counts do not
   depend on the machine, but on the compiler: they hold for the one they were taken with.
   `--write` takes them anew.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from benches.cases import CASES, LARGE, run
from benches.peers import CHECK, INFLATE
from benches.worker import ROOT

SHARE_OF_TARGET = 0.6
# What the base does is most of both sides: a ratio that moves by a third means a pass too many.
SHARE_OF_CLOSE_TARGET = 0.85
INSTRUCTION_MARGIN = 0.05
COUNTS = Path(__file__).with_name("callgrind.json")
KERNELS = ("crc", "check", "timestamps", "numbers", "views", "payload", "build")
# What valgrind can run: it has no AVX-512.
LEVELS = ("portable", "sse42", "bmi2")
_RUNS = (2, 10)


def ratios_that_fell(rounds: int) -> list[str]:
    """Run the small races; give a line for each that is too slow even at a second try."""
    fell = []
    for case in CASES:
        if case.size == LARGE or case.target is None:
            continue
        is_close = case.base in {INFLATE, CHECK}
        share = SHARE_OF_CLOSE_TARGET if is_close else SHARE_OF_TARGET
        least = case.guarded or case.target * share
        ratio = run(case, rounds=rounds).ratio(case.base)
        if ratio < least:
            ratio = max(ratio, run(case, rounds=3 * rounds).ratio(case.base))
        row = f"{case.title}: {ratio:.2f} × {case.base}, guarded at {least:.2f}"
        print(f"  {'ok  ' if ratio >= least else 'FELL'} {row}", flush=True)
        if ratio < least:
            fell.append(row)
    return fell


def _instructions(program: Path, kernel: str, level: str, runs: int) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program)]
    done = subprocess.run(
        [*command, "callgrind", kernel, level, str(runs)],
        capture_output=True,
        text=True,
        check=True,
    )
    counted = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if counted is None:
        raise RuntimeError(f"callgrind said nothing of instructions: {done.stderr[-300:]}")
    return int(counted.group(1))


def count_instructions() -> dict[str, int]:
    """Count what one run of each kernel takes: the difference of many runs and few."""
    build = ["cargo", "build", "--quiet", "--locked", "--release", "-p", "ottla-kernels"]
    build += ["--example", "race", "--message-format=json"]
    lines = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    built = [json.loads(line).get("executable") for line in lines.splitlines()]
    program = Path(next(path for path in reversed(built) if path))
    few, many = _RUNS
    return {
        f"{kernel} {level}": (
            _instructions(program, kernel, level, many) - _instructions(program, kernel, level, few)
        )
        // (many - few)
        for kernel in KERNELS
        for level in LEVELS
    }


def compiler() -> str:
    """Name the compiler the counts hold for."""
    done = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True)
    rows = dict(line.partition(": ")[::2] for line in done.stdout.splitlines())
    return f"rustc {rows['release']} {rows['host']}"


def kernels_that_grew() -> list[str]:
    """Compare instruction counts with the kept ones; give a line for each that grew."""
    kept = json.loads(COUNTS.read_text())
    if shutil.which("valgrind") is None:
        print("  not counted: valgrind is not installed")
        return []
    if kept["compiler"] != compiler():
        print(f"  not counted: the counts are of {kept['compiler']}, here is {compiler()}")
        return []
    grew = []
    for name, count in count_instructions().items():
        before = kept["instructions"][name]
        row = f"{name}: {count:,} instructions, kept {before:,} ({count / before - 1:+.1%})"
        is_more = count > before * (1 + INSTRUCTION_MARGIN)
        print(f"  {'GREW' if is_more else 'ok  '} {row}", flush=True)
        if is_more:
            grew.append(row)
    return grew


def write_counts() -> None:
    """Keep the counts of this tree."""
    kept = {"compiler": compiler(), "instructions": count_instructions()}
    COUNTS.write_text(json.dumps(kept, indent=1) + "\n")


def main() -> None:
    """Guard; the status is 1 where something fell."""
    parser = argparse.ArgumentParser(prog="python -m benches.guard", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--write", action="store_true", help="keep the instruction counts of now")
    asked = parser.parse_args()
    if asked.write:
        write_counts()
        return
    print("Instructions of the kernels, under callgrind")
    wrong = kernels_that_grew()
    print("Ratios at 1 MiB, in one run")
    wrong += ratios_that_fell(asked.rounds)
    if wrong:
        print("\nSlower than the guard allows:", *wrong, sep="\n  ", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
