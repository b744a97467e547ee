"""The tables of `make bench-spark`, and the pages of the docs, from what it keeps.

    python -m benches.spark.pages benches/results/<file>-spark.json [...]

writes the pages again; of several files each case is taken from the last that has it.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benches.data import MIB
from benches.peers import AIOKAFKA, ALONE, OURS, READY, READY_SOURCE
from benches.spark.cost import Parts, page
from benches.worker import ROOT

_DOCS = ROOT / "docs" / "spark"
SHARE_OF_BOUND = 0.85
_BROKER = "\n## Beside Spark's Kafka source\n"
_MARK = {True: "yes", False: "**no**", None: ""}
_SPEED = """# Speed on Spark

`make bench-spark`: every job and its peer in one run, in turn, in a session of `ottla.spark` on two
cores. aiokafka has tasks of the same kind, in which it reads whole batches and checks their CRC.
Our jobs go through the same files several times over, so that what Spark takes to start a job, some
tenths of a second, is little beside what either does. CPU seconds are those of the JVM, the Python
workers and the driver's Python together; those of the prototype were measured before, by
themselves.

Rows that become a DataFrame cross from Python into the JVM, which copies each of them twice.
*Ready-made columns* are such rows returned again and again without reading anything. What they
take and what it takes to make columns without Spark (on one core) come together, whoever reads:
their sum is the bound of what can be reached, and 85 % of it the goal. A data source has a bound of
its own: between Python and a query, Spark passes its rows through more iterators than those of
`mapInArrow`, and adds up metrics after every 100 of them. The rows *by a data source* are
ready-made ones that come that way: what a count or a select by `format("ottla")` takes more than by
`ottla.spark.read` is seen there, where nothing is read.

Rows through files instead of Spark's transport were tried: tasks wrote uncompressed Parquet to
memory, and Spark's vectorised reader read it. For 5.6 million records of 100 B that took 3.3 CPU
seconds to 1.5 of `ottla.spark.read` (rounds in turn, two cores, Spark 4.3), so there is no such
engine.

"""


def _targets(written: Any) -> Iterator[str]:
    for case in written["spark"]:
        for base, target in case["targets"].items():
            wanted, found = target["wanted"], target["found"]
            if wanted < 1:
                cells = f"≥ {wanted:.0%} | {found:.0%}"
            else:
                cells = f"≥ {wanted:g}× | {found:.1f}×"
            yield f"| {case['case']} | {base} | {cells} | {_MARK[target['is_met']]} |"
    if (memory := written["memory"]) is not None:
        cells = f"≤ {memory['target'] // MIB} MiB | {memory['peak'] / MIB:.0f} MiB"
        yield f"| {memory['title']} | | {cells} | {_MARK[memory['is_met']]} |"


def _jobs(written: Any) -> Iterator[str]:
    for case in written["spark"]:
        theirs = case["jobs"].get(AIOKAFKA, {}).get("cpu_s_per_gib")
        for name, job in case["jobs"].items():
            cpu = job["cpu_s_per_gib"]
            less = "" if theirs is None else f"{theirs / cpu:.1f}"
            before = case["before"] if name == OURS else ""
            yield (
                f"| {case['case']} | {name} | {job['bytes_per_s'] / 1e9:.3g} | {cpu:.2f} "
                f"| {less} | {before} |"
            )


def _bounds(written: Any) -> Iterator[str]:
    """Yield the share of the bound that rows to a DataFrame reach, in CPU seconds a GiB."""
    for case in written["spark"]:
        cpus = {name: job["cpu_s_per_gib"] for name, job in case["jobs"].items()}
        ready = cpus.get(READY_SOURCE, cpus.get(READY))
        if ready is None or ALONE not in cpus:
            continue
        bound = ready + cpus[ALONE]
        share = bound / cpus[OURS]
        yield (
            f"| {case['case']} | {bound:.2f} | {cpus[OURS]:.2f} | ≥ {SHARE_OF_BOUND:.0%} "
            f"| {share:.0%} | {_MARK[share >= SHARE_OF_BOUND]} |"
        )


def _driver(found: Any) -> Iterator[str]:
    seconds, size = found["seconds"], found["bytes"]
    wanted_s, wanted_size = found["wanted_seconds"], found["wanted_bytes"]
    yield (
        f"| driver, {found['files']:,} files in {found['partitions']:,} partitions, "
        f"{found['ranges_of_large_files']:,} ranges of large files | wanted | found | met |"
    )
    yield "| --- | --- | --- | --- |"
    yield f"| seconds | ≤ {wanted_s} | {seconds:.0f} | {_MARK[seconds <= wanted_s]} |"
    yield (
        f"| memory, without the JVM | ≤ {wanted_size // MIB:,} MiB | {size / MIB:.0f} MiB "
        f"| {_MARK[size <= wanted_size]} |"
    )


def tables(written: Any) -> str:
    """Return what was measured as tables."""
    on = written["machine"]
    where = (
        f"{on['cpu']}, {on['cores']} cores, level {on['level']}, Spark {on['spark']}, Java "
        f"{on['java']}, Python {on['python']}, pyarrow {on['pyarrow']}, aiokafka {on['aiokafka']}"
    )
    lines = [
        f"{where}.",
        "",
        "Wall clock, medians of the rounds' ratios, page cache warm. Other work on the machine:",
        f"load average {on['load']} when it began; CPU seconds grow with it, too.",
        "",
        "| case | beside | wanted | found | met |",
        "| --- | --- | --- | --- | --- |",
        *_targets(written),
        "",
        "| case | who | GB/s | CPU s a GiB | × less than aiokafka | prototype |",
        "| --- | --- | --- | --- | --- | --- |",
        *_jobs(written),
    ]
    if bounds := list(_bounds(written)):
        lines += [
            "",
            "| case | bound, CPU s a GiB | ottla | wanted | found | met |",
            "| --- | --- | --- | --- | --- | --- |",
            *bounds,
        ]
    if "driver" in written:
        lines += ["", *_driver(written["driver"])]
    return "\n".join([*lines, ""])


def write_pages(written: Any) -> None:
    """Write what the docs tell of speed and cost; what `make bench-kafka` wrote stays."""
    speed = _DOCS / "speed.md"
    _, heading, section = speed.read_text().partition(_BROKER)
    for path, text in (
        (speed, _SPEED + tables(written) + heading + section),
        (_DOCS / "cost.md", page(Parts.of(written))),
    ):
        path.write_text(text)
        print(f"written to docs/spark/{path.name}")


def write_section(text: str) -> None:
    """Write what the docs tell of the speed beside Spark's Kafka source."""
    speed = _DOCS / "speed.md"
    before, _, _ = speed.read_text().partition(_BROKER)
    speed.write_text(f"{before}{_BROKER}\n{text}")
    print(f"written to docs/spark/{speed.name}")


def merged(kept: list[Any]) -> Any:
    """Return what several runs measured as one."""
    cases = {case["case"]: case for each in kept for case in each["spark"]}
    whole: dict[str, Any] = {"memory": None}
    for each in kept:
        whole |= {name: value for name, value in each.items() if value is not None}
    loads = sorted({each["machine"]["load"] for each in kept}, key=float)
    load = " to ".join(dict.fromkeys((loads[0], loads[-1])))
    return whole | {
        "spark": list(cases.values()),
        "machine": {**whole["machine"], "load": load},
    }


def main() -> None:
    """Write the pages from files of results."""
    write_pages(merged([json.loads(Path(name).read_text()) for name in sys.argv[1:]]))


if __name__ == "__main__":
    main()
