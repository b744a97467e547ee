"""One transaction: what is read and what is written commit together, or not at all.

    begin ─▸ body ─▸ offsets ─▸ commit ─▸ True
               │        │          └ CommitFailedError ─┐
               └────────┴─ any error ───────────────────┴▸ abort ─▸ back to what is committed

What can be aborted is aborted, and the records are read again. A fatal error is raised as it is:
the producer and the consumer have to be closed. An error of the body's own is raised once the
transaction is aborted. A commit or an abort that takes too long is waited for again, as nobody
knows what it comes to: it is never followed by the other.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ottla.client.errors import AbortableError, CommitFailedError, KafkaError, KafkaTimeoutError
from ottla.client.processing.script import run, run_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ottla.client.partitions import GroupMetadata, OffsetAndMetadata, TopicPartition
    from ottla.client.processing.script import Script

__all__ = [
    "AnyConsumer",
    "AnyProducer",
    "is_abortable",
    "reset_to_last_committed_positions",
    "run_transaction",
    "run_transaction_async",
    "transaction_script",
]

_WAITS = 3


class AnyProducer(Protocol):
    """A transactional producer: calls that wait, or that are to be awaited."""

    def begin_transaction(self) -> Any:
        """Begins a transaction."""

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata, /
    ) -> Any:
        """Has offsets committed with it."""

    def commit_transaction(self) -> Any:
        """Commits it."""

    def abort_transaction(self) -> Any:
        """Aborts it."""


class AnyConsumer(Protocol):
    """A consumer of a group: calls that wait, or that are to be awaited."""

    def positions(self) -> Any:
        """Returns where it goes on, an `OffsetAndMetadata` by `TopicPartition`."""

    def group_metadata(self) -> Any:
        """Returns it as its group knows it."""

    def reset_to_last_committed_positions(self) -> Any:
        """Goes back to what its group has committed."""


def run_transaction(
    producer: AnyProducer,
    consumer: AnyConsumer | None,
    body: Callable[[], object],
    *,
    on_abort: Callable[[BaseException], object] | None = None,
) -> bool:
    """Runs a body in a transaction that commits its records and the consumer's positions together.

    Futures of records need not be looked at: where one fails, the transaction does.

    Args:
        producer: transactional, and initialized.
        consumer: of the records that are processed, without auto commit; ``None`` for none.
        body: what processes them, and sends.
        on_abort: told why, where the transaction is aborted.

    Returns:
        Whether it committed. Where it did not, it is aborted, and the consumer gives the same
        records again.

    Raises:
        KafkaTimeoutError: what a commit or an abort comes to is not known, though it was waited for
            three times: close the producer.
        KafkaError: what is fatal: close the producer and the consumer.
        Exception: what the body raised; the transaction is aborted.

    Example:
        >>> while True:  # doctest: +SKIP
        ...     records = consumer.poll(1.0)
        ...     run_transaction(producer, consumer, lambda: process(records))
    """
    return run(transaction_script(producer, consumer, body, on_abort))


async def run_transaction_async(
    producer: AnyProducer,
    consumer: AnyConsumer | None,
    body: Callable[[], Awaitable[object]],
    *,
    on_abort: Callable[[BaseException], object] | None = None,
) -> bool:
    """Like `run_transaction`, for clients and a body that are to be awaited."""
    return await run_async(transaction_script(producer, consumer, body, on_abort))


def reset_to_last_committed_positions(consumer: AnyConsumer) -> Any:
    """Has a consumer go back to what its group has committed.

    Partitions without a committed offset begin as ``auto_offset_reset`` says. For an asynchronous
    consumer, the result is to be awaited.
    """
    return consumer.reset_to_last_committed_positions()


def is_abortable(error: BaseException) -> bool:
    """Whether a transaction that failed by an error can be aborted, and its producer goes on.

    What a transactional call raises without a wrapper is fatal, but for the end of its time.
    """
    if isinstance(error, AbortableError):
        return not error.fatal
    return isinstance(error, KafkaTimeoutError)


def transaction_script(
    producer: AnyProducer,
    consumer: AnyConsumer | None,
    body: Callable[[], object],
    on_abort: Callable[[BaseException], object] | None = None,
) -> Script[bool]:
    """The steps of `run_transaction`."""
    try:
        yield producer.begin_transaction
    except AbortableError as error:
        yield from _give_up(producer, consumer, error, on_abort)
        return False
    try:
        yield body
        if consumer is not None:
            offsets = yield consumer.positions
            group = yield consumer.group_metadata
            yield partial(producer.send_offsets_to_transaction, offsets, group)
    except GeneratorExit:
        raise
    except BaseException as error:
        yield from _give_up(producer, consumer, error, on_abort)
        if not isinstance(error, KafkaError):
            raise
        return False
    try:
        yield from _patiently(producer.commit_transaction)
    except CommitFailedError as error:
        if error.fatal:
            raise
        yield from _give_up(producer, consumer, error, on_abort)
        return False
    return True


def _give_up(
    producer: AnyProducer,
    consumer: AnyConsumer | None,
    error: BaseException,
    on_abort: Callable[[BaseException], object] | None,
) -> Script[None]:
    """Aborts; raises what is fatal.

    The consumer goes back only then: while a transaction is open, nobody is told the offsets that
    it may commit.
    """
    yield from _patiently(producer.abort_transaction)
    if consumer is not None:
        yield consumer.reset_to_last_committed_positions
    if on_abort is not None:
        on_abort(error)


def _patiently(call: Callable[[], Any]) -> Script[None]:
    for _ in range(_WAITS - 1):
        try:
            yield call
        except KafkaTimeoutError:
            continue
        return
    yield call
