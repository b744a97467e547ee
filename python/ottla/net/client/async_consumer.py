"""A consumer on an event loop."""

from __future__ import annotations

import asyncio
import inspect
import time
from random import SystemRandom
from typing import TYPE_CHECKING, Any, NoReturn

from ottla.client.consumer.arguments import (
    committable,
    list_of,
    offsets_of,
    partition_of,
    timeout_of,
    times_of,
)
from ottla.client.consumer.assembly import consumer_core
from ottla.client.errors import IllegalStateError, KafkaTimeoutError
from ottla.client.options.settings import ConsumerSettings
from ottla.errors import KafkaError
from ottla.net.client.consumer_calls import LONGEST_WAIT_MS, ConsumerCalls
from ottla.net.client.driver import Driver

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from typing_extensions import Self

    from ottla.client.consumer.position import OffsetAndOffsetEpoch, OffsetAndTimestamp
    from ottla.client.partitions import AnyPartition, OffsetAndMetadata, TopicPartition
    from ottla.client.pending import Pending
    from ottla.records import ConsumerRecord, FetchedColumns

    Result = TypeVar("Result")

__all__ = ["AsyncConsumer"]

_CLOSING_MS = 30_000
_REST_EACH_MS = 50


class AsyncConsumer(ConsumerCalls):
    """Reads records of topics, on the event loop that it is made in.

    Options are Kafka's with underscores, as keywords.

    >>> import asyncio, ottla.testing
    >>> from ottla.client import AsyncConsumer
    >>> async def main(broker):
    ...     servers = broker.bootstrap_servers
    ...     async with AsyncConsumer(
    ...         bootstrap_servers=servers, group_id="billing", auto_offset_reset="earliest"
    ...     ) as consumer:
    ...         consumer.subscribe(["orders"])
    ...         async for record in consumer:
    ...             return record.value
    >>> with ottla.testing.Broker(topics=["orders"]) as broker:
    ...     _ = broker.produce("orders", b"three apples")
    ...     asyncio.run(main(broker))
    b'three apples'

    Raises:
        InvalidConfigurationError: an option is not known, or has a value that it cannot have.
    """

    def __init__(self, *others: NoReturn, **options: Any) -> None:
        self._settings = ConsumerSettings(*others, **options)
        self._core = consumer_core(
            self._settings, random=SystemRandom().random, wall_ms=lambda: int(time.time() * 1000)
        )
        self._driver = Driver(self._core)
        self._is_polled = False
        self._rested_ms = 0

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Returns a consumer of the options that a configuration has, by dotted names."""
        from ottla.client.options.config import options_from_config

        return cls(**options_from_config(ConsumerSettings, config))

    @property
    def settings(self) -> ConsumerSettings:
        """What it was made with."""
        return self._settings

    # Records.

    async def poll(
        self, timeout_ms: int = 500, *, max_records: int | None = None
    ) -> list[ConsumerRecord]:
        """Returns the next records, in the order of each partition; an empty list after a while.

        With automatic commits, the records of the poll before count as done.

        Args:
            timeout_ms: how long to wait for a first record.
            max_records: how many to return at most; `max_poll_records` by default.

        Raises:
            PositionError: a partition cannot go on where it is; seek.
            RecordDeserializationError: a deserializer raised.
            KafkaError: something else that the application has to know.
        """
        limit = self._settings.max_poll_records if max_records is None else max_records
        return await self._poll(lambda now_ms: self._core.delivery.take(limit, now_ms), timeout_ms)

    async def poll_columns(
        self, timeout_ms: int = 500, *, max_records: int | None = None
    ) -> FetchedColumns:
        """Returns the next records as columns, without an object each; without rows after a while.

        The columns are NumPy's, and Arrow's by ``pyarrow.table(columns)``.

        Args:
            timeout_ms: how long to wait for a first record.
            max_records: how many to return at most; by default all that are there.

        Raises:
            KafkaError: as `poll`; deserializers are not called.
        """
        return await self._poll(
            lambda now_ms: self._core.delivery.take_columns(max_records, now_ms), timeout_ms
        )

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        record = self._core.delivery.next_record()
        while record is None:
            record = await self._poll(self._core.delivery.take_one, None)
        return record

    async def _poll(self, take: Callable[[int], Result], timeout_ms: int | None) -> Result:
        driver, core = self._driver, self._core
        if self._is_polled:
            raise IllegalStateError(
                "the consumer is polled already: one task at a time can, and no listener of it"
            )
        self._is_polled = True
        try:
            driver.check()
            now_ms = driver.now_ms()
            until_ms = None if timeout_ms is None else now_ms + timeout_of(timeout_ms)
            if now_ms >= self._rested_ms + _REST_EACH_MS:
                # Who always finds records there must not keep others from the loop.
                await asyncio.sleep(0)
                self._rested_ms = now_ms
            while True:
                core.begin_poll(now_ms)
                await self._handle_events()
                taken = take(driver.now_ms())
                # What there is room for now is fetched while the application works.
                driver.advance()
                now_ms = driver.now_ms()
                self._complain(is_served=bool(taken))
                if taken or (until_ms is not None and now_ms >= until_ms):
                    return taken
                rest_ms = LONGEST_WAIT_MS if until_ms is None else until_ms - now_ms
                await self._something(min(rest_ms, LONGEST_WAIT_MS))
                self._rested_ms = now_ms = driver.now_ms()
        finally:
            self._is_polled = False

    async def _something(self, timeout_ms: int | None, other: Pending | None = None) -> None:
        """Waits until a poll would come back with something, or another call has ended."""
        pending = self._core.something()
        if other is not None:
            other.when_done(pending.end)
        try:
            await self._driver.call(pending, timeout_ms)
        except KafkaTimeoutError:
            return
        finally:
            self._core.time_out(pending)

    # The group.

    async def unsubscribe(self) -> None:
        """Reads nothing any longer, and leaves the group."""
        pending = self._run(self._core.unsubscribe, self._now_ms())
        await self._until_left(pending, self._settings.default_api_timeout_ms)

    async def _handle_events(self, timeout_ms: int | None = None) -> None:
        core = self._core
        while (event := core.event) is not None:
            commit = core.begin_event(self._now_ms())
            if commit is not None:
                await self._settled(commit, timeout_ms)
            try:
                told = self._tell(event)
                if inspect.isawaitable(told):
                    await told
            finally:
                core.end_event(self._now_ms())
                self._driver.advance()

    async def _settled(self, pending: Pending, timeout_ms: int | None = None) -> None:
        """Waits for a commit that nobody asked for: what becomes of it is nobody's error."""
        try:
            await self._call(pending, timeout_ms)
        except KafkaError:
            return

    async def _until_left(self, pending: Pending, timeout_ms: int) -> None:
        until_ms = self._now_ms() + timeout_ms
        while not pending.is_done and (rest_ms := until_ms - self._now_ms()) > 0:
            await self._handle_events(rest_ms)
            await self._something(rest_ms, pending)

    # Positions and committed offsets.

    async def position(self, partition: tuple[str, int], timeout_ms: int | None = None) -> int:
        """Returns the offset of the next record.

        Raises:
            KafkaTimeoutError: it is not known in time, `default_api_timeout_ms` by default.
        """
        return (await self.position_and_offset_epoch(partition, timeout_ms)).offset

    async def position_and_offset_epoch(
        self, partition: tuple[str, int], timeout_ms: int | None = None
    ) -> OffsetAndOffsetEpoch:
        """Returns the offset of the next record, with what tells its log (KIP-232)."""
        found: OffsetAndOffsetEpoch = await self._call(
            self._core.position(partition_of(partition)), timeout_ms
        )
        return found

    async def commit(
        self,
        offsets: Mapping[AnyPartition, int | OffsetAndMetadata] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Commits how far the application came, or the offsets that are given.

        Raises:
            KafkaTimeoutError: what came of it is not known.
            KafkaError: the group did not take it.
        """
        pending = self._run(self._core.commit, committable(offsets), self._now_ms())
        await self._call(pending, timeout_ms)

    def commit_soon(
        self,
        offsets: Mapping[AnyPartition, int | OffsetAndMetadata] | None = None,
        when_done: Callable[[BaseException | None], None] | None = None,
    ) -> None:
        """Commits without waiting; `when_done` is called with the error, or `None`.

        It is called soon; what it raises is the loop's to report. Several of them, and calls of
        `commit`, take effect in their order.
        """
        pending = self._run(self._core.commit, committable(offsets), self._now_ms())
        if when_done is not None:
            # Not within the core: a callback may raise, and may call the consumer.
            loop = asyncio.get_running_loop()

            def tell() -> None:
                loop.call_soon(when_done, pending.error)

            pending.when_done(tell)

    async def committed(
        self, *partitions: tuple[str, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns what the group has committed of partitions, without those that it has not."""
        pending = self._run(self._core.committed, list_of(partitions), self._now_ms())
        found: dict[TopicPartition, OffsetAndMetadata] = await self._call(pending, timeout_ms)
        return found

    # What the cluster is asked.

    async def offsets_for_times(
        self, timestamps_ms: Mapping[AnyPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Returns the first records of these times or later; `None` where there is none."""
        pending = self._run(self._core.queries.offsets_for_times, times_of(timestamps_ms))
        found: dict[TopicPartition, OffsetAndTimestamp | None] = await self._call(
            pending, timeout_ms
        )
        return found

    async def beginning_offsets(
        self, *partitions: tuple[str, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Returns the first offsets of partitions."""
        pending = self._run(self._core.queries.beginning_offsets, list_of(partitions))
        return offsets_of(await self._call(pending, timeout_ms))

    async def end_offsets(
        self, *partitions: tuple[str, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Returns the offsets of the records to come."""
        pending = self._run(self._core.queries.end_offsets, list_of(partitions))
        return offsets_of(await self._call(pending, timeout_ms))

    async def partitions_for(self, topic: str, timeout_ms: int | None = None) -> frozenset[int]:
        """Returns the numbers of the partitions of a topic."""
        found: frozenset[int] = await self._call(
            self._run(self._core.queries.partitions_for, topic), timeout_ms
        )
        return found

    async def topics(self, timeout_ms: int | None = None) -> frozenset[str]:
        """Returns the names of all topics."""
        found: frozenset[str] = await self._call(self._run(self._core.queries.topics), timeout_ms)
        return found

    # The end.

    async def close(self, timeout_ms: int = _CLOSING_MS) -> None:
        """Commits where that is automatic, leaves the group, and closes the connections.

        A `with` block that ends by an exception commits only what the application had done with
        when it asked for more: what it was at is read again.
        """
        await self._close(timeout_ms)

    async def _close(self, timeout_ms: int, *, has_failed: bool = False) -> None:
        if self._core.is_closed:
            return
        try:
            commit, leaving = self._core.begin_closing(self._now_ms(), has_failed=has_failed)
            if commit is not None:
                await self._settled(commit, timeout_ms)
            if leaving is not None:
                await self._until_left(leaving, timeout_ms)
        finally:
            self._core.close(self._now_ms())
            self._driver.advance()
            await self._driver.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _kind: object, error: object, _traceback: object) -> None:
        await self._close(_CLOSING_MS, has_failed=error is not None)

    def __del__(self) -> None:
        driver = getattr(self, "_driver", None)
        if driver is not None:
            driver.discard("AsyncConsumer")

    def _run(self, function: Callable[..., Result], *arguments: Any, **options: Any) -> Result:
        self._driver.check()
        result = function(*arguments, **options)
        self._driver.wake()
        return result

    def _now_ms(self) -> int:
        return self._driver.now_ms()

    async def _call(self, pending: Pending, timeout_ms: int | None) -> Any:
        if timeout_ms is None:
            timeout_ms = self._settings.default_api_timeout_ms
        return await self._driver.call(pending, timeout_ms, self._core.time_out)
