"""A transaction of reading and writing: committed together, or aborted and read again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from ottla.client.errors import (
    AbortableError,
    CommitFailedError,
    IllegalStateError,
    InvalidRecordError,
    KafkaTimeoutError,
    ProducerFencedError,
    UnknownMemberIdError,
)
from ottla.client.processing.transaction import (
    is_abortable,
    reset_to_last_committed_positions,
    run_transaction,
    run_transaction_async,
)
from support.processing_clients import Awaited, FakeConsumer, FakeProducer, Journal

ABORTABLE = AbortableError(InvalidRecordError("no key"))
NOT_COMMITTED = CommitFailedError(InvalidRecordError("no key"))
FENCED = ProducerFencedError("another one")
LATE = KafkaTimeoutError("late")
GIVEN_UP = ["abort", "reset"]


def once(journal: Journal, way: str, **options: Any) -> bool:
    """Runs one transaction that sends a record."""
    producer, consumer = FakeProducer(journal), FakeConsumer(journal)
    if way == "sync":
        return run_transaction(producer, consumer, lambda: producer.send("x"), **options)
    awaited = Awaited(producer)
    coroutine = run_transaction_async(
        awaited, Awaited(consumer), lambda: awaited.send("x"), **options
    )
    return asyncio.run(coroutine)


WAYS = pytest.mark.parametrize("way", ["sync", "async"])


@WAYS
def test_records_and_positions_commit_together(way: str) -> None:
    journal = Journal()
    assert once(journal, way)
    assert journal.calls == ["begin", "send", "offsets", "commit"]


@WAYS
@pytest.mark.parametrize(
    ("name", "error", "calls"),
    [
        ("begin", ABORTABLE, ["begin"]),
        ("send", ABORTABLE, ["begin", "send"]),
        ("send", LATE, ["begin", "send"]),
        ("offsets", ABORTABLE, ["begin", "send", "offsets"]),
        ("offsets", LATE, ["begin", "send", "offsets"]),
        ("commit", NOT_COMMITTED, ["begin", "send", "offsets", "commit"]),
    ],
)
def test_what_can_be_aborted_is_aborted_before_the_consumer_goes_back(
    way: str, name: str, error: BaseException, calls: list[str]
) -> None:
    journal = Journal()
    journal.errors = {name: [error]}
    told: list[BaseException] = []
    assert not once(journal, way, on_abort=told.append)
    assert journal.calls == [*calls, *GIVEN_UP]
    assert told == [error]


@WAYS
@pytest.mark.parametrize("name", ["send", "offsets"])
def test_what_is_fatal_is_raised_by_the_abort_as_it_is(way: str, name: str) -> None:
    journal = Journal()
    journal.errors = {name: [FENCED], "abort": [FENCED]}
    with pytest.raises(ProducerFencedError):
        once(journal, way)
    assert journal.calls[-1] == "abort"


@WAYS
@pytest.mark.parametrize(
    "error", [FENCED, CommitFailedError(UnknownMemberIdError("gone"), is_fatal=True)]
)
def test_a_commit_that_is_fatal_is_not_followed_by_an_abort(way: str, error: BaseException) -> None:
    journal = Journal()
    journal.errors = {"commit": [error]}
    with pytest.raises(type(error)):
        once(journal, way)
    assert journal.calls[-1] == "commit"


@WAYS
def test_a_commit_that_takes_too_long_is_waited_for_again_and_never_aborted(way: str) -> None:
    journal = Journal()
    journal.errors = {"commit": [LATE, LATE]}
    assert once(journal, way)
    assert journal.calls[-3:] == ["commit"] * 3
    journal.errors = {"commit": [LATE] * 3}
    with pytest.raises(KafkaTimeoutError):
        once(journal, way)
    assert "abort" not in journal.calls


@WAYS
def test_an_abort_that_takes_too_long_is_waited_for_again(way: str) -> None:
    journal = Journal()
    journal.errors = {"send": [ABORTABLE], "abort": [LATE]}
    assert not once(journal, way)
    assert journal.calls[-3:] == ["abort", "abort", "reset"]


@WAYS
@pytest.mark.parametrize("error", [ValueError("a price of -1"), KeyboardInterrupt()])
def test_an_error_of_the_body_is_raised_once_its_transaction_is_aborted(
    way: str, error: BaseException
) -> None:
    journal = Journal()
    journal.errors = {"send": [error]}
    with pytest.raises(type(error)):
        once(journal, way)
    assert journal.calls[-2:] == GIVEN_UP


@WAYS
def test_a_transaction_that_cannot_begin_is_not_aborted(way: str) -> None:
    journal = Journal()
    journal.errors = {"begin": [IllegalStateError("not initialized")]}
    with pytest.raises(IllegalStateError):
        once(journal, way)
    assert journal.calls == ["begin"]


def test_a_task_that_is_cancelled_aborts_its_transaction() -> None:
    journal = Journal()
    producer = Awaited(FakeProducer(journal))

    async def main() -> None:
        begun = asyncio.Event()

        async def body() -> None:
            begun.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(
            run_transaction_async(producer, Awaited(FakeConsumer(journal)), body)
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert journal.calls == ["begin", *GIVEN_UP]


def test_a_transaction_that_is_dropped_amid_its_body_says_no_more() -> None:
    journal = Journal()

    class Forever:
        def __await__(self) -> Any:
            yield

    async def body() -> None:
        await Forever()

    coroutine = run_transaction_async(Awaited(FakeProducer(journal)), None, body)
    coroutine.send(None)
    coroutine.close()
    assert journal.calls == ["begin"]


def test_without_a_consumer_no_offsets_are_sent() -> None:
    journal = Journal()
    producer = FakeProducer(journal)
    assert run_transaction(producer, None, lambda: producer.send("x"))
    assert journal.calls == ["begin", "send", "commit"]
    journal.errors = {"send": [ABORTABLE]}
    assert not run_transaction(producer, None, lambda: producer.send("x"))
    assert journal.calls[-1] == "abort"


def test_a_consumer_goes_back_when_it_is_told() -> None:
    journal = Journal()
    reset_to_last_committed_positions(FakeConsumer(journal))
    assert journal.calls == ["reset"]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ABORTABLE, True),
        (NOT_COMMITTED, True),
        (LATE, True),
        (CommitFailedError(UnknownMemberIdError(), is_fatal=True), False),
        (FENCED, False),
        (IllegalStateError("no"), False),
    ],
)
def test_what_is_raised_without_a_wrapper_is_fatal(error: BaseException, expected: bool) -> None:
    assert is_abortable(error) is expected
