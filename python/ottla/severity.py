"""Severities of findings and of damage."""

from __future__ import annotations

from typing import Literal

Severity = Literal["error", "warning", "info"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""In descending order."""


def severity_of(name: str) -> Severity:
    """Returns the severity of a name.

    Raises:
        ValueError: there is no severity of that name.
    """
    return SEVERITIES[SEVERITIES.index(name)]
