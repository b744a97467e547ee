"""`make bench`: the speed table of each level of kernels, its JSON, and its chart."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

from benches.cases import CASES, JAVA_CASES, LARGE, Case, Outcome, run, run_beside_java
from benches.chart import Bar, draw
from benches.machine import demand_release, kernels, machine
from benches.peers import AIOKAFKA, JAVA, OURS, READ, STORED, VALIDATE
from benches.peers.maven import missing
from benches.whole import Measure, measures
from benches.worker import ROOT, WorkerError

# The kernels that most CPUs run.
LEVELS = ("avx512", "bmi2")

_VERDICT = {True: "yes", False: "**no**", None: ""}


def _of_peer(outcome: Outcome, peer: str) -> str:
    return (
        f"{peer} {outcome.ratio(peer):.2f}× "
        f"({outcome.bytes_per_s(peer) / 1e9:.3g} GB/s, {outcome.records_per_s(peer) / 1e6:.3g} M/s)"
    )


def say(outcome: Outcome) -> None:
    """Print one race: ours, then how many times faster than each peer."""
    case = outcome.case
    speed = outcome.bytes_per_s(OURS) / 1e9
    wanted = "" if case.target is None else f", wanted {case.target:g}×"
    print(
        f"{case.title}, {case.size_name}: {outcome.ratio(case.base):.2f}× {case.base}{wanted}; "
        f"{speed:.3g} GB/s, {outcome.records_per_s(OURS) / 1e6:.3g} M records/s"
    )
    for peer in outcome.times:
        if peer != OURS:
            print(f"    {_of_peer(outcome, peer)}")
    for peer, why in outcome.absent.items():
        print(f"    {peer}: absent, {why}")
    sys.stdout.flush()


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return " | | "
    target = outcome.case.target
    wanted = "–" if target is None else f"≥ {target:g}"
    verdict = _VERDICT[outcome.is_met]
    if outcome.met_by == READ:
        verdict += f", {outcome.ratio(READ):.2f} of a {READ}"
    return f"{wanted} | {outcome.ratio(outcome.case.base):.2f} | {verdict}"


def _rows(outcomes: Iterable[Outcome]) -> dict[str, dict[str, Outcome]]:
    rows: dict[str, dict[str, Outcome]] = {}
    for outcome in outcomes:
        size = "large" if outcome.case.size == LARGE else "small"
        rows.setdefault(f"{outcome.case.title}, × {outcome.case.base}", {})[size] = outcome
    return rows


def markdown(outcomes: Sequence[Outcome], whole: Sequence[Measure], on: dict[str, str]) -> str:
    """Return the table as the README shows it."""
    place = f"{on['cpu']}, level {on['level']}, Python {on['python']}, aiokafka {on['aiokafka']}"
    lines = [
        f"{place}; one thread, CPU time, medians of the rounds' ratios.",
        "",
        "| case | 1 MiB: wanted | found | met | 16 MiB: wanted | found | met |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {title} | {_cell(row.get('small'))} | {_cell(row.get('large'))} |"
        for title, row in _rows(outcomes).items()
    ]
    if not whole:
        return "\n".join([*lines, ""])
    lines += ["", "| whole process | wanted | found | met |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {row.title} | {row.target} | {row.found} | {_VERDICT[row.is_met]} |" for row in whole
    ]
    return "\n".join([*lines, ""])


# Whose decision, as the table calls it, and whether the target is asked of it.
_DECIDERS = {
    JAVA: ("Java", False),
    OURS: ("`Leader.append`", True),
    VALIDATE: ("`validate`", True),
    STORED: ("`Leader.append(…).stored`", False),
}


def beside_java(outcomes: Sequence[Outcome]) -> str:
    """Return the table of a leader's decisions beside Java's, a call a batch."""
    lines = [
        "| one batch a call, beside Java | ns a call | GB/s | × Java | wanted | met |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for outcome in outcomes:
        shape, target = outcome.case.shape, outcome.case.target or 0
        for peer, (name, is_asked) in _DECIDERS.items():
            times = outcome.times[peer]
            ratio = times.faster_than(outcome.times[JAVA])
            wanted = f"≥ {target:g} | {_VERDICT[ratio >= target]}" if is_asked else "– | "
            lines.append(
                f"| {shape.records_per_batch} × {shape.value_size} B, {name} "
                f"| {outcome.seconds_per_call(peer) * 1e9:,.0f} "
                f"| {outcome.bytes_per_s(peer) / 1e9:.3g} | {ratio:.2f} | {wanted} |"
            )
    return "\n".join([*lines, ""])


def as_json(outcomes: Sequence[Outcome], whole: Sequence[Measure], on: dict[str, str]) -> Any:
    """Return everything that was measured, every round included."""
    return {
        "machine": on,
        "races": [
            {
                "case": outcome.case.title,
                "size": outcome.case.size,
                "base": outcome.case.base,
                "target": outcome.case.target,
                "is_met": outcome.is_met,
                "met_by": outcome.met_by,
                "absent": outcome.absent,
                "peers": {
                    peer: {
                        "ratio": outcome.ratio(peer),
                        "bytes_per_s": outcome.bytes_per_s(peer),
                        "records_per_s": outcome.records_per_s(peer),
                        "seconds": times.seconds,
                    }
                    for peer, times in outcome.times.items()
                },
            }
            for outcome in outcomes
        ],
        "whole": [
            {"title": row.title, "target": row.target, "is_met": row.is_met, **row.figures}
            for row in whole
        ],
    }


def chart(outcomes: Sequence[Outcome], on: dict[str, str]) -> str:
    """Draw the races against aiokafka."""
    rows = [
        (
            next(iter(row.values())).case.title,
            [
                Bar(outcome.ratio(AIOKAFKA), outcome.case.target, size)
                for size, outcome in sorted(row.items(), reverse=True)
            ],
        )
        for row in _rows(o for o in outcomes if o.case.base == AIOKAFKA).values()
    ]
    return draw(rows, f"{on['cpu']}, aiokafka {on['aiokafka']}, make bench")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benches.table", description=__doc__)
    parser.add_argument("words", nargs="*", help="only cases whose title has one of these words")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-whole", action="store_true", help="leave out audit, start-up, memory")
    parser.add_argument(
        "--scale", type=float, default=1, help="whole processes on so much less data, as 0.1"
    )
    parser.add_argument(
        "--races", action="store_true", help="only races, with the kernels that run here"
    )
    parser.add_argument("--java", action="store_true", help="only a leader's decisions beside Java")
    return parser.parse_args()


def chosen(words: Sequence[str]) -> list[Case]:
    """Return the cases whose title has one of the words; all where there are none."""
    return [case for case in CASES if not words or any(word in case.title for word in words)]


def decisions(rounds: int) -> list[Outcome]:
    """Race the leader's decisions with Java, and print their table.

    Raises:
        WorkerError: there is no Java or Maven, or they cannot build Kafka's side.
    """
    outcomes = [run_beside_java(case, rounds=rounds) for case in JAVA_CASES]
    print(f"\n{beside_java(outcomes)}", flush=True)
    return outcomes


def keep(outcomes: Sequence[Outcome], whole: Sequence[Measure], on: dict[str, str]) -> None:
    """Write everything that was measured into a file of its own."""
    results = ROOT / "benches" / "results"
    results.mkdir(exist_ok=True)
    stamp = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H%M%SZ")
    kept = results / f"{stamp}-{on['revision']}-{on['level']}.json"
    kept.write_text(json.dumps(as_json(outcomes, whole, on), indent=1) + "\n")
    print(f"kept in {kept.relative_to(ROOT)}")


def race_other_levels(words: Sequence[str], rounds: int) -> None:
    """Race with the kernels of other CPUs, each in a process of its own, which prints its table."""
    for level in LEVELS:
        if kernels() == level:
            continue
        command = [sys.executable, "-m", "benches.table", "--races", f"--rounds={rounds}", *words]
        environment = {**os.environ, "OTTLA_KERNELS": level}
        found = [sys.executable, "-c", "from benches.machine import kernels; print(kernels())"]
        if subprocess.check_output(found, env=environment, cwd=ROOT, text=True).strip() != level:
            print(f"not measured: this CPU has no {level}", flush=True)
            continue
        subprocess.run(command, env=environment, cwd=ROOT, check=True)


def main() -> None:
    """Measure, print, keep."""
    asked = arguments()
    if asked.java and (why := missing()) is not None:
        sys.exit(f"not measured beside Java: {why}")
    demand_release()
    if asked.java:
        try:
            keep(decisions(asked.rounds), [], machine())
        except WorkerError as error:
            sys.exit(f"not measured beside Java: {error}")
        return
    on = machine()
    outcomes = []
    for case in chosen(asked.words):
        outcome = run(case, rounds=asked.rounds, every=True)
        say(outcome)
        outcomes.append(outcome)
    whole = [] if asked.no_whole or asked.races or asked.words else list(measures(asked.scale))
    print()
    print(markdown(outcomes, whole, on))
    beside: list[Outcome] = []
    if not asked.words and not asked.races:
        try:
            beside = decisions(asked.rounds)
        except WorkerError as error:
            print(f"not measured beside Java: {error}")
    keep([*outcomes, *beside], whole, on)
    if asked.races:
        return
    if not asked.words:
        (ROOT / "docs").mkdir(exist_ok=True)
        (ROOT / "docs" / "speed.svg").write_text(chart(outcomes, on))
        print("drawn in docs/speed.svg")
    race_other_levels(asked.words, asked.rounds)


if __name__ == "__main__":
    main()
