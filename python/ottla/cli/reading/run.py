"""Partitions one after the other, and what is told of each beside its records."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from ottla.cli.terminal import complain
from ottla.errors import NotAPartitionError
from ottla.logs.names import LOG_START_OFFSETS, display
from ottla.logs.reading import log_start_offset
from ottla.storage import reason_of
from ottla.words import count, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ottla import Record
    from ottla.cli.reading.selection import Selection
    from ottla.cli.reading.sources import Source
    from ottla.cli.record_text import ReadRecord
    from ottla.logs.reading import Damage, PartitionRecords

    Deserialize = Callable[[Source, Iterable[Record]], Iterator[ReadRecord]]

__all__ = ["Reading"]

ASK_AUDIT = (
    "; what indexes, leader epochs, consumer groups and other copies know of it was not looked at:"
    " ottla audit does"
)
"""Behind what is said of the end of a log that nothing looked at shows to have gone on."""

EXIT_CODES = {"info": 0, "warning": 1, "error": 2}
IO_ERROR = 3
MISSED_SHOWN = 10
"""Partitions without a record that are told one by one."""


class Reading:
    """The records of some partitions that fit.

    Args:
        sources: the partitions.
        selection: which of their records.
        storage_options: see `read_partition`.
        deserialize: what makes something of keys and values, if anything does.
        goes_on: whether a partition that cannot be read leaves the others to be read.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        selection: Selection,
        storage_options: dict[str, str],
        deserialize: Deserialize | None,
        *,
        goes_on: bool,
    ) -> None:
        self._sources = sources
        self._selection = selection
        self._storage_options = storage_options
        self._deserialize = deserialize
        self._goes_on = goes_on and len(sources) > 1
        self._left = selection.limit
        self._missed: list[Source] = []
        self.status = 0
        """The exit status so far."""
        self.written = 0
        """How many records were taken."""

    def partitions(self) -> Iterator[tuple[Source, Iterator[ReadRecord]]]:
        """Yields the partitions with their records, which are taken before the next one."""
        for source in self._sources:
            if self._left == 0:
                return
            yield source, self._records(source)

    def finish(self) -> int:
        """Tells which partitions had no such record, and returns the exit status."""
        missed = self._missed
        if not self.written:
            for source in missed[:MISSED_SHOWN]:
                complain(self._nothing(source))
            if len(missed) > MISSED_SHOWN:
                complain(f"nor in {count(len(missed) - MISSED_SHOWN, 'more partition')}")
        elif missed and not self._selection.keys:
            names = listed([source.title for source in missed], MISSED_SHOWN)
            complain(f"no such record in {names}")
        return self.status

    def _records(self, source: Source) -> Iterator[ReadRecord]:
        try:
            found = self._selection.records(source, self._storage_options, self._told)
            taken = 0
            fitting = islice(self._selection.fitting(found), self._left)
            for taken, record in enumerate(self._deserialized(source, fitting), 1):  # noqa: B007
                yield record
        except NotAPartitionError as error:
            if not self._goes_on:
                raise
            complain(error)
            self.status = IO_ERROR
            return
        except OSError as error:
            if not self._goes_on:
                raise
            complain(f"{source.name}: {reason_of(error)}")
            self.status = IO_ERROR
            return
        self.written += taken
        if self._left is not None:
            self._left -= taken
            if not self._left:
                return
        if not taken:
            self._missed.append(source)
        self._tell_open_transaction(source, found)

    def _deserialized(self, source: Source, records: Iterable[Record]) -> Iterator[ReadRecord]:
        if self._deserialize is None:
            return iter(records)
        return self._deserialize(source, records)

    def _told(self, damage: Damage) -> None:
        self.status = max(self.status, EXIT_CODES[damage.severity])
        is_open = damage.severity != "error" and damage.next_good_offset is None
        complain(f"{damage}{ASK_AUDIT}" if is_open and damage.first_offset is not None else damage)

    def _nothing(self, source: Source) -> str:
        start = 0
        if self._selection.is_all:
            start = log_start_offset(source.path, self._storage_options)
        if not start:
            return self._selection.missed(source, self._storage_options)
        return (
            f"{source.name}: no record from its log start offset {start} on,"
            f" which {display(LOG_START_OFFSETS)} beside it has; a .log file alone is read from its"
            " beginning"
        )

    def _tell_open_transaction(self, source: Source, records: PartitionRecords) -> None:
        if records.stopped_by is None:
            return
        offset, producer_id = records.stopped_by
        end = records.log_end_offset
        end = self._selection.to_offset if end is None else end
        held_back = 0 if end is None else end - offset
        complain(
            f"{source.name}: read_committed ends at offset {offset},"
            f" where the open transaction of producer {producer_id} begins; it holds back"
            f" {count(held_back, 'offset')}, up to offset {offset + held_back - 1}"
        )
