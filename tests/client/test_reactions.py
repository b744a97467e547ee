"""What a producer does about each error of each request of a transaction (KIP-691).

The table of `ottla.client.transactions.reactions` is held here to what becomes of a producer: its
state, what the call that waits gets, and what the next call raises.
"""

from typing import Any

import pytest
from ottla.client.errors import (
    AbortableError,
    CommitFailedError,
    KafkaError,
    ProducerFencedError,
    error_class,
)
from ottla.client.transactions.reactions import APIS, TABLE, Reaction, reaction
from ottla.client.transactions.states import State
from ottla.protocol.error_code import ErrorCode
from support.coordinator import GROUP, OFFSETS, Coordinator, chain_of

CODES = {name: code for name, code in vars(ErrorCode).items() if name.isupper() and code != 0} | {
    "a code of the future": 999
}
CELLS = [(api, name) for api in APIS for name in CODES]


def failed(api: str, code: int, policy: Any) -> tuple[Coordinator, BaseException | None]:
    """Returns a coordinator whose answer to one request had the code once, and what a call got."""
    broker = Coordinator(policy=policy)
    manager = broker.manager
    if api == "InitProducerId":
        broker.codes = {api: [code]}
        pending = manager.init()
    elif api in ("AddPartitionsToTxn", "EndTxn"):
        broker.open()
        manager.add_partition("orders", 0)
        broker.codes = {api: [code]}
        if api == "AddPartitionsToTxn":
            broker.run()
            return broker, manager.root
        pending = manager.commit()
    else:
        broker.open()
        broker.codes = {api: [code]}
        pending = manager.send_offsets(OFFSETS, GROUP)
    broker.run()
    assert pending.is_done
    return broker, pending.error


@pytest.mark.parametrize("policy", ["kip691", "kafka"])
@pytest.mark.parametrize(("api", "name"), CELLS)
def test_every_error_of_every_request_has_the_consequence_of_its_cell(
    api: str, name: str, policy: Any
) -> None:
    code = CODES[name]
    expected = reaction(api, code, policy)
    broker, error = failed(api, code, policy)
    manager = broker.manager
    assert len(chain_of(error)) <= 2
    if expected in (Reaction.RETRY, Reaction.FIND):
        assert error is None
        assert broker.sent.count(api) == 2
        again = broker.sent.index(api) + 1
        assert (broker.sent[again] == "FindCoordinator") == (
            expected is Reaction.FIND or api == "FindCoordinator"
        )
        assert manager.state in (State.READY, State.IN_TRANSACTION)
        return
    is_abortable = expected in (Reaction.ABORT, Reaction.BUMP) or (
        expected is Reaction.REMOVED and policy == "kafka"
    )
    assert manager.state is (State.ABORTABLE_ERROR if is_abortable else State.FATAL_ERROR)
    with pytest.raises(KafkaError) as raised:
        manager.begin()
    assert len(chain_of(raised.value)) <= 2
    if not is_abortable:
        assert type(raised.value) is type(manager.root)
        assert raised.value is not manager.root
        if expected is Reaction.FENCED:
            assert type(manager.root) is ProducerFencedError
        elif expected is Reaction.REMOVED:
            assert type(manager.root) is CommitFailedError
            assert manager.root.error_code == code
        else:
            assert type(manager.root) is error_class(code)
        return
    assert type(manager.root) is error_class(code)
    assert type(raised.value) is AbortableError
    assert raised.value.root is manager.root
    if api != "AddPartitionsToTxn":
        wrapper = CommitFailedError if api == "EndTxn" else AbortableError
        assert type(error) is wrapper


@pytest.mark.parametrize(
    ("api", "name"),
    [
        (api, name)
        for api, name in CELLS
        if reaction(api, CODES[name]) in (Reaction.ABORT, Reaction.BUMP)
    ],
)
def test_after_an_abort_a_producer_goes_on_with_a_new_epoch_where_it_needs_one(
    api: str, name: str
) -> None:
    code = CODES[name]
    broker, _ = failed(api, code, "kip691")
    epoch = broker.manager.producer_epoch
    pending = broker.manager.abort()
    broker.run()
    assert pending.is_done
    assert pending.error is None
    assert broker.manager.state is State.READY
    if reaction(api, code) is Reaction.BUMP:
        assert broker.manager.producer_epoch == epoch + 1
    broker.manager.begin()


def test_without_a_way_to_a_new_epoch_a_lost_mapping_is_fatal() -> None:
    broker = Coordinator().open()
    broker.manager.can_bump = False
    broker.manager.add_partition("orders", 0)
    broker.codes = {"AddPartitionsToTxn": [ErrorCode.INVALID_PRODUCER_ID_MAPPING]}
    broker.run()
    assert broker.manager.state is State.FATAL_ERROR


def test_partitions_that_were_not_attempted_are_not_what_is_told() -> None:
    broker = Coordinator().open()
    manager = broker.manager
    manager.add_partition("orders", 0)
    manager.add_partition("orders", 1)
    request = manager.next_request(0)
    assert request is not None
    response = broker.response(request, ErrorCode.OPERATION_NOT_ATTEMPTED)
    response.results_by_topic_v3_and_below[0].results_by_partition[
        1
    ].partition_error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
    manager.answered(request, response, 0)
    assert manager.state is State.ABORTABLE_ERROR
    assert str(manager.root) == "orders-1: INVALID_TOPIC_EXCEPTION"


def test_the_table_has_a_cell_for_each_request_and_each_code_once() -> None:
    rows = [line.split() for line in TABLE.strip().splitlines()[1:]]
    assert all(len(row) == len(APIS) + 1 for row in rows)
    assert len({row[0] for row in rows}) == len(rows)
