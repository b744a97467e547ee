"""A bound on the findings about names and small files: hostile directories have no end of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ottla.audit.catalogue.findings import UNREADABLE
from ottla.severity import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ottla.audit.catalogue.finding import PlacedFinding

MAX_FINDINGS = 4096
"""Findings of one name in one directory; as many as the engine keeps of a partition."""


def bounded(findings: Iterable[PlacedFinding]) -> Iterator[PlacedFinding]:
    """Yields findings, of each name in each directory the gravest; one more counts the others."""
    groups: dict[tuple[str, bytes], list[PlacedFinding]] = {}
    for finding in findings:
        if finding.name == UNREADABLE:
            # The verdict counts what was not read.
            yield finding
            continue
        place = finding.directory or os.path.dirname(finding.path or b"")
        groups.setdefault((finding.name, place), []).append(finding)
    for (_, place), group in groups.items():
        if len(group) <= MAX_FINDINGS:
            yield from group
            continue
        group.sort(key=lambda finding: SEVERITIES.index(finding.severity))
        yield from group[:MAX_FINDINGS]
        yield _left_out(group[MAX_FINDINGS:], place)


def _left_out(rest: list[PlacedFinding], place: bytes) -> PlacedFinding:
    """The finding that counts others, of their gravest severity."""
    return rest[0]._replace(
        path=place or None,
        message=f"and {len(rest):,} more of these in this directory",
        position=None,
        size=None,
        first_offset=None,
        last_offset=None,
        producer_id=None,
        next_good_offset=None,
        commands=(),
        expected=None,
        found=None,
    )
