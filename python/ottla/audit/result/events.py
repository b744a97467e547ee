"""Events: what happened to the logs, each with the findings that show it.

Where a segment loses its end, an index, a snapshot and the checkpoints say so, too: one event with
one cause, one loss and one cure. The table `events` has a row for each, the gravest first, and the
column `event` of `findings` its number. The rules are in the engine
(`rust/ottla-audit/src/events/`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla import _engine
from ottla.audit.judge.packed import rows_about
from ottla.audit.result.times import NO_TIMES, written
from ottla.audit.result.verdict import verdict_of
from ottla.severity import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ottla.audit.judge.collector import Outcome
    from ottla.audit.result.grouped import Grouped
    from ottla.audit.result.times import Span
    from ottla.audit.result.verdict import Verdict
    from ottla.logs.columns import Row


def make_events(
    outcome: Outcome, grouped: Grouped, show: Mapping[bytes, tuple[str, str]]
) -> tuple[Sequence[Row], Sequence[int]]:
    """Returns the fields of the events, the gravest first, and of each finding that of its event.

    Args:
        outcome: what came of the audit.
        grouped: the findings that count.
        show: how paths are displayed, relative to the base and whole.
    """
    partitions = grouped.partitions
    times = written(rows_about(outcome.tables["timeline"], partitions))

    def span(
        directory: bytes | None, path: bytes | None, first: int | None, last: int | None
    ) -> Span:
        return times.get(directory or b"", NO_TIMES).span(path, first, last)

    def gaps() -> Iterator[tuple[bytes, bytes, int | None, int, int, str]]:
        for partition, row in rows_about(outcome.tables["gaps"], partitions):
            if row["reader"] == "all":
                place = partition.directory, row["file"], row["position"]
                yield *place, row["first_offset"], row["last_offset"], row["cause"]

    return _engine.event_rows(
        grouped.findings.found, grouped.groups.found, partitions, gaps, span, show, _verdicts()
    )


def _verdicts() -> tuple[Verdict, ...]:
    """What a finding of each severity alone makes of the log, and one of something not read."""
    none = dict.fromkeys(SEVERITIES, 0)
    return (*(verdict_of({**none, each: 1}, 0) for each in SEVERITIES), verdict_of(none, 1))
