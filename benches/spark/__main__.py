"""`make bench-spark`: what Ottla does on Spark beside aiokafka in the same tasks."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from benches.data import MIB, Shape
from benches.peers import OURS
from benches.peers.maven import missing as missing_java
from benches.spark.cost import Parts, page
from benches.spark.data import captured, segments, warm
from benches.spark.processes import jvm_of
from benches.table import machine
from benches.worker import ROOT

if TYPE_CHECKING:
    from benches.spark.cases import Found, Memory

_MARK = {True: "yes", False: "**no**", None: ""}
_SPEED = """# Speed on Spark

`make bench-spark`: every job and its peer in one run, in turn, in a session of `ottla.spark` on two
cores. aiokafka has tasks of the same kind, in which it reads whole batches and checks their CRC.
CPU seconds are those of the JVM, the Python workers and the driver's Python together; those of
the prototype were measured before, by themselves.
"""


def place(spark: Any, cores: int) -> dict[str, str]:
    """Tell what the figures hold for."""
    return {
        **machine(),
        "spark": spark.version,
        "java": spark._jvm.java.lang.System.getProperty("java.version"),
        "pyarrow": version("pyarrow"),
        "cores": str(cores),
    }


def _targets(found: "Found") -> Iterator[tuple[str, float, float, bool]]:
    for base, target in found.case.targets.items():
        ratio = found.ratio(base)
        yield base, target, ratio, ratio >= target


def summary(found: "Found") -> str:
    """Give a case in a line, as soon as it is measured."""
    ratios = (f"{ratio:.2f}× {base}" for base, _, ratio, _ in _targets(found))
    return f"{found.case.title}: {', '.join(ratios)}"


def markdown(all_found: "Sequence[Found]", memory: "Memory | None", on: dict[str, str]) -> str:
    """Give the table as the docs show it."""
    where = (
        f"{on['cpu']}, {on['cores']} cores, level {on['level']}, Spark {on['spark']}, Java "
        f"{on['java']}, Python {on['python']}, pyarrow {on['pyarrow']}, aiokafka {on['aiokafka']}"
    )
    lines = [
        f"{where}; wall clock, medians of the rounds' ratios, page cache warm.",
        "",
        "| case | beside | wanted | found | met |",
        "| --- | --- | --- | --- | --- |",
    ]
    for found in all_found:
        for base, target, ratio, is_met in _targets(found):
            wanted, is_found = (
                (f"≥ {target:.0%}", f"{ratio:.0%}")
                if target < 1
                else (f"≥ {target:g}×", f"{ratio:.1f}×")
            )
            lines.append(
                f"| {found.case.title} | {base} | {wanted} | {is_found} | {_MARK[is_met]} |"
            )
    if memory is not None:
        lines.append(
            f"| {memory.title} | | ≤ {memory.target // MIB} MiB | {memory.peak / MIB:.0f} MiB "
            f"| {_MARK[memory.is_met]} |"
        )
    lines += [
        "",
        "| case | who | GB/s | CPU s a GiB | prototype of ours |",
        "| --- | --- | --- | --- | --- |",
    ]
    for found in all_found:
        for name in found.case.jobs:
            lines.append(
                f"| {found.case.title} | {name} | {found.bytes_per_s(name) / 1e9:.3g} "
                f"| {found.cpu_s_per_gib(name):.2f} "
                f"| {found.case.before if name == OURS else ''} |"
            )
    return "\n".join([*lines, ""])


def as_json(all_found: "Sequence[Found]", memory: "Memory | None", on: dict[str, str]) -> Any:
    """Give everything that was measured, every round included."""
    return {
        "machine": on,
        "spark": [
            {
                "case": found.case.title,
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
        "worker_bytes": None if memory is None else memory.peak,
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


def at_scale(found: Any) -> str:
    """Give the driver's figures at many files as a table."""
    seconds, size = found["seconds"], found["bytes"]
    wanted_s, wanted_size = found["wanted_seconds"], found["wanted_bytes"]
    title = (
        f"driver, {found['files']:,} files in {found['partitions']:,} partitions, "
        f"{found['ranges_of_large_files']:,} ranges of large files"
    )
    met_s, met_size = _MARK[seconds <= wanted_s], _MARK[size <= wanted_size]
    mib = f"≤ {wanted_size // MIB:,} MiB | {size / MIB:.0f} MiB"
    lines = [
        f"| {title} | wanted | found | met |",
        "| --- | --- | --- | --- |",
        f"| seconds | ≤ {wanted_s} | {seconds:.0f} | {met_s} |",
        f"| memory, without the JVM | {mib} | {met_size} |",
    ]
    return "\n".join([*lines, ""])


def write_pages(written: Any, table: str) -> None:
    """Write what the docs tell of speed and cost."""
    for name, text in (
        ("speed.md", f"{_SPEED}\n{table}\n{at_scale(written['driver'])}"),
        ("cost.md", page(Parts.of(written))),
    ):
        (ROOT / "docs" / "spark" / name).write_text(text)
        print(f"written to docs/spark/{name}")


def main() -> None:
    """Measure, print, keep."""
    asked = arguments()
    if (why := missing()) is not None:
        sys.exit(f"not measured on Spark: {why}")
    # It imports what may be missing.
    from benches.spark import cases

    def wants(title: str) -> bool:
        return not asked.words or any(word in title for word in asked.words)

    large = segments(Shape(100), cases.GIB, links=4)
    small = segments(Shape(100), 256 * MIB)
    values = segments(Shape(1024, 100), 512 * MIB)
    sets = {
        f"{size}, Parquet of codec {codec}": captured(Shape(100, count), 256 * MIB, codec=codec)
        for size, count, codec in (
            ("130 KB", 1000, "none"),
            ("130 KB", 1000, "snappy"),
            ("16 KB", 128, "none"),
        )
    }
    warm(large.directory, small.directory, values.directory)
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
        }
        for name, each in sets.items():
            prepare[f"captured verdicts {name}"] = partial(cases.verdicts, spark, each, name)
        for title, case in prepare.items():
            if wants(title):
                all_found.append(cases.measure(case(), jvm_of(spark), asked.rounds))
                print(summary(all_found[-1]), flush=True)
        task_s = cases.task_seconds(spark)
    table = markdown(all_found, memory, on)
    print(f"\n{table}")
    written = as_json(all_found, memory, on) | {"task_s": task_s}
    if not asked.words:
        written["driver"] = cases.driver_at_scale()
        print(at_scale(written["driver"]))
        write_pages(written, table)
    keep(written, on)


if __name__ == "__main__":
    main()
