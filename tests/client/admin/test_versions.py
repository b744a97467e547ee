"""Every call can be written in each version that it may be made in."""

from typing import Any

import pytest
from ottla.client.admin.cluster import DescribeCluster, DescribeFeatures
from ottla.client.admin.configs import (
    AlterConfigs,
    ConfigResource,
    DescribeConfigs,
    ResourceType,
)
from ottla.client.admin.groups import DeleteGroups, DescribeGroups, ListGroups
from ottla.client.admin.offsets import (
    AlterGroupOffsets,
    DeleteGroupOffsets,
    DeleteRecords,
    ListGroupOffsets,
    ListOffsets,
    OffsetSpec,
)
from ottla.client.admin.operation import Operation
from ottla.client.admin.topics import (
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    DescribeTopics,
    ListTopics,
    NewTopic,
)
from ottla.client.admin.transactions import (
    AbortTransaction,
    DescribeProducers,
    DescribeTransactions,
    FenceProducers,
    ListTransactions,
    ProducerState,
)
from ottla.client.groups.call import Call
from ottla.client.network.metadata import Node
from ottla.client.partitions import OffsetAndMetadata, TopicPartition
from ottla.protocol.codec import decode, encode
from ottla.protocol.wire import schema

FIRST, SECOND = TopicPartition("a", 0), TopicPartition("b", 3)
TOPIC = ConfigResource(ResourceType.TOPIC, "a")
NODES = {1: Node(1, "one", 9092), 2: Node(2, "two", 9092)}
COMMITTED: dict[TopicPartition, Any] = {FIRST: 5, SECOND: OffsetAndMetadata(6, "m", 2)}

OPERATIONS: list[Operation[Any, Any]] = [
    CreateTopics([NewTopic("a", 3, 1, {"x": "1"})], validate_only=True),
    CreateTopics([NewTopic("a", assignments={0: [1, 2]})], validate_only=False),
    DeleteTopics(["a", "b"]),
    CreatePartitions({"a": 5}, {"a": [[1], [2]]}, validate_only=True),
    ListTopics(with_internal=True),
    DescribeTopics(["a", "b"]),
    DescribeConfigs([TOPIC], include_documentation=False),
    AlterConfigs({TOPIC: {"x": "1", "y": None}}, validate_only=True),
    ListGroups([], []),
    ListGroups(["Stable"], []),
    ListGroups(["Stable"], ["classic"]),
    DescribeGroups(["g"]),
    DeleteGroups(["g", "h"]),
    ListGroupOffsets("g", None),
    ListGroupOffsets("g", [FIRST, SECOND]),
    AlterGroupOffsets("g", COMMITTED),
    DeleteGroupOffsets("g", [FIRST, SECOND]),
    ListOffsets({FIRST: 5, SECOND: OffsetSpec.EARLIEST}, read_committed=False),
    ListOffsets({FIRST: OffsetSpec.MAX_TIMESTAMP}, read_committed=True),
    DeleteRecords({FIRST: 5, SECOND: -1}),
    DescribeProducers([FIRST, SECOND]),
    ListTransactions([], [], -1),
    ListTransactions(["Ongoing"], [7], 1000),
    DescribeTransactions(["t"]),
    AbortTransaction(FIRST, ProducerState(7, 3, 5, 0, 2, 9)),
    FenceProducers(["t", "u"]),
    DescribeCluster(),
    DescribeFeatures("ottla", "1"),
]


def written(operation: Operation[Any, Any]) -> int:
    """How many versions the operation's request is written and read in."""
    keys = list(operation.keys(NODES) or ())
    assert keys
    request, versions = operation.request(keys[0])
    asked = keys if operation.is_shared else keys[:1]
    call = Call(request, operation.fields(asked), lambda *_: None, lambda *_: None)
    count = 0
    for version in schema(request).versions:
        if versions is None or version in versions:
            data = b"".join(encode(request, version)(call.message(version)))
            _, end = decode(request, version)(data, 0)
            assert end == len(data)
            count += 1
    return count


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: type(one).__name__)
def test_a_call_is_written_in_every_version_that_it_may_be_made_in(
    operation: Operation[Any, Any],
) -> None:
    assert written(operation) > 0
    if operation.ask_otherwise(list(operation.keys(NODES) or ())):
        assert written(operation) > 0


def test_every_operation_is_tried() -> None:
    def below(one: type) -> set[type]:
        return {one}.union(*map(below, one.__subclasses__()))

    concrete = {one for one in below(Operation) if "name" in vars(one)}
    assert {type(one) for one in OPERATIONS} == concrete
