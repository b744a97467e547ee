"""Calls find their node, are repeated where that helps, and end in time, on a virtual clock."""

import random
from typing import Any

import pytest
from ottla.client.admin.core import AdminCore
from ottla.client.admin.groups import DeleteGroups, DescribeGroups, ListGroups
from ottla.client.admin.offsets import ListOffsets, OffsetSpec
from ottla.client.admin.operation import Operation
from ottla.client.admin.topics import CreateTopics, DeleteTopics, DescribeTopics, NewTopic
from ottla.client.admin.transactions import FenceProducers
from ottla.client.errors import (
    AuthorizationError,
    KafkaError,
    KafkaTimeoutError,
    NotCoordinatorError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from ottla.client.partitions import TopicPartition
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages import (
    consumer_group_describe,
    create_topics,
    delete_groups,
    delete_topics,
    describe_groups,
    find_coordinator,
    init_producer_id,
    list_groups,
    list_offsets,
)
from support.scripted_cluster import CUT, SILENCE, ScriptedCluster


class World:
    """A cluster and an admin client of it."""

    def __init__(self, **options: Any) -> None:
        changed = {"default_api_timeout_ms": 60_000, "retries": 2**31 - 1}
        self.cluster = ScriptedCluster(**changed | options)
        draw = random.Random(1).random
        self.core = AdminCore(self.cluster.settings, self.cluster.network, random=draw)
        self.cluster.machine = self.core

    def call(self, operation: Operation[Any, Any], timeout_ms: int | None = None) -> Any:
        pending = self.core.begin(operation, self.cluster.now_ms, timeout_ms)
        self.cluster.run(lambda: pending.is_done)
        if pending.error is not None:
            raise pending.error
        return pending.value


def created(*codes: int) -> Any:
    """Answers of CreateTopics with these codes, one after the other."""
    left = list(codes)

    def answer(request: Any, _version: int) -> Any:
        code = left.pop(0) if left else 0
        return create_topics.CreateTopicsResponse(
            topics=[
                create_topics.CreatableTopicResult(name=one.name, error_code=code)
                for one in request.topics
            ]
        )

    return answer


def coordinated(world: World, node_ids: list[int]) -> None:
    """Has coordinators found at these nodes, the last again and again."""

    def answer(request: Any, _version: int) -> Any:
        node_id = node_ids.pop(0) if len(node_ids) > 1 else node_ids[0]
        node = world.cluster.nodes[node_id]
        return find_coordinator.FindCoordinatorResponse(
            coordinators=[
                find_coordinator.Coordinator(
                    key=key, node_id=node_id, host=node.host, port=node.port
                )
                for key in request.coordinator_keys
            ]
        )

    world.cluster.on("FindCoordinator", answer)


def deleted_at(world: World, right: int) -> Any:
    """Answers of DeleteGroups, of which one node is the right one."""

    def answer(request: Any, _version: int) -> Any:
        code = 0 if world.cluster.node_id == right else ErrorCode.NOT_COORDINATOR
        return delete_groups.DeleteGroupsResponse(
            results=[
                delete_groups.DeletableGroupResult(group_id=one, error_code=code)
                for one in request.groups_names
            ]
        )

    return answer


def nodes_asked(world: World, api: str) -> list[int]:
    return [node_id for node_id, name, _, _ in world.cluster.requests if name == api]


def test_topics_are_created_by_the_controller_in_one_request() -> None:
    world = World(nodes=3)
    world.cluster.on("CreateTopics", created())
    results = world.call(CreateTopics([NewTopic("a"), NewTopic("b", 3)], validate_only=False))
    assert list(results) == ["a", "b"]
    assert results.check() is results
    assert nodes_asked(world, "CreateTopics") == [1]


def test_a_broker_that_is_no_controller_any_more_has_the_controller_looked_up_again() -> None:
    world = World(nodes=2)
    world.cluster.on("CreateTopics", created(ErrorCode.NOT_CONTROLLER))
    assert world.call(CreateTopics([NewTopic("a")], validate_only=False)).errors == {}
    assert len(world.cluster.asked("CreateTopics")) == 2
    assert len(world.cluster.asked("Metadata")) == 2


def test_a_topic_that_was_perhaps_created_is_not_created_again() -> None:
    world = World()
    world.cluster.on("CreateTopics", created(ErrorCode.REQUEST_TIMED_OUT))
    results = world.call(CreateTopics([NewTopic("a")], validate_only=False))
    assert isinstance(results["a"].error, RequestTimedOutError)
    assert len(world.cluster.asked("CreateTopics")) == 1


def test_a_connection_that_breaks_has_the_request_made_again() -> None:
    world = World()
    answers = [CUT]
    served = created()
    world.cluster.on("CreateTopics", lambda *given: answers.pop() if answers else served(*given))
    assert world.call(CreateTopics([NewTopic("a")], validate_only=False)).errors == {}


def test_each_key_has_its_own_error_and_check_raises_the_first() -> None:
    world = World()

    def answer(request: Any, _version: int) -> Any:
        codes = {"b": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "c": ErrorCode.TOPIC_ALREADY_EXISTS}
        return create_topics.CreateTopicsResponse(
            topics=[
                create_topics.CreatableTopicResult(name=one.name, error_code=codes.get(one.name, 0))
                for one in request.topics
            ]
        )

    world.cluster.on("CreateTopics", answer)
    results = world.call(CreateTopics(map(NewTopic, "abc"), validate_only=False))
    assert list(results.errors) == ["b", "c"]
    assert str(results["c"].error) == "TOPIC_ALREADY_EXISTS (create_topics of c)"
    with pytest.raises(AuthorizationError):
        results.check()


def test_an_answer_without_a_key_fails_that_key_alone() -> None:
    world = World()
    world.cluster.on("DeleteTopics", lambda *_: delete_topics.DeleteTopicsResponse())
    results = world.call(DeleteTopics(["a"]))
    assert str(results["a"].error) == "the answer to delete_topics does not have a"


def test_a_coordinator_that_moves_is_found_again() -> None:
    world = World(nodes=2)
    coordinated(world, [1, 2])
    world.cluster.on("DeleteGroups", deleted_at(world, 2))
    assert world.call(DeleteGroups(["g"])).errors == {}
    assert nodes_asked(world, "DeleteGroups") == [1, 2]


def test_a_key_is_repeated_no_more_often_than_retries() -> None:
    world = World(nodes=2, retries=3)
    coordinated(world, [1])
    world.cluster.on("DeleteGroups", deleted_at(world, 2))
    results = world.call(DeleteGroups(["g"]))
    assert isinstance(results["g"].error, NotCoordinatorError)
    assert len(world.cluster.asked("DeleteGroups")) == 4


def test_a_group_whose_coordinator_may_not_be_asked_for_fails_alone() -> None:
    world = World()
    world.cluster.on("DeleteGroups", deleted_at(world, 1))

    def answer(request: Any, _version: int) -> Any:
        (key,) = request.coordinator_keys
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED if key == "secret" else 0
        found = find_coordinator.Coordinator(
            key=key, node_id=1, host="node-1", port=9092, error_code=code
        )
        return find_coordinator.FindCoordinatorResponse(coordinators=[found])

    world.cluster.on("FindCoordinator", answer)
    results = world.call(DeleteGroups(["g", "secret"]))
    assert list(results.errors) == ["secret"]
    assert isinstance(results["secret"].error, AuthorizationError)


def listed(world: World) -> Any:
    """Answers of ListOffsets by the leaders alone; an offset tells who answered."""

    def answer(request: Any, _version: int) -> Any:
        def partition(topic: str, index: int) -> Any:
            leader, _ = world.cluster.leader_of(topic, index)
            is_led = leader == world.cluster.node_id
            return list_offsets.ListOffsetsPartitionResponse(
                partition_index=index,
                error_code=0 if is_led else ErrorCode.NOT_LEADER_OR_FOLLOWER,
                offset=100 * world.cluster.node_id + index,
            )

        return list_offsets.ListOffsetsResponse(
            topics=[
                list_offsets.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        partition(topic.name, one.partition_index) for one in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return answer


def test_partitions_of_a_leader_share_a_request_and_others_have_another() -> None:
    world = World(nodes=2, topics={"t": 3})
    world.cluster.on("ListOffsets", listed(world))
    wanted = {TopicPartition("t", index): OffsetSpec.LATEST for index in range(3)}
    results = world.call(ListOffsets(wanted, read_committed=False))
    assert [one.offset for one in results.values()] == [100, 201, 102]
    assert sorted(nodes_asked(world, "ListOffsets")) == [1, 2]


def test_a_leader_that_moves_is_looked_up_again() -> None:
    world = World(nodes=2, topics={"t": 1})
    world.cluster.on("ListOffsets", listed(world))
    wanted = {TopicPartition("t", 0): 5}
    assert world.call(ListOffsets(wanted, read_committed=False)).errors == {}
    world.cluster.leaders["t", 0] = (2, 1)
    pending = world.core.begin(ListOffsets(wanted, read_committed=False), world.cluster.now_ms)
    world.cluster.run(lambda: pending.is_done)
    assert pending.value[TopicPartition("t", 0)].offset == 200


def test_a_topic_that_nobody_knows_is_believed_after_a_few_lookups() -> None:
    world = World()
    world.cluster.errors["nope"] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    began_ms = world.cluster.now_ms
    results = world.call(ListOffsets({TopicPartition("nope", 0): 5}, read_committed=False))
    error = results[TopicPartition("nope", 0)].error
    assert isinstance(error, UnknownTopicOrPartitionError)
    assert str(error) == "the cluster has no topic nope"
    assert world.cluster.now_ms - began_ms < 10_000


def test_a_partition_that_a_topic_does_not_have_is_said_at_once() -> None:
    world = World(topics={"t": 2})
    world.cluster.on("ListOffsets", listed(world))
    results = world.call(ListOffsets({TopicPartition("t", 2): 5}, read_committed=False))
    error = results[TopicPartition("t", 2)].error
    assert str(error) == "topic t has 2 partitions, and so no partition 2"


def test_what_is_left_when_the_time_is_over_has_timed_out_and_the_rest_has_not() -> None:
    world = World(nodes=2, topics={"t": 2})
    served = listed(world)

    def answer(request: Any, version: int) -> Any:
        return SILENCE if world.cluster.node_id == 2 else served(request, version)

    world.cluster.on("ListOffsets", answer)
    wanted = {TopicPartition("t", index): 5 for index in range(2)}
    began_ms = world.cluster.now_ms
    results = world.call(ListOffsets(wanted, read_committed=False), timeout_ms=7_000)
    assert world.cluster.now_ms - began_ms == 7_000
    assert list(results.errors) == [TopicPartition("t", 1)]
    error = results[TopicPartition("t", 1)].error
    assert isinstance(error, KafkaTimeoutError)
    assert str(error).startswith("list_offsets of t-1 took longer than 7000 ms")


def test_without_a_broker_a_call_times_out_and_says_why() -> None:
    world = World()
    world.cluster.down.add(1)
    with pytest.raises(KafkaTimeoutError, match=r"list_groups took longer than 5000 ms: .*refused"):
        world.call(ListGroups([], []), timeout_ms=5_000)


@pytest.mark.parametrize(
    ("operation", "told", "why"),
    [
        (
            CreateTopics([NewTopic("a")], validate_only=False),
            {"brokers": [], "controller_id": -1},
            "create_topics of a took longer than 5000 ms: brokers answer, but tell of no brokers",
        ),
        (
            ListGroups([], []),
            {"brokers": [], "controller_id": -1},
            "list_groups took longer than 5000 ms: brokers answer, but tell of no brokers",
        ),
        (
            CreateTopics([NewTopic("a")], validate_only=False),
            {"controller_id": -1},
            ": the cluster has no controller; there are brokers [1, 2]",
        ),
        (
            CreateTopics([NewTopic("a")], validate_only=False),
            {"controller_id": 7},
            ": the cluster has no controller among brokers [1, 2]: it is to be 7",
        ),
        (
            ListOffsets({TopicPartition("t", 0): OffsetSpec.LATEST}, read_committed=False),
            {"leader_id": -1},
            ": partition 0 of topic t has no leader; there are brokers [1, 2]",
        ),
        (
            ListOffsets({TopicPartition("t", 0): OffsetSpec.LATEST}, read_committed=False),
            {"leader_id": 3},
            ": partition 0 of topic t has no leader among brokers [1, 2]: it is to be 3",
        ),
    ],
)
def test_who_waited_in_vain_is_told_what_the_cluster_lacks(
    operation: Operation[Any, Any], told: dict[str, Any], why: str
) -> None:
    world = World(nodes=2, topics={"t": 1})

    def answer(request: Any, version: int) -> Any:
        response = world.cluster.metadata(request, version)
        response.brokers = told.get("brokers", response.brokers)
        response.controller_id = told.get("controller_id", response.controller_id)
        for topic in response.topics:
            for partition in topic.partitions:
                partition.leader_id = told.get("leader_id", partition.leader_id)
        return response

    world.cluster.on("Metadata", answer)
    try:
        results = world.call(operation, timeout_ms=5_000)
        (error,) = results.errors.values()
    except KafkaTimeoutError as raised:
        error = raised
    assert isinstance(error, KafkaTimeoutError)
    assert why in str(error)


def groups_of(name: str) -> Any:
    return lambda *_: list_groups.ListGroupsResponse(
        groups=[list_groups.ListedGroup(group_id=name, protocol_type="consumer")]
    )


def test_groups_are_those_of_all_brokers() -> None:
    world = World(nodes=3)
    world.cluster.on("ListGroups", lambda *_: groups_of(f"g{world.cluster.node_id}")())
    assert [one.group_id for one in world.call(ListGroups([], []))] == ["g1", "g2", "g3"]


def test_groups_are_not_listed_in_part() -> None:
    world = World(nodes=2)

    def answer(*_: Any) -> Any:
        if world.cluster.node_id == 2:
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            return list_groups.ListGroupsResponse(error_code=code)
        return groups_of("g")()

    world.cluster.on("ListGroups", answer)
    with pytest.raises(AuthorizationError):
        world.call(ListGroups([], []))


def classic(request: Any, _version: int) -> Any:
    return describe_groups.DescribeGroupsResponse(
        groups=[
            describe_groups.DescribedGroup(
                group_id=one,
                group_state="Dead" if one == "gone" else "Stable",
                protocol_type="consumer",
                protocol_data="range",
                members=[
                    describe_groups.DescribedGroupMember(
                        member_id="m",
                        member_assignment=b"\0\1\0\0\0\1\0\1t\0\0\0\1\0\0\0\7\xff\xff\xff\xff",
                    ),
                    describe_groups.DescribedGroupMember(member_id="n", member_assignment=b"\0"),
                ],
            )
            for one in request.groups
        ]
    )


def test_a_group_that_is_none_of_type_consumer_is_described_as_a_classic_one() -> None:
    world = World()
    coordinated(world, [1])
    world.cluster.on("DescribeGroups", classic)
    world.cluster.on(
        "ConsumerGroupDescribe",
        lambda request, _: consumer_group_describe.ConsumerGroupDescribeResponse(
            groups=[
                consumer_group_describe.DescribedGroup(
                    group_id=one,
                    error_code=0 if one == "new" else ErrorCode.GROUP_ID_NOT_FOUND,
                    group_state="Empty",
                    assignor_name="uniform",
                )
                for one in request.group_ids
            ]
        ),
    )
    results = world.call(DescribeGroups(["old", "new", "gone"]))
    assert [one.group_type for one in results.values()] == ["classic", "consumer", ""]
    assert results["old"].members[0].assignment == (TopicPartition("t", 7),)
    assert results["old"].members[1].assignment == ()
    assert str(results["gone"].error) == "there is no group gone"


def test_groups_of_a_broker_without_groups_of_type_consumer_are_classic() -> None:
    world = World()
    coordinated(world, [1])
    world.cluster.on("DescribeGroups", classic)
    assert world.call(DescribeGroups(["old"]))["old"].group_type == "classic"


def test_a_call_that_no_broker_knows_fails_at_once() -> None:
    world = World()
    coordinated(world, [1])
    results = world.call(DescribeGroups(["g"]))
    assert isinstance(results["g"].error, UnsupportedVersionError)


def test_each_transactional_id_is_fenced_by_requests_of_its_own() -> None:
    world = World()
    coordinated(world, [1])
    left = [ErrorCode.CONCURRENT_TRANSACTIONS]
    world.cluster.on(
        "InitProducerId",
        lambda *_: init_producer_id.InitProducerIdResponse(
            error_code=left.pop() if left else 0, producer_id=7, producer_epoch=3
        ),
    )
    results = world.call(FenceProducers(["a", "b"]))
    assert [(one.producer_id, one.producer_epoch) for one in results.values()] == [(7, 3)] * 2
    assert sorted(one.transactional_id for one in world.cluster.asked("InitProducerId")) in (
        ["a", "a", "b"],
        ["a", "b", "b"],
    )


def test_topics_that_are_described_are_not_created() -> None:
    world = World(topics={"t": 1})
    world.cluster.errors["nope"] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    results = world.call(DescribeTopics(["t", "nope"]))
    assert len(results["t"].partitions) == 1
    assert isinstance(results["nope"].error, KafkaError)
    assert [one.allow_auto_topic_creation for one in world.cluster.asked("Metadata")][-1] is False


def test_several_calls_are_under_way_at_once() -> None:
    world = World(nodes=2, topics={"t": 2})
    world.cluster.on("ListOffsets", listed(world))
    world.cluster.on("CreateTopics", created())
    begun = [
        world.core.begin(operation, world.cluster.now_ms)
        for operation in (
            ListOffsets({TopicPartition("t", 0): 5}, read_committed=False),
            CreateTopics([NewTopic("a")], validate_only=False),
            ListOffsets({TopicPartition("t", 1): 5}, read_committed=True),
        )
    ]
    world.cluster.run(lambda: all(one.is_done for one in begun))
    assert all(not one.value.errors for one in begun)
    assert world.core.next_deadline_ms() != 0
