"""Faults strike where they are set, and count that they did."""

from importlib import import_module
from typing import Any

import pytest
from ottla.broker.api import APIS, Api
from ottla.broker.broker import error_codes
from ottla.broker.connection import CloseConnectionError
from ottla.broker.faults import Fault, Names
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from support.messages import one_item_in_each_list
from support.wire_client import WireClient, new_broker

FETCH, LIST_OFFSETS, METADATA = APIS[1], APIS[2], APIS[3]


@pytest.fixture
def client() -> WireClient:
    client = WireClient(new_broker())
    for name in ("orders", "payments"):
        wanted = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        client.ask(CreateTopicsRequest(topics=[wanted]), 7)
    return client


def latest(*partitions: tuple[str, int]) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[ListOffsetsPartition(partition_index=partition, timestamp=-1)],
            )
            for topic, partition in partitions
        ],
    )


def errors_of(answer: Any) -> list[int]:
    return [each.error_code for topic in answer.topics for each in topic.partitions]


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_every_api_answers_a_fault_without_limits_in_every_version(
    client: WireClient, api: Api
) -> None:
    module = import_module(f"ottla.protocol.messages.{api.name}")
    request_class = getattr(module, f"{api.title}Request")
    for version in range(api.min_version, api.max_version + 1):
        fault = client.broker.faults.add(Fault(api, error=ErrorCode.INVALID_REQUEST))
        request = one_item_in_each_list(request_class, version)
        if api.key == 0:
            request.acks = 1
        answer = client.ask(request, version)
        assert error_codes(answer) == (ErrorCode.INVALID_REQUEST,), (api.title, version)
        assert fault.hits == 1
        client.broker.faults.remove(fault)


def test_an_error_of_a_partition_is_that_partitions_alone(client: WireClient) -> None:
    fault = client.broker.faults.add(
        Fault(LIST_OFFSETS, error=ErrorCode.LEADER_NOT_AVAILABLE, names=Names("orders", 1), times=1)
    )
    asked = latest(("orders", 0), ("orders", 1), ("payments", 1))
    assert errors_of(client.ask(asked, 7)) == [0, ErrorCode.LEADER_NOT_AVAILABLE, 0]
    assert errors_of(client.ask(asked, 7)) == [0, 0, 0]
    assert fault.hits == 1


def test_a_fault_of_a_client_leaves_the_others_alone(client: WireClient) -> None:
    other = WireClient(client.broker, "other")
    client.broker.faults.add(Fault(METADATA, disconnect=True, client="other"))
    request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
    assert client.ask(request, 9).topics[0].error_code == 0
    with pytest.raises(CloseConnectionError):
        other.ask(request, 9)


def test_after_the_work_is_done_the_client_is_told_otherwise(client: WireClient) -> None:
    create = CreateTopicsRequest(
        topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)]
    )
    client.broker.faults.add(Fault(APIS[19], error=ErrorCode.REQUEST_TIMED_OUT, after=True))
    assert client.ask(create, 7).topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "new" in client.broker.image.topics


@pytest.mark.parametrize("happens", ["an error", "the end", "nothing"])
def test_a_request_that_waits_has_its_work_done_before_one_answer_says_otherwise(
    client: WireClient, happens: str
) -> None:
    client.broker.faults.add(
        Fault(
            FETCH,
            error=ErrorCode.REQUEST_TIMED_OUT if happens == "an error" else 0,
            disconnect=happens == "the end",
            after=True,
            times=1,
        )
    )
    partition = FetchPartition(partition_max_bytes=1000)
    topic = FetchTopic(topic="orders", partitions=[partition])
    wanted = FetchRequest(
        session_epoch=-1, topics=[topic], max_wait_ms=500, min_bytes=1, max_bytes=1000
    )
    fetch = client.send(wanted, 12)
    assert not fetch.is_answered
    client.advance(1000)
    if happens == "an error":
        assert fetch.answer().error_code == ErrorCode.REQUEST_TIMED_OUT
    else:
        assert fetch.frames == ([None] if happens == "the end" else [])


def test_before_the_work_is_done_nothing_of_it_is(client: WireClient) -> None:
    create = CreateTopicsRequest(
        topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)]
    )
    client.broker.faults.add(Fault(APIS[19], disconnect=True))
    with pytest.raises(CloseConnectionError):
        client.ask(create, 7)
    assert "new" not in client.broker.image.topics


def test_a_delay_answers_by_the_brokers_clock(client: WireClient) -> None:
    client.broker.faults.add(Fault(METADATA, delay_ms=5_000, times=1))
    pending = client.send(MetadataRequest(topics=None), 9)
    assert pending.waits
    client.advance(4_999)
    assert not pending.is_answered
    client.advance(1)
    assert len(pending.answer().topics) == 2


def test_a_paused_fault_holds_requests_until_it_is_released(client: WireClient) -> None:
    fault = client.broker.faults.add(Fault(METADATA))
    fault.is_paused = True
    pending = client.send(MetadataRequest(topics=None), 9)
    client.advance(10_000_000)
    assert pending.waits
    assert not pending.is_answered
    fault.is_paused = False
    client.broker.waiting.wake(("fault", fault))
    client.broker.tick(client.now_ms)
    assert len(pending.answer().topics) == 2


def test_a_corrupted_answer_differs_in_its_last_byte(client: WireClient) -> None:
    request = MetadataRequest(topics=None)
    sound = client.send(request, 9).frames[0]
    client.broker.faults.add(Fault(METADATA, corrupt=True))
    broken = client.send(request, 9).frames[0]
    assert sound is not None
    assert broken is not None
    assert broken[4:-1] == sound[4:-1]
    assert broken[-1] == sound[-1] ^ 0xFF


def test_an_observer_counts_and_changes_nothing(client: WireClient) -> None:
    seen = client.broker.faults.add(Fault(METADATA, observe=True, names=Names(topic="orders")))
    for name in ("orders", "payments", "orders"):
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        assert client.ask(request, 9).topics[0].error_code == 0
    assert seen.hits == 2


def test_a_condition_on_the_request_decides(client: WireClient) -> None:
    client.broker.faults.add(
        Fault(METADATA, error=ErrorCode.INVALID_REQUEST, when=lambda r: r.topics is None)
    )
    named = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
    assert client.ask(named, 13).error_code == 0
    assert client.ask(MetadataRequest(topics=None), 13).error_code == ErrorCode.INVALID_REQUEST
