"""Many rows of one call on their way into batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.client.errors import RecordTooLargeError
from ottla.client.producer.accumulator import ANY_PARTITION, Waiter
from ottla.client.producer.receipt import ReceiptRun
from ottla.records import BatchBuilder, rows_by_partition

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from ottla.client.delivery.batch import Batch
    from ottla.client.delivery.partition import PartitionQueue
    from ottla.client.producer.accumulator import Accumulator, Topic
    from ottla.client.producer.receipt import Receipt

__all__ = ["Rows", "RowsWaiter", "by_partition"]


class Rows:
    """Columns of records.

    Attributes:
        count: how many rows.
        timestamps: an int64 array, or one time for all.
        keys: a list, a column, or ``None``.
        values: likewise.
        headers: a list, or ``None``.
        partition: of all of them; `ANY_PARTITION` to have it chosen.
        choose: returns the partition of each row for a topic; ``None`` where the partitioner
            chooses by batches.
    """

    def __init__(self, count: int, timestamps: Any, keys: Any, values: Any, headers: Any) -> None:
        self.count = count
        self.timestamps = timestamps
        self.keys = keys
        self.values = values
        self.headers = headers
        self.partition = ANY_PARTITION
        self.choose: Callable[[Topic, int], NDArray[np.int32]] | None = None

    def append_to(self, records: BatchBuilder, order: NDArray[np.int64] | None, start: int) -> int:
        """Appends rows to a batch as long as there is room; returns how many."""
        return records.append_many(
            self.timestamps, self.keys, self.values, order, start, self.headers
        )


def by_partition(
    partitions: NDArray[np.int32], count: int
) -> list[tuple[int, NDArray[np.int64] | None]]:
    """Returns the rows of each partition, in order.

    >>> import numpy
    >>> partitions = numpy.array([1, 0, 1], "int32")
    >>> [(number, rows.tolist()) for number, rows in by_partition(partitions, 2)]
    [(0, [1]), (1, [0, 2])]
    """
    rows, bounds = rows_by_partition(partitions, count)
    return [
        (number, rows[bounds[number] : bounds[number + 1]])
        for number in range(count)
        if bounds[number] < bounds[number + 1]
    ]


class RowsWaiter(Waiter):
    """Rows.

    Args:
        topic: where they go.
        rows: what they are.
        receipt: what is told what becomes of each.

    Attributes:
        parts: partitions with their rows, ``None`` for all.
    """

    def __init__(self, topic: str, rows: Rows, receipt: Receipt) -> None:
        super().__init__("produce_many", topic)
        self.partition = rows.partition
        self._rows = rows
        self.parts: list[tuple[int, NDArray[np.int64] | None]] = [(rows.partition, None)]
        self._receipt = receipt
        self._start = 0

    def advance(self, accumulator: Accumulator, topic: Topic, now_ms: int) -> bool:
        """Puts as much into batches as there is room for."""
        while self.parts:
            partition, order = self.parts[0]
            count = self._rows.count if order is None else len(order)
            while self._start < count:
                if not self._advance(accumulator, topic, partition, order, now_ms):
                    return False
            self.parts.pop(0)
            self._start = 0
        return True

    def fail_rest(self, error: BaseException) -> None:
        """What is in no batch yet is not sent."""
        start = self._start
        for _, order in self.parts:
            rows = range(self._rows.count) if order is None else order
            if start < len(rows):
                ReceiptRun(self._receipt, rows[start:]).fail(error)
            start = 0
        self.parts = []

    def _advance(
        self,
        accumulator: Accumulator,
        topic: Topic,
        partition: int,
        order: NDArray[np.int64] | None,
        now_ms: int,
    ) -> bool:
        """Puts rows into one batch; returns whether there is memory."""
        if partition == ANY_PARTITION:
            partition = accumulator.stick(topic, now_ms)
        queue = accumulator.queue(topic, partition)
        if queue.growing is not None:
            taken = self._rows.append_to(queue.growing.records, order, self._start)
            if taken:
                self._took(queue.growing, order, taken)
            is_rest = self._start < (self._rows.count if order is None else len(order))
            if is_rest:
                accumulator.close(queue)
            return True
        return self._begin(accumulator, topic, queue, order, now_ms)

    def _begin(
        self,
        accumulator: Accumulator,
        topic: Topic,
        queue: PartitionQueue,
        order: NDArray[np.int64] | None,
        now_ms: int,
    ) -> bool:
        if not accumulator.has_room(topic):
            return False
        records = BatchBuilder(topic.limit)
        taken = self._rows.append_to(records, order, self._start)
        if taken == 1:
            try:
                accumulator.require_sendable(records.size_bytes)
            except RecordTooLargeError as error:
                ReceiptRun(self._receipt, self._numbers(order, 1)).fail(error)
                accumulator.on_refused(error)
                self._start += 1
                return True
        batch = accumulator.begin(topic, queue, records, now_ms)
        if batch is None:
            return False
        self._took(batch, order, taken)
        return True

    def _took(self, batch: Batch, order: NDArray[np.int64] | None, taken: int) -> None:
        batch.runs.append(ReceiptRun(self._receipt, self._numbers(order, taken)))
        batch.tail = None
        self._start += taken

    def _numbers(self, order: NDArray[np.int64] | None, taken: int) -> range | NDArray[np.int64]:
        if order is None:
            return range(self._start, self._start + taken)
        return order[self._start : self._start + taken]
