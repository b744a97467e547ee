"""How inputs are refused, measured in a process of their own: faults, memory, and CPU time.

Time is a ratio: the act and its yardsticks take turns, round by round, and the best of each counts.
A slow machine is slow for all of them, and a neighbour's noise is not in the best of the rounds.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import cramjam
import deflate
import lz4.frame
import ottla
import zstandard
from ottla._engine import bare_inflate

MIB = 1 << 20
# What a yardstick of another library inflates at a time.
PIECE = 4 * MIB

# What a user may do with data.
ACTS: dict[str, Callable[[bytes], object]] = {
    "check": ottla.check_batches,
    "records": lambda data: [list(batch.records()) for batch in ottla.read_batches(data)],
    "numbers": ottla.read_columns,
    "views": lambda data: ottla.read_columns(data, views=True),
}
LIBRARIES: dict[str, Callable[[bytes], object]] = {
    "gzip": lambda data: deflate.gzip_decompress(data, PIECE),
    "snappy": cramjam.snappy.decompress_raw,
    "lz4": lz4.frame.decompress,
    "zstd": lambda data: zstandard.ZstdDecompressor().decompress(data),
}


@dataclass(frozen=True)
class Task:
    """An act on some inputs, and what its time is held against."""

    act: str
    inputs: Sequence[str]
    honest: str
    """Batches that the engine inflates alone, without a look at them."""
    ordinary: tuple[str, str, int] | None = None
    """A codec, a file that its other library inflates, and how many times."""


@dataclass(frozen=True)
class Refusal:
    """How the inputs were refused."""

    kinds: tuple[str | None, ...]
    taken: int
    """Bytes of memory."""
    to_honest: float
    """The slowest input's time in that of inflating the honest batches, or of filling fresh memory
    as large, if that is more: runs of one byte inflate as fast as the cache takes them."""
    to_ordinary: float | None
    """The same in that of another library."""


def _kind_of(act: Callable[[bytes], object], data: bytes) -> str | None:
    try:
        act(data)
    except ottla.RecordBatchError as error:
        return error.kind
    return None


def _seconds(run: Callable[[], object]) -> float:
    # The turn before left other data in the cache, and less or more memory to the codecs.
    run()
    start = time.process_time()
    run()
    return max(time.process_time() - start, 1e-7)


def measure(task: Task, rounds: int) -> Refusal:
    """Measure in this process; memory comes first, before the yardsticks take theirs."""
    act = ACTS[task.act]
    inputs = [Path(path).read_bytes() for path in task.inputs]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kinds = tuple(_kind_of(act, data) for data in inputs)
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    honest = Path(task.honest).read_bytes()
    turns: list[Callable[[], object]] = [partial(_kind_of, act, data) for data in inputs]
    turns.append(partial(bare_inflate, honest))
    size = bare_inflate(honest)
    turns.append(lambda: b"\xa5" * size)
    times = [[_seconds(turn) for turn in turns] for _ in range(rounds)]
    *of_inputs, of_honest, of_memory = (min(of_turn) for of_turn in zip(*times, strict=True))
    slowest = max(of_inputs)
    return Refusal(
        kinds,
        taken * (1 if sys.platform == "darwin" else 1024),
        slowest / max(of_honest, of_memory),
        slowest / _ordinary_seconds(*task.ordinary, rounds) if task.ordinary is not None else None,
    )


def _ordinary_seconds(codec: str, path: str, repeats: int, rounds: int) -> float:
    """Measure another library after all turns: what it allocates would slow those that follow."""
    inflate, ordinary = LIBRARIES[codec], Path(path).read_bytes()
    return min(_seconds(lambda: [inflate(ordinary) for _ in range(repeats)]) for _ in range(rounds))


# Linux hands the high-water mark of whoever starts a program on to the program: the one that
# starts what is measured must be small itself.
_START = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"


def refusal_of(task: Task, *, at_most: float) -> Refusal:
    """Measure in a process of its own, and over more rounds where a ratio is above `at_most`."""
    found = _measured_alone(task, 3)
    if max(found.to_honest, found.to_ordinary or 0) >= at_most:
        found = _measured_alone(task, 15)
    return found


def _measured_alone(task: Task, rounds: int) -> Refusal:
    small = [sys.executable, "-I", "-S", "-c", _START]
    done = subprocess.run(
        [*small, sys.executable, __file__, json.dumps(asdict(task)), str(rounds)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=True,
    )
    found = json.loads(done.stdout)
    return Refusal(**{**found, "kinds": tuple(found["kinds"])})


if __name__ == "__main__":
    found = measure(Task(**json.loads(sys.argv[1])), int(sys.argv[2]))
    json.dump(asdict(found), sys.stdout)
