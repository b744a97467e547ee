"""Reads, processes and writes, batch after batch, and goes on after what can be recovered from.

One step polls, and hands what came to `process`. What it comes to is one of:

- ``IDLE``: nothing came.
- ``DONE``: the batch is processed, and committed.
- ``CORRUPTED``: the transaction was aborted, or a record was not delivered; the consumer has gone
  back, and the next step has the same records again.
- ``MIGRATED``: another member has taken over, of the group or of the transactional id; what had to
  be closed was, and the next step begins with what the group gives.

What nobody recovers from without a person is raised: a missing ACL, a topic that refuses a record,
an error of `process`. The runner may be used again behind it.

A producer outlives partitions that are lost: it is initialized anew, which ends what it left open.
Only one that is itself fatal is closed, and another made.
"""

from __future__ import annotations

from collections.abc import Awaitable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from ottla.client.errors import (
    FailureType,
    KafkaError,
    KafkaTimeoutError,
    failure_type,
    root_of,
)
from ottla.client.processing.script import run, run_async
from ottla.client.processing.transaction import AnyConsumer, AnyProducer, transaction_script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ottla.client.processing.script import Script

__all__ = [
    "AsyncProcessingRunner",
    "Guarantee",
    "Outcome",
    "ProcessingRunner",
    "TaskMigratedError",
    "TxnCorruptedError",
]

Guarantee: TypeAlias = Literal["exactly_once", "at_least_once"]


class Outcome(Enum):
    """What a step came to."""

    IDLE = "nothing to process"
    DONE = "processed"
    CORRUPTED = "to be processed again"
    MIGRATED = "taken over by another member"


class TxnCorruptedError(KafkaError):
    """What was processed is not committed, and is processed again; the root is its cause."""


class TaskMigratedError(KafkaError):
    """Another member has taken over; the root is its cause."""


class _Producer(AnyProducer, Protocol):
    def init_transactions(self) -> Any: ...
    def flush(self) -> Any: ...
    def close(self) -> Any: ...


class _Consumer(AnyConsumer, Protocol):
    def commit(self) -> Any: ...
    def close(self) -> Any: ...


P = TypeVar("P", bound=_Producer)
C = TypeVar("C", bound=_Consumer)


class _Steps(Generic[P, C]):
    """The steps of both runners.

    Args:
        new_producer: makes one; transactional for exactly once.
        new_consumer: makes one of a group that is subscribed, without auto commit. It is given the
            runner, whose `on_partitions_lost` it tells of lost partitions.
        poll: gets records of the consumer; what is empty is not processed.
        process: processes and sends them; for at least once, it returns the futures of what it
            sent. For exactly once, futures need not be looked at.
        guarantee: which.
        on_error: told each error that is recovered from.
    """

    def __init__(
        self,
        new_producer: Callable[[], P],
        new_consumer: Callable[[Any], C],
        poll: Callable[[C], Any],
        process: Callable[[Any, P], Any],
        *,
        guarantee: Guarantee = "exactly_once",
        on_error: Callable[[TxnCorruptedError | TaskMigratedError], object] | None = None,
    ) -> None:
        self._new_producer = new_producer
        self._new_consumer = new_consumer
        self._poll = poll
        self._process = process
        self._is_exactly_once = guarantee == "exactly_once"
        self._on_error = on_error
        self._producer: P | None = None
        self._consumer: C | None = None
        self._must_initialize = False

    def on_partitions_lost(self, partitions: Iterable[Any]) -> None:
        """To be called by the consumer: others have its partitions already."""
        del partitions
        self._must_initialize = self._is_exactly_once

    def _step(self) -> Script[Outcome]:
        try:
            return (yield from self._attempt())
        except TxnCorruptedError as error:
            self._tell(error)
            return Outcome.CORRUPTED
        except TaskMigratedError as error:
            self._tell(error)
            return Outcome.MIGRATED

    def _attempt(self) -> Script[Outcome]:
        try:
            # Before the poll: until what an earlier producer left is ended, nobody is told the
            # offsets that it may have committed.
            producer = yield from self._initialized()
            consumer, records = yield from self._polled()
            if records is None or len(records) == 0:
                return Outcome.IDLE
            if self._must_initialize:
                producer = yield from self._initialized()
            if self._is_exactly_once:
                yield from self._commit_once(producer, consumer, records)
            else:
                yield from self._commit_after(producer, consumer, records)
        except KafkaError as error:
            if not _is_migration(error):
                raise
            yield from self._close_producer()
            raise TaskMigratedError(f"the producer lost its place: {error}") from root_of(error)
        return Outcome.DONE

    def _initialized(self) -> Script[P]:
        if self._producer is None:
            self._producer = yield self._new_producer
            self._must_initialize = self._is_exactly_once
        if self._must_initialize:
            yield self._producer.init_transactions
            self._must_initialize = False
        return self._producer

    def _polled(self) -> Script[tuple[C, Any]]:
        if self._consumer is None:
            self._consumer = yield partial(self._new_consumer, self)
        consumer = self._consumer
        try:
            return consumer, (yield partial(self._poll, consumer))
        except KafkaError as error:
            if not _is_migration(error):
                raise
            yield from self._close_consumer()
            raise TaskMigratedError(f"the consumer lost its place: {error}") from root_of(error)

    def _commit_once(self, producer: P, consumer: C, records: Any) -> Script[None]:
        reasons: list[BaseException] = []
        body = partial(self._process, records, producer)
        try:
            if (yield from transaction_script(producer, consumer, body, reasons.append)):
                return
        except KafkaTimeoutError as error:
            # A new producer of the same id ends it, one way or the other.
            yield from self._close_producer()
            yield consumer.reset_to_last_committed_positions
            reasons.append(error)
        except KafkaError:
            yield consumer.reset_to_last_committed_positions
            raise
        raise _corrupted(reasons[-1])

    def _commit_after(self, producer: P, consumer: C, records: Any) -> Script[None]:
        try:
            futures = yield partial(self._process, records, producer)
            yield producer.flush
            for future in futures or ():
                yield partial(_result, future)
            yield consumer.commit
        except GeneratorExit:
            raise
        except BaseException as error:
            yield consumer.reset_to_last_committed_positions
            if _is_passing(error):
                raise _corrupted(error) from root_of(error)
            raise

    def _close_producer(self) -> Script[None]:
        producer, self._producer = self._producer, None
        if producer is not None:
            yield producer.close

    def _close_consumer(self) -> Script[None]:
        consumer, self._consumer = self._consumer, None
        self._must_initialize = self._is_exactly_once
        if consumer is not None:
            yield consumer.close

    def _close(self) -> Script[None]:
        try:
            yield from self._close_producer()
        finally:
            yield from self._close_consumer()

    def _tell(self, error: TxnCorruptedError | TaskMigratedError) -> None:
        if self._on_error is not None:
            self._on_error(error)


class ProcessingRunner(_Steps[P, C]):
    """Processes what a `Consumer` reads, with a `Producer`."""

    def step(self) -> Outcome:
        """Polls once, and processes what comes."""
        return run(self._step())

    def close(self) -> None:
        """Closes its producer and its consumer."""
        run(self._close())


class AsyncProcessingRunner(_Steps[P, C]):
    """Processes what an `AsyncConsumer` reads, with an `AsyncProducer`."""

    async def step(self) -> Outcome:
        """Polls once, and processes what comes."""
        return await run_async(self._step())

    async def close(self) -> None:
        """Closes its producer and its consumer."""
        await run_async(self._close())


def _corrupted(error: BaseException) -> TxnCorruptedError:
    found = TxnCorruptedError(f"to be processed again: {error}")
    found.__cause__ = root_of(error)
    return found


def _is_passing(error: BaseException) -> bool:
    """Whether a record that was not delivered may be when it is sent again."""
    if not isinstance(error, KafkaError) or getattr(error, "fatal", False):
        return False
    return failure_type(root_of(error)) is FailureType.DELIVERY_FAILED


def _is_migration(error: KafkaError) -> bool:
    """Whether another member has taken over, so that a new client can go on."""
    return bool(getattr(error, "fatal", False) and getattr(error, "restartable", False))


def _result(future: Any) -> Any:
    return future if isinstance(future, Awaitable) else future.result()
