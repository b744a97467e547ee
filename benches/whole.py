"""What is measured of whole processes: the audit of a large log, starting up, memory.

The wall clock counts here, since it is what a user waits for, but not for the speed of an audit,
which is compared with as many threads of others. Runs are taken in turn.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from benches.data import MIB, Shape, generate, renumbered
from benches.partitions import write_beside, write_checkpoints, write_partitions
from benches.peers import AIOKAFKA, JOBS, OURS, READ
from benches.race import Times, race, turn

GB = 10**9
THREADS = 2
AUDIT = "ottla audit"
OTTLA = Path(sys.executable).with_name("ottla")

_SEGMENT_SIZE = 256 * MIB
_SHAPE = Shape(100)
_SMALL_SHAPE = Shape(100, 10)


@dataclass(frozen=True)
class Measure:
    """One row of the table that is no race."""

    title: str
    target: str
    found: str
    is_met: bool | None
    figures: dict[str, float] = field(default_factory=dict)


def _write_partition(folder: Path, size: int) -> int:
    """Write segments of the same few batches again and again, under rising offsets.

    Returns the offset that comes next.
    """
    unit = generate(_SHAPE if size >= MIB else _SMALL_SHAPE, min(size, 16 * MIB)).batches
    offset = written = 0
    while written < size:
        path = folder / f"{offset:020d}.log"
        with path.open("wb") as file:
            while file.tell() < _SEGMENT_SIZE and written + file.tell() < size:
                run, offset = renumbered(unit, offset)
                file.write(run)
            written += file.tell()
    write_beside(folder, 0)
    return offset


def write_log_directory(directory: Path, size: int, *, partitions: int = 4) -> int:
    """Write the log directory of a broker that stopped cleanly; give the bytes of its segments.

    Two gigabytes are written at most: further partitions are links to the first ones.
    """
    written = 0
    ends: dict[tuple[str, int], int] = {}
    kept: list[Path] = []
    for partition in range(partitions):
        folder = directory / f"bench-{partition}"
        folder.mkdir(parents=True)
        if written < 2 * GB:
            ends["bench", partition] = _write_partition(folder, size // partitions)
            kept.append(folder)
        else:
            linked = partition % len(kept)
            ends["bench", partition] = ends["bench", linked]
            for path in kept[linked].iterdir():
                os.link(path, folder / path.name)
        written += sum(path.stat().st_size for path in folder.glob("*.log"))
    write_checkpoints(directory, ends)
    return written


@contextmanager
def log_directory(size: int, *, partitions: int = 4) -> Iterator[tuple[Path, int]]:
    """Return a log directory and its bytes, while it is needed."""
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as home:
        directory = Path(home)
        yield directory, write_log_directory(directory, size, partitions=partitions)


@cache
def _bytecode() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="ottla-bytecode-")


def _environment() -> dict[str, str]:
    """Return an environment in which bytecode is held, as it is where a package is installed."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": _bytecode().name}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def compile_before() -> None:
    """Leave the bytecode of what is measured, before it is."""
    with log_directory(10_000, partitions=1) as (directory, _):
        _wall(_audit(directory), (0, 1, 2))


def _wall(command: Sequence[str | Path], statuses: tuple[int, ...] = (0,)) -> float:
    begin = time.perf_counter()
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=_environment(),
    )
    took = time.perf_counter() - begin
    if done.returncode not in statuses:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-500:]}")
    return took


def _walls(runs: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Return the median of each run's wall clock, the runs taken in turn, after one round."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            took = run()
            if number:
                times[name].append(took)
    return {name: statistics.median(taken) for name, taken in times.items()}


def _audit(directory: Path) -> list[str | Path]:
    return [OTTLA, "audit", "--level", "full", "--threads", str(THREADS), directory]


def _cpu(command: Sequence[str | Path], statuses: tuple[int, ...]) -> float:
    """Return the CPU seconds of a command with all its threads, those of the system included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _wall(command, statuses)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _bare_read(directory: Path) -> float:
    """Read every segment and look at nothing: the floor under any audit. Return CPU seconds."""
    window = bytearray(2 * MIB)
    begin = time.thread_time()
    for path in sorted(directory.rglob("*.log")):
        with path.open("rb", buffering=0) as file:
            while file.readinto(window):
                pass
    return time.thread_time() - begin


def _in_threads(job: Callable[[], float]) -> float:
    """Do a job in as many threads as the audit has; return the CPU seconds of one of them."""
    with ThreadPoolExecutor(THREADS) as threads:
        return statistics.fmean(threads.map(lambda _: job(), range(THREADS)))


def slopes(few: Times, many: Times, bytes_between: int) -> Times:
    """Return the seconds a byte more takes, round by round: what a start costs is in neither."""
    pairs = zip(few.seconds, many.seconds, strict=True)
    return Times(tuple(max(more - less, 1e-9) / bytes_between for less, more in pairs))


def audit_speed(sizes: tuple[int, int] = (2 * GB, 8 * GB), rounds: int = 5) -> list[Measure]:
    """Compare the CPU time of a byte more in an audit with checking in memory and bare reading.

    Logs are in the page cache, and all that are compared have as many threads. What an audit costs
    beside the bytes, its start, is a row of its own.
    """
    data = generate(_SHAPE, 16 * MIB)
    jobs = {peer: turn(JOBS["check"][peer](data)) for peer in (OURS, AIOKAFKA)}
    with log_directory(sizes[0]) as (small, few), log_directory(sizes[1]) as (large, many):
        times = race(
            {
                "small": lambda: _cpu(_audit(small), (0, 1, 2)),
                "large": lambda: _cpu(_audit(large), (0, 1, 2)),
                READ: lambda: _in_threads(lambda: _bare_read(small)) / few,
                OURS: lambda: _in_threads(jobs[OURS]) / data.raw_size,
                AIOKAFKA: lambda: _in_threads(jobs[AIOKAFKA]) / data.raw_size,
            },
            rounds,
        )
    audit = slopes(times["small"], times["large"], many - few)
    ratio, share = audit.faster_than(times[AIOKAFKA]), audit.faster_than(times[OURS])
    start = max(times["small"].median - audit.median * few, 0)
    between = f"between {few / GB:.2g} and {many / GB:.2g} GB in the page cache"
    return [
        Measure(
            f"ottla audit --level full, a byte more {between}, {THREADS} threads each",
            "≥ 25 % of check_batches, ≥ 5× aiokafka, CPU time",
            f"{share:.0%}, {ratio:.1f}×; {audit.faster_than(times[READ]):.0%} of a bare read",
            share >= 0.25 and ratio >= 5,
            {
                "bytes_per_cpu_s": 1 / audit.median,
                "times_aiokafka": ratio,
                "share_of_check_batches": share,
            },
        ),
        Measure(
            "what that audit costs beside the bytes, its start",
            "–",
            f"{start:.2f} s of CPU time",
            None,
            {"cpu_s": start},
        ),
    ]


def start_up(rounds: int = 15) -> list[Measure]:
    """Time importing the package beside NumPy, and the audit of a small log."""
    with log_directory(10_000, partitions=1) as (directory, written):
        walls = _walls(
            {
                "numpy": lambda: _wall([sys.executable, "-c", "import numpy"]),
                "ottla": lambda: _wall([sys.executable, "-c", "import numpy, ottla"]),
                "audit": lambda: _wall([OTTLA, "audit", directory], (0, 1, 2)),
            },
            rounds,
        )
    over = walls["ottla"] - walls["numpy"]
    return [
        Measure(
            "import ottla, over bare Python + NumPy",
            "≤ 60 ms",
            f"{over * 1000:.0f} ms",
            over <= 0.060,
            {"seconds": over, "numpy_s": walls["numpy"]},
        ),
        Measure(
            f"ottla audit of {written / 1000:.0f} KB, whole process",
            "≤ 0.25 s",
            f"{walls['audit']:.2f} s",
            walls["audit"] <= 0.25,
            {"seconds": walls["audit"]},
        ),
    ]


# Linux hands the high-water mark of whoever starts a program on to the program: the one that
# starts what is measured must be small itself.
_PEAK_OF = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdin=-3, stdout=-3, stderr=-3)
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)
"""


def peak_memory(command: Sequence[str | Path]) -> tuple[int, int]:
    """Run a command; give its exit status and the most resident memory it had, in bytes."""
    small = [sys.executable, "-I", "-S", "-c", _PEAK_OF, *map(str, command)]
    printed = subprocess.run(
        small, capture_output=True, text=True, check=True, env=_environment()
    ).stdout
    status, peak = map(int, printed.split())
    # Linux counts in KiB, macOS in bytes.
    return status, peak * (1 if sys.platform == "darwin" else 1024)


def audit_memory(size: int = 4 * GB) -> Measure:
    """Measure the largest resident memory of an audit."""
    with log_directory(size, partitions=8) as (directory, written):
        status, resident = peak_memory(_audit(directory))
    if status not in {0, 1, 2}:
        raise RuntimeError(f"the audit ended with {status}")
    return Measure(
        f"resident memory, audit of {written / GB:.1f} GB of 100 B in 8 partitions, no producers",
        "≤ 150 MiB",
        f"{resident / MIB:.0f} MiB",
        resident <= 150 * MIB,
        {"bytes": resident},
    )


def many_partitions(partitions: int = 100_000, size: int = 10_000) -> list[Measure]:
    """Measure the audit of a broker's log directory of many small partitions."""
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as home:
        written = write_partitions(Path(home), partitions, size)
        begin = time.perf_counter()
        status, resident = peak_memory(_audit(Path(home)))
        took = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"the audit of sound partitions ended with {status}")
    what = f"{partitions:,} partitions of {written / partitions / 1000:.0f} KB, {THREADS} threads"
    return [
        Measure(
            f"ottla audit of {what}",
            "≤ 10 s",
            f"{took:.0f} s",
            took <= 10,
            {"seconds": took, "partitions": partitions},
        ),
        Measure(
            f"resident memory, audit of {what}",
            "≤ 256 MiB",
            f"{resident / MIB:.0f} MiB",
            resident <= 256 * MIB,
            {"bytes": resident},
        ),
    ]


def replicas_speed(size: int = 600_000_000, rounds: int = 3) -> Measure:
    """Time the audit of three copies that are compared against that of one, a byte."""
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as home:
        copies = [Path(home) / f"broker-{number}" for number in range(3)]
        written = write_log_directory(copies[0], size)
        for copy in copies[1:]:
            shutil.copytree(copies[0], copy, copy_function=os.link)
        named = [option for copy in copies for option in ("--replica", f"{copy.name}={copy}")]
        options = ["audit", "--level", "full", "--threads", str(THREADS)]
        walls = _walls(
            {
                "one": lambda: _wall(_audit(copies[0]), (0, 1, 2)),
                "three": lambda: _wall([OTTLA, *options, *named], (0, 1, 2)),
            },
            rounds,
        )
    share = 3 * walls["one"] / walls["three"]
    return Measure(
        f"three copies of {written / GB:.1f} GB compared, against the audit of one, a byte",
        "≥ 50 %",
        f"{share:.0%}",
        share >= 0.5,
        {"share": share, "one_wall_s": walls["one"], "three_wall_s": walls["three"]},
    )


def measures(scale: float = 1) -> Iterator[Measure]:
    """Return every row that is measured on whole processes, on so much less data.

    The targets are those of a scale of 1: at another they decide nothing.
    """
    compile_before()
    few, many, resident, copied = (int(scale * size * GB) for size in (2, 8, 4, 0.6))
    rows = [
        *audit_speed((few, many)),
        *start_up(),
        audit_memory(resident),
        *many_partitions(int(scale * 100_000)),
        replicas_speed(copied),
    ]
    for row in rows:
        yield row if scale == 1 else replace(row, is_met=None)
