"""The report of an audit as text: the verdict and what it means first, then the events.

A log directory may have thousands of partitions and events, a screen has two dozen lines. So events
of one kind are grouped with the commands that help, the overview starts with the topics that have
findings, and what is omitted is counted. Piped, the text is the same without colours. File names
are never shortened.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any

from ottla.audit.catalogue.explain import catalogue, causes, commands
from ottla.audit.catalogue.findings import UNREADABLE
from ottla.cli.page import open_page, whole
from ottla.cli.words import shell_path
from ottla.severity import SEVERITIES, Severity
from ottla.storage import store_of
from ottla.text import visible
from ottla.words import count, listed, moment, offsets, time_span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ottla.audit import AuditResult
    from ottla.audit.result.topics import TopicTotals
    from ottla.cli.page import Page, Span
    from ottla.cli.remedies import Remedies

PLACES_SHOWN = 3

# Lines of the overview: what the verdict and the first findings leave of a screen.
TOPICS_SHOWN = range(6, 20)
LINES_FOR_FINDINGS = 18

# The overview omits columns on a narrower terminal.
MIN_WIDE_COLUMNS = 60

_UNITS = ("B", "kB", "MB", "GB", "TB")
_STYLES: dict[str, str] = {"error": "bold red", "warning": "bold yellow", "info": "cyan"}
_VERDICT_STYLES = {
    "SOUND": "bold green",
    "SUSPECT": "bold yellow",
    "DAMAGED": "bold red",
    "INCOMPLETE": "bold red",
}


class _Topic:
    """A line of the overview."""

    def __init__(self, name: str, totals: TopicTotals) -> None:
        self.name = name
        self.totals = totals
        self.worst: Severity | None = None


class _Section:
    """Events of one kind, with the finding of each that is its cause, and all of its findings."""

    def __init__(self, severity: Severity, name: str, meaning: str) -> None:
        self.severity: Severity = severity
        self.name = name
        self.meaning = meaning
        self.events: list[Mapping[str, Any]] = []
        self.heads: list[dict[str, Any]] = []
        self.others: list[list[dict[str, Any]]] = []


def print_report(result: AuditResult, *, is_complete: bool = False) -> None:
    """Prints the report of an audit to standard output.

    Args:
        result: the result of the audit.
        is_complete: whether to print every event with every finding, instead of a screen.

    Raises:
        BrokenPipeError: the reader has closed the pipe.
    """
    page = open_page()
    sections = _sections(result)
    _print_verdict(page, result, sections)
    if len(result.files):
        _print_scope(page, result)
    if sections or result.advice or len(result.recovery):
        _print_events(page, result, sections, is_complete=is_complete)
    totals = result.topic_totals
    topics = _topics(result, totals)
    is_sound = all(section.severity == "info" for section in sections)
    if topics:
        page.print()
        _print_topics(page, topics, is_sound=is_sound, is_complete=is_complete)
    notes = [*_transactions_note(result, totals)]
    if result.advice:
        from ottla.cli.next_start import put_aside_note

        notes += put_aside_note(result)
    if is_sound or is_complete:
        notes += _gaps_note(result)
    if notes:
        page.print()
    for note in notes:
        _print_wrapped(page, note)
    for section in sections:
        if section.severity == "info" and not is_complete:
            _print_one_line(page, section)
    if sections:
        more = "" if is_complete else "--all lists all, "
        _print_wrapped(page, f"`ottla explain NAME` explains; {more}--format json has details.")


def _sections(result: AuditResult) -> list[_Section]:
    """Events by kind, those of the gravest event first."""
    findings: dict[int, list[dict[str, Any]]] = {}
    for finding, place in zip(result.findings, result.finding_places, strict=True):
        findings.setdefault(finding["event"], []).append({**finding, "place": place})
    sections: dict[tuple[str, str, str | None], _Section] = {}
    for event in result.events:
        own = findings[event["event"]]
        is_lost_end = event["cause"] in ("lost-end", "missing-file", "wrong-checkpoint")
        cause = event["cause"] if is_lost_end else None
        meaning = (causes()[cause] if cause else catalogue()[event["name"]]).meaning
        key = event["severity"], event["name"], cause
        section = sections.setdefault(key, _Section(event["severity"], event["name"], meaning))
        where = (event["name"], event["file"], event["position"])
        head = next(f for f in own if (f["name"], f["file"], f["position"]) == where)
        section.events.append(event)
        section.heads.append(head)
        section.others.append([finding for finding in own if finding is not head])
    return list(sections.values())


def _print_verdict(page: Page, result: AuditResult, sections: Sequence[_Section]) -> None:
    text, style = _verdict(result, sections)
    for line in _wrap(text, page.width):
        page.print(line, whole(line, style))


def _verdict(result: AuditResult, sections: Sequence[_Section]) -> tuple[str, str]:
    """Returns the verdict and its style."""
    summary = result.summary
    not_read = summary.not_read
    counts = dict(summary.events)
    counts["error"] -= sum(event["name"] == UNREADABLE for event in result.events)
    places = {
        head["place"]
        for section in sections
        for head in section.heads
        if section.severity != "info" and head["partition"] is not None
    }
    where = f" in {len(places):,} of {count(summary.partitions, 'partition')}" if places else ""
    text = " and ".join(count(counts[s], s) for s in ("error", "warning") if counts[s])
    left_out = [count(summary.left_out[s], s) for s in SEVERITIES if summary.left_out[s]]
    more = f"; left out: {listed(left_out, len(left_out))}" if left_out else ""
    if not_read:
        rest = f"; in the rest {text}" if text else ""
        said = f"{count(not_read, 'path')} could not be read{rest}"
    elif text:
        said = f"{text}{where}"
    else:
        said = "no error and no warning"
    return f"{summary.verdict}: {said}{more}", _VERDICT_STYLES[summary.verdict]


def _print_events(
    page: Page, result: AuditResult, sections: Sequence[_Section], *, is_complete: bool
) -> None:
    """Prints what is to be said of all events together, then the events of each kind."""
    # Most reports are of sound logs, and take none of it.
    from ottla.cli.remedies import Remedies

    remedies = Remedies(result)
    told = _print_answers(page, result, sections, remedies)
    for section in sections:
        if section.severity != "info" or is_complete:
            page.print()
            _print_section(page, result, remedies, section, told=told, is_complete=is_complete)


def _print_answers(
    page: Page, result: AuditResult, sections: Sequence[_Section], remedies: Remedies
) -> str:
    """Prints what is lost, what the next start does, who is blocked, and what to do first.

    Returns the last of it, which need not be said again.
    """
    from ottla.cli.answers import answers
    from ottla.cli.next_start import advice_lines

    events = {e["event"]: (e, h) for s in sections for e, h in zip(s.events, s.heads, strict=True)}
    heads = {number: head for number, (_, head) in events.items()}
    in_order = [events[number][0] for number in sorted(events)]
    told = ""
    for label, text, severity in answers(result, in_order, heads, remedies):
        told = text
        for number, line in enumerate(_wrap(f"{label}: {text}", page.width)):
            head = (0, len(label) + 1, _STYLES[severity])
            page.print(line, *([head] if number == 0 else []))
    advice = list(advice_lines(result))
    if advice:
        page.print("Before the next start:")
    for line in advice:
        if line.startswith("$"):
            page.print(f"  {line}", whole(f"  {line}", "dim"))
        else:
            _print_wrapped(page, line, 2)
    return told


def _print_scope(page: Page, result: AuditResult) -> None:
    summary = result.summary
    speed = f", {_size(summary.bytes / result.elapsed_s)}/s" if result.elapsed_s >= 1 else ""
    level = "" if result.level == "full" else f" at level {result.level}"
    directory = f"{shell_path(result.directory)}:"
    scope = (
        f"{count(summary.partitions, 'partition')},"
        f" {count(summary.batches, 'batch', 'batches')}, {count(summary.records, 'record')},"
        f" {_size(summary.bytes)} in {result.elapsed_s:.2f} s{speed}{level}"
    )
    if len(directory) + len(scope) < page.width:
        page.print(f"{directory} {scope}")
    else:
        page.print(directory)
        _print_wrapped(page, scope, 2)


def _topics(result: AuditResult, totals: Sequence[TopicTotals]) -> list[_Topic]:
    """Topics, those with the most severe findings first."""
    topics = {each.topic: _Topic(each.topic, each) for each in totals if each.topic is not None}
    for finding in result.findings:
        found = topics.get(finding["topic"])
        if found is None:
            continue
        severity = finding["severity"]
        if found.worst is None or SEVERITIES.index(severity) < SEVERITIES.index(found.worst):
            found.worst = severity
    rank = {severity: index for index, severity in enumerate(SEVERITIES)}
    return sorted(topics.values(), key=lambda t: (rank[t.worst] if t.worst else len(rank), t.name))


def _print_topics(
    page: Page, topics: Sequence[_Topic], *, is_sound: bool, is_complete: bool
) -> None:
    """Prints the first topics; if anything is wrong, those with errors or warnings."""
    if is_complete:
        shown = topics
    elif is_sound:
        lines = page.height - LINES_FOR_FINDINGS
        shown = topics[: min(max(lines, TOPICS_SHOWN.start), TOPICS_SHOWN.stop)]
    else:
        shown = [t for t in topics if t.worst in ("error", "warning")][: TOPICS_SHOWN.start]
        shown = shown or list(topics[:1])
    is_narrow = page.width < MIN_WIDE_COLUMNS
    heads = f"{'records':>9}  worst" if is_narrow else f"{'records':>9}  {'size':>6}  worst"
    if not is_narrow:
        heads = f"{'partitions':>10}  {'batches':>9}  {heads}"
    # A longer name pushes its numbers to the right; names are not shortened.
    width = min(max(len(topic.name) for topic in shown), max(page.width - len(heads) - 4, 5))
    heads = f"{'topic':<{width}}  {heads}"
    page.print(heads, whole(heads, "dim"))
    for topic in shown:
        totals = topic.totals
        cells = f"{totals.records:>9,}  "
        if not is_narrow:
            partitions = f"{totals.partitions:>10,}  {totals.batches:>9,}  "
            cells = f"{partitions}{cells}{_size(totals.bytes):>6}  "
        line = f"{topic.name:<{width}}  {cells}"
        if topic.worst:
            end = len(line) + len(topic.worst)
            page.print(line + topic.worst, (len(line), end, _STYLES[topic.worst]))
        else:
            page.print(f"{line}-")
    rest = topics[len(shown) :]
    if rest:
        problems = [t for t in rest if t.worst in ("error", "warning")]
        note = f", {len(problems)} of them with errors or warnings" if problems else ""
        if not (is_sound or problems):
            note = ", all without errors or warnings"
        _print_wrapped(page, f"and {count(len(rest), 'more topic')}{note}")


def _transactions_note(result: AuditResult, totals: Sequence[TopicTotals]) -> Iterator[str]:
    """Yields a sentence about the transactions."""
    states = ("committed", "aborted")
    counts = {
        "committed": sum(each.committed_transactions for each in totals),
        "aborted": sum(each.aborted_transactions for each in totals),
    }
    state_at = [column.name for column in result.transactions.columns].index("state")
    found = Counter(row[state_at] for row in result.transactions.rows())
    counts |= {state: count for state, count in found.items() if state not in states}
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


def _print_section(
    page: Page,
    result: AuditResult,
    remedies: Remedies,
    section: _Section,
    *,
    told: str,
    is_complete: bool,
) -> None:
    """Prints events of one kind: what it means, where it is, what to do."""
    number_of = len(section.events)
    total = f" ({number_of:,})" if number_of > 1 else ""
    _print_title(page, section.severity, section.name, f"{total}: {section.meaning}")
    shown = number_of if is_complete else min(number_of, PLACES_SHOWN)
    for number in range(shown):
        event, head = section.events[number], section.heads[number]
        is_told = number == 0 or (section.severity == "error" and number_of <= PLACES_SHOWN)
        _print_place(page, event, head, with_message=is_told or is_complete)
        if is_complete:
            for other in section.others[number]:
                place = other["file"] or other["topic"] or ""
                text = f"{other['severity']} {other['name']} in {place}: {_sentence(other)}"
                _print_wrapped(page, text, 4)
    if number_of > shown:
        _print_wrapped(page, f"and {number_of - shown:,} more", 2)
    heads = section.heads[:shown]
    if section.name == "timestamp-suspect":
        _print_retention(page, result, section.heads)
    saved = [
        row
        for finding in [*heads, *chain.from_iterable(section.others[:shown])]
        for row in _differences(result, finding)
    ]
    for action in _actions(remedies, section.events[:shown], heads, saved):
        if action.casefold() != told.casefold():
            _print_wrapped(page, f"What to do: {action}", 2)
    for line in _commands(result, remedies, heads, saved):
        shown_line = f"  {line}"
        page.print(shown_line, *([whole(shown_line, "dim")] if line.startswith("$") else []))


def _actions(
    remedies: Remedies,
    events: Sequence[Mapping[str, Any]],
    heads: Sequence[Mapping[str, Any]],
    differences: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Returns what to do: for the case at hand if that is known, else for the cause."""
    found = remedies.of_all(heads)
    of_causes = list(dict.fromkeys(str(event["action"]) for event in events))
    is_more = [e["cause"] != h["cause"] for e, h in zip(events, heads, strict=True)]
    if found and any(is_more):
        # The cause asks for more than the finding alone.
        found = [" ".join([*of_causes, *found])]
    are_copies = all(head["name"] == "replica-difference" for head in heads)
    saves = [row for row in differences if row["commands"] or are_copies]
    of_copies = list(dict.fromkeys(str(row["action"]) for row in saves))
    if are_copies and len(of_copies) == 1:
        return of_copies
    return [*(found or of_causes), *([] if are_copies else of_copies)]


def _commands(
    result: AuditResult,
    remedies: Remedies,
    findings: Sequence[Mapping[str, Any]],
    differences: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Returns commands to copy: all of a single finding, else the one that repairs each.

    Those that save what only one copy has come first.
    """
    lines = [command for row in differences for command in row["commands"]]
    for number, finding in enumerate(findings):
        path = _path(result, finding)
        own = commands(finding, path)
        if finding["name"] == "open-transaction":
            # These take the coordinator's state into account.
            own = list(finding["commands"])
        if len(findings) > 1:
            own = [*own[: number == 0], *_repair(own)]
        lines += [*own, *remedies.commands_of(finding)]
    in_order = dict.fromkeys(lines)
    return [line if line.startswith("#") else f"$ {line}" for line in in_order]


def _repair(commands_of_finding: Sequence[str]) -> Sequence[str]:
    """Returns the first command that does not only look, with what has to be read before it."""
    diagnostics = ("ottla ", " find-hanging ", " describe ")
    for number, line in enumerate(commands_of_finding):
        if not line.startswith("#") and not any(word in line for word in diagnostics):
            before = commands_of_finding[number - 1] if number else ""
            is_first = not (before.startswith("#") or " find-hanging " in before)
            return commands_of_finding[number if is_first else number - 1 : number + 1]
    return []


def _differences(result: AuditResult, finding: dict[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the rows of `differences` that belong to a finding."""
    if finding["name"] != "replica-difference":
        return []
    place = ("topic", "partition", "first_offset", "last_offset")
    differences: Iterable[Mapping[str, Any]] = result.differences
    return [
        row
        for row in differences
        if all(row[name] == finding[name] for name in place)
        and finding["replica"] in row["bad_replicas"]
    ]


def _print_retention(
    page: Page, result: AuditResult, findings: Sequence[Mapping[str, Any]]
) -> None:
    """Prints how the timestamps of segments affect retention, and the record responsible."""
    files = {finding["file"] for finding in findings}
    rows = [row for row in result.timeline if row["retention"] and row["file"] in files]
    for row in rows[:PLACES_SHOWN]:
        when = moment(row["max_timestamp"])
        offset = row["blamed_offset"]
        offset = row["max_timestamp_offset"] if offset is None else offset
        effect = {
            "held-back": f"offset {offset} is from {when}: retention by time keeps this"
            " segment and all later ones until then",
            "expires-at-once": f"its newest record, offset {offset}, is from {when}:"
            " retention by time deletes the segment at its next check",
            "by-file-time": "no timestamp is positive: retention uses the time of the last"
            " modification of the file",
        }[row["retention"]]
        _print_wrapped(page, f"{row['file']}: {effect}", 4)


def _print_one_line(page: Page, section: _Section) -> None:
    """Prints events that need no action on one line."""
    # Lawful gaps are already in the sentence about gaps.
    told = [h for h in section.heads if not _is_lawful(h["cause"])]
    if not told:
        return
    places = list(dict.fromkeys(head["place"] for head in told))
    total = f" ({len(told):,})" if len(told) > 1 else ""
    _print_title(page, "info", section.name, f"{total}: {listed(places, PLACES_SHOWN)}")


def _print_title(page: Page, severity: Severity, name: str, rest: str) -> None:
    for number, line in enumerate(_wrap(f"{severity} {name}{rest}", page.width)):
        spans: list[Span] = []
        if number == 0:
            start = len(severity) + 1
            spans = [(0, len(severity), _STYLES[severity]), (start, start + len(name), "bold")]
        page.print(line, *spans)


def _print_place(
    page: Page, event: Mapping[str, Any], head: dict[str, Any], *, with_message: bool
) -> None:
    """Prints the place on a line that can be copied, then what happened."""
    place = event["file"] or event["topic"] or ""
    details = []
    if event["position"] is not None:
        details.append(f"position {event['position']}")
    if event["first_offset"] is not None:
        details.append(offsets(event["first_offset"], event["last_offset"]))
    if event["severity"] == "error" and event["next_good_offset"] is not None:
        details.append(f"next good offset {event['next_good_offset']}")
    page.print("  " + ", ".join([place, *details]))
    if with_message:
        _print_wrapped(page, _sentence({**head, "message": event["message"]}), 4)
        when = time_span(event["first_timestamp"], event["last_timestamp"])
        if when and (event["offsets_lost"] or event["severity"] == "error"):
            _print_wrapped(page, f"Records written {when}.", 4)


def _sentence(finding: dict[str, Any]) -> str:
    """Its message without the place that stands before it."""
    return str(finding["message"]).removeprefix(f"{finding['file'] or finding['topic']}: ")


def _print_wrapped(page: Page, text: str, indent: int = 0) -> None:
    for line in _wrap(text, page.width - indent):
        page.print(" " * indent + line)


def _wrap(text: str, width: int) -> list[str]:
    """Wraps text between words: names and options are not split at hyphens."""
    width, text = max(width, 20), visible(text)
    if 0 < len(text) <= width:
        return [text]
    import textwrap

    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _path(result: AuditResult, finding: Mapping[str, Any]) -> str | None:
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
