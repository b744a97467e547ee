"""`make bench-guard`: what continuous integration holds, never an absolute time.

1. Every race of the speed table at 1 MiB, against its peer in the same run, reaches the threshold
   of the kernels that run here (`benches/thresholds.py`). What looks too slow is raced again, over
   more rounds: a busy machine is no fault.
2. The kernels need no more instructions than `callgrind.json` says, and a margin. Counts do not
   depend on the machine, but a little on the compiler: another one than they were taken with has
   a wider margin. `--write` takes them anew.
3. Starting up needs no more instructions than so many times those of a bare Python, and one more
   clean partition or line of JSON no more than `benches/instructions.py` allows; calls with one
   record no more than `benches/calls.py` does.

`--only counts` may run beside anything, `--only ratios` beside nothing.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from benches.calls import calls_that_grew
from benches.cases import CASES, LARGE, AbsentLevelError, Case, Outcome, run
from benches.instructions import each_that_grew, starts_that_grew
from benches.machine import demand_release, kernels
from benches.peers import OURS
from benches.thresholds import GUARDED, threshold
from benches.worker import ROOT

# How many times as many rounds each further try has.
TRIES = (1, 3, 5)
INSTRUCTION_MARGIN = 0.05
# Of a compiler that the counts were not taken with.
FOREIGN_MARGIN = 0.25
COUNTS = Path(__file__).with_name("callgrind.json")
KERNELS = ("crc", "check", "timestamps", "numbers", "views", "payload", "build")
# What valgrind can run: it has no AVX-512.
LEVELS = ("portable", "sse42", "bmi2")
_RUNS = (2, 10)


def _ratio(outcome: Outcome) -> float:
    """Give the better of two ratios: a neighbour's noise hits the medians or the best, not both."""
    ours, base = outcome.times[OURS], outcome.times[outcome.case.base]
    return max(ours.faster_than(base), base.best / ours.best)


def _fell(case: Case, rounds: int, level: str) -> str | None:
    """Race a case; give a line if it is too slow at every try."""
    least, ratio = threshold(case.title, level), 0.0
    for times in TRIES:
        try:
            ratio = max(ratio, _ratio(run(case, rounds=times * rounds)))
        except AbsentLevelError as error:
            print(f"  not held: {case.title}: {error}", flush=True)
            return None
        if ratio >= least:
            break
    row = f"{case.title}: {ratio:.2f} × {case.base}, at least {least:g} at level {level}"
    print(f"  {'ok  ' if ratio >= least else 'FELL'} {row}", flush=True)
    return None if ratio >= least else row


def guarded() -> list[Case]:
    """Give the races that are held to a threshold."""
    return [case for case in CASES if case.size != LARGE and case.title in GUARDED]


def ratios_that_fell(rounds: int) -> list[str]:
    """Run the small races; give a line for each that is too slow."""
    rows = [_fell(case, rounds, kernels()) for case in guarded()]
    return [row for row in rows if row is not None]


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
        print("  NOT COUNTED: valgrind is not installed")
        return []
    if kept["compiler"].split()[-1] != compiler().split()[-1]:
        print(f"  NOT COUNTED: the counts are of {kept['compiler']}, here is {compiler()}")
        return []
    margin = INSTRUCTION_MARGIN
    if kept["compiler"] != compiler():
        margin = FOREIGN_MARGIN
        print(f"  the counts are of {kept['compiler']}, here is {compiler()}: {margin:.0%} allowed")
    grew = []
    for name, count in count_instructions().items():
        before = kept["instructions"][name]
        row = f"{name}: {count:,} instructions, kept {before:,} ({count / before - 1:+.1%})"
        is_more = count > before * (1 + margin)
        print(f"  {'GREW' if is_more else 'ok  '} {row}", flush=True)
        if is_more:
            grew.append(row)
    return grew


def write_counts() -> None:
    """Keep the counts of this tree."""
    kept = {"compiler": compiler(), "instructions": count_instructions()}
    COUNTS.write_text(json.dumps(kept, indent=1) + "\n")


def counts_that_grew() -> list[str]:
    """Count instructions; give a line for each count that grew."""
    print("Instructions of the kernels, under callgrind")
    grew = kernels_that_grew()
    if shutil.which("valgrind") is not None:
        print("Instructions of starting up, under callgrind")
        grew += starts_that_grew()
        print("Instructions of one more, under callgrind")
        grew += each_that_grew()
        print("Instructions of calls with one record, under callgrind")
        grew += calls_that_grew()
    return grew


def main() -> None:
    """Guard; the status is 1 where something fell."""
    parser = argparse.ArgumentParser(prog="python -m benches.guard", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--write", action="store_true", help="keep the instruction counts of now")
    parser.add_argument("--only", choices=("counts", "ratios"), help="half of it")
    asked = parser.parse_args()
    demand_release()
    if asked.write:
        write_counts()
        return
    wrong = []
    if asked.only != "ratios":
        wrong += counts_that_grew()
    if asked.only != "counts":
        print(f"Ratios at 1 MiB, in one run, with the kernels {kernels()}")
        wrong += ratios_that_fell(asked.rounds)
    if wrong:
        print("\nSlower than the guard allows:", *wrong, sep="\n  ", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
