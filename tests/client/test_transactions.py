"""The calls of a transactional producer, in any order and with any outcome (KIP-691)."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from ottla.client.errors import (
    AbortableError,
    CommitFailedError,
    CorrelationIdMismatchError,
    IllegalStateError,
    InvalidRecordError,
    KafkaTimeoutError,
    OutOfOrderSequenceError,
    ProducerClosedError,
    ProducerFencedError,
    RecordTooLargeError,
    TransactionAbortedError,
    UnsupportedVersionError,
)
from ottla.client.pending import Pending
from ottla.client.transactions.manager import TransactionManager
from ottla.client.transactions.states import State
from support.coordinator import GROUP, NODE, OFFSETS, Coordinator, chain_of

CALLS: dict[str, Callable[[TransactionManager], Any]] = {
    "init_transactions": TransactionManager.init,
    "begin_transaction": TransactionManager.begin,
    "send": lambda manager: manager.require_open("send"),
    "send_offsets_to_transaction": lambda manager: manager.send_offsets(OFFSETS, GROUP),
    "commit_transaction": TransactionManager.commit,
    "abort_transaction": TransactionManager.abort,
}

# Which calls are taken in which state; the rest are faults of the program, and change nothing.
TAKEN = {
    State.UNINITIALIZED: {"init_transactions"},
    State.READY: {"init_transactions", "begin_transaction"},
    State.IN_TRANSACTION: {
        "init_transactions",
        "send",
        "send_offsets_to_transaction",
        "commit_transaction",
        "abort_transaction",
    },
    State.ABORTABLE_ERROR: {"init_transactions", "abort_transaction"},
}


def in_state(state: State) -> Coordinator:
    """Returns a producer in a state that is not left by itself."""
    broker = Coordinator()
    if state is State.UNINITIALIZED:
        return broker
    if state is State.READY:
        return broker.ready()
    broker.open()
    if state is State.ABORTABLE_ERROR:
        broker.manager.fail_abortably(InvalidRecordError("no key"))
    return broker


@pytest.mark.parametrize("state", list(TAKEN))
@pytest.mark.parametrize("call", list(CALLS))
def test_a_call_is_taken_in_its_states_and_changes_nothing_in_others(
    call: str, state: State
) -> None:
    broker = in_state(state)
    assert broker.manager.state is state
    if call in TAKEN[state]:
        CALLS[call](broker.manager)
        broker.run()
        assert broker.manager.state in (State.READY, State.IN_TRANSACTION)
        return
    expected: type[BaseException] = IllegalStateError
    if state is State.ABORTABLE_ERROR:
        expected = CommitFailedError if call == "commit_transaction" else AbortableError
    with pytest.raises(expected) as raised:
        CALLS[call](broker.manager)
    assert type(raised.value) is expected
    assert broker.manager.state is state


@pytest.mark.parametrize("call", list(CALLS))
def test_every_call_raises_what_is_fatal_as_it_is_and_anew_each_time(call: str) -> None:
    broker = Coordinator().open()
    broker.manager.fail_fatally(ProducerFencedError("another one"))
    raised = []
    for _ in range(3):
        with pytest.raises(ProducerFencedError, match="another one") as found:
            CALLS[call](broker.manager)
        raised.append(found.value)
    assert len({id(one) for one in raised}) == 3
    assert all(len(chain_of(one)) == 2 for one in raised)
    assert broker.manager.next_request(broker.now_ms) is None


def test_a_transaction_is_found_initialized_added_to_and_ended() -> None:
    broker = Coordinator()
    broker.manager.init()
    broker.run()
    broker.manager.begin()
    broker.manager.add_partition("orders", 0)
    broker.manager.add_partition("orders", 1)
    broker.manager.add_partition("orders", 0)
    assert not broker.manager.may_send("orders", 0)
    offsets = broker.manager.send_offsets(OFFSETS, GROUP)
    broker.run()
    assert offsets.is_done
    assert broker.manager.may_send("orders", 0)
    assert broker.manager.may_send("orders", 1)
    commit = broker.manager.commit()
    broker.run()
    assert commit.is_done
    assert broker.sent == [
        "FindCoordinator",
        "InitProducerId",
        "AddPartitionsToTxn",
        "AddOffsetsToTxn",
        "FindCoordinator",
        "TxnOffsetCommit",
        "EndTxn",
    ]
    assert (broker.manager.coordinator, broker.manager.group_coordinators) == (NODE, {"g": NODE})


@pytest.mark.parametrize("call", ["commit", "abort"])
def test_a_transaction_of_nothing_ends_without_a_request(call: str) -> None:
    broker = Coordinator().open()
    pending = getattr(broker.manager, call)()
    broker.run()
    assert pending.is_done
    assert pending.error is None
    assert broker.sent == []


def test_a_transaction_ends_once_no_batch_is_under_way() -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    broker.batches.count = 1
    broker.manager.commit()
    broker.run()
    assert broker.sent == ["AddPartitionsToTxn"]
    broker.batches.count = 0
    broker.run()
    assert broker.sent == ["AddPartitionsToTxn", "EndTxn"]


def test_one_request_is_under_way_at_a_time() -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    request = broker.manager.next_request(0)
    broker.manager.send_offsets(OFFSETS, GROUP)
    assert broker.manager.next_request(0) is None
    assert broker.manager.next_deadline_ms() is None
    assert request is not None
    broker.answer(request)
    assert broker.manager.next_request(0) is not None


def test_of_several_abortable_errors_the_first_is_kept_and_a_fatal_one_replaces_it() -> None:
    manager = Coordinator().open().manager
    manager.fail_abortably(InvalidRecordError("first"))
    manager.fail_abortably(RecordTooLargeError("second"))
    assert isinstance(manager.root, InvalidRecordError)
    manager.fail_fatally(ProducerFencedError("third"))
    manager.fail_abortably(RecordTooLargeError("fourth"))
    manager.fail_fatally(UnsupportedVersionError("fifth"))
    assert isinstance(manager.root, ProducerFencedError)


def test_records_that_were_never_sent_fail_by_what_ended_their_transaction() -> None:
    broker = Coordinator().open()
    broker.batches.failed.clear()
    broker.manager.fail_abortably(InvalidRecordError("no key"))
    assert [type(one) for one in broker.batches.failed] == [InvalidRecordError]
    broker = Coordinator().open()
    broker.batches.failed.clear()
    broker.manager.abort()
    assert [type(one) for one in broker.batches.failed] == [TransactionAbortedError]


def test_a_record_that_fails_while_its_transaction_is_aborted_is_nothing_new() -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    broker.run()
    pending = broker.manager.abort()
    broker.manager.fail_abortably(InvalidRecordError("no key"))
    broker.run()
    assert pending.is_done
    assert pending.error is None
    assert broker.manager.state is State.READY


def test_a_batch_that_fails_while_its_transaction_commits_fails_the_commit() -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    broker.run()
    broker.batches.count = 1
    pending = broker.manager.commit()
    broker.manager.fail_abortably(InvalidRecordError("no key"))
    assert isinstance(pending.error, CommitFailedError)
    assert isinstance(pending.error.root, InvalidRecordError)
    broker.batches.count = 0
    abort = broker.manager.abort()
    broker.run()
    assert abort.error is None
    assert broker.sent == ["AddPartitionsToTxn", "EndTxn"]


@pytest.mark.parametrize("call", ["commit", "abort", "init"])
def test_a_call_that_timed_out_is_resumed_by_the_same_and_by_no_other(call: str) -> None:
    broker = Coordinator()
    if call != "init":
        broker.open()
        broker.manager.add_partition("orders", 0)
    manager = broker.manager
    pending = getattr(manager, call)()
    error = manager.time_out(pending)
    assert isinstance(error, KafkaTimeoutError)
    assert f"call {pending.name} again, or close" in str(error)
    for other, make in CALLS.items():
        if other != pending.name:
            with pytest.raises(IllegalStateError, match=f"{pending.name} is under way"):
                make(manager)
    assert CALLS[pending.name](manager) is pending
    broker.run()
    assert pending.is_done
    assert manager.state is State.READY
    manager.begin()


def test_a_call_that_ended_after_its_time_out_is_resumed_with_its_end() -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    pending = broker.manager.commit()
    broker.manager.time_out(pending)
    broker.run()
    assert broker.manager.commit() is pending
    with pytest.raises(IllegalStateError):
        broker.manager.commit()


def test_a_commit_that_timed_out_and_ended_makes_room_for_a_new_transaction() -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    broker.manager.time_out(broker.manager.commit())
    broker.run()
    broker.manager.begin()
    broker.manager.add_partition("orders", 0)
    second = broker.manager.commit()
    assert not second.is_done
    broker.run()
    assert second.is_done


def test_who_waits_is_released_by_a_close_and_nothing_is_taken_behind_it() -> None:
    broker = Coordinator().open()
    offsets = broker.manager.send_offsets(OFFSETS, GROUP)
    broker.manager.next_request(0)
    broker.manager.close()
    assert isinstance(offsets.error, ProducerClosedError)
    assert broker.manager.state is State.IN_TRANSACTION
    assert broker.manager.next_request(0) is None
    for call in CALLS.values():
        with pytest.raises(ProducerClosedError):
            call(broker.manager)


def test_an_answer_of_another_request_is_told_as_it_is_and_ends_the_producer() -> None:
    broker = Coordinator().open()
    pending = broker.manager.send_offsets(OFFSETS, GROUP)
    request = broker.manager.next_request(0)
    assert request is not None
    broker.manager.mismatched(request, 5, 6)
    assert isinstance(pending.error, CorrelationIdMismatchError)
    with pytest.raises(CorrelationIdMismatchError, match="6 where that of request 5") as raised:
        broker.manager.begin()
    assert (raised.value.request_id, raised.value.response_id) == (5, 6)


def test_an_answer_without_a_body_is_told_as_it_is_and_ends_the_producer() -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    request = broker.manager.next_request(0)
    assert request is not None
    broker.manager.answered(request, None, 0)
    with pytest.raises(IllegalStateError, match="without a body"):
        broker.manager.commit()


def test_a_connection_that_breaks_has_the_coordinator_looked_for_again() -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    request = broker.manager.next_request(0)
    assert request is not None
    broker.manager.disconnected(request, 0)
    assert broker.manager.coordinator is None
    assert broker.manager.next_request(99) is None
    assert broker.manager.next_deadline_ms() == 100
    broker.run()
    assert broker.sent == ["FindCoordinator", "AddPartitionsToTxn"]


def test_a_coordinator_that_is_not_found_is_looked_for_until_it_is() -> None:
    broker = Coordinator()
    broker.codes = {"FindCoordinator": [15, 15, 14]}
    pending = broker.manager.init()
    broker.run()
    assert pending.is_done
    assert broker.sent == ["FindCoordinator"] * 4 + ["InitProducerId"]
    assert broker.now_ms == 300


def test_a_first_partition_behind_an_ending_transaction_waits_shortly() -> None:
    broker = Coordinator().open()
    broker.codes = {"AddPartitionsToTxn": [51]}
    broker.manager.add_partition("orders", 0)
    broker.run()
    assert broker.now_ms == 20


def test_a_request_that_no_version_carries_ends_the_producer() -> None:
    broker = Coordinator()
    pending = broker.manager.init()
    request = broker.manager.next_request(0)
    assert request is not None
    broker.manager.refused(request, UnsupportedVersionError("too old"))
    assert isinstance(pending.error, UnsupportedVersionError)


@pytest.mark.parametrize("state", [State.READY, State.IN_TRANSACTION, State.ABORTABLE_ERROR])
def test_initializing_again_gives_up_what_is_open_and_keeps_the_producer(state: State) -> None:
    broker = in_state(state)
    epoch = broker.manager.producer_epoch
    pending = broker.manager.init()
    broker.run()
    assert pending.error is None
    assert broker.manager.producer_epoch == epoch + 1
    assert broker.sent == ["InitProducerId"]
    broker.manager.begin()


def test_a_batch_of_unknown_fate_ends_its_transaction_and_the_epoch() -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    broker.run()
    broker.manager.leave_unresolved()
    with pytest.raises(CommitFailedError) as raised:
        broker.manager.commit()
    assert isinstance(raised.value.root, OutOfOrderSequenceError)
    resets = broker.batches.resets
    broker.manager.abort()
    broker.run()
    assert broker.sent == ["AddPartitionsToTxn", "EndTxn", "InitProducerId"]
    assert broker.batches.resets == resets + 1


def test_the_end_of_a_transaction_may_give_the_next_epoch() -> None:
    broker = Coordinator().open()
    manager = broker.manager
    manager.is_implicit = True
    manager.add_partition("orders", 0)
    assert manager.may_send("orders", 0)
    pending = manager.commit()
    request = manager.next_request(0)
    assert request is not None
    assert request.api == "EndTxn"
    manager.answered(request, SimpleNamespace(error_code=0, producer_id=1000, producer_epoch=9), 0)
    assert pending.is_done
    assert manager.producer_epoch == 9
    assert manager.next_request(0) is None


def test_what_cannot_be_aborted_is_a_fault_that_ends_the_producer() -> None:
    broker = Coordinator().ready()
    broker.manager.fail_abortably(InvalidRecordError("of no transaction"))
    with pytest.raises(IllegalStateError):
        broker.manager.begin()


def test_a_call_tells_when_it_ends_whoever_asks_and_whenever() -> None:
    seen = []
    pending = Pending("commit_transaction")
    pending.when_done(lambda: seen.append("before"))
    pending.end()
    pending.end(KafkaTimeoutError("late"))
    pending.when_done(lambda: seen.append("behind"))
    assert seen == ["before", "behind"]
    assert pending.error is None
