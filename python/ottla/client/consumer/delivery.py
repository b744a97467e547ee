"""Hands records to the application, and errors that it has to know of.

An error is raised by one poll; that of a partition that cannot go on, by each until the application
decides. What is delivered before an error of a record or a batch is returned first, and the next
poll meets the error again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.consumer.answer import Deserializers
from ottla.client.consumer.errors import (
    CorruptFetchError,
    InvalidPartitionEpochError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RecordDeserializationError,
)
from ottla.client.consumer.table import State
from ottla.records import join_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.client.consumer.answer import Answer
    from ottla.client.consumer.errors import PositionError
    from ottla.client.consumer.fetcher import Records
    from ottla.client.consumer.metrics import ConsumerMetrics
    from ottla.client.consumer.table import Table
    from ottla.client.options.settings import ConsumerSettings
    from ottla.client.partitions import TopicPartition
    from ottla.records import ConsumerRecord, FetchedColumns, FetchedRecords

__all__ = ["Delivery"]

_MOST_TOLD = 16
_ALL = 1 << 62
_BY_PRIORITY: tuple[type[PositionError], ...] = (
    InvalidPartitionEpochError,
    LogTruncationError,
    OffsetOutOfRangeError,
    NoOffsetForPartitionError,
)


class Delivery:
    """What a poll returns or raises.

    Attributes:
        wants_poll: whether who takes records one by one has to poll before the next.
    """

    def __init__(
        self, table: Table, records: Records, settings: ConsumerSettings, metrics: ConsumerMetrics
    ) -> None:
        self.wants_poll = False
        self._table = table
        self._records = records
        self._metrics = metrics
        self._max_poll_records = settings.max_poll_records
        self._deserializers = (
            None
            if settings.key_deserializer is None and settings.value_deserializer is None
            else Deserializers(settings.key_deserializer, settings.value_deserializer)
        )
        self._told: dict[tuple[type, str], Exception] = {}
        # Where records that are taken one by one come from.
        self._current: Answer | None = None

    def tell(self, error: Exception) -> None:
        """The next poll raises an error, once."""
        self.wants_poll = True
        if len(self._told) < _MOST_TOLD:
            self._told.setdefault((type(error), str(error)), error)

    def look(self, *, is_due: bool) -> None:
        """Something may have changed: records one by one go on as before, or by a poll."""
        answer = self._current
        if answer is not None:
            assigned = answer.assigned
            is_current = assigned.answer is answer and assigned.may_deliver
            self.wants_poll = self.wants_poll or is_due or not is_current

    def has_something(self) -> bool:
        """Whether a poll would return or raise something."""
        return (
            bool(self._told)
            or any(one.assigned.may_deliver for one in self._records.buffered)
            or any(one.state is State.FAILED for one in self._table)
        )

    def take(self, limit: int, now_ms: int) -> list[ConsumerRecord]:
        """Returns records that are there, at most so many.

        Raises:
            KafkaError: something the application has to know, or decide.
        """
        self._raise_told()
        taken: list[ConsumerRecord] = []
        for answer in self._deliverable():
            try:
                while len(taken) < limit and answer.prepare(limit):
                    answer.take_into(taken, limit, self._deserializers)
            except RecordDeserializationError:
                if not taken:
                    raise
                return taken
            except CorruptFetchError:
                if not taken:
                    self._records.refetch(answer)
                    raise
                return taken
            if not answer.is_drained:
                break
            self._finish(answer, now_ms)
        return taken

    def take_columns(self, limit: int | None, now_ms: int) -> FetchedColumns:
        """Returns records that are there as columns, at most so many.

        Raises:
            KafkaError: something the application has to know, or decide.
        """
        self._raise_told()
        parts: list[tuple[str, int, FetchedRecords]] = []
        left = _ALL if limit is None else limit
        for answer in self._deliverable():
            try:
                while left and (part := answer.take_part(left)) is not None:
                    parts.append((*answer.assigned.partition, part))
                    left -= len(part)
            except CorruptFetchError:
                if not parts:
                    self._records.refetch(answer)
                    raise
                break
            if not answer.is_drained:
                break
            self._finish(answer, now_ms)
        return join_columns(parts)

    def next_record(self) -> ConsumerRecord | None:
        """Returns the next record of those that the last `take_one` found; ``None`` for none.

        Raises:
            RecordDeserializationError: it cannot be made.
        """
        answer = self._current
        if answer is None or self.wants_poll:
            return None
        index = answer.index
        if index == len(answer.made):
            return None
        record = answer.made[index]
        if self._deserializers is not None:
            record = self._deserializers.apply(record)
        answer.index = index + 1
        return record

    def take_one(self, now_ms: int) -> ConsumerRecord | None:
        """Returns one record, and finds more for `next_record`; ``None`` where there is none."""
        self.wants_poll = False
        self._current = None
        self._raise_told()
        for answer in self._deliverable():
            try:
                has_more = answer.prepare(self._max_poll_records)
            except CorruptFetchError:
                self._records.refetch(answer)
                raise
            if has_more:
                self._current = answer
                return self.next_record()
            self._finish(answer, now_ms)
        return None

    def _raise_told(self) -> None:
        """Raises what the application has to know, or decide, if there is anything."""
        if self._told:
            raise self._told.pop(next(iter(self._told)))
        failed = [one for one in self._table if one.error is not None]
        for kind in _BY_PRIORITY if failed else ():
            numbers: dict[TopicPartition, int] = {}
            for one in failed:
                if isinstance(one.error, kind):
                    numbers |= one.error.partitions
            if numbers:
                raise kind(numbers)

    def _deliverable(self) -> Iterator[Answer]:
        for answer in list(self._records.buffered):
            assigned = answer.assigned
            if assigned.answer is answer and assigned.may_deliver:
                yield answer

    def _finish(self, answer: Answer, now_ms: int) -> None:
        self._records.drop(answer)
        self._metrics.consumed(answer.count, answer.size_bytes, now_ms)
