"""A broker that answers with nothing, or about something else, breaks no client."""

from typing import Any

import pytest
from client.admin.test_admin_core import World, coordinated
from client.admin.test_versions import OPERATIONS
from ottla.client.admin.offsets import ListGroupOffsets
from ottla.client.admin.operation import Operation
from ottla.client.errors import KafkaError, KafkaTimeoutError
from ottla.protocol.messages import create_topics, describe_configs, list_offsets, offset_fetch
from support.scripted_cluster import messages_of

APIS = [
    *("CreateTopics", "DeleteTopics", "CreatePartitions", "DescribeConfigs"),
    *("IncrementalAlterConfigs", "ListGroups", "DescribeGroups", "ConsumerGroupDescribe"),
    *("DeleteGroups", "OffsetFetch", "OffsetCommit", "OffsetDelete", "ListOffsets"),
    *("DeleteRecords", "DescribeProducers", "ListTransactions", "DescribeTransactions"),
    *("WriteTxnMarkers", "InitProducerId", "DescribeCluster"),
]


def answering(answers: dict[str, Any]) -> World:
    """A world in which APIs have these answers, or empty ones."""
    world = World(nodes=2, topics={"a": 1, "b": 4}, default_api_timeout_ms=5_000)
    coordinated(world, [1])
    for api in APIS:
        answer = answers.get(api) or messages_of(api)[1]()
        world.cluster.on(api, lambda *_, answer=answer: answer)
    return world


def outcome(world: World, operation: Operation[Any, Any]) -> Any:
    try:
        return world.call(operation)
    except KafkaError as error:
        return error


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: type(one).__name__)
def test_an_empty_answer_ends_a_call(operation: Operation[Any, Any]) -> None:
    found = outcome(answering({}), operation)
    errors = getattr(found, "errors", None)
    if errors:
        assert all("does not have" in str(error) for error in errors.values())


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: type(one).__name__)
def test_an_answer_about_something_else_ends_a_call(operation: Operation[Any, Any]) -> None:
    world = answering(
        {
            "CreateTopics": create_topics.CreateTopicsResponse(
                topics=[create_topics.CreatableTopicResult(name="other")]
            ),
            "DescribeConfigs": describe_configs.DescribeConfigsResponse(
                results=[
                    describe_configs.DescribeConfigsResult(resource_type=99, resource_name="other")
                ]
            ),
            "ListOffsets": list_offsets.ListOffsetsResponse(
                topics=[
                    list_offsets.ListOffsetsTopicResponse(
                        name="a",
                        partitions=[list_offsets.ListOffsetsPartitionResponse(partition_index=77)],
                    )
                ]
            ),
            "OffsetFetch": offset_fetch.OffsetFetchResponse(
                groups=[offset_fetch.OffsetFetchResponseGroup(group_id="other")]
            ),
        }
    )
    found = outcome(world, operation)
    if isinstance(operation, ListGroupOffsets):
        assert str(found) == "the answer to list_group_offsets does not have g"
    assert world.core.next_deadline_ms() != 0


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: type(one).__name__)
def test_a_cluster_whose_brokers_have_not_registered_yet_is_asked_again(
    operation: Operation[Any, Any],
) -> None:
    world = answering({})
    starting = 3

    def metadata(request: Any, version: int) -> Any:
        told = world.cluster.metadata(request, version)
        if len(world.cluster.asked("Metadata")) <= starting:
            told.brokers, told.controller_id = [], -1
        return told

    world.cluster.on("Metadata", metadata)
    found = outcome(world, operation)
    errors = [found] if isinstance(found, KafkaError) else getattr(found, "errors", {}).values()
    assert not [error for error in errors if isinstance(error, KafkaTimeoutError)]
