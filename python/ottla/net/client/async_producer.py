"""The asyncio producer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from random import SystemRandom, random
from time import time
from typing import TYPE_CHECKING, Any, NoReturn, cast

from ottla.client.errors import (
    KafkaError,
    KafkaTimeoutError,
)
from ottla.client.network.network import ClientNetwork
from ottla.client.options.settings import ProducerSettings
from ottla.client.partitions import partition_number_of
from ottla.client.producer.accumulator import ANY_PARTITION
from ottla.client.producer.columns import partition_chooser, rows_of, serialized
from ottla.client.producer.core import ProducerCore
from ottla.client.producer.receipt import Receipt
from ottla.client.producer.record_metadata import RecordMetadata, produce_failed
from ottla.net.client.driver import Driver, running_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from typing import Self

    from ottla.client.delivery.promises import Place
    from ottla.client.partitions import AnyPartition, GroupMetadata, OffsetAndMetadata
    from ottla.client.pending import Pending
    from ottla.client.producer.accumulator import Row, Waiter

__all__ = ["AsyncProducer", "ProduceFuture"]


_BATCHES_A_TURN = 4
"""How many batches a caller that never waits begins before others on the loop have their turn."""


class _Futures:
    """Futures of records that follow each other, each with the record's time."""

    __slots__ = ("promises", "times")

    def __init__(
        self,
        promises: list[asyncio.Future[RecordMetadata]] | None = None,
        times: list[int] | None = None,
    ) -> None:
        self.promises = [] if promises is None else promises
        self.times = [] if times is None else times

    def __len__(self) -> int:
        return len(self.promises)

    def part(self, start: int, stop: int) -> Self:
        return type(self)(self.promises[start:stop], self.times[start:stop])

    def succeed(self, place: Place) -> None:
        topic, partition, offset, append_time_ms = place
        new = tuple.__new__
        step = 1 if offset >= 0 else 0
        for future, timestamp_ms in zip(self.promises, self.times, strict=True):
            if not future.done():
                time_ms = timestamp_ms if append_time_ms < 0 else append_time_ms
                future.set_result(new(RecordMetadata, (topic, partition, offset, time_ms)))
            offset += step

    def fail(self, error: BaseException) -> None:
        for future in self.promises:
            if not future.done():
                future.set_exception(error)


class _TransactionalFutures(_Futures):
    """The same in transactions: the transaction fails with a record, so nobody needs to look."""

    __slots__ = ()

    def fail(self, error: BaseException) -> None:
        super().fail(error)
        for future in self.promises:
            if not future.cancelled():
                future.exception()


class ProduceFuture:
    """What becomes of a record of `AsyncProducer.produce`: to be awaited.

    It raises a `ProduceFailedError`, whose `failure_type` says in which of three ways the record
    failed.
    """

    def __init__(self, task: asyncio.Future[RecordMetadata], *, is_transactional: bool) -> None:
        self._task = task
        self._is_transactional = is_transactional

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        try:
            return (yield from self._task.__await__())
        except (KafkaError, TypeError, ValueError) as error:
            raise produce_failed(error, is_transactional=self._is_transactional) from error

    def done(self) -> bool:
        """Whether it is known."""
        return self._task.done()


def _tell_later(loop: asyncio.AbstractEventLoop, hook: Callable[..., Any], *what: Any) -> None:
    """Calls a hook of the user's, outside of the core; what it raises is the loop's to report."""
    loop.call_soon(hook, *what)


def _future_maker(loop: asyncio.AbstractEventLoop) -> Callable[[], asyncio.Future[Any]]:
    """Returns what makes futures; asyncio's own loops spend more on the call than on the future."""
    if type(loop).create_future is asyncio.BaseEventLoop.create_future:
        return partial(asyncio.Future, loop=loop)
    return loop.create_future


class AsyncProducer:
    """Sends records to the partitions of topics, on asyncio.

    Options are Kafka's with underscores, as keywords. It is made in a running event loop, and used
    in it.

    >>> import asyncio, ottla.testing
    >>> from ottla.client import AsyncProducer
    >>> async def main(broker):
    ...     async with AsyncProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
    ...         written = await producer.send("orders", b"three apples", key=b"alice")
    ...         return (await written).offset
    >>> with ottla.testing.Broker() as broker:
    ...     asyncio.run(main(broker))
    0
    """

    def __init__(self, *others: NoReturn, **options: Any) -> None:
        self._settings = ProducerSettings(*others, **options)
        self._loop = running_loop()
        settings = self._settings
        is_transactional = settings.transactional_id is not None
        hook = settings.on_data_loss
        core = ProducerCore(
            settings,
            ClientNetwork(cast("Any", settings), random=SystemRandom().random),
            new_run=_TransactionalFutures if is_transactional else _Futures,
            random=random,
            now_ms=int(self._loop.time() * 1000),
            on_data_loss=partial(_tell_later, self._loop, hook) if hook else None,
        )
        self._core = core
        self._driver = Driver(core, on_end=core.forsake)
        self._put = core.put
        self._create_future = _future_maker(self._loop)
        self._batches = 0
        self._key_serializer = settings.key_serializer
        self._value_serializer = settings.value_serializer
        self._serializes = bool(self._key_serializer or self._value_serializer)
        self._is_transactional = is_transactional
        self._tasks: set[asyncio.Task[Any]] = set()

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Returns a producer of the options that a configuration has, by dotted names."""
        from ottla.client.options.config import options_from_config

        return cls(**options_from_config(ProducerSettings, config))

    @property
    def settings(self) -> ProducerSettings:
        """What it was made with."""
        return self._settings

    # Records.

    async def send(  # noqa: PLR0917 - as in other clients
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Puts a record into a batch, and returns a future of where it was written.

        It waits only for what the record needs to be taken: the partitions of the topic, and room
        in `buffer_memory`.

        Args:
            topic: where it goes.
            value: bytes, or what `value_serializer` takes.
            key: bytes, or what `key_serializer` takes; records of one key go to one partition.
            partition: which one; otherwise the partitioner's choice.
            timestamp_ms: ms since 1970; now if it is not given.
            headers: pairs of a name and bytes.

        Raises:
            KafkaTimeoutError: the record was not taken within `max_block_ms`.
            RecordTooLargeError: it is larger than `max_request_size`.
            AbortableError: the open transaction has failed: abort it.
            KafkaError: the producer has failed: close it.
            IllegalStateError: the producer is closed, or no transaction is open.
            TypeError: key, value or a header are no bytes.
        """
        if self._serializes:
            key, value = self._serialized(topic, key, value)
        if timestamp_ms is None:
            timestamp_ms = int(time() * 1000)
        if partition is None:
            partition = ANY_PARTITION
        elif type(partition) is not int or partition < 0:
            partition = partition_number_of(partition)
        future = self._create_future()
        left = self._put(topic, partition, key, value, timestamp_ms, headers, future)
        if left is not None:
            await self._append(topic, left, (timestamp_ms, key, value, headers), future)
        return future

    async def send_and_wait(  # noqa: PLR0917 - as in other clients
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
    ) -> RecordMetadata:
        """Sends a record, and returns where it was written.

        Raises:
            KafkaError: it was not; see `send`.
        """
        return await (await self.send(topic, value, key, partition, timestamp_ms, headers))

    def produce(  # noqa: PLR0917 - as `send`
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
    ) -> ProduceFuture:
        """Sends a record, and tells all that goes wrong by what is returned.

        >>> import asyncio, ottla.testing
        >>> from ottla.client import AsyncProducer, errors
        >>> async def main(broker):
        ...     async with AsyncProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        ...         try:
        ...             await producer.produce("orders", "not bytes")
        ...         except errors.ProduceFailedError as error:
        ...             return error.failure_type.name
        >>> with ottla.testing.Broker() as broker:
        ...     asyncio.run(main(broker))
        'MESSAGE_REJECTED'
        """
        task = self._loop.create_task(
            self.send_and_wait(topic, value, key, partition, timestamp_ms, headers)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return ProduceFuture(task, is_transactional=self._is_transactional)

    async def produce_many(  # noqa: PLR0917 - as `send`
        self,
        topic: str,
        values: Any = None,
        keys: Any = None,
        partition: int | None = None,
        timestamps_ms: Any = None,
        headers: Any = None,
    ) -> Receipt:
        """Sends many records, and waits until the fate of each is known.

        Nothing is raised for single rows: the receipt has the offset of each, or its error. Rows
        for which there is no room within `max_block_ms` have a `KafkaTimeoutError`.

        Args:
            topic: where they go.
            values: a list of bytes, an Arrow array of binary, or offsets and data, two NumPy arrays
                in a tuple; `None` for nulls.
            keys: likewise.
            partition: of all of them; otherwise the partitioner's choice.
            timestamps_ms: an int64 array, or one time for all; now if it is not given.
            headers: a list of each row's.

        Raises:
            IllegalArgumentError: the columns have different lengths.
            KafkaError: none of them can be sent; see `send`.

        >>> import asyncio, ottla.testing
        >>> from ottla.client import AsyncProducer
        >>> async def main(broker):
        ...     async with AsyncProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        ...         receipt = await producer.produce_many("orders", [b"a", b"b", b"c"])
        ...         return receipt.offsets.tolist()
        >>> with ottla.testing.Broker() as broker:
        ...     asyncio.run(main(broker))
        [0, 1, 2]
        """
        if partition is not None:
            partition = partition_number_of(partition)
        core = self._core
        rows = rows_of(values, keys, timestamps_ms, headers, int(time() * 1000))
        done = self._create_future()

        def settle(_: Receipt) -> None:
            if not done.done():
                done.set_result(None)

        receipt = Receipt(topic, rows.count, settle)
        if partition is None:
            rows.choose = partition_chooser(core, rows)
        else:
            rows.partition = partition
        if rows.count:
            await self._wait_for(
                lambda: core.append_rows(topic, rows, receipt, self._driver.now_ms()),
                is_bulk=True,
            )
            await done
        return receipt

    async def flush(self) -> None:
        """Sends what there is at once, and waits until the fate of each record is known."""
        await self._driver.call(self._core.flush())

    async def partitions_for(self, topic: str) -> list[int]:
        """Returns the partitions of a topic.

        Raises:
            KafkaTimeoutError: they are not known within `max_block_ms`.
        """
        core = self._core
        await self._wait_for(lambda: core.partitions_for(topic, self._driver.now_ms()))
        return [*range(core.accumulator.topics[topic].count)]

    def metrics(self) -> dict[str, float]:
        """Returns counts and measures by Kafka's names, as ``record-send-total``."""
        return self._core.snapshot(self._driver.now_ms())

    # Transactions.

    async def init_transactions(self) -> None:
        """Makes the producer ready for transactions, and ends what an earlier one left open.

        Raises:
            KafkaTimeoutError: it took longer than `max_block_ms`: call it again.
            KafkaError: the producer cannot have the id: close it.
        """
        await self._transact(self._core.init_transactions())

    async def begin_transaction(self) -> None:
        """Begins a transaction.

        Raises:
            AbortableError: the last one has failed, and is to be aborted.
            IllegalStateError: one is open.
        """
        self._driver.check()
        self._core.begin_transaction()

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[AnyPartition, int | OffsetAndMetadata],
        group_metadata: GroupMetadata | str,
    ) -> None:
        """Has a consumer's offsets committed with the transaction.

        Args:
            offsets: where the group goes on, by partition.
            group_metadata: of the consumer; the name of the group alone is deprecated.

        Raises:
            KafkaTimeoutError: it took longer than `max_block_ms`: call it again.
            AbortableError: the transaction has failed: abort it.
        """
        await self._transact(self._core.send_offsets(offsets, group_metadata))

    async def commit_transaction(self) -> None:
        """Sends what there is, and commits.

        Raises:
            CommitFailedError: it did not commit: abort it, and go on from the committed positions.
            KafkaTimeoutError: what it came to is not known: call it again.
            KafkaError: the producer has failed: close it.
        """
        await self._transact(self._core.commit_transaction())

    async def abort_transaction(self) -> None:
        """Gives up the open transaction.

        Raises:
            KafkaTimeoutError: it took longer than `max_block_ms`: call it again.
            KafkaError: the producer has failed: close it.
        """
        await self._transact(self._core.abort_transaction())

    # The end.

    async def close(self, timeout_ms: int | None = None) -> None:
        """Sends what there is and closes; an open transaction is aborted.

        Args:
            timeout_ms: how long to wait for that; what is not acknowledged then fails.
        """
        core, driver = self._core, self._driver
        if core.is_closed:
            return
        try:
            try:
                with suppress(KafkaTimeoutError):
                    await driver.call(core.close(), timeout_ms)
            finally:
                # Also where the task is cancelled: what is not acknowledged fails.
                driver.check()
                core.close_now(driver.now_ms())
        finally:
            await driver.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self) -> None:
        driver = getattr(self, "_driver", None)
        if driver is not None:
            driver.discard(type(self).__name__, self._core.unsettled_count)

    # Within.

    def _serialized(self, topic: str, key: Any, value: Any) -> tuple[Any, Any]:
        if self._key_serializer is not None:
            key = serialized(self._key_serializer, key, "key", topic)
        if self._value_serializer is not None:
            value = serialized(self._value_serializer, value, "value", topic)
        return key, value

    async def _append(
        self, topic: str, partition: int, row: Row, future: asyncio.Future[RecordMetadata]
    ) -> None:
        """Takes a record that has no room in the batch that grows in its partition."""
        core, driver = self._core, self._driver
        await self._wait_for(
            lambda: core.append(topic, partition, row, future, driver.now_ms()),
        )

    async def _wait_for(
        self, attempt: Callable[[], Waiter | None], *, is_bulk: bool = False
    ) -> None:
        """Makes a call of the core, again and again until it has what it needs."""
        core, driver = self._core, self._driver
        driver.check()
        max_block_ms = self._settings.max_block_ms
        end_ms = driver.now_ms() + max_block_ms
        is_in = False
        while not is_in:
            waiter = attempt()
            if core.accumulator.is_new:
                driver.wake()
            if waiter is None:
                self._batches += 1
                if self._batches % _BATCHES_A_TURN == 0:
                    # What has come from brokers has its turn, too, and full batches leave.
                    await asyncio.sleep(0)
                return
            try:
                is_in = await driver.call(
                    waiter,
                    max(end_ms - driver.now_ms(), 0),
                    lambda waiter: core.time_out_send(cast("Waiter", waiter), max_block_ms),
                )
            except asyncio.CancelledError:
                core.accumulator.withdraw(waiter)
                raise
            except KafkaError as error:
                if is_bulk:
                    waiter.fail_rest(error)
                    return
                raise

    async def _transact(self, pending: Pending) -> None:
        await self._driver.call(pending, self._settings.max_block_ms, self._core.time_out)
