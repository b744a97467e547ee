"""The producer for programs without an event loop."""

from __future__ import annotations

import threading
from contextlib import suppress
from random import SystemRandom, random
from time import monotonic, time
from typing import TYPE_CHECKING, Any, NoReturn, cast

from ottla.client.errors import KafkaError, KafkaTimeoutError
from ottla.client.network.network import ClientNetwork
from ottla.client.options.settings import ProducerSettings
from ottla.client.partitions import partition_number_of
from ottla.client.producer.accumulator import ANY_PARTITION
from ottla.client.producer.columns import partition_chooser, rows_of, serialized
from ottla.client.producer.core import ProducerCore
from ottla.client.producer.receipt import Receipt
from ottla.client.producer.record_metadata import RecordMetadata, produce_failed
from ottla.net.client.thread import DriverThread
from ottla.net.forks import look_after

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    from ottla.client.delivery.promises import Place
    from ottla.client.partitions import AnyPartition, GroupMetadata, OffsetAndMetadata
    from ottla.client.pending import Pending
    from ottla.client.producer.accumulator import Waiter

__all__ = ["BlockingProduceFuture", "Producer", "RecordFuture"]


class RecordFuture:
    """What becomes of a record of `Producer.send`.

    Attributes:
        metadata: where it was written; ``None`` before that is known, and where it was not.
        error: why it was not; ``None`` before that is known, and where it was.
        on_delivery: is called with both once one of them is there.
    """

    __slots__ = ("_shell", "error", "metadata", "on_delivery")

    def __init__(
        self,
        shell: _Shell,
        on_delivery: Callable[[RecordMetadata | None, BaseException | None], None] | None,
    ) -> None:
        self._shell = shell
        self.metadata: RecordMetadata | None = None
        self.error: BaseException | None = None
        self.on_delivery = on_delivery

    def done(self) -> bool:
        """Whether it is known."""
        return self.metadata is not None or self.error is not None

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Returns where the record was written; waits until that is known.

        Args:
            timeout: how many seconds to wait at most.

        Raises:
            KafkaTimeoutError: it is not known by then; it may be later.
            KafkaError: the record was not written, or nobody knows.
            IllegalStateError: nobody is going to know: the producer was not closed and is gone, or
                this is a process that was forked off, or a callback of the producer.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        return cast("RecordMetadata", self.metadata)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Returns why the record was not written; ``None`` if it was. Waits as `result` does."""
        if not self.done():
            self._shell.wait_for(self.done, timeout)
        return self.error


class BlockingProduceFuture:
    """What becomes of a record of `Producer.produce`."""

    def __init__(
        self,
        future: RecordFuture | None,
        error: BaseException | None,
        *,
        is_transactional: bool,
    ) -> None:
        self._future = future
        self._error = error
        self._is_transactional = is_transactional

    def done(self) -> bool:
        """Whether it is known."""
        return self._future is None or self._future.done()

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Returns where the record was written; waits until that is known.

        Args:
            timeout: how many seconds to wait at most.

        Raises:
            KafkaTimeoutError: it is not known by then; it may be later.
            ProduceFailedError: the record failed, in one of three ways.
        """
        error = self._error if self._future is None else self._future.exception(timeout)
        if error is not None:
            raise produce_failed(error, is_transactional=self._is_transactional)
        return cast("RecordFuture", self._future).result()


class _Futures:
    """Futures of records that follow each other, each with the record's time."""

    __slots__ = ("_shell", "promises", "times")

    def __init__(
        self,
        shell: _Shell,
        promises: list[RecordFuture] | None = None,
        times: list[int] | None = None,
    ) -> None:
        self._shell = shell
        self.promises = [] if promises is None else promises
        self.times = [] if times is None else times

    def __len__(self) -> int:
        return len(self.promises)

    def part(self, start: int, stop: int) -> _Futures:
        return _Futures(self._shell, self.promises[start:stop], self.times[start:stop])

    def succeed(self, place: Place) -> None:
        topic, partition, offset, append_time_ms = place
        new = tuple.__new__
        step = 1 if offset >= 0 else 0
        for future, timestamp_ms in zip(self.promises, self.times, strict=True):
            time_ms = timestamp_ms if append_time_ms < 0 else append_time_ms
            future.metadata = new(RecordMetadata, (topic, partition, offset, time_ms))
            offset += step
        self._shell.tell(self)

    def fail(self, error: BaseException) -> None:
        for future in self.promises:
            if not future.done():
                future.error = error
        self._shell.tell(self)


class _Shell:
    """What futures share: who is told of them."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.thread: DriverThread | None = None

    def wait_for(self, done: Callable[[], bool], timeout: float | None) -> None:
        """Waits for the fate of a record.

        Raises:
            KafkaTimeoutError: the time is over.
        """
        if self.thread is not None:
            self.thread.require_callers("result()")
            self.thread.require_process()
        with self.condition:
            if not self.condition.wait_for(done, timeout):
                raise KafkaTimeoutError(f"what became of the record is not known after {timeout} s")

    def tell(self, futures: _Futures) -> None:
        """The fate of some records is known."""
        for future in futures.promises:
            if future.on_delivery is not None and self.thread is not None:
                # Not within the core: a callback may send records.
                self.thread.call_soon(future.on_delivery, future.metadata, future.error)
        with self.condition:
            self.condition.notify_all()

    def loss_teller(self, hook: Callable[..., Any] | None) -> Callable[..., None] | None:
        """Returns what has a hook called outside of the core."""
        if hook is None:
            return None

        def tell(*what: Any) -> None:
            if self.thread is not None:
                self.thread.call_soon(hook, *what)

        return tell


class Producer:
    """Sends records to the partitions of topics.

    Options are Kafka's with underscores, as keywords. Several threads can use one producer; it has
    a thread of its own, in which callbacks are called.

    >>> import ottla.testing
    >>> from ottla.client import Producer
    >>> with ottla.testing.Broker() as broker:
    ...     with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
    ...         written = producer.send("orders", b"three apples", key=b"alice")
    ...         written.result().offset
    0
    """

    def __init__(self, *others: NoReturn, **options: Any) -> None:
        settings = self._settings = ProducerSettings(*others, **options)
        shell = self._shell = _Shell()
        core = self._core = ProducerCore(
            settings,
            ClientNetwork(cast("Any", settings), random=SystemRandom().random),
            new_run=lambda: _Futures(shell),
            random=random,
            now_ms=int(monotonic() * 1000),
            on_data_loss=shell.loss_teller(settings.on_data_loss),
        )
        thread = self._thread = DriverThread(core, name="ottla-producer", on_end=core.forsake)
        shell.thread = thread
        self._lock = thread.lock
        self._put = core.put
        self._key_serializer = settings.key_serializer
        self._value_serializer = settings.value_serializer
        self._serializes = bool(self._key_serializer or self._value_serializer)
        self._is_forked = False
        look_after(self)

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

    def send(  # noqa: PLR0917 - as in other clients
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        on_delivery: Callable[[RecordMetadata | None, BaseException | None], None] | None = None,
    ) -> RecordFuture:
        """Puts a record into a batch, and returns a future of where it was written.

        It blocks only for what the record needs to be taken: the partitions of the topic, and room
        in `buffer_memory`.

        Args:
            topic: where it goes.
            value: bytes, or what `value_serializer` takes.
            key: bytes, or what `key_serializer` takes; records of one key go to one partition.
            partition: which one; otherwise the partitioner's choice.
            timestamp_ms: ms since 1970; now if it is not given.
            headers: pairs of a name and bytes.
            on_delivery: is called with where it was written, or `None`, and the error, or `None`,
                in the producer's thread.

        Raises:
            KafkaTimeoutError: the record was not taken within `max_block_ms`.
            RecordTooLargeError: it is larger than `max_request_size`.
            AbortableError: the open transaction has failed: abort it.
            KafkaError: the producer has failed: close it.
            IllegalStateError: the producer is closed, or no transaction is open.
            TypeError: key, value or a header are no bytes.
        """
        if self._is_forked:
            self._thread.check()
        if self._serializes:
            key, value = self._serialized(topic, key, value)
        if timestamp_ms is None:
            timestamp_ms = int(time() * 1000)
        if partition is None:
            partition = ANY_PARTITION
        elif type(partition) is not int or partition < 0:
            partition = partition_number_of(partition)
        future = RecordFuture(self._shell, on_delivery)
        with self._lock:
            left = self._put(topic, partition, key, value, timestamp_ms, headers, future)
        if left is not None:
            row = (timestamp_ms, key, value, headers)
            self._wait_for(lambda now_ms: self._core.append(topic, left, row, future, now_ms))
        return future

    def produce(  # noqa: PLR0917 - as `send`
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
    ) -> BlockingProduceFuture:
        """Sends a record, and tells all that goes wrong by what is returned.

        >>> import ottla.testing
        >>> from ottla.client import Producer, errors
        >>> with ottla.testing.Broker() as broker:
        ...     with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        ...         try:
        ...             producer.produce("orders", "not bytes").result()
        ...         except errors.ProduceFailedError as error:
        ...             error.failure_type.name
        'MESSAGE_REJECTED'
        """
        is_transactional = self._core.manager is not None
        try:
            future = self.send(topic, value, key, partition, timestamp_ms, headers)
        except (KafkaError, TypeError, ValueError) as error:
            return BlockingProduceFuture(None, error, is_transactional=is_transactional)
        return BlockingProduceFuture(future, None, is_transactional=is_transactional)

    def produce_many(  # noqa: PLR0917 - as `send`
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

        >>> import ottla.testing
        >>> from ottla.client import Producer
        >>> with ottla.testing.Broker() as broker:
        ...     with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        ...         producer.produce_many("orders", [b"a", b"b", b"c"]).offsets.tolist()
        [0, 1, 2]
        """
        if partition is not None:
            partition = partition_number_of(partition)
        self._thread.require_callers("produce_many")
        core = self._core
        rows = rows_of(values, keys, timestamps_ms, headers, int(time() * 1000))
        done = threading.Event()
        receipt = Receipt(topic, rows.count, lambda _: done.set())
        if partition is None:
            rows.choose = partition_chooser(core, rows)
        else:
            rows.partition = partition
        if rows.count:
            self._wait_for(
                lambda now_ms: core.append_rows(topic, rows, receipt, now_ms), is_bulk=True
            )
            done.wait()
        return receipt

    def flush(self, timeout: float | None = None) -> None:
        """Sends what there is at once, and waits until the fate of each record is known.

        Args:
            timeout: how many seconds to wait at most.

        Raises:
            KafkaTimeoutError: it took longer.
        """
        pending = self._thread.run(self._core.flush)
        self._thread.wait(pending, None if timeout is None else int(timeout * 1000))

    def partitions_for(self, topic: str) -> list[int]:
        """Returns the partitions of a topic.

        Raises:
            KafkaTimeoutError: they are not known within `max_block_ms`.
        """
        core = self._core
        self._wait_for(lambda now_ms: core.partitions_for(topic, now_ms))
        return [*range(core.accumulator.topics[topic].count)]

    def metrics(self) -> dict[str, float]:
        """Returns counts and measures by Kafka's names, as ``record-send-total``."""
        with self._lock:
            return self._core.snapshot(self._thread.now_ms())

    # Transactions.

    def init_transactions(self) -> None:
        """Makes the producer ready for transactions, and ends what an earlier one left open.

        Raises:
            KafkaTimeoutError: it took longer than `max_block_ms`: call it again.
            KafkaError: the producer cannot have the id: close it.
        """
        self._transact(self._core.init_transactions)

    def begin_transaction(self) -> None:
        """Begins a transaction.

        Raises:
            AbortableError: the last one has failed, and is to be aborted.
            IllegalStateError: one is open.
        """
        self._thread.run(self._core.begin_transaction)

    def send_offsets_to_transaction(
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
        self._transact(self._core.send_offsets, offsets, group_metadata)

    def commit_transaction(self) -> None:
        """Sends what there is, and commits.

        Raises:
            CommitFailedError: it did not commit: abort it, and go on from the committed positions.
            KafkaTimeoutError: what it came to is not known: call it again.
            KafkaError: the producer has failed: close it.
        """
        self._transact(self._core.commit_transaction)

    def abort_transaction(self) -> None:
        """Gives up the open transaction.

        Raises:
            KafkaTimeoutError: it took longer than `max_block_ms`: call it again.
            KafkaError: the producer has failed: close it.
        """
        self._transact(self._core.abort_transaction)

    # The end.

    def close(self, timeout: float | None = None) -> None:
        """Sends what there is and closes; an open transaction is aborted.

        Args:
            timeout: how many seconds to wait for that; what is not acknowledged then fails.
        """
        core, thread = self._core, self._thread
        if core.is_closed:
            return
        thread.require_callers("close")
        try:
            closing = thread.run(core.close)
            try:
                with suppress(KafkaTimeoutError):
                    thread.wait(closing, None if timeout is None else int(timeout * 1000))
            finally:
                # Also behind Ctrl-C: what is not acknowledged fails.
                thread.run(lambda: core.close_now(thread.now_ms()))
        finally:
            thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        thread = getattr(self, "_thread", None)
        if thread is not None:
            thread.discard(type(self).__name__, self._core.unsettled_count)

    def abandon(self) -> None:
        """The process was forked: this one has none of the producer's threads."""
        self._is_forked = True

    # Within.

    def _serialized(self, topic: str, key: Any, value: Any) -> tuple[Any, Any]:
        if self._key_serializer is not None:
            key = serialized(self._key_serializer, key, "key", topic)
        if self._value_serializer is not None:
            value = serialized(self._value_serializer, value, "value", topic)
        return key, value

    def _wait_for(self, attempt: Callable[[int], Waiter | None], *, is_bulk: bool = False) -> None:
        """Makes a call of the core, again and again until it has what it needs."""
        thread = self._thread
        max_block_ms = self._settings.max_block_ms
        end_ms = thread.now_ms() + max_block_ms
        is_in = False
        while not is_in:
            waiter = thread.run(lambda: attempt(thread.now_ms()))
            if waiter is None:
                return
            is_in = self._wait(waiter, end_ms, is_bulk=is_bulk)

    def _wait(self, waiter: Waiter, end_ms: int, *, is_bulk: bool) -> bool:
        """Waits until records are taken; returns whether they are."""
        core, thread = self._core, self._thread
        max_block_ms = self._settings.max_block_ms
        try:
            is_in: bool = thread.wait(
                waiter,
                max(end_ms - thread.now_ms(), 0),
                lambda waiter: core.time_out_send(cast("Waiter", waiter), max_block_ms),
            )
        except KafkaError as error:
            if is_bulk:
                with self._lock:
                    waiter.fail_rest(error)
                return True
            raise
        except BaseException:
            with self._lock:
                core.accumulator.withdraw(waiter)
            raise
        return is_in

    def _transact(self, call: Callable[..., Pending], *arguments: Any) -> None:
        pending = self._thread.run(call, *arguments)
        self._thread.wait(pending, self._settings.max_block_ms, self._core.time_out)
