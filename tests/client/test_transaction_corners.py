"""Calls of a transactional producer that meet others, and answers that nobody waits for."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from ottla.client.errors import (
    AbortableError,
    AuthenticationError,
    CommitFailedError,
    IllegalStateError,
    InvalidRecordError,
    KafkaTimeoutError,
    ProducerFencedError,
    UnknownMemberIdError,
)
from ottla.client.partitions import OffsetAndMetadata, TopicPartition
from ottla.client.transactions.requests import CommitOffsets
from ottla.client.transactions.states import State
from ottla.protocol.error_code import ErrorCode
from support.coordinator import GROUP, OFFSETS, Coordinator, chain_of

LATER = {TopicPartition("orders", 0): OffsetAndMetadata(9)}


def committed(broker: Coordinator) -> list[int]:
    """Records the offsets of each TxnOffsetCommit that is answered from now on."""
    seen: list[int] = []
    answer = broker.answer

    def recorded(request: Any, code: int | None = None) -> None:
        if isinstance(request, CommitOffsets):
            seen.extend(one.offset for one in request.offsets.values())
        answer(request, code)

    broker.answer = recorded  # type: ignore[method-assign]
    return seen


def test_offsets_that_took_too_long_leave_the_transaction_to_be_aborted() -> None:
    broker = Coordinator().open()
    error = broker.manager.time_out(broker.manager.send_offsets(OFFSETS, GROUP))
    assert isinstance(error, KafkaTimeoutError)
    assert "abort it, or call send_offsets_to_transaction again" in str(error)
    abort = broker.manager.abort()
    broker.run()
    assert abort.is_done
    assert abort.error is None
    assert broker.manager.state is State.READY


def test_a_commit_waits_for_offsets_that_took_too_long() -> None:
    broker = Coordinator().open()
    broker.codes = {"TxnOffsetCommit": [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3}
    broker.manager.time_out(broker.manager.send_offsets(OFFSETS, GROUP))
    broker.manager.commit()
    broker.run()
    assert [one for one in broker.sent if one != "FindCoordinator"] == [
        "AddOffsetsToTxn",
        *["TxnOffsetCommit"] * 4,
        "EndTxn",
    ]


def test_a_commit_fails_where_offsets_that_took_too_long_are_refused() -> None:
    broker = Coordinator().open()
    broker.codes = {"TxnOffsetCommit": [ErrorCode.TRANSACTION_ABORTABLE]}
    broker.manager.time_out(broker.manager.send_offsets(OFFSETS, GROUP))
    commit = broker.manager.commit()
    broker.run()
    assert isinstance(commit.error, CommitFailedError)
    assert "EndTxn" not in broker.sent


def test_of_offsets_that_are_sent_twice_the_later_are_committed_last() -> None:
    broker = Coordinator().open()
    seen = committed(broker)
    broker.codes = {"TxnOffsetCommit": [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2}
    broker.manager.time_out(broker.manager.send_offsets(OFFSETS, GROUP))
    later = broker.manager.send_offsets(LATER, GROUP)
    broker.run()
    assert later.is_done
    assert seen == [5, 5, 5, 9]


def test_records_are_taken_while_offsets_are_under_way() -> None:
    broker = Coordinator().open()
    offsets = broker.manager.send_offsets(OFFSETS, GROUP)
    broker.manager.require_open("send")
    broker.manager.add_partition("orders", 0)
    broker.run()
    assert offsets.is_done
    assert broker.manager.may_send("orders", 0)


def test_an_abort_ends_the_wait_for_offsets_and_commits_none_of_them() -> None:
    broker = Coordinator().open()
    offsets = broker.manager.send_offsets(OFFSETS, GROUP)
    request = broker.manager.next_request(0)
    assert request is not None
    broker.manager.abort()
    assert isinstance(offsets.error, IllegalStateError)
    broker.answer(request)
    broker.run()
    assert broker.sent == ["AddOffsetsToTxn", "EndTxn"]


def test_a_transaction_of_which_the_coordinator_never_heard_is_not_ended_there() -> None:
    broker = Coordinator().open()
    broker.manager.send_offsets(OFFSETS, GROUP)
    abort = broker.manager.abort()
    broker.run()
    assert abort.is_done
    assert broker.sent == []


def test_offsets_that_were_refused_before_they_were_added_leave_nothing_to_be_ended() -> None:
    broker = Coordinator(policy="kafka").open()
    broker.codes = {"AddOffsetsToTxn": [ErrorCode.GROUP_AUTHORIZATION_FAILED]}
    broker.manager.send_offsets(OFFSETS, GROUP)
    broker.run()
    broker.manager.abort()
    broker.run()
    assert broker.sent == ["AddOffsetsToTxn"]
    assert broker.manager.state is State.READY


@pytest.mark.parametrize("is_failed_before", [False, True])
def test_partitions_that_may_have_been_added_are_ended(is_failed_before: bool) -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    request = broker.manager.next_request(0)
    assert request is not None
    if is_failed_before:
        broker.manager.fail_abortably(InvalidRecordError("no key"))
    broker.manager.disconnected(request, 0)
    broker.manager.abort()
    broker.run()
    assert broker.sent == ["FindCoordinator", "AddPartitionsToTxn", "EndTxn"]
    assert broker.manager.state is State.READY


def test_a_record_that_fails_while_its_transaction_is_given_up_is_nothing_new() -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    broker.run()
    broker.batches.count = 1
    init = broker.manager.init()
    broker.manager.fail_abortably(InvalidRecordError("no key"), must_bump=True)
    broker.batches.count = 0
    broker.run()
    assert init.is_done
    assert init.error is None
    broker.manager.begin()


def test_a_partition_that_is_refused_while_its_transaction_is_given_up_is_nothing_new() -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    request = broker.manager.next_request(0)
    assert request is not None
    init = broker.manager.init()
    broker.answer(request, ErrorCode.INVALID_TOPIC_EXCEPTION)
    broker.run()
    assert init.is_done
    assert init.error is None
    assert broker.manager.state is State.READY


def test_what_is_fatal_stays_so_whatever_is_answered_later() -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    broker.run()
    broker.manager.commit()
    request = broker.manager.next_request(0)
    assert request is not None
    broker.manager.fail_fatally(ProducerFencedError("another one"))
    broker.answer(request)
    assert broker.manager.state is State.FATAL_ERROR
    with pytest.raises(ProducerFencedError):
        broker.manager.begin()


def test_what_is_answered_behind_a_close_is_not_looked_at() -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    request = broker.manager.next_request(0)
    assert request is not None
    broker.manager.close()
    broker.manager.disconnected(request, 0)
    broker.answer(request)
    broker.manager.mismatched(request, 1, 2)
    broker.manager.refused(request, AuthenticationError())
    assert broker.manager.state is State.IN_TRANSACTION


@pytest.mark.parametrize(
    ("code", "ends"),
    [(ErrorCode.INVALID_PRODUCER_ID_MAPPING, []), (ErrorCode.UNKNOWN_PRODUCER_ID, ["EndTxn"])],
)
@pytest.mark.parametrize("call", ["abort", "init"])
def test_a_transaction_is_ended_before_its_producer_gets_an_epoch_unless_its_id_is_lost(
    call: str, code: int, ends: list[str]
) -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    broker.run()
    broker.codes = {"AddPartitionsToTxn": [code]}
    broker.manager.add_partition("orders", 1)
    broker.run()
    broker.sent.clear()
    getattr(broker.manager, call)()
    broker.run()
    assert broker.sent == [*ends, "InitProducerId"]
    assert broker.manager.state is State.READY


def test_a_commit_that_waits_for_batches_has_no_time_of_its_own() -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    broker.run()
    broker.batches.count = 1
    broker.manager.commit()
    assert broker.manager.next_deadline_ms() is None
    broker.batches.count = 0
    assert broker.manager.next_deadline_ms() == 0


def test_a_coordinator_that_is_not_told_while_a_transaction_is_aborted_is_asked_for_again() -> None:
    broker = Coordinator().open()
    broker.manager.add_partition("orders", 0)
    broker.run()
    broker.manager.coordinator = None
    broker.codes = {"FindCoordinator": [ErrorCode.TRANSACTION_ABORTABLE] * 2}
    abort = broker.manager.abort()
    broker.run()
    assert abort.is_done
    assert broker.now_ms == 200


def test_a_lost_membership_is_fatal_and_fails_records_by_its_root() -> None:
    broker = Coordinator().open()
    broker.batches.failed.clear()
    broker.codes = {"TxnOffsetCommit": [ErrorCode.UNKNOWN_MEMBER_ID]}
    offsets = broker.manager.send_offsets(OFFSETS, GROUP)
    broker.run()
    error = offsets.error
    assert isinstance(error, CommitFailedError)
    assert (error.fatal, error.restartable) == (True, True)
    assert pickle.loads(pickle.dumps(error)).fatal  # noqa: S301
    assert [type(one) for one in broker.batches.failed] == [UnknownMemberIdError]
    with pytest.raises(CommitFailedError) as raised:
        broker.manager.commit()
    assert raised.value.fatal
    assert not CommitFailedError(InvalidRecordError("no key")).fatal


def test_what_is_fatal_is_raised_anew_by_the_call_that_met_it_and_has_one_cause() -> None:
    broker = Coordinator()
    root = AuthenticationError("wrong password")
    root.__cause__ = OSError("closed")
    init = broker.manager.init()
    request = broker.manager.next_request(0)
    assert request is not None
    broker.manager.refused(request, root)
    assert init.error is not root
    assert type(init.error) is AuthenticationError
    assert [str(one) for one in chain_of(init.error)] == ["wrong password", "closed"]


def test_a_wrapper_that_is_given_as_a_reason_is_not_wrapped_again() -> None:
    broker = Coordinator().open()
    broker.manager.fail_abortably(AbortableError(InvalidRecordError("no key")))
    with pytest.raises(AbortableError) as raised:
        broker.manager.begin()
    assert type(raised.value.root) is InvalidRecordError
