"""A finding, as passed between the stages of an audit, and as displayed in tables and reports.

The engine detects faults. A `PlacedFinding` locates one by paths of the plan, so that no stage has
to parse a displayed name; `result` turns it into a `Finding` once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ottla.severity import Severity


class PlacedFinding(NamedTuple):
    """A fault at a place of the plan: a log may have thousands, of which few are ever displayed."""

    # What the engine says of it, in the order of `_engine.Finding.said`.
    name: str
    severity: Severity
    message: str
    position: int | None = None
    size: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    record_index: int | None = None
    producer_id: int | None = None
    next_good_offset: int | None = None
    cause: str | None = None
    expected: str | None = None
    found: str | None = None
    replica: str | None = None
    good_replicas: tuple[str, ...] | None = None
    commands: tuple[str, ...] = ()
    path: bytes | None = None
    """The file or directory."""
    directory: bytes | None = None
    """Directory of the partition that it is about."""
    pattern: str | None = None
    """Pattern of topics, if it is not about a file."""


class Finding(NamedTuple):
    """A fault, its place, and what was expected.

    The fields are the columns of the `findings` table; see `docs/tables.md`.
    """

    name: str
    severity: Severity
    file: str | None
    topic: str | None
    partition: int | None
    position: int | None
    size: int | None
    first_offset: int | None
    last_offset: int | None
    record_index: int | None
    producer_id: int | None
    next_good_offset: int | None
    cause: str | None
    replica: str | None
    good_replicas: tuple[str, ...] | None
    commands: tuple[str, ...]
    expected: str | None
    found: str | None
    message: str
    event: int | None
