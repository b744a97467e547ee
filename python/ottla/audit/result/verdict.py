"""The word that answers first: what an audit makes of the logs it was given.

`VERDICTS` is the whole rule; `docs/decisions.md` has it as a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.severity import Severity

Verdict = Literal["SOUND", "SUSPECT", "DAMAGED", "INCOMPLETE"]


class VerdictRow(NamedTuple):
    """A verdict, and when it is given."""

    word: Verdict
    exit_code: int
    """Exit status of `ottla audit`."""
    severity: Severity | None
    """The severity of a finding that is enough for it; None where no finding decides."""
    condition: str


VERDICTS = (
    VerdictRow(
        "INCOMPLETE",
        3,
        None,
        "something given was not read, so it may hide anything: no such path, no permission, no"
        " log, no segment in it",
    ),
    VerdictRow(
        "DAMAGED",
        2,
        "error",
        "an error: records are lost, cannot be read or are in the wrong place, or something beside"
        " the log proves that acknowledged ones are gone",
    ),
    VerdictRow(
        "SUSPECT",
        1,
        "warning",
        "a warning: something contradicts the log, or a limit of the audit was met and it says what"
        " was not followed",
    ),
    VerdictRow(
        "SOUND", 0, None, "everything was read and followed, and nothing is worse than info"
    ),
)
"""The verdicts, of which the first that applies is given."""


def verdict_of(findings: Mapping[Severity, int], not_read: int) -> Verdict:
    """Returns the verdict on logs with a number of findings of each severity.

    >>> verdict_of({"error": 0, "warning": 2, "info": 5}, not_read=0)
    'SUSPECT'

    Args:
        findings: all findings, also those that are left out of a report.
        not_read: how many of them say that something given could not be read.
    """
    return _row(findings, not_read).word


def exit_code_of(findings: Mapping[Severity, int], not_read: int) -> int:
    """Returns the exit status of `ottla audit`.

    >>> exit_code_of({"error": 0, "warning": 2, "info": 5}, not_read=0)
    1

    Args:
        findings: the findings that count, by severity.
        not_read: how many of them say that something given could not be read.
    """
    return _row(findings, not_read).exit_code


def _row(findings: Mapping[Severity, int], not_read: int) -> VerdictRow:
    incomplete, *graded, sound = VERDICTS
    if not_read:
        return incomplete
    return next((row for row in graded if row.severity and findings[row.severity]), sound)


def verdicts_markdown() -> str:
    """Returns the table of verdicts as `docs/decisions.md` has it."""
    rows = [f"| {row.word} | {row.exit_code} | {row.condition} |" for row in VERDICTS]
    return "\n".join(["| verdict | status | when |", "| --- | --- | --- |", *rows]) + "\n"
