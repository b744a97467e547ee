"""A finding, as passed between the stages of an audit, and as displayed in tables and reports.

The engine detects faults. A `PlacedFinding` locates one by paths of the plan, so that no stage has
to parse a displayed name; `result` turns it into a `Finding` once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.text import visible, visible_all

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

    def displayed(
        self,
        file: str | None,
        topic: str | None,
        partition: int | None,
        commands: tuple[str, ...],
        event: int | None,
    ) -> Finding:
        """Returns the finding as displayed in tables and reports.

        Args:
            file: the file or directory as displayed.
            topic: of the partition that it is about.
            partition: which.
            commands: where it has none of its own.
            event: the number of its event.
        """
        own, replicas = self.commands, self.good_replicas
        # Sentences and commands quote names of strangers. In the order of the fields, without their
        # names: a log may have thousands.
        return Finding(
            self.name,
            self.severity,
            file,
            topic,
            partition,
            self.position,
            self.size,
            self.first_offset,
            self.last_offset,
            self.record_index,
            self.producer_id,
            self.next_good_offset,
            self.cause,
            _visible(self.replica),
            None if replicas is None else visible_all(replicas),
            visible_all(own) if own else commands,
            _visible(self.expected),
            _visible(self.found),
            visible(self.message),
            event,
        )


def _visible(text: str | None) -> str | None:
    return None if text is None else visible(text)


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
