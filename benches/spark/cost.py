"""What an audit on Spark takes by storage and cores, reckoned from measured parts.

`make bench-spark` measures the parts; `benches.spark.pages` writes the page.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

GIB = 1 << 30
TIB = 1 << 40
TASK_BYTES = 1 << 30
CORES = (2, 8, 32)

# What nodes read, in bytes a second.
LOCAL = (
    ("disk, 100 MB/s", 100e6),
    ("network volume, 250 MB/s", 250e6),
    ("SSD or 10 Gbit/s network, 1 GB/s", 1e9),
    ("NVMe, 10 GB/s", 10e9),
)
# An object store gives a connection so much, and a task reads over so many at once.
CONNECTION_BYTES_PER_S = 90e6
CONNECTIONS = 8
OBJECTS = (
    ("object store, 10 Gbit/s network", 1.25e9),
    ("object store, 100 Gbit/s network", 12.5e9),
)
# Of reading through an object store's client instead of a file; TLS included.
OBJECT_CPU_S_PER_GIB = 0.5


@dataclass(frozen=True)
class Parts:
    """What was measured."""

    check_cpu_s_per_gib: float
    task_s: float
    """CPU seconds of a task that does nothing."""
    driver_s_per_file: float
    driver_bytes_per_file: float
    others: tuple[tuple[str, float], ...]
    """CPU seconds a GiB of the other jobs."""
    place: str

    @classmethod
    def of(cls, kept: Any) -> "Parts":
        """Take the parts out of what `make bench-spark` keeps."""
        on = kept["machine"]
        cpu = {case["case"]: case["jobs"]["ottla"]["cpu_s_per_gib"] for case in kept["spark"]}
        checked = next(title for title in cpu if "checked" in title)
        return cls(
            check_cpu_s_per_gib=cpu[checked],
            task_s=kept["task_s"],
            driver_s_per_file=kept["driver"]["seconds"] / kept["driver"]["files"],
            driver_bytes_per_file=kept["driver"]["bytes"] / kept["driver"]["files"],
            others=tuple((title, each) for title, each in cpu.items() if title != checked),
            place=f"{on['cpu']}, Spark {on['spark']}, Java {on['java']}, Python {on['python']}",
        )


@dataclass(frozen=True)
class Cost:
    """Of one TiB on one node."""

    seconds: float
    core_hours: float
    """Cores kept busy or waiting, for as long as it takes."""
    is_bound_by_storage: bool


def cost_of_tib(parts: Parts, cores: int, bytes_per_s: float, cpu_s_per_gib: float) -> Cost:
    """Reckon what a TiB takes one node that reads so fast."""
    reading = TIB / bytes_per_s
    checking = TIB / GIB * cpu_s_per_gib / cores
    starting = TIB / TASK_BYTES * parts.task_s / cores
    seconds = max(reading, checking) + starting
    return Cost(seconds, seconds * cores / 3600, reading > checking)


def _rates() -> Iterator[tuple[str, float, bool]]:
    for name, rate in LOCAL:
        yield name, rate, False
    for name, rate in OBJECTS:
        yield name, rate, True


def _rows(parts: Parts) -> Iterator[str]:
    for name, rate, is_object in _rates():
        cells = []
        for cores in CORES:
            cpu = parts.check_cpu_s_per_gib + (OBJECT_CPU_S_PER_GIB if is_object else 0)
            reached = min(rate, cores * CONNECTIONS * CONNECTION_BYTES_PER_S) if is_object else rate
            cost = cost_of_tib(parts, cores, reached, cpu)
            bound = "storage" if cost.is_bound_by_storage else "cores"
            cells.append(f"{_duration(cost.seconds)}, {cost.core_hours:.3g} core h, {bound}")
        yield f"| {name} | {' | '.join(cells)} |"


def _duration(seconds: float) -> str:
    minutes = seconds / 60
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes:.1f} min" if minutes < 10 else f"{minutes:.0f} min"


_PAGE = """# What an audit on Spark takes

Time of one TiB on one node at level `full`, core hours, and what it waits for. So many nodes with
storage of their own, or before an object store, take that part of the time and the same core hours.

{table}

Reckoned as

```text
seconds    = max(1 TiB / rate, 1,024 × cpu / cores) + 1,024 × task / cores
core hours = seconds × cores / 3,600
```

A price follows from the core hours: 10 of them at 0.05 each are 0.50 a TiB. Where storage is the
bound, fewer cores a node cost less and end at the same time.

## The parts

Measured by `make bench-spark` ({place}), but for the last two, which are assumed:

| part | value |
| --- | --- |
{parts}

## The driver

It lists, plans, and puts together what logs show: {driver}
for a million files in a hundred thousand partitions with a hundred thousand ranges of large files
(`python -m benches.spark.scale`). Asking the storage for its listing comes on top, and so does the
JVM, which starts the tasks.
"""


def page(parts: Parts) -> str:
    """Return the page of the docs."""
    head = " | ".join(f"{count} cores" for count in CORES)
    table = [f"| storage of a node | {head} |", f"| --- |{' --- |' * len(CORES)}", *_rows(parts)]
    rate = f"{CONNECTION_BYTES_PER_S / 1e6:.0f} MB/s a connection, {CONNECTIONS} of them a task"
    values = (
        ("`cpu`, checking files", f"{parts.check_cpu_s_per_gib:.2f} CPU s a GiB"),
        *((f"the same, {title}", f"{each:.2f} CPU s a GiB") for title, each in parts.others),
        ("`task`, which does nothing", f"{parts.task_s * 1000:.0f} CPU ms"),
        ("more `cpu`, for objects", f"{OBJECT_CPU_S_PER_GIB:g} CPU s a GiB"),
        ("`rate`, object store", f"{rate}, at most the network"),
    )
    seconds, size = parts.driver_s_per_file * 1e6, parts.driver_bytes_per_file * 1e6
    return _PAGE.format(
        table="\n".join(table),
        place=parts.place,
        parts="\n".join(f"| {name} | {value} |" for name, value in values),
        driver=f"{seconds:.0f} s and {size / (1 << 20):.0f} MiB of Python memory",
    )
