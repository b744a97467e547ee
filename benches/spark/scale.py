"""The driver of an audit on Spark at a million files: its time and memory, without the cluster.

    python -m benches.spark.scale [partitions]

Everything the driver does is the real thing: it takes stock of a listing, plans, packs bins, and
puts together what groups of logs show. Made up are the listing (ten files a partition; in every
second partition one segment of a gibibyte, cut in two ranges) and what tasks answer: the engine
scans and judges two small partitions once, and their answers come again for each partition, as the
bytes that a task sends.

Prints one JSON object. `judge_s` is the time that tasks take to judge one log; it is spent on the
executors.
"""

import errno
import json
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ottla.audit.judge.collector import Collector
from ottla.audit.judge.context import Surroundings
from ottla.audit.plan import plan as planning
from ottla.logs.checkpoints import Checkpoints
from ottla.logs.inventory import Inventory
from ottla.logs.listing import take_inventory
from ottla.spark.audit import audit, runner, tasks
from ottla.spark.audit.bins import Bins, make_bins, names_of
from ottla.spark.audit.runner import ClusterRunner
from ottla.spark.audit.tasks import JudgedGroup, judge_group
from ottla.spark.work.packing import TaskSize
from ottla.storage import Entry, LocalPlace

from benches.data import MIB, Shape, generate, renumbered
from benches.spark.processes import peak_resident

PARTITIONS = 100_000
FILES_A_PARTITION = 10
RANGE_BYTES = 512 * MIB
LARGE_BYTES = 2 * RANGE_BYTES
SMALL_BYTES = 10_000
# For as many partitions; fewer have their share, and the interpreter with its packages.
MAX_S = 120
MAX_BYTES = 2 << 30
INTERPRETER_BYTES = 100 * MIB

_SEGMENTS = 3
_ROOT = b"/logs"
# Ranges of the template's large segment: its answer has as many chunks to join.
_TEMPLATE_RANGE = 65_536
_SHAPE = Shape(100, 10)


@dataclass(frozen=True)
class Listing:
    """A log directory that is nowhere; see `ottla.storage.files.Files`."""

    partitions: int

    def stat(self, path: bytes) -> Entry:
        """Return the directory itself; no other path is looked up."""
        return Entry(path, is_directory=True, size=0, identity=path)

    def list(self, directory: bytes) -> Sequence[Entry]:
        """Return the directory of each partition, or the files of one."""
        if directory == _ROOT:
            names = (b"topic-%03d-%d" % divmod(n, 1000) for n in range(self.partitions))
            return [Entry(name, is_directory=True, size=0, identity=name) for name in names]
        is_large = int(directory.rpartition(b"-")[2]) % 2 == 0
        sizes = {b"leader-epoch-checkpoint": 10}
        for segment in range(_SEGMENTS):
            stem = b"%020d" % (segment * 1000)
            sizes[stem + b".log"] = LARGE_BYTES if is_large and not segment else SMALL_BYTES
            sizes[stem + b".index"] = sizes[stem + b".timeindex"] = 0
        return [Entry(name, is_directory=False, size=sizes[name]) for name in sorted(sizes)]

    def exists(self, path: bytes) -> bool:
        """Say that nothing lies beside the partitions."""
        del path
        return False

    def read(self, path: bytes, limit: int) -> bytes:
        """Raise FileNotFoundError: no file can be opened."""
        del limit
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def place(self, path: bytes, size: int | None = None) -> LocalPlace:
        """Return the file that a task would read."""
        del size
        return LocalPlace(path)

    def under(self, directory: bytes) -> "Listing":
        """Return the same listing."""
        del directory
        return self


@dataclass(frozen=True)
class Template:
    """What a task answers for a log."""

    answer: bytes
    """A pickled `JudgedGroup`."""
    ranges: int
    judge_s: float


def template(directory: Path, *, is_large: bool) -> Template:
    """Scan and judge one partition by the code of the tasks."""
    unit = generate(_SHAPE, SMALL_BYTES).batches
    folder = directory / f"template-{int(is_large)}"
    folder.mkdir(parents=True)
    offset = 0
    for segment in range(_SEGMENTS):
        repeats = 2 * _TEMPLATE_RANGE // SMALL_BYTES if is_large and not segment else 1
        with (folder / f"{offset:020d}.log").open("wb") as file:
            for _ in range(repeats):
                run, offset = renumbered(unit, offset)
                file.write(run)
    plan = planning.plan_audit(directory).split(_TEMPLATE_RANGE)
    bins = make_bins(plan, level="full", now_ms=0, bin_bytes=1 << 40)
    names = ("group", "log", "index", "number", "kind", "data")
    rows = [dict(zip(names, row, strict=True)) for row in tasks.scan_rows(bins)(iter([0]))]
    surroundings = Surroundings(Checkpoints(), None)
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        judged = judge_group(rows, names_of(plan.inventory), surroundings)
        times.append(time.perf_counter() - begin)
    quiet = replace(judged, logs=tuple((0, log._replace(findings=())) for _, log in judged.logs))
    ranges = sum(row["kind"] in ("chunk", "scan") for row in rows)
    return Template(pickle.dumps(quiet, protocol=5), ranges, min(times))


def simulate(partitions: int = PARTITIONS) -> dict[str, Any]:
    """Run the driver's part of an audit; give what it saw, took and held."""
    phases: dict[str, float] = {}
    bins: list[Bins] = []
    ranges = 0

    def clocked(name: str, call: Any) -> Any:
        def run(*arguments: Any, **named: Any) -> Any:
            begin = time.perf_counter()
            try:
                return call(*arguments, **named)
            finally:
                phases[name] = phases.get(name, 0) + time.perf_counter() - begin

        return run

    def judged(_: Any, packed: Bins, *__: Any, is_small: bool) -> Iterator[JudgedGroup]:
        nonlocal ranges
        # What the closure of the scanning job is made of.
        bins.append(packed)
        phases["ship_bytes"] = len(pickle.dumps(packed, protocol=5))
        assert not is_small
        for number in range(partitions):
            made = templates[number % 2]
            ranges += made.ranges
            group: JudgedGroup = pickle.loads(made.answer)  # noqa: S301 (made above)
            yield replace(group, logs=((number, group.logs[0][1]),))

    with tempfile.TemporaryDirectory(prefix="ottla-scale-") as home, ExitStack() as stack:
        templates = (
            template(Path(home) / "large", is_large=True),
            template(Path(home) / "small", is_large=False),
        )
        listing = Listing(partitions)

        def stock(sources: Any, replicas: Any, *, each: Any, **_: Any) -> Inventory:
            taken: Inventory = take_inventory(sources, replicas, files=listing, each=each)
            return taken

        begin = time.perf_counter()
        for module, name, put in (
            (planning, "take_inventory", clocked("plan_s", stock)),
            (runner, "make_bins", clocked("bins_s", make_bins)),
            (TaskSize, "bytes_for", lambda *_: RANGE_BYTES),
            (runner, "_judge_groups", judged),
            (runner, "describing_jobs", lambda *_: nullcontext()),
            (ClusterRunner, "scan", clocked("merge_s", ClusterRunner.scan)),
            (Collector, "outcome", clocked("merge_s", Collector.outcome)),
        ):
            stack.enter_context(patch.object(module, name, put))
        result = audit.audit(None, os.fsdecode(_ROOT), split_bytes=RANGE_BYTES)
        took = time.perf_counter() - begin
    summary = result.summary
    large = partitions // 2
    return {
        "files": partitions * FILES_A_PARTITION,
        "partitions": summary.partitions,
        "ranges_of_large_files": large * (LARGE_BYTES // RANGE_BYTES),
        "scans": ranges,
        "tasks": sum(len(packed) for packed in bins),
        "records": summary.records,
        "seconds": took,
        "bytes": peak_resident(os.getpid()),
        "wanted_seconds": MAX_S * partitions // PARTITIONS,
        "wanted_bytes": min(MAX_BYTES, MAX_BYTES * partitions // PARTITIONS + INTERPRETER_BYTES),
        **phases,
        "judge_s": [each.judge_s for each in templates],
    }


def main() -> None:
    """Print what a simulation shows; the status is 1 where a bound was broken."""
    partitions = int(sys.argv[1]) if len(sys.argv) > 1 else PARTITIONS
    found = simulate(partitions)
    print(json.dumps(found, indent=1))
    wanted_s, wanted_bytes = found["wanted_seconds"], found["wanted_bytes"]
    if found["seconds"] > wanted_s or found["bytes"] > wanted_bytes:
        sys.exit(f"wanted at most {wanted_s} s and {wanted_bytes // MIB} MiB")


if __name__ == "__main__":
    main()
