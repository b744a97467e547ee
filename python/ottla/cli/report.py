"""The report of an audit as text: the verdict first, then the findings, worst first.

A log directory may have thousands of partitions and findings, a screen has two dozen lines. So
findings of one name are grouped with the commands that help, the overview starts with the topics
that have findings, and what is omitted is counted. Piped, the text is the same without colours.
File names are never shortened.
"""

from __future__ import annotations

import math
import os
import textwrap
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from ottla.audit.catalogue.explain import catalogue, causes, commands
from ottla.audit.catalogue.findings import UNREADABLE
from ottla.audit.result.verdict import verdict_of
from ottla.cli.next_start import advice_lines, put_aside_note
from ottla.cli.remedies import Remedies
from ottla.cli.words import shell_path
from ottla.severity import SEVERITIES, Severity
from ottla.storage import store_of
from ottla.words import count, offsets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ottla.audit import AuditResult

PLACES_SHOWN = 3

# Lines of the overview: what the verdict and the first findings leave of a screen.
TOPICS_SHOWN = range(6, 20)
LINES_FOR_FINDINGS = 18

# The overview omits columns on a narrower terminal.
MIN_WIDE_COLUMNS = 60

_UNITS = ("B", "kB", "MB", "GB", "TB")
_STYLES: dict[str, str] = {"error": "bold red", "warning": "bold yellow", "info": "cyan"}


_NEXT_START = "Next start:"

# What a start can do to a partition, worst first, and how severe that is.
_RESTARTS: dict[str, tuple[Severity, str]] = {
    "refuses": ("error", "the broker will not start"),
    "put-aside": ("error", "an empty partition will replace"),
    "ends-early": ("error", "offsets of existing records will be assigned again"),
    "cuts": ("warning", "records will be cut off"),
    "exposes-aborted": ("warning", "read_committed consumers will receive aborted records"),
}


@dataclass(slots=True)
class _Topic:
    """A line of the overview."""

    name: str
    partitions: int = 0
    batches: int = 0
    records: int = 0
    size: int = 0
    worst: Severity | None = None


class _Console(Console):
    """A console that raises BrokenPipeError instead of exiting."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def print_report(result: AuditResult) -> None:
    """Prints the report of an audit to standard output.

    Raises:
        BrokenPipeError: the reader has closed the pipe.
    """
    console = _Console(highlight=False, markup=False, emoji=False)
    _print_verdict(console, result)
    if len(result.files):
        _print_scope(console, result)
    groups = _groups(result)
    remedies = Remedies(result)
    for severity, name, findings in groups:
        if severity != "info":
            console.print()
            _print_group(console, result, remedies, severity, name, findings)
    _print_restarts(console, result)
    topics = _topics(result)
    if topics:
        console.print()
        _print_topics(console, topics, is_sound=all(group[0] == "info" for group in groups))
    notes = [*_transactions_note(result), *_gaps_note(result), *put_aside_note(result)]
    if notes or groups:
        console.print()
    for note in notes:
        _print_wrapped(console, note)
    for severity, name, findings in groups:
        # Lawful gaps are already in the sentence about gaps.
        rest = [f for f in findings if not _is_lawful(f["cause"])]
        if severity == "info" and rest:
            _print_one_line(console, name, rest)
    if groups:
        _print_wrapped(
            console, "`ottla explain NAME` explains; --format json or --output DIR has all details."
        )


def _groups(result: AuditResult) -> list[tuple[Severity, str, list[dict[str, Any]]]]:
    """Findings grouped by name, the most severe first."""
    groups = []
    for severity in SEVERITIES:
        with_places = zip(result.findings, result.finding_places, strict=True)
        findings = [{**f, "place": p} for f, p in with_places if f["severity"] == severity]
        findings.sort(key=lambda f: str(f["name"]))
        for name, group in groupby(findings, key=lambda f: str(f["name"])):
            groups.append((severity, name, list(group)))
    return groups


def _print_verdict(console: Console, result: AuditResult) -> None:
    text, style = _verdict(result)
    for line in _wrap(text, console.width):
        console.print(Text(line, style), soft_wrap=True)


def _verdict(result: AuditResult) -> tuple[str, str]:
    """Returns the verdict and its style."""
    not_read = result.summary.not_read
    counts = dict(result.summary.findings)
    counts["error"] -= not_read
    problems = [f for f in result.findings if f["severity"] != "info" and f["name"] != UNREADABLE]
    places = {(f["topic"], f["partition"]) for f in problems}
    where = f"{len(places)} of {count(result.summary.partitions, 'partition')}"
    text = " and ".join(count(counts[s], s) for s in ("error", "warning") if counts[s])
    word = verdict_of(result.summary.findings, not_read)
    if word == "INCOMPLETE":
        rest = f"; in the rest {text}" if text else ""
        return f"{word}: {count(not_read, 'path')} could not be read{rest}", "bold red"
    if word == "SOUND":
        return f"{word}: no error and no warning", "bold green"
    return f"{word}: {text} in {where}", "bold red" if counts["error"] else "bold yellow"


def _print_scope(console: Console, result: AuditResult) -> None:
    summary = result.summary
    speed = f", {_size(summary.bytes / result.elapsed_s)}/s" if result.elapsed_s >= 1 else ""
    level = "" if result.level == "full" else f" at level {result.level}"
    directory = f"{shell_path(result.directory)}:"
    scope = (
        f"{count(summary.partitions, 'partition')},"
        f" {count(summary.batches, 'batch', 'batches')}, {count(summary.records, 'record')},"
        f" {_size(summary.bytes)} in {result.elapsed_s:.2f} s{speed}{level}"
    )
    if len(directory) + len(scope) < console.width:
        console.print(f"{directory} {scope}")
    else:
        console.print(directory, soft_wrap=True)
        _print_wrapped(console, scope, 2)


def _topics(result: AuditResult) -> list[_Topic]:
    """Topics, those with the most severe findings first."""
    topics: dict[str, _Topic] = {}
    before = None
    for file in result.files:
        if not file["is_read"] or file["topic"] is None:
            continue
        topic = topics.setdefault(file["topic"], _Topic(file["topic"]))
        # Files of a partition are consecutive.
        directory = os.path.dirname(file["file"])
        topic.partitions += directory != before
        before = directory
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


def _print_topics(console: Console, topics: Sequence[_Topic], *, is_sound: bool) -> None:
    """Prints the first topics; if anything is wrong, those with errors or warnings."""
    if is_sound:
        lines = console.height - LINES_FOR_FINDINGS
        shown = topics[: min(max(lines, TOPICS_SHOWN.start), TOPICS_SHOWN.stop)]
    else:
        shown = [t for t in topics if t.worst in ("error", "warning")][: TOPICS_SHOWN.start]
        shown = shown or list(topics[:1])
    is_narrow = console.width < MIN_WIDE_COLUMNS
    heads = f"{'records':>9}  worst" if is_narrow else f"{'records':>9}  {'size':>6}  worst"
    if not is_narrow:
        heads = f"{'partitions':>10}  {'batches':>9}  {heads}"
    # A longer name pushes its numbers to the right; names are not shortened.
    width = min(max(len(topic.name) for topic in shown), max(console.width - len(heads) - 4, 5))
    console.print(f"{'topic':<{width}}  {heads}", style="dim", soft_wrap=True)
    for topic in shown:
        cells = f"{topic.records:>9,}  "
        if not is_narrow:
            partitions = f"{topic.partitions:>10,}  {topic.batches:>9,}  "
            cells = f"{partitions}{cells}{_size(topic.size):>6}  "
        worst = (topic.worst, _STYLES[topic.worst]) if topic.worst else "-"
        line = Text.assemble(f"{topic.name:<{width}}  {cells}", worst)
        console.print(line, soft_wrap=True)
    rest = topics[len(shown) :]
    if rest:
        problems = [t for t in rest if t.worst in ("error", "warning")]
        note = f", {len(problems)} of them with errors or warnings" if problems else ""
        if not (is_sound or problems):
            note = ", all without errors or warnings"
        _print_wrapped(console, f"and {count(len(rest), 'more topic')}{note}")


def _transactions_note(result: AuditResult) -> Iterator[str]:
    """Yields a sentence about the transactions."""
    states = ("committed", "aborted")
    counts = dict.fromkeys(states, 0)
    for row in result.metrics:
        for state in states:
            counts[state] += row[f"{state}_transactions"]
    for row in result.transactions:
        if row["state"] not in states:
            counts[row["state"]] = counts.get(row["state"], 0) + 1
    parts = [f"{count:,} {state}" for state, count in counts.items() if count]
    if parts:
        yield f"Transactions: {', '.join(parts)}."


def _gaps_note(result: AuditResult) -> Iterator[str]:
    """Yields a sentence about offsets that consumers do not receive and need not."""
    offsets: dict[str, int] = {}
    topics: dict[str, dict[str, None]] = {}
    for row in result.gaps:
        if _is_lawful(row["cause"]):
            offsets[row["cause"]] = offsets.get(row["cause"], 0) + row["offsets"]
            topics.setdefault(row["cause"], {})[row["topic"] or row["file"]] = None
    parts = []
    for cause, explanation in causes().items():
        if cause not in offsets:
            continue
        places = [*topics[cause]]
        where = places[0] if len(places) == 1 else f"{len(places):,} topics"
        parts.append(f"{explanation.brief} {offsets[cause]:,} in {where}")
    if parts:
        yield f"Offsets that consumers rightly do not receive: {'; '.join(parts)}."


def _is_lawful(cause: str | None) -> bool:
    return cause is not None and causes()[cause].is_lawful


def _print_group(
    console: Console,
    result: AuditResult,
    remedies: Remedies,
    severity: Severity,
    name: str,
    findings: Sequence[dict[str, Any]],
) -> None:
    """Prints findings of one name: what it means, where it is, what to do."""
    explanation = catalogue().get(name)
    total = f" ({len(findings):,})" if len(findings) > 1 else ""
    meaning = f": {explanation.meaning}" if explanation else ""
    _print_title(console, severity, name, f"{total}{meaning}")
    shown = findings[:PLACES_SHOWN]
    for number, finding in enumerate(shown):
        with_message = number == 0 or (severity == "error" and len(findings) <= PLACES_SHOWN)
        _print_place(console, finding, with_message=with_message)
    if len(findings) > PLACES_SHOWN:
        _print_wrapped(console, f"and {len(findings) - PLACES_SHOWN:,} more", 2)
    if name == "timestamp-suspect":
        _print_retention(console, result, findings)
    actions = remedies.of_all(shown)
    if not actions and (action := _action(result, name, findings)):
        actions = [action]
    for action in actions:
        _print_wrapped(console, f"What to do: {action}", 2)
    for line in _commands(result, remedies, shown):
        style = "dim" if line.startswith("$") else ""
        console.print(f"  {line}", soft_wrap=True, style=style)


def _action(result: AuditResult, name: str, findings: Sequence[dict[str, Any]]) -> str | None:
    """Returns what to do: for the cause, if all findings have the same, else for the finding."""
    actions = {row["action"] for finding in findings for row in _differences(result, finding)}
    if len(actions) == 1:
        return str(actions.pop())
    found = {finding["cause"] for finding in findings}
    if name in ("offset-gap", "missing-segment") and len(found) == 1:
        cause = causes().get(found.pop())
        if cause is not None:
            return cause.action
    explanation = catalogue().get(name)
    return explanation.action if explanation else None


def _commands(
    result: AuditResult, remedies: Remedies, findings: Sequence[dict[str, Any]]
) -> list[str]:
    """Returns commands to copy: all of a single finding, else the one that repairs each."""
    lines = []
    for number, finding in enumerate(findings):
        path = _path(result, finding)
        own = commands(finding, path)
        if finding["name"] == "open-transaction":
            # These take the coordinator's state into account.
            own = list(finding["commands"])
        if len(findings) > 1:
            own = [*own[: number == 0], *_repair(own)]
        saves = [line for row in _differences(result, finding) for line in row["commands"]]
        own = [*saves, *own, *remedies.commands_of(finding)]
        lines += [line for line in dict.fromkeys(own) if line not in lines]
    return [line if line.startswith("#") else f"$ {line}" for line in lines]


def _repair(commands_of_finding: Sequence[str]) -> Sequence[str]:
    """Returns the first command that does not only look, with what has to be read before it."""
    diagnostics = ("ottla ", " find-hanging ", " describe ")
    for number, line in enumerate(commands_of_finding):
        if not line.startswith("#") and not any(word in line for word in diagnostics):
            before = commands_of_finding[number - 1] if number else ""
            is_first = not (before.startswith("#") or " find-hanging " in before)
            return commands_of_finding[number if is_first else number - 1 : number + 1]
    return []


def _differences(result: AuditResult, finding: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the rows of `differences` that belong to a finding."""
    if finding["name"] != "replica-difference":
        return []
    place = ("topic", "partition", "first_offset", "last_offset")
    return [
        row
        for row in result.differences
        if all(row[name] == finding[name] for name in place)
        and finding["replica"] in row["bad_replicas"]
    ]


def _print_retention(
    console: Console, result: AuditResult, findings: Sequence[dict[str, Any]]
) -> None:
    """Prints how the timestamps of segments affect retention, and the record responsible."""
    files = {finding["file"] for finding in findings}
    rows = [row for row in result.timeline if row["retention"] and row["file"] in files]
    for row in rows[:PLACES_SHOWN]:
        when = _date(row["max_timestamp"])
        offset = row["blamed_offset"]
        offset = row["max_timestamp_offset"] if offset is None else offset
        effect = {
            "held-back": f"offset {offset} has a timestamp of {when}: retention by time keeps this"
            " segment and all later ones until then",
            "expires-at-once": f"its newest record, at offset {offset}, has a timestamp of {when}:"
            " retention by time deletes the segment at its next check",
            "by-file-time": "no timestamp is positive: retention uses the time of the last"
            " modification of the file",
        }[row["retention"]]
        _print_wrapped(console, f"{row['file']}: {effect}", 4)


def _date(timestamp: int) -> str:
    """The date of a timestamp, or its number if it is out of range."""
    try:
        moment = datetime.fromtimestamp(timestamp / 1000, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return f"timestamp {timestamp}"
    return f"{moment:%Y-%m-%d}"


def _print_restarts(console: Console, result: AuditResult) -> None:
    """Prints what the next start of the broker does to partitions, one sentence per outcome."""
    rows = [row for row in result.recovery if row["is_next"] and row["outcome"] in _RESTARTS]
    if rows:
        console.print()
    for outcome, (severity, meaning) in _RESTARTS.items():
        found = [row for row in rows if row["outcome"] == outcome]
        if not found:
            continue
        shown = ", ".join(f"{r['directory']} ({_restart_text(r)})" for r in found[:PLACES_SHOWN])
        more = f" and {len(found) - PLACES_SHOWN:,} more" if len(found) > PLACES_SHOWN else ""
        # Nothing but a file that is written helps those that are put aside.
        action = f" {found[0]['action']}." if outcome == "put-aside" else ""
        sentence = f"{_NEXT_START} {meaning}: {shown}{more}.{action}"
        for number, line in enumerate(_wrap(sentence, console.width)):
            text = Text(line)
            if number == 0:
                text.stylize(_STYLES[severity], 0, len(_NEXT_START))
            console.print(text, soft_wrap=True)
    for line in advice_lines(result):
        if line.startswith("$"):
            console.print(f"  {line}", soft_wrap=True, style="dim")
        else:
            _print_wrapped(console, line, 2)


def _restart_text(row: dict[str, Any]) -> str:
    """What a start does to a partition, in a few words."""
    if not row["opens"]:
        return f"{row['error'].rpartition('.')[2]}: {row['message'].rstrip('.')}"
    parts = [f"ends at {row['log_end_offset']}"]
    if row["offsets_lost"]:
        parts[0] += f" instead of {row['log_end_offset'] + row['offsets_lost']}"
    if row["segments_deleted"]:
        parts.append(f"{count(len(row['segments_deleted']), 'segment')} deleted")
    if row["exposed_transactions"]:
        parts.append(count(row["exposed_transactions"], "transaction"))
    return ", ".join(parts)


def _print_one_line(console: Console, name: str, findings: Sequence[dict[str, Any]]) -> None:
    """Prints findings that need no action on one line."""
    places = dict.fromkeys(finding["place"] for finding in findings)
    shown = ", ".join([*places][:PLACES_SHOWN])
    more = f" and {len(places) - PLACES_SHOWN:,} more" if len(places) > PLACES_SHOWN else ""
    total = f" ({len(findings):,})" if len(findings) > 1 else ""
    _print_title(console, "info", name, f"{total}: {shown}{more}")


def _print_title(console: Console, severity: Severity, name: str, rest: str) -> None:
    for number, line in enumerate(_wrap(f"{severity} {name}{rest}", console.width)):
        text = Text(line)
        if number == 0:
            text.stylize(_STYLES[severity], 0, len(severity))
            text.stylize("bold", len(severity) + 1, len(severity) + 1 + len(name))
        console.print(text, soft_wrap=True)


def _print_place(console: Console, finding: dict[str, Any], *, with_message: bool) -> None:
    """Prints the place on a line that can be copied, then the message."""
    place = finding["file"] or finding["topic"] or ""
    details = []
    if finding["position"] is not None:
        details.append(f"position {finding['position']}")
    if finding["first_offset"] is not None:
        details.append(offsets(finding["first_offset"], finding["last_offset"]))
    if finding["severity"] == "error" and finding["next_good_offset"] is not None:
        details.append(f"next good offset {finding['next_good_offset']}")
    console.print("  " + ", ".join([place, *details]), soft_wrap=True)
    if with_message:
        _print_wrapped(console, finding["message"].removeprefix(f"{place}: "), 4)


def _print_wrapped(console: Console, text: str, indent: int = 0) -> None:
    for line in _wrap(text, console.width - indent):
        console.print(" " * indent + line, soft_wrap=True)


def _wrap(text: str, width: int) -> list[str]:
    """Wraps text between words: names and options are not split at hyphens."""
    width = max(width, 20)
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _path(result: AuditResult, finding: dict[str, Any]) -> str | None:
    """Returns the path of the finding's file, None if no shell could open it by that path."""
    if finding["file"] is None:
        return None
    path = shell_path(os.path.join(result.directory, finding["file"]))
    return path if store_of(os.fsencode(path)) or os.path.exists(path) else None


def _size(size: float) -> str:
    """A size in bytes in the unit with the fewest digits.

    >>> _size(999), _size(146_993), _size(2_000_000_000)
    ('999 B', '147 kB', '2.0 GB')
    """
    step = 1000
    power = min(int(math.log(size, step)) if size >= 1 else 0, len(_UNITS) - 1)
    scaled = size / step**power
    digits = 1 if power and scaled < 10 else 0  # noqa: PLR2004
    return f"{scaled:.{digits}f} {_UNITS[power]}"
