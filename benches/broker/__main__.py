"""`make bench-broker`: our broker beside kfake and librdkafka's mock cluster, in one run.

The client sets the rates here, so brokers are told apart by their CPU time, their latency and their
memory. Every round starts each broker anew and takes the cases in turn; ratios are taken round by
round, and the table has their medians.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import ottla.testing

from benches.broker import confluent, raw
from benches.broker.brokers import KFAKE, MOCK, OURS, Serving, build_kfake, missing, serving
from benches.machine import demand_release, machine
from benches.worker import ROOT

MIB = 1 << 20
WIDE = 1000
CONNECTIONS = 100
SINGLES = 2000
RECORDS = {100: 1_000_000, 1024: 300_000}
PAGE = ROOT / "docs" / "broker" / "speed.md"
_PROSE = "## Where the time goes"

Figures = dict[str, float]


@dataclass
class Row:
    """A figure, and what it is held to."""

    title: str
    unit: str
    base: str
    """The broker that it is compared with."""
    wanted: float
    """A bound of the ratio to the base: at least, where more is better."""
    is_more_better: bool = False
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Return the median of the rounds' ratios."""
        return statistics.median(o / t for o, t in zip(self.ours, self.theirs, strict=True))

    @property
    def is_met(self) -> bool:
        """Tell whether the ratio is within its bound."""
        return self.ratio >= self.wanted if self.is_more_better else self.ratio <= self.wanted


ROWS = {
    "in 100": Row("in, 100 B, linger 5 ms", "k records/s", KFAKE, 0.95, is_more_better=True),
    "in 100 cpu": Row("in, 100 B: broker's CPU", "µs a record", KFAKE, 0.65),
    "out 100": Row("out, 100 B", "k records/s", KFAKE, 0.9, is_more_better=True),
    "out 100 cpu": Row("out, 100 B: broker's CPU", "µs a record", KFAKE, 0.5),
    "in 1024 cpu": Row("in, 1 KiB: broker's CPU", "µs a record", KFAKE, 0.65),
    "raw": Row("one record, raw, median", "µs", KFAKE, 0.75),
    "raw cpu": Row("one record, raw: broker's CPU", "µs", KFAKE, 0.65),
    "confluent": Row("one record, confluent-kafka, linger 0, median", "µs", KFAKE, 0.85),
    "produce wide": Row("produce to 1,000 partitions", "ms", KFAKE, 0.4),
    "fetch wide": Row("fetch of 1,000 partitions", "ms", KFAKE, 0.3),
    "connections": Row("100 connections", "requests/s", KFAKE, 1.0, is_more_better=True),
    "inside": Row("in the client's process: one record, raw, median", "µs", MOCK, 1.5),
    "process": Row("`ottla serve`, to the first answer of ApiVersions", "ms", MOCK, 1.0),
    "own process": Row("`Broker(process=True)`, to the same", "ms", MOCK, 1.0),
}


def _figures_of(broker: Serving) -> Figures:
    """Return what one broker takes, by the keys of rows."""
    found: Figures = {}
    address = broker.host_and_port
    with raw.RawClient(address) as client:
        for topic, partitions in (("one", 1), ("wide", WIDE), ("b100", 1), ("b1024", 1)):
            client.create(topic, partitions)
            client.metadata(topic)
        single = raw.produce_frame("one", [0])
        client.median_s(single, 200)
        before_s = broker.cpu_s
        found["raw"] = client.median_s(single, SINGLES) * 1e6
        found["raw cpu"] = (broker.cpu_s - before_s) / SINGLES * 1e6
        wide = raw.produce_frame("wide", range(WIDE))
        client.ask(wide)
        found["produce wide"] = client.median_s(wide, 15) * 1000
        fetch = raw.fetch_frame("wide", range(WIDE))
        client.ask(fetch)
        found["fetch wide"] = client.median_s(fetch, 15) * 1000
    found["connections"] = raw.requests_per_s(address, single, CONNECTIONS, 20_000)
    found["confluent"] = confluent.median_s(broker.address, "one", 1000) * 1e6
    for size, count in RECORDS.items():
        before_bytes, before_s = broker.resident_bytes, broker.cpu_s
        took_s = confluent.produce(broker.address, f"b{size}", count, size)
        found[f"in {size}"] = count / took_s / 1000
        found[f"in {size} cpu"] = (broker.cpu_s - before_s) / count * 1e6
        found[f"grown {size}"] = broker.resident_bytes - before_bytes
        before_s = broker.cpu_s
        took_s = confluent.consume(broker.address, f"b{size}", count)
        found[f"out {size}"] = count / took_s / 1000
        found[f"out {size} cpu"] = (broker.cpu_s - before_s) / count * 1e6
    return found


def _process_ms(name: str) -> float:
    begin = time.perf_counter()
    with serving(name) as broker, raw.RawClient(broker.host_and_port) as client:
        client.api_versions()
        return (time.perf_counter() - begin) * 1000


def _own_process_ms() -> float:
    begin = time.perf_counter()
    with ottla.testing.Broker(process=True) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with raw.RawClient((host, int(port))) as client:
            client.api_versions()
            return (time.perf_counter() - begin) * 1000


def _inside(name: str) -> Figures:
    command = [sys.executable, "-m", "benches.broker.inside", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT)
    found: Figures = json.loads(done.stdout)
    return found


def measure(rounds: int) -> dict[str, list[Figures]]:
    """Return the figures of each broker, by round."""
    taken: dict[str, list[Figures]] = {OURS: [], KFAKE: [], MOCK: []}
    for number in range(rounds):
        for name in (OURS, KFAKE):
            with serving(name) as broker:
                taken[name].append(_figures_of(broker))
        for name, word in ((OURS, "ours"), (MOCK, "mock")):
            inside = _inside(word)
            figures = {
                "inside": inside["us"],
                "first broker": inside["first_ms"],
                "next brokers": inside["others_ms"],
                "process": statistics.median(_process_ms(name) for _ in range(3)),
            }
            if name == OURS:
                figures["own process"] = statistics.median(_own_process_ms() for _ in range(3))
                taken[name][-1] |= figures
            else:
                figures["own process"] = figures["process"]
                taken[name].append(figures)
        print(f"round {number + 1} of {rounds}", flush=True)
    return taken


def rows_of(taken: dict[str, list[Figures]]) -> list[Row]:
    """Return the rows with what was found."""
    for key, row in ROWS.items():
        row.ours = [figures[key] for figures in taken[OURS]]
        row.theirs = [figures[key] for figures in taken[row.base]]
    return list(ROWS.values())


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the table of ratios."""
    yield "| case | | Ottla | beside it | ratio | wanted | met |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        sign = "≥" if row.is_more_better else "≤"
        yield (
            f"| {row.title} | {row.unit} | {_number(statistics.median(row.ours))} "
            f"| {_number(statistics.median(row.theirs))} ({row.base}) | {row.ratio:.2f} "
            f"| {sign} {row.wanted:g} | {'yes' if row.is_met else '**no**'} |"
        )


def others(taken: dict[str, list[Figures]]) -> Iterator[str]:
    """Yield the lines of what is held to a figure of its own."""

    def median(name: str, key: str) -> float:
        return statistics.median(figures[key] for figures in taken[name])

    yield "| beside a bound of its own | Ottla | kfake | wanted | met |"
    yield "| --- | --- | --- | --- | --- |"
    for size, count in RECORDS.items():
        stored = count * size
        bound = 1.15 * stored + 30 * MIB
        ours, theirs = median(OURS, f"grown {size}"), median(KFAKE, f"grown {size}")
        yield (
            f"| resident growth for {stored / MIB:.0f} MiB of values of {size} B, MiB "
            f"| {ours / MIB:.0f} | {theirs / MIB:.0f} | ≤ {bound / MIB:.0f} "
            f"| {'yes' if ours <= bound else '**no**'} |"
        )
    for key, title in (
        ("next brokers", "`with` to the first acknowledged record, modules loaded, ms"),
        ("first broker", "the same with the first broker of a process, ms"),
    ):
        ours = median(OURS, key)
        met = ("yes" if ours <= 10 else "**no**") if key == "next brokers" else ""
        wanted = "≤ 10" if met else ""
        yield f"| {title} | {ours:.1f} | | {wanted} | {met} |"


def page_of(lines: list[str], on: dict[str, str], prose: str) -> str:
    """Return the page of the docs, with what somebody has written below the tables."""
    place = f"{on['cpu']}, Python {on['python']}, revision {on['revision']}"
    return "\n".join(
        [
            "# Speed of the broker",
            "",
            "`make bench-broker`: brokers as processes of their own, each started anew in every",
            "round, and one client that takes the cases in turn. The client sets the rates, so",
            "brokers are told apart by CPU time, latency and memory. Ratios are taken round by",
            "round; the table has their medians, and the medians of both sides.",
            "",
            f"Measured on two cores, {place}.",
            "",
            *lines,
            "",
            prose,
        ]
    )


def main() -> None:
    """Measure, print, write the page."""
    parser = argparse.ArgumentParser(prog="python -m benches.broker", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args()
    demand_release()
    if (why := missing()) is not None:
        sys.exit(f"not measured: {why}")
    build_kfake()
    # Users have the bytecode of what they import kept; who measures may have turned that off.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    taken = measure(asked.rounds)
    lines = [*table(rows_of(taken)), "", *others(taken)]
    print("\n".join(lines))
    if asked.page:
        _, heading, prose = PAGE.read_text().partition(_PROSE)
        PAGE.write_text(page_of(lines, machine(), heading + prose))


if __name__ == "__main__":
    main()
