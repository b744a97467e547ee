"""The result of an audit as text: the verdict first, then what matters, worst first.

A log directory may hold thousands of partitions and findings, a screen holds two dozen lines. So
topics with findings come first, findings of one kind stand together, and what is left out is
counted. Piped, the text is the same without colours, and names of files are never cut.
"""

from __future__ import annotations

import math
import os
import textwrap
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from ottla.audit.explain import catalogue, commands
from ottla.audit.findings import SEVERITIES, UNREADABLE, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.audit import AuditResult

PLACES_SHOWN = 3

# The overview takes what a screen leaves beside the verdict and the first findings.
TOPICS_SHOWN = range(6, 20)
LINES_FOR_FINDINGS = 18

# On a narrower terminal the overview leaves columns out.
NARROW = 60

_UNITS = ("B", "kB", "MB", "GB", "TB")
_STYLES: dict[str, str] = {"error": "bold red", "warning": "bold yellow", "info": "cyan"}


@dataclass(slots=True)
class _Topic:
    """A line of the overview."""

    name: str
    partitions: set[Any]
    batches: int = 0
    records: int = 0
    size: int = 0
    worst: Severity | None = None


class _Console(Console):
    """A console that leaves it to the program what a closed pipe means."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def print_report(result: AuditResult) -> None:
    """Prints the report of an audit to standard output.

    Raises:
        BrokenPipeError: nobody reads it any more.
    """
    console = _Console(highlight=False, markup=False, emoji=False)
    console.print(_verdict(result))
    if len(result.files):
        _print_scope(console, result)
    topics = _topics(result)
    if topics:
        console.print()
        _print_topics(console, topics)
    for severity in SEVERITIES:
        findings = [f for f in result.findings if f["severity"] == severity]
        findings.sort(key=lambda f: str(f["name"]))
        if findings and severity == "info":
            console.print()
        for name, group in groupby(findings, key=lambda f: str(f["name"])):
            if severity == "info":
                _print_in_short(console, name, list(group))
            else:
                console.print()
                _print_group(console, result, severity, name, list(group))
    if len(result.findings):
        _print_wrapped(
            console, "`ottla explain NAME` tells more; --format json or --output DIR has it all."
        )


def _verdict(result: AuditResult) -> Text:
    not_read = result.summary.not_read
    counts = dict(result.summary.findings)
    counts["error"] -= not_read
    grave = [f for f in result.findings if f["severity"] != "info" and f["name"] != UNREADABLE]
    places = {(f["topic"], f["partition"]) for f in grave}
    where = f"{len(places)} of {_count(result.summary.partitions, 'partition')}"
    said = " and ".join(_count(counts[s], s) for s in ("error", "warning") if counts[s])
    if not_read:
        rest = f"; in the rest {said}" if said else ""
        return Text(f"INCOMPLETE: {_count(not_read, 'thing')} could not be read{rest}", "bold red")
    if counts["error"]:
        return Text(f"DAMAGED: {said} in {where}", "bold red")
    if counts["warning"]:
        return Text(f"SUSPECT: {said} in {where}", "bold yellow")
    return Text("SOUND: no error and no warning", "bold green")


def _print_scope(console: Console, result: AuditResult) -> None:
    summary = result.summary
    speed = f", {_size(summary.bytes / result.elapsed_s)}/s" if result.elapsed_s >= 1 else ""
    level = "" if result.level == "full" else f" at level {result.level}"
    directory = f"{_from_here(result.directory)}:"
    scope = (
        f"{_count(summary.partitions, 'partition')},"
        f" {_count(summary.batches, 'batch', 'batches')}, {_count(summary.records, 'record')},"
        f" {_size(summary.bytes)} in {result.elapsed_s:.2f} s{speed}{level}"
    )
    if len(directory) + len(scope) < console.width:
        console.print(f"{directory} {scope}")
    else:
        console.print(directory, soft_wrap=True)
        _print_wrapped(console, scope, 2)


def _topics(result: AuditResult) -> list[_Topic]:
    """The topics, those with the gravest findings first."""
    topics: dict[str, _Topic] = {}
    for file in result.files:
        if not file["is_read"] or file["topic"] is None:
            continue
        topic = topics.setdefault(file["topic"], _Topic(file["topic"], set()))
        topic.partitions.add(os.path.dirname(file["file"]))
        topic.batches += file["batches"]
        topic.records += file["records"]
        topic.size += file["size"]
    for finding in result.findings:
        found = topics.get(finding["topic"])
        if found is None:
            continue
        severity = finding["severity"]
        if found.worst is None or SEVERITIES.index(severity) < SEVERITIES.index(found.worst):
            found.worst = severity
    rank = {severity: index for index, severity in enumerate(SEVERITIES)}
    return sorted(topics.values(), key=lambda t: (rank[t.worst] if t.worst else len(rank), t.name))


def _print_topics(console: Console, topics: Sequence[_Topic]) -> None:
    lines = console.height - LINES_FOR_FINDINGS
    shown = topics[: min(max(lines, TOPICS_SHOWN.start), TOPICS_SHOWN.stop)]
    is_narrow = console.width < NARROW
    heads = f"{'records':>9}  {'size':>6}  worst"
    if not is_narrow:
        heads = f"{'partitions':>10}  {'batches':>9}  {heads}"
    # A longer name pushes its numbers aside; names are not cut.
    width = min(max(len(topic.name) for topic in shown), max(console.width - len(heads) - 4, 5))
    console.print(f"{'topic':<{width}}  {heads}", style="dim", soft_wrap=True)
    for topic in shown:
        cells = f"{topic.records:>9,}  {_size(topic.size):>6}  "
        if not is_narrow:
            cells = f"{len(topic.partitions):>10,}  {topic.batches:>9,}  {cells}"
        worst = (topic.worst, _STYLES[topic.worst]) if topic.worst else "-"
        line = Text.assemble(f"{topic.name:<{width}}  {cells}", worst)
        console.print(line, soft_wrap=True)
    rest = topics[len(shown) :]
    if rest:
        grave = [t for t in rest if t.worst in ("error", "warning")]
        said = f", {len(grave)} of them with errors or warnings" if grave else ""
        console.print(f"and {_count(len(rest), 'more topic')}{said}")


def _print_group(
    console: Console,
    result: AuditResult,
    severity: Severity,
    name: str,
    findings: Sequence[dict[str, Any]],
) -> None:
    """Findings of one name: what it is, where, what to do."""
    explanation = catalogue().get(name)
    count = f" ({len(findings):,})" if len(findings) > 1 else ""
    meaning = f": {explanation.meaning}" if explanation else ""
    _print_title(console, severity, name, f"{count}{meaning}")
    for finding in findings[:PLACES_SHOWN]:
        _print_place(console, finding, is_told=severity == "error" or len(findings) == 1)
    if len(findings) > PLACES_SHOWN:
        _print_wrapped(console, f"and {len(findings) - PLACES_SHOWN:,} more", 2)
    if explanation:
        _print_wrapped(console, f"What to do: {explanation.action}", 2)
    for line in commands(findings[0], _path(result, findings[0]))[:1]:
        console.print(f"  $ {line}", soft_wrap=True, style="dim")


def _print_in_short(console: Console, name: str, findings: Sequence[dict[str, Any]]) -> None:
    """Findings that nothing has to be done about, on a line."""
    places = dict.fromkeys(_partition_or_file(finding) for finding in findings)
    shown = ", ".join([*places][:PLACES_SHOWN])
    more = f" and {len(places) - PLACES_SHOWN:,} more" if len(places) > PLACES_SHOWN else ""
    count = f" ({len(findings):,})" if len(findings) > 1 else ""
    _print_title(console, "info", name, f"{count}: {shown}{more}")


def _print_title(console: Console, severity: Severity, name: str, rest: str) -> None:
    for number, line in enumerate(_wrap(f"{severity} {name}{rest}", console.width)):
        text = Text(line)
        if number == 0:
            text.stylize(_STYLES[severity], 0, len(severity))
            text.stylize("bold", len(severity) + 1, len(severity) + 1 + len(name))
        console.print(text, soft_wrap=True)


def _partition_or_file(finding: dict[str, Any]) -> str:
    file = str(finding["file"])
    return file if finding["topic"] is None else os.path.dirname(file) or file


def _print_place(console: Console, finding: dict[str, Any], *, is_told: bool) -> None:
    """The place on a line that can be copied, and what is there."""
    place = finding["file"] or finding["topic"] or ""
    details = []
    if finding["position"] is not None:
        details.append(f"position {finding['position']}")
    if finding["first_offset"] is not None:
        details.append(_offsets(finding["first_offset"], finding["last_offset"]))
    console.print("  " + ", ".join([place, *details]), soft_wrap=True)
    if is_told:
        _print_wrapped(console, finding["message"].removeprefix(f"{place}: "), 4)


def _print_wrapped(console: Console, text: str, indent: int = 0) -> None:
    for line in _wrap(text, console.width - indent):
        console.print(" " * indent + line, soft_wrap=True)


def _wrap(text: str, width: int) -> list[str]:
    """Lines of whole words: names and options are not cut at their hyphens."""
    width = max(width, 20)
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _path(result: AuditResult, finding: dict[str, Any]) -> str | None:
    """The finding's file as a path from here, None when no shell could open it by that name."""
    if finding["file"] is None:
        return None
    path = _from_here(os.path.join(result.directory, finding["file"]))
    return path if os.path.exists(path) else None


def _from_here(path: str) -> str:
    """The path from the working directory where it lies below, else the absolute one."""
    relative = os.path.relpath(path)
    return path if relative.split(os.sep, 1)[0] == os.pardir else relative


def _offsets(first: int, last: int | None) -> str:
    return f"offset {first}" if last is None or last == first else f"offsets {first} to {last}"


def _count(number: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> _count(1, "batch", "batches"), _count(1200, "batch", "batches")
    ('1 batch', '1,200 batches')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def _size(size: float) -> str:
    """Bytes in the unit that leaves the fewest digits.

    >>> _size(999), _size(146_993), _size(2_000_000_000)
    ('999 B', '147 kB', '2.0 GB')
    """
    step = 1000
    power = min(int(math.log(size, step)) if size >= 1 else 0, len(_UNITS) - 1)
    scaled = size / step**power
    digits = 1 if power and scaled < 10 else 0  # noqa: PLR2004
    return f"{scaled:.{digits}f} {_UNITS[power]}"
