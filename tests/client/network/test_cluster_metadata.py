"""Which answers to Metadata are older than what is known (KIP-232)."""

from typing import Any

from ottla.client.network.cluster import ClusterMetadata
from ottla.client.network.metadata import Leader
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from support.scripted_cluster import ScriptedCluster

RELIABLE = 9


def told(
    *, leader_epoch: int, partition_epoch: int = -1, largest: int = -1, leader_id: int = 1
) -> MetadataResponse:
    """An answer about partition 0 of the topic t."""
    partition = MetadataResponsePartition(
        partition_index=0,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
    )
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=one, host="a", port=9092) for one in (1, 2)],
        topics=[MetadataResponseTopic(name="t", partitions=[partition])],
        max_partition_epoch=largest,
    )


def knowing(**answer: Any) -> ClusterMetadata:
    """A cluster of which one answer is known."""
    cluster = ClusterMetadata(300_000)
    cluster.add_topics(frozenset({"t"}))
    assert cluster.accept(told(**answer), RELIABLE, 0)
    return cluster


def test_an_answer_with_a_smaller_largest_partition_epoch_is_old() -> None:
    cluster = knowing(leader_epoch=5, partition_epoch=3, largest=9)
    old = told(leader_epoch=6, partition_epoch=3, largest=8, leader_id=2)
    assert not cluster.accept(old, RELIABLE, 1)
    assert cluster.leader("t", 0) == Leader(1, 5)
    assert cluster.outdated_partition_epoch_total == 1


def test_an_answer_with_a_smaller_epoch_of_a_partition_of_interest_is_old() -> None:
    cluster = knowing(leader_epoch=5, partition_epoch=3, largest=9)
    assert not cluster.accept(
        told(leader_epoch=6, partition_epoch=2, largest=9, leader_id=2), RELIABLE, 1
    )
    assert cluster.leader("t", 0) == Leader(1, 5)


def test_an_answer_with_a_smaller_leader_epoch_of_the_same_partition_is_old() -> None:
    cluster = knowing(leader_epoch=5, partition_epoch=3, largest=9)
    assert not cluster.accept(
        told(leader_epoch=4, partition_epoch=3, largest=9, leader_id=2), RELIABLE, 1
    )
    assert cluster.leader("t", 0) == Leader(1, 5)
    assert cluster.outdated_total == 1


def test_after_an_old_answer_metadata_is_asked_for_again() -> None:
    cluster = ScriptedCluster(nodes=2, topics={"t": 1})
    metadata = cluster.network.metadata
    cluster.leaders["t", 0] = (1, 5)
    metadata.add_topics(frozenset({"t"}))
    cluster.run(lambda: metadata.leader("t", 0) == Leader(1, 5))
    cluster.leaders["t", 0] = (2, 4)
    cluster.after(500, lambda: cluster.leaders.update({("t", 0): (2, 6)}))
    metadata.request_update()
    cluster.run(lambda: metadata.leader("t", 0) != Leader(1, 5))
    assert metadata.leader("t", 0) == Leader(2, 6)


def test_a_leader_that_no_address_is_told_of_is_asked_for_again() -> None:
    cluster = ScriptedCluster(nodes=2, topics={"t": 1})
    metadata = cluster.network.metadata

    def answer(request: Any, version: int) -> MetadataResponse:
        told = cluster.metadata(request, version)
        if len(cluster.asked("Metadata")) < 3:
            told.brokers = [one for one in told.brokers if one.node_id == 1]
        return told

    cluster.leaders["t", 0] = (2, 5)
    cluster.on("Metadata", answer)
    metadata.add_topics(frozenset({"t"}))
    cluster.run(lambda: 2 in metadata.nodes, max_ms=5_000)
    assert metadata.leader("t", 0) == Leader(2, 5)


def test_a_partition_that_was_created_anew_begins_with_any_leader_epoch() -> None:
    cluster = knowing(leader_epoch=5, partition_epoch=3, largest=9)
    recreated: list[tuple[str, int]] = []
    cluster.on_recreated(lambda *partition: recreated.append(partition))
    anew = told(leader_epoch=0, partition_epoch=10, largest=10, leader_id=2)
    assert cluster.accept(anew, RELIABLE, 1)
    assert cluster.leader("t", 0) == Leader(2, 0)
    assert recreated == [("t", 0)]


def test_what_nobody_has_an_interest_in_is_not_compared() -> None:
    cluster = knowing(leader_epoch=5, partition_epoch=3, largest=9)
    cluster.set_topics(frozenset({"other"}))
    assert cluster.accept(
        told(leader_epoch=4, partition_epoch=3, largest=9, leader_id=2), RELIABLE, 1
    )
