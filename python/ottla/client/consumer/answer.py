"""Fetched records of one partition, on their way to the application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.client.consumer.errors import CorruptFetchError, RecordDeserializationError
from ottla.records import fetched

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.consumer.position import Position
    from ottla.client.consumer.table import Assigned
    from ottla.records import ConsumerRecord, FetchedRecords

__all__ = ["Answer", "Deserializers"]


class Deserializers:
    """What makes keys and values of bytes."""

    def __init__(
        self, key: Callable[[bytes | None], Any] | None, value: Callable[[bytes | None], Any] | None
    ) -> None:
        self._key = key
        self._value = value

    def apply(self, record: ConsumerRecord) -> ConsumerRecord:
        """Returns a record with key and value as the application wants them.

        Raises:
            RecordDeserializationError: one of them cannot be made.
        """
        key, value, origin = record.key, record.value, "key"
        try:
            if self._key is not None:
                key = self._key(key)
            origin = "value"
            if self._value is not None:
                value = self._value(value)
        except Exception as error:
            raise RecordDeserializationError(
                record.topic, record.partition, record.offset, origin, error
            ) from error
        return record.with_parts(key, value)


class Answer:
    """What a Fetch brought of a partition.

    Its records are made by and by, so that few of them are objects at a time: those that are made
    are `made`, of which the first `index` are delivered; `_rest` is not made yet.

    Invariants: `_begin` is the position before the first of `made`, `_end` the one behind the
    last; where none are made, both are the partition's position.

    Attributes:
        assigned: the partition.
        size_bytes: of its records as they came.
        count: how many records were made.
        made, index: see above.
    """

    __slots__ = (
        "_begin",
        "_end",
        "_part",
        "_rest",
        "_unread",
        "assigned",
        "count",
        "index",
        "made",
        "size_bytes",
    )

    def __init__(
        self,
        assigned: Assigned,
        begin: Position,
        data: bytes,
        aborted: list[tuple[int, int]] | None,
        *,
        check_crcs: bool,
    ) -> None:
        self.assigned = assigned
        self.size_bytes = len(data)
        self.count = 0
        self._unread = (data, begin.offset, aborted, check_crcs)
        self._rest: FetchedRecords | None = None
        self._part: FetchedRecords | None = None
        self.made: list[ConsumerRecord] = []
        self.index = 0
        self._begin = self._end = begin

    @property
    def position(self) -> Position:
        """Where the partition goes on: behind what is delivered."""
        index = self.index
        if index == len(self.made):
            return self._end
        if index == 0:
            return self._begin
        last = self.made[index - 1]
        return self._behind(last.offset + 1, last.leader_epoch)

    @property
    def end(self) -> Position | None:
        """Where it goes on behind all of it; ``None`` where not all can be read."""
        rest = self._read()
        if rest.error is not None:
            return None
        if not rest:
            return self._end
        # The last of its parts knows.
        return self._behind(rest.next_position, rest.leader_epoch)

    @property
    def is_drained(self) -> bool:
        """Whether all of it is delivered."""
        if self.index < len(self.made):
            return False
        rest = self._read()
        return not rest and rest.error is None and self._end.offset >= rest.next_position

    def prepare(self, limit: int) -> bool:
        """Has records ready to be delivered, making more if need be; returns whether there are any.

        Raises:
            CorruptFetchError: the next batch cannot be read.
        """
        if self.index < len(self.made):
            return True
        part = self._split(limit)
        if part is None:
            return False
        topic, partition = self.assigned.partition
        self._begin, self._end = self._end, self._behind(part.next_position, part.leader_epoch)
        self._part, self.made, self.index = part, part.records(topic, partition), 0
        return True

    def take_into(
        self, taken: list[ConsumerRecord], limit: int, deserializers: Deserializers | None
    ) -> None:
        """Delivers records that are ready, up to `limit` in all.

        Raises:
            RecordDeserializationError: of the next record, which is not delivered.
        """
        index = self.index
        stop = min(len(self.made), index + limit - len(taken))
        if deserializers is None:
            taken += self.made[index:stop]
            self.index = stop
            return
        while self.index < stop:
            taken.append(deserializers.apply(self.made[self.index]))
            self.index += 1

    def take_part(self, limit: int) -> FetchedRecords | None:
        """Delivers records at once, not as objects; ``None`` where there are none.

        Raises:
            CorruptFetchError: the next batch cannot be read.
        """
        if self._part is not None and self.index < len(self.made):
            part, _ = self._part.split(self.index)[1].split(limit)
            self.index += len(part)
            return part
        found = self._split(limit)
        if found is not None:
            self.made, self.index, self._part = [], 0, None
            self._begin = self._end = self._behind(found.next_position, found.leader_epoch)
        return found

    def _read(self) -> FetchedRecords:
        """Returns what is not made yet."""
        if self._rest is None:
            data, offset, aborted, check_crcs = self._unread
            self._rest = fetched(data, offset, aborted, check_crcs)
            self._unread = (b"", 0, None, False)
        return self._rest

    def _split(self, limit: int) -> FetchedRecords | None:
        rest = self._read()
        if not rest:
            self._begin = self._end = self._behind(rest.next_position, rest.leader_epoch)
            self.made, self.index, self._part = [], 0, None
            if rest.error is not None:
                topic, partition = self.assigned.partition
                raise CorruptFetchError(topic, partition, rest.next_position, rest.error)
            return None
        part, self._rest = rest.split(limit)
        self.count += len(part)
        return part

    def _behind(self, offset: int, leader_epoch: int) -> Position:
        known = self._begin
        return known._replace(offset=offset, leader_epoch=max(leader_epoch, known.leader_epoch))
