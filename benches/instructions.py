"""Instructions of starting up, under callgrind, as multiples of those of a bare Python.

Times of so short a process are those of the machine's neighbours; instructions are the same in each
run. Bytecode is held, as it is where a package is installed, and not counted.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benches.partitions import write_partitions
from benches.whole import OTTLA

BARE = "python"

# At most so many times the instructions of a bare Python. Another Python and another click or rich
# move these by a quarter; a module that came in where none was needed shows.
MOST: Mapping[str, float] = {
    "import ottla": 3,
    "ottla --version": 6.5,
    "ottla explain": 7.5,
    "ottla audit": 11.5,
}


def count(command: Sequence[str], bytecode: Path, kernels: str = "") -> int:
    """Count the instructions of a command, whose bytecode an earlier run has left."""
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    environment |= {"PYTHONPYCACHEPREFIX": str(bytecode), "PYTHONHASHSEED": "0"}
    environment["OTTLA_KERNELS"] = kernels
    subprocess.run(command, env=environment, capture_output=True, check=True)
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run(
        [*valgrind, *command], env=environment, capture_output=True, text=True, check=True
    )
    counted = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if counted is None:
        raise RuntimeError(f"callgrind said nothing of instructions: {done.stderr[-300:]}")
    return int(counted.group(1))


def starts() -> dict[str, int]:
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
        return {name: count(command, bytecode) for name, command in commands.items()}


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


if __name__ == "__main__":
    sys.exit(bool(starts_that_grew()))
