"""Partitions one after the other, and what is told of each beside its records."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

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

Piece = TypeVar("Piece")

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
        return self._each(self._by_record)

    @property
    def has_batches(self) -> bool:
        """Whether nothing has to be looked at record by record.

        A batch is read whole: damage behind the last record that is wanted would be told.
        """
        return self._deserialize is None and self._left is None

    def batches(self, batch_bytes: int) -> Iterator[tuple[Source, Iterator[Any]]]:
        """Yields the same as record batches of pyarrow; needs `has_batches`."""

        def by_batch(_source: Source, records: PartitionRecords) -> Iterator[tuple[int, Any]]:
            import pyarrow as pa

            taken = 0
            for batch in records.batches(batch_bytes=batch_bytes):
                fitting = self._selection.fitting_rows(pa.record_batch(batch))
                taken += fitting.num_rows
                if fitting.num_rows:
                    yield taken, fitting

        return self._each(by_batch)

    def _each(
        self, pieces: Callable[[Source, PartitionRecords], Iterable[tuple[int, Piece]]]
    ) -> Iterator[tuple[Source, Iterator[Piece]]]:
        for source in self._sources:
            if self._left == 0:
                return
            yield source, self._pieces(source, pieces)

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

    def _by_record(
        self, source: Source, records: PartitionRecords
    ) -> Iterable[tuple[int, ReadRecord]]:
        fitting = islice(self._selection.fitting(records), self._left)
        return enumerate(self._deserialized(source, fitting), 1)

    def _pieces(
        self,
        source: Source,
        pieces: Callable[[Source, PartitionRecords], Iterable[tuple[int, Piece]]],
    ) -> Iterator[Piece]:
        """Yields what is made of a partition's records, each with how many these are so far."""
        taken = 0
        try:
            found = self._selection.records(source, self._storage_options, self._told)
            for taken, piece in pieces(source, found):  # noqa: B007
                yield piece
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
