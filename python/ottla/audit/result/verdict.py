"""The word that answers first: what an audit makes of the logs it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.severity import Severity

Verdict = Literal["SOUND", "SUSPECT", "DAMAGED", "INCOMPLETE"]


def verdict_of(findings: Mapping[Severity, int], not_read: int) -> Verdict:
    """Returns the verdict on logs with a number of findings of each severity.

    >>> verdict_of({"error": 0, "warning": 2, "info": 5}, not_read=0)
    'SUSPECT'

    Args:
        findings: all findings, also those that are left out of a report.
        not_read: how many of them say that something given could not be read.
    """
    if not_read:
        return "INCOMPLETE"
    if findings["error"]:
        return "DAMAGED"
    return "SUSPECT" if findings["warning"] else "SOUND"


def exit_code_of(findings: Mapping[Severity, int], not_read: int) -> int:
    """Returns the exit status of `ottla audit`.

    >>> exit_code_of({"error": 0, "warning": 2, "info": 5}, not_read=0)
    1

    Args:
        findings: the findings that count, by severity.
        not_read: how many of them say that something given could not be read.
    """
    if not_read:
        return 3
    if findings["error"]:
        return 2
    return 1 if findings["warning"] else 0
