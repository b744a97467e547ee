"""What real coordinators of Kafka have written is loaded as what it says."""

from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla.broker.groups.classic_group import ClassicGroup
from ottla.broker.groups.consumer_group import ConsumerGroup
from support.group_world import World


def load(directory: Path) -> World:
    """A coordinator on the logs of a broker."""
    partitions = [*directory.glob("__consumer_offsets-*")]
    world = World(offsets_topic_num_partitions=len(partitions))
    for partition in partitions:
        index = int(partition.name.rpartition("-")[2])
        for segment in sorted(partition.glob("*.log")):
            world.groups.load(index, segment.read_bytes(), world.now_ms)
    world.groups.resume(world.now_ms)
    return world


def last_values(directory: Path) -> dict[str, dict[tuple[Any, ...], Any]]:
    """What is in force by the records that the audit decodes: of each key the last, by type."""
    found: dict[str, dict[tuple[Any, ...], Any]] = {}
    for partition in directory.glob("__consumer_offsets-*"):
        for record in ottla.read_partition(partition, isolation="read_committed"):
            decoded = ottla.decode_record("__consumer_offsets", record.key, record.value)
            assert decoded is not None
            of_type = found.setdefault(decoded["type"], {})
            key = tuple(decoded["key"].values())
            of_type.pop(key, None)
            if decoded["value"] is not None:
                of_type[key] = decoded["value"]
    return found


def check(directory: Path) -> set[str]:
    """Compares the two. Returns the types of records that there are."""
    world, expected = load(directory), last_values(directory)
    groups, offsets = world.groups.store.groups, world.groups.store.offsets
    committed = {
        (group, topic, partition): value.offset
        for group in offsets.groups()
        for topic, partition, value in offsets.of_group(group)
    }
    assert committed == {
        key: value["offset"] for key, value in expected.get("offset-commit", {}).items()
    }
    classic = {name: group for name, group in groups.items() if isinstance(group, ClassicGroup)}
    for (name,), value in expected.get("group", {}).items():
        group = classic[name]
        assert (group.generation_id, group.protocol_name) == (
            value["generation"],
            value["protocol"],
        )
        assert list(group.members) == [member["member_id"] for member in value["members"]]
    consumer = {name: group for name, group in groups.items() if isinstance(group, ConsumerGroup)}
    assert {(name,): group.epoch for name, group in consumer.items()} == {
        key: value["epoch"] for key, value in expected.get("consumer-group", {}).items()
    }
    members = {
        (name, member_id): member.subscription.topic_names
        for name, group in consumer.items()
        for member_id, member in group.members.items()
    }
    assert members == {
        key: tuple(value["subscribed_topic_names"])
        for key, value in expected.get("consumer-group-member", {}).items()
    }
    epochs = {
        (name, member_id): (member.epoch, member.current.state)
        for name, group in consumer.items()
        for member_id, member in group.members.items()
    }
    for key, value in expected.get("consumer-group-current-assignment", {}).items():
        assert epochs[key] == (value["member_epoch"], value["state"])
    return set(expected)


def test_the_groups_of_a_brokers_log_are_loaded(demo: Path) -> None:
    assert {"offset-commit", "group"} <= check(demo)


@pytest.mark.shared
def test_the_groups_of_five_releases_are_loaded(shared: Path) -> None:
    found_at = (shared / "corpus").rglob("__consumer_offsets-*")
    directories = {path.parent for path in found_at if path.is_dir()}
    found = set[str]().union(*(check(directory) for directory in directories))
    assert {"consumer-group", "consumer-group-member", "offset-commit", "group"} <= found
