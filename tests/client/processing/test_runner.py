"""Batch after batch: what is processed again, what moves on, and what a person has to look at."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest
from ottla.client.errors import (
    AbortableError,
    AuthenticationError,
    CommitFailedError,
    FencedInstanceIdError,
    IllegalGenerationError,
    InvalidRecordError,
    KafkaTimeoutError,
    ProducerFencedError,
    TopicAuthorizationError,
)
from ottla.client.processing.runner import (
    AsyncProcessingRunner,
    Guarantee,
    Outcome,
    ProcessingRunner,
    TaskMigratedError,
    TxnCorruptedError,
)
from support.processing_clients import Awaited, FakeConsumer, FakeProducer, Journal

ABORTABLE = AbortableError(InvalidRecordError("no key"))
LATE = KafkaTimeoutError("late")
OUT = CommitFailedError(IllegalGenerationError("rebalanced"), is_fatal=True)


class Runner:
    """A runner of either way, and what it did."""

    def __init__(self, way: str, guarantee: Guarantee = "exactly_once") -> None:
        self.journal = Journal()
        self.told: list[Any] = []
        self.made: list[str] = []
        self.sent: BaseException | None = None
        self._is_async = way == "async"
        kind: Any = AsyncProcessingRunner if self._is_async else ProcessingRunner
        self.runner: Any = kind(
            self._producer,
            self._consumer,
            lambda consumer: consumer.poll(),
            self._process,
            guarantee=guarantee,
            on_error=self.told.append,
        )

    def _producer(self) -> Any:
        self.made.append("producer")
        return self._wrapped(FakeProducer(self.journal))

    def _consumer(self, _listener: Any) -> Any:
        self.made.append("consumer")
        return self._wrapped(FakeConsumer(self.journal))

    def _wrapped(self, client: Any) -> Any:
        return Awaited(client) if self._is_async else client

    def _process(self, _records: Any, producer: Any) -> Any:
        if self._is_async:
            return self._process_async(producer)
        producer.send("x")
        future: Future[None] = Future()
        if self.sent is None:
            future.set_result(None)
        else:
            future.set_exception(self.sent)
        return [future]

    async def _process_async(self, producer: Any) -> Any:
        await producer.send("x")
        future = asyncio.get_running_loop().create_future()
        if self.sent is None:
            future.set_result(None)
        else:
            future.set_exception(self.sent)
            if self.runner._is_exactly_once:
                future.exception()
        return [future]

    def step(self) -> Outcome:
        self.journal.calls.clear()
        outcome: Outcome = asyncio.run(self.runner.step()) if self._is_async else self.runner.step()
        return outcome

    def close(self) -> None:
        if self._is_async:
            asyncio.run(self.runner.close())
        else:
            self.runner.close()


WAYS = pytest.mark.parametrize("way", ["sync", "async"])


@WAYS
def test_a_batch_is_processed_in_a_transaction_of_one_producer(way: str) -> None:
    runner = Runner(way)
    assert runner.step() is Outcome.DONE
    assert runner.journal.calls == ["init", "poll", "begin", "send", "offsets", "commit"]
    assert runner.step() is Outcome.DONE
    assert runner.journal.calls == ["poll", "begin", "send", "offsets", "commit"]
    assert runner.made == ["producer", "consumer"]
    runner.close()
    assert runner.journal.calls[-2:] == ["close producer", "close consumer"]


@WAYS
@pytest.mark.parametrize("name", ["send", "offsets", "begin"])
def test_what_can_be_aborted_is_processed_again_by_the_same_clients(way: str, name: str) -> None:
    runner = Runner(way)
    runner.journal.errors = {name: [ABORTABLE]}
    assert runner.step() is Outcome.CORRUPTED
    assert runner.journal.calls[-2:] == ["abort", "reset"]
    (told,) = runner.told
    assert type(told) is TxnCorruptedError
    assert told.__cause__ is ABORTABLE.root
    assert runner.step() is Outcome.DONE
    assert runner.made == ["producer", "consumer"]


@WAYS
@pytest.mark.parametrize("error", [ProducerFencedError("another one"), OUT])
@pytest.mark.parametrize("name", ["offsets", "commit"])
def test_who_was_taken_over_goes_on_with_a_new_producer(
    way: str, name: str, error: BaseException
) -> None:
    runner = Runner(way)
    runner.journal.errors = {name: [error], "abort": [error]}
    assert runner.step() is Outcome.MIGRATED
    assert runner.journal.calls[-2:] == ["reset", "close producer"]
    assert type(runner.told[0]) is TaskMigratedError
    assert runner.step() is Outcome.DONE
    assert runner.made == ["producer", "consumer", "producer"]


@WAYS
def test_a_producer_outlives_partitions_that_are_lost_and_is_initialized_anew(way: str) -> None:
    runner = Runner(way)
    runner.step()
    runner.runner.on_partitions_lost([("orders", 0)])
    assert runner.step() is Outcome.DONE
    assert runner.journal.calls[:2] == ["init", "poll"]
    assert runner.made == ["producer", "consumer"]


@WAYS
def test_a_consumer_that_is_fenced_is_made_anew_and_its_producer_kept(way: str) -> None:
    runner = Runner(way)
    runner.journal.errors = {"poll": [FencedInstanceIdError("another one")]}
    assert runner.step() is Outcome.MIGRATED
    assert runner.journal.calls[-1] == "close consumer"
    assert runner.step() is Outcome.DONE
    assert runner.journal.calls[0] == "init"
    assert runner.made == ["producer", "consumer", "consumer"]


@WAYS
def test_a_commit_of_unknown_outcome_is_settled_by_a_new_producer(way: str) -> None:
    runner = Runner(way)
    runner.journal.errors = {"commit": [LATE] * 3}
    assert runner.step() is Outcome.CORRUPTED
    assert "abort" not in runner.journal.calls
    assert runner.journal.calls[-2:] == ["close producer", "reset"]
    assert runner.step() is Outcome.DONE
    assert runner.journal.calls[:2] == ["init", "poll"]


@WAYS
@pytest.mark.parametrize("name", ["init", "poll", "abort"])
@pytest.mark.parametrize("error", [TopicAuthorizationError(), AuthenticationError()])
def test_what_a_person_has_to_mend_is_raised(way: str, name: str, error: BaseException) -> None:
    runner = Runner(way)
    runner.journal.errors = {name: [error], "send": [error]}
    with pytest.raises(type(error)):
        runner.step()
    assert not runner.told


@WAYS
def test_an_error_of_the_processing_is_raised_behind_an_abort_and_the_next_step_goes_on(
    way: str,
) -> None:
    runner = Runner(way)
    runner.journal.errors = {"send": [ValueError("a price of -1")]}
    with pytest.raises(ValueError, match="a price"):
        runner.step()
    assert runner.journal.calls[-2:] == ["abort", "reset"]
    assert runner.step() is Outcome.DONE


@WAYS
def test_for_exactly_once_futures_are_not_looked_at(way: str) -> None:
    runner = Runner(way)
    runner.sent = InvalidRecordError("no key")
    assert runner.step() is Outcome.DONE


@WAYS
def test_for_at_least_once_positions_are_committed_behind_the_records(way: str) -> None:
    runner = Runner(way, "at_least_once")
    assert runner.step() is Outcome.DONE
    assert runner.journal.calls == ["poll", "send", "flush", "commit consumer"]


@WAYS
def test_for_at_least_once_a_record_that_is_not_delivered_is_processed_again(way: str) -> None:
    runner = Runner(way, "at_least_once")
    runner.sent = LATE
    assert runner.step() is Outcome.CORRUPTED
    assert runner.journal.calls == ["poll", "send", "flush", "reset"]
    runner.sent = InvalidRecordError("no key")
    with pytest.raises(InvalidRecordError):
        runner.step()
    assert runner.journal.calls[-1] == "reset"


@WAYS
def test_for_at_least_once_who_is_out_of_the_group_goes_on_where_it_is_put(way: str) -> None:
    runner = Runner(way, "at_least_once")
    runner.journal.errors = {"commit consumer": [OUT]}
    assert runner.step() is Outcome.MIGRATED
    assert runner.step() is Outcome.DONE
    assert "init" not in runner.journal.calls


def returned(records: list[Any] | None, _consumer: Any) -> list[Any] | None:
    return records


@WAYS
def test_nothing_is_begun_where_nothing_comes(way: str) -> None:
    runner = Runner(way)
    polls: list[list[Any] | None] = [None, []]
    for nothing in polls:
        runner.runner._poll = partial(returned, nothing)
        assert runner.step() is Outcome.IDLE
    assert "begin" not in runner.journal.calls
