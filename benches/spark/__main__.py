"""`make bench-spark`: what Ottla does on Spark beside aiokafka in the same tasks."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from benches.data import MIB, Shape
from benches.machine import demand_release, machine
from benches.peers.maven import missing as missing_java
from benches.spark.data import captured, segments, warm
from benches.spark.pages import tables, write_pages
from benches.spark.processes import jvm_of
from benches.worker import ROOT

if TYPE_CHECKING:
    from benches.data import Compression
    from benches.spark.cases import Found, Memory

CODECS: "tuple[Compression, ...]" = ("snappy", "lz4", "zstd", "gzip")


def place(spark: Any, cores: int) -> dict[str, str]:
    """Describe what the figures hold for."""
    return {
        **machine(),
        "spark": spark.version,
        "java": spark._jvm.java.lang.System.getProperty("java.version"),
        "pyarrow": version("pyarrow"),
        "cores": str(cores),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _targets(found: "Found") -> Iterator[tuple[str, float, float, bool]]:
    for base, target in found.case.targets.items():
        ratio = found.ratio(base)
        yield base, target, ratio, ratio >= target


def summary(found: "Found") -> str:
    """Return a case in a line, as soon as it is measured."""
    ratios = (f"{ratio:.2f}× {base}" for base, _, ratio, _ in _targets(found))
    return f"{found.case.title}: {', '.join(ratios)}"


def as_json(all_found: "Sequence[Found]", memory: "Memory | None", on: dict[str, str]) -> Any:
    """Return everything that was measured, every round included."""
    return {
        "machine": on,
        "spark": [
            {
                "case": found.case.title,
                "before": found.case.before,
                "targets": {
                    base: {"wanted": target, "found": ratio, "is_met": is_met}
                    for base, target, ratio, is_met in _targets(found)
                },
                "jobs": {
                    name: {
                        "size": job.size,
                        "bytes_per_s": found.bytes_per_s(name),
                        "cpu_s_per_gib": found.cpu_s_per_gib(name),
                        "wall_s": found.walls[name].seconds,
                        "cpu_s": found.cpus[name],
                    }
                    for name, job in found.case.jobs.items()
                },
            }
            for found in all_found
        ],
        "memory": None if memory is None else asdict(memory) | {"is_met": memory.is_met},
    }


def keep(written: Any, on: dict[str, str]) -> None:
    """Write everything that was measured into a file of its own."""
    results = ROOT / "benches" / "results"
    results.mkdir(exist_ok=True)
    stamp = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H%M%SZ")
    kept = results / f"{stamp}-{on['revision']}-spark.json"
    kept.write_text(json.dumps(written, indent=1) + "\n")
    print(f"kept in {kept.relative_to(ROOT)}")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benches.spark", description=__doc__)
    parser.add_argument("words", nargs="*", help="only cases whose title has one of these words")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def missing() -> str | None:
    """Say what the measurement needs and is not here; nothing where all of it is."""
    for package in ("pyspark", "pyarrow", "pandas", "aiokafka"):
        if find_spec(package) is None:
            return f"no {package}: pip install -r constraints.txt"
    if not sys.platform.startswith("linux"):
        return "CPU seconds of a process tree are read from /proc, which Linux has"
    why = missing_java()
    # What Maven builds is not needed here.
    return None if why is None or "Maven" in why else why


def main() -> None:
    """Measure, print, keep."""
    asked = arguments()
    demand_release()
    if (why := missing()) is not None:
        sys.exit(f"not measured on Spark: {why}")
    # It imports what may be missing.
    from benches.spark import cases

    def wants(title: str) -> bool:
        return not asked.words or any(word in title for word in asked.words)

    # So large that what a job costs to start, some tenths of a second, is little of its time.
    large = segments(Shape(100), cases.GIB, links=16)
    small = segments(Shape(100), 512 * MIB, links=4)
    values = segments(Shape(1024, 100), 512 * MIB, links=4)
    sets = {
        f"{size}, Parquet of codec {codec}": captured(
            Shape(100, count), 1024 * MIB, codec=codec, links=4
        )
        for size, count, codec in (
            ("130 KB", 1000, "none"),
            ("130 KB", 1000, "snappy"),
            ("16 KB", 128, "none"),
        )
    }
    compressed = {
        codec: segments(Shape(100, compression=codec), 64 * MIB, links=4) for codec in CODECS
    }
    warm(large.directory, small.directory, values.directory)
    warm(*(each.directory for each in compressed.values()))
    warm(*(each.directory for each in sets.values()))
    all_found = []
    memory = None
    with cases.two_cores() as spark:
        on = place(spark, cases.CORES)
        if wants("memory"):
            # First, while no other job has made the workers grow.
            memory = cases.worker_memory(spark, large)
        prepare: dict[str, Callable[[], cases.Case]] = {
            "files checked": lambda: cases.checked(spark, large),
            "records 100 B": lambda: cases.rows(spark, small, "100 B", 4.5, "2.4"),
            "records 1 KiB": lambda: cases.rows(spark, values, "1 KiB", 5, "–"),
            "count": lambda: cases.selected(spark, small, ["offset"]),
            "selects": lambda: cases.selected(spark, small, ["offset", "timestamp"]),
        }
        for codec, each_codec in compressed.items():
            prepare[f"codec {codec}"] = partial(cases.checked_codec, spark, each_codec, codec)
        for name, each in sets.items():
            prepare[f"captured verdicts {name}"] = partial(cases.verdicts, spark, each, name)
            prepare[f"captured split {name}"] = partial(cases.splits, spark, each, name)
            prepare[f"captured rdd {name}"] = partial(cases.partitions, spark, each, name)
        for title, case in prepare.items():
            if wants(title):
                all_found.append(cases.measure(case(), jvm_of(spark), asked.rounds))
                print(summary(all_found[-1]), flush=True)
        task_s = cases.task_seconds(spark)
    written = as_json(all_found, memory, on) | {"task_s": task_s}
    if wants("driver"):
        written["driver"] = cases.driver_at_scale()
    print(f"\n{tables(written)}")
    keep(written, on)
    if not asked.words:
        write_pages(written)


if __name__ == "__main__":
    main()
