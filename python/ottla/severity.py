"""How grave something is: the grades of findings and of damage."""

from __future__ import annotations

from typing import Literal

Severity = Literal["error", "warning", "info"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""From the gravest down."""


def severity_of(name: str) -> Severity:
    """The severity of a name.

    Raises:
        ValueError: there is none of that name.
    """
    return SEVERITIES[SEVERITIES.index(name)]
