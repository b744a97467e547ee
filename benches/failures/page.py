"""The page of the results: `docs/client/failures.md`."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from benches.failures.client import OK, TIMEOUT_MS
from benches.failures.real import KAFKA_RELEASE, WITHOUT_FAULTS
from benches.failures.scenarios import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benches.failures.results import Results
    from benches.failures.scenarios import Observed, Scenario

PAGE = Path(__file__).resolve().parents[2] / "docs" / "client" / "failures.md"

_WIDE = 120


def _anchor(title: str) -> str:
    return "".join(
        each for each in title.lower().replace(" ", "-") if each.isalnum() or each == "-"
    )


def _linked(names: Sequence[str]) -> str:
    titles = [SCENARIOS[name].title for name in names]
    return "; ".join(f"[{title}](#{_anchor(title)})" for title in titles)


_HEAD = f"""# What clients do when something fails

The same {len(SCENARIOS)} failures, with the clients that many programs use. `make bench-failures`
measures them and writes this page from `benches/failures/results.json`; nothing in its tables is
written by hand.

Each client runs in a process of its own and takes the same steps. The broker is Ottla's, with
Kafka's own verdicts (`profile="kafka"`) wherever a section does not say otherwise. Its faults are
set through `ottla.testing`; what is cut or damaged on its way is so by a proxy. What is in the log
is read from the broker, not from the client. Every client has the same time-out of
{TIMEOUT_MS // 1000} s for deliveries and for calls, acknowledgements by all replicas, and
idempotence where a section does not say otherwise; [Settings](#settings) has the rest, and all that
is not there is the client's default. *At once* is clearly before the time-out, *never* means no
answer within four times as long.

Those that need no fault do the same with Apache Kafka {KAFKA_RELEASE} as the broker, which a test
holds them to: {_linked(WITHOUT_FAULTS)}.

A wish is what a program would have of its client. Some of them no specification demands, and a
client that leaves one open may do so for good reasons, or by its documentation: read the section
before the count.
"""


def page(results: Results) -> str:
    """Return the page."""
    parts = [_HEAD, *_overview(results)]
    for name, scenario in SCENARIOS.items():
        if name in results.observed:
            parts.append(_section(scenario, results.observed[name]))
    parts.append(_settings(results))
    return "\n".join(parts)


def _overview(results: Results) -> Iterator[str]:
    clients = list(results.clients)
    rows = [
        [f"[{scenario.title}](#{_anchor(scenario.title)})", *_counts(scenario, results, clients)]
        for name, scenario in SCENARIOS.items()
        if name in results.observed
    ]
    versions = [f"{client} {results.clients[client]['version']}" for client in clients]
    yield "## Wishes met\n"
    yield _table(["failure", *versions], rows)


def _counts(scenario: Scenario, results: Results, clients: Sequence[str]) -> Iterator[str]:
    for client in clients:
        seen = results.observed[scenario.name].get(client)
        if seen is None:
            yield "–"
            continue
        met = sum(wish.is_met(seen) for wish in scenario.wishes)
        yield "all" if met == len(scenario.wishes) else f"{met} of {len(scenario.wishes)}"


def _section(scenario: Scenario, observed: dict[str, Observed]) -> str:
    story = scenario.story
    if scenario.profile != "kafka":
        story += (
            f" The broker's profile is `{scenario.profile}`: Kafka itself answers so in its older "
            "releases only."
        )
    wishes = [
        [wish.text, *("yes" if wish.is_met(seen) else "**no**" for seen in observed.values())]
        for wish in scenario.wishes
    ]
    shown = [
        (title, [_show(seen, title) for seen in observed.values()])
        for title in ("told", "calls", "in the log", "read", "time")
    ]
    rows = [[title, *cells] for title, cells in shown if any(cells)]
    return "\n".join(
        [
            f"## {scenario.title}\n",
            f"{textwrap.fill(story, _WIDE)}\n",
            _table(["", *observed], [*wishes, *rows]),
        ]
    )


def _show(seen: Observed, title: str) -> str:
    """Return what was observed, for a cell."""
    if title == "told":
        return _grouped(seen.told)
    if title == "calls":
        return "; ".join(f"{call}: {_code(outcome)}" for call, outcome in seen.calls.items())
    if title == "in the log":
        return " ".join(seen.stored)
    if title == "read":
        return " ".join(seen.read)
    return seen.time


def _grouped(told: Sequence[str]) -> str:
    """Return outcomes with the indexes of the records that have them."""
    by_outcome: dict[str, list[str]] = {}
    for index, outcome in enumerate(told):
        by_outcome.setdefault(outcome, []).append(str(index))
    if len(by_outcome) <= 1:
        return "".join(map(_code, by_outcome))
    return "; ".join(f"{' '.join(which)}: {_code(each)}" for each, which in by_outcome.items())


def _code(outcome: str) -> str:
    return outcome if outcome == OK else f"`{outcome}`"


def _settings(results: Results) -> str:
    parts = ["## Settings\n"]
    for client, about in results.clients.items():
        parts.append(f"- {client} {about['version']}")
        for what in ("producer", "consumer"):
            given = ", ".join(f"`{name}={value}`" for name, value in about.get(what, {}).items())
            parts.append(f"  - {what}: {given or 'its defaults'}")
    return "\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
