"""Instructions of starting up, and of what an audit does most often, under callgrind.

Times of so short a process are those of the machine's neighbours; instructions are the same in each
run. Bytecode is held, as it is where a package is installed, and not counted. Starts are held to
multiples of a bare Python; what one more partition or batch takes is a slope between two processes.
"""

import os
import platform
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benches.output import log
from benches.partitions import write_partitions
from benches.whole import OTTLA

BARE = "python"

# At most so many times the instructions of a bare Python. Another Python and another click or rich
# move these by a quarter; a module that came in where none was needed shows.
MOST: Mapping[str, float] = {
    "import ottla": 2.9,
    "ottla --version": 5.9,
    "ottla explain": 6.9,
    "ottla audit": 8.6,
}


# What every interpreter has in the file that it is in.
_INTERPRETER = "_PyEval_EvalFrameDefault"


def count(
    command: Sequence[str],
    bytecode: Path,
    kernels: str = "",
    site: Path | None = None,
    *,
    is_held: bool = False,
) -> int:
    """Count the instructions of a command, whose bytecode an earlier run has left.

    A site is a directory of packages that come before those of this tree. With `is_held` those of
    the interpreter's own code count alone: it has its lock then, and no other thread runs any.
    """
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    environment |= {"PYTHONPYCACHEPREFIX": str(bytecode), "PYTHONHASHSEED": "0"}
    environment["OTTLA_KERNELS"] = kernels
    if site is not None:
        environment["PYTHONPATH"] = str(site)
    subprocess.run(command, env=environment, capture_output=True, check=True)
    profile = bytecode / "callgrind.out"
    kept = ["--compress-strings=no", f"--callgrind-out-file={profile if is_held else os.devnull}"]
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", *kept, *command],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    counted = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if counted is None:
        raise RuntimeError(f"callgrind said nothing of instructions: {done.stderr[-300:]}")
    return of_interpreter(profile) if is_held else int(counted.group(1))


def of_interpreter(profile: Path) -> int:
    """Sum the instructions in the file that the interpreter is in, a program or a library."""
    costs: Counter[str] = Counter()
    file = interpreter = ""
    is_of_call = False
    with profile.open() as lines:
        for line in lines:
            name, _, value = line.rstrip().partition("=")
            if name == "ob":
                file = value
            elif name == "fn" and value.startswith(_INTERPRETER):
                interpreter = file
            elif name == "calls":
                # The next line is what that call took elsewhere.
                is_of_call = True
            elif line[0].isdigit() or line[0] in "+-*":
                costs[file] += 0 if is_of_call else int(line.split()[1])
                is_of_call = False
    return costs[interpreter]


def starts(site: Path | None = None) -> dict[str, int]:
    """Count the instructions of each start."""
    with tempfile.TemporaryDirectory(prefix="ottla-starts-") as home:
        log_directory, bytecode = Path(home) / "logs", Path(home) / "bytecode"
        write_partitions(log_directory, 1)
        commands = {
            BARE: [sys.executable, "-c", "pass"],
            "import ottla": [sys.executable, "-c", "import ottla"],
            "ottla --version": [str(OTTLA), "--version"],
            "ottla explain": [str(OTTLA), "explain"],
            "ottla audit": [str(OTTLA), "audit", str(log_directory)],
        }
        return {name: count(command, bytecode, site=site) for name, command in commands.items()}


def starts_that_grew() -> list[str]:
    """Compare each start with what it may take; give a line for each that takes more."""
    counts = starts()
    grew = []
    for name, most in MOST.items():
        times = counts[name] / counts[BARE]
        row = f"{name}: {counts[name]:,} instructions, {times:.1f} × {BARE}, at most {most:g}"
        print(f"  {'GREW' if times > most else 'ok  '} {row}", flush=True)
        if times > most:
            grew.append(row)
    return grew


# What every CPU has on which these are counted.
LEVEL, MACHINES = "sse42", ("x86_64", "AMD64")

_LINES = """
import sys, ottla
for lines in ottla.audit(sys.argv[1], threads=1).batches.json_lines():
    pass
"""


@contextmanager
def _partitions(count: int) -> Iterator[Path]:
    """Yield a log directory of so many clean partitions of 11 KB."""
    with tempfile.TemporaryDirectory(prefix="ottla-partitions-") as home:
        write_partitions(Path(home), count)
        yield Path(home)


AUDIT = "import sys, ottla; ottla.audit(sys.argv[1], threads=1)"
_TABLES = """
import sys, ottla
result = ottla.audit(sys.argv[1], threads=1)
for table in result.events, result.findings, result.transactions, result.producers:
    for row in table.rows():
        pass
"""


@contextmanager
def grown(dimension: str, count: int) -> Iterator[Path]:
    """Yield a log directory with so many of what the growth bench has by this name."""
    # It counts by this module.
    from benches.growth import DIMENSIONS

    with tempfile.TemporaryDirectory(prefix="ottla-grown-") as home:
        DIMENSIONS[dimension][0](Path(home), count)
        yield Path(home)


def python(program: str) -> list[str]:
    """Return the command that runs a program of Python."""
    return [sys.executable, "-c", program]


class Slope(NamedTuple):
    """Something of which a log directory has few or many, and what reads it."""

    write: Callable[[int], AbstractContextManager[Path]]
    few: int
    many: int
    command: Sequence[str]
    most: int
    """How many instructions one more may take."""
    is_held: bool = False
    """Whether those of the interpreter's own code count alone."""

    def count(self, site: Path | None = None) -> int:
        """Count the instructions that one more takes."""
        taken = []
        with tempfile.TemporaryDirectory(prefix="ottla-each-") as bytecode:
            for number in (self.few, self.many):
                with self.write(number) as folder:
                    command = [*self.command, str(folder)]
                    counted = count(command, Path(bytecode), LEVEL, site, is_held=self.is_held)
                    taken.append(counted)
        few, many = taken
        return (many - few) // (self.many - self.few)


AUDITED = [str(OTTLA), "audit", "--threads", "1"]

# Somewhat above what they take from CPython 3.11.
EACH: Mapping[str, Slope] = {
    "clean partition": Slope(_partitions, 100, 300, AUDITED, 189_400),
    "clean partition, under the interpreter's lock": Slope(
        _partitions, 100, 300, AUDITED, 73_100, is_held=True
    ),
    "batch, audited and as a line of JSON": Slope(
        partial(log, is_damaged=False), 200, 1_200, python(_LINES), 11_400
    ),
    "open transaction, audited and read in four tables": Slope(
        partial(grown, "open transactions"), 100, 300, python(_TABLES), 68_000
    ),
    "open transaction": Slope(partial(grown, "open transactions"), 100, 300, python(AUDIT), 9_700),
    "producer": Slope(partial(grown, "producers"), 2_000, 4_000, python(AUDIT), 1_950),
    "damaged partition": Slope(
        partial(grown, "damaged partitions"),
        20,
        40,
        python(AUDIT),
        2_500_000,
    ),
}


def count_each() -> dict[str, int]:
    """Count the instructions that one more of each takes."""
    return {name: slope.count() for name, slope in EACH.items()}


def each_that_grew() -> list[str]:
    """Compare what one more takes with what it may; give a line for each that takes more."""
    if platform.machine() not in MACHINES:
        print(f"  NOT COUNTED: {platform.machine()} has no kernels {LEVEL}")
        return []
    grew = []
    for name, counted in count_each().items():
        row = f"{name}: {counted:,} instructions, at most {EACH[name].most:,}"
        print(f"  {'GREW' if counted > EACH[name].most else 'ok  '} {row}", flush=True)
        if counted > EACH[name].most:
            grew.append(row)
    return grew


if __name__ == "__main__":
    sys.exit(bool(starts_that_grew() + each_that_grew()))
