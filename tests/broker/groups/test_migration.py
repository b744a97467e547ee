"""Members of both protocols in one group, and groups that change theirs (KIP-848)."""

from __future__ import annotations

import pytest
from ottla.broker.groups.consumer_group import ConsumerGroup
from ottla.broker.groups.records import each_partition
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from support.consumer_world import Client, Owned, heartbeat
from support.group_world import World

ALL = {("t", partition) for partition in range(4)}


def by_topic(owned: Owned) -> list[TopicPartition]:
    topics = sorted({topic for topic, _ in owned})
    return [
        TopicPartition(topic=topic, partitions=sorted(p for name, p in owned if name == topic))
        for topic in topics
    ]


def assignment(owned: Owned) -> bytes:
    value = ConsumerProtocolAssignment(assigned_partitions=by_topic(owned))
    return b"\0\1" + b"".join(encode(ConsumerProtocolAssignment, 1)(value))


class ClassicConsumer:
    """A cooperative consumer of the classic protocol; where it leads, it deals out topic `t`."""

    def __init__(
        self,
        world: World,
        version: int = 3,
        instance: str | None = None,
        rebalance_ms: int = 60_000,
    ) -> None:
        self.world = world
        self.version = version
        self.instance = instance
        self.rebalance_ms = rebalance_ms
        self.member_id = ""
        self.generation = -1
        self.owned: Owned = set()
        self.error = 0

    def subscription(self) -> bytes:
        value = ConsumerProtocolSubscription(topics=["t"], owned_partitions=by_topic(self.owned))
        return b"\0\1" + b"".join(encode(ConsumerProtocolSubscription, 1)(value))

    def join(self) -> None:
        """Joins, and syncs if the answer does not have to wait."""
        answer = self.world.join(
            self.member_id,
            version=self.version,
            instance=self.instance,
            protocols={"cooperative-sticky": self.subscription()},
            rebalance_ms=self.rebalance_ms,
        )
        if answer.waits:
            return
        self.error = answer.value.error_code
        if self.error == 79:
            self.member_id = answer.value.member_id
            self.join()
        elif self.error == 0:
            self.member_id = answer.value.member_id
            self.generation = answer.value.generation_id
            members = [each.member_id for each in answer.value.members]
            dealt = {
                each: assignment({("t", p) for p in range(4) if p % len(members) == index})
                for index, each in enumerate(members)
            }
            synced = self.world.sync(answer.value, dealt, group_instance_id=self.instance)
            if not synced.waits:
                self.take(synced.value)

    def take(self, synced: object) -> None:
        self.error = synced.error_code  # type: ignore[attr-defined]
        if self.error == 0:
            data: bytes = synced.assignment  # type: ignore[attr-defined]
            value = decode(ConsumerProtocolAssignment, 1)(data, 2)[0]
            self.owned = {(e.topic, p) for e in value.assigned_partitions for p in e.partitions}

    def beat(self) -> None:
        """Sends a heartbeat, and joins again if it is told to."""
        self.error = self.world.heartbeat(self.member_id, self.generation, instance=self.instance)
        if self.error == 22:
            # What it had is lost to it: others may have it.
            self.owned = set()
        if self.error in {22, 27}:
            self.join()


def kind(world: World) -> list[str]:
    return [each.group_type for each in world.groups.listed()]


def settle(*clients: Client | ClassicConsumer) -> None:
    for _ in range(8):
        for client in clients:
            client.beat()


def test_a_consumer_of_the_new_protocol_makes_a_consumer_group_of_a_classic_one() -> None:
    world = World()
    old = ClassicConsumer(world)
    old.join()
    assert old.owned == ALL
    world.commit(7, member_id=old.member_id, generation_id=old.generation)
    new = Client(world, "m")
    new.beat()
    assert (new.error, new.owned) == (0, set())
    assert kind(world) == ["consumer"]
    settle(old, new)
    assert (len(old.owned), len(new.owned)) == (2, 2)
    assert old.owned | new.owned == ALL
    assert world.committed() == 7
    assert world.commit(8, member_id=old.member_id, generation_id=old.generation) == 0
    assert world.commit(8, member_id=old.member_id, generation_id=99) == 22


def test_partitions_that_a_classic_member_owns_are_not_given_away_before_it_says() -> None:
    world = World()
    old = ClassicConsumer(world)
    old.join()
    new = Client(world, "m")
    for _ in range(3):
        new.beat()
    assert new.owned == set()
    # It joins and still says that it owns everything.
    old.beat()
    new.beat()
    assert not new.owned & old.owned


def test_the_last_consumer_of_the_new_protocol_leaves_a_classic_group_that_rebalances() -> None:
    world = World()
    old, new = ClassicConsumer(world), Client(world, "m")
    old.join()
    new.beat()
    settle(old, new)
    new.leave()
    assert kind(world) == ["classic"]
    old.beat()
    old.beat()
    assert old.owned == ALL
    assert world.state() == "Stable"
    world.start()
    assert (kind(world), world.state()) == (["classic"], "Stable")


def test_a_consumer_that_is_silent_makes_way_for_a_classic_group_too() -> None:
    world = World(group_consumer_session_timeout_ms=45_000)
    old, new = ClassicConsumer(world), Client(world, "m")
    old.join()
    new.beat()
    for _ in range(10):
        world.pass_time(5_000)
        old.beat()
    assert kind(world) == ["classic"]


@pytest.mark.parametrize("version", [0, 1, 3, 4, 9])
def test_a_classic_consumer_joins_a_consumer_group(version: int) -> None:
    world = World()
    new, old = Client(world, "m"), ClassicConsumer(world, version)
    new.beat()
    old.join()
    assert old.error == 0
    settle(old, new)
    assert (len(old.owned), len(new.owned)) == (2, 2)
    assert world.leave(old.member_id) == 0
    settle(new)
    assert new.owned == ALL


def test_a_static_classic_consumer_takes_its_place_in_a_consumer_group() -> None:
    world = World()
    new, old = Client(world, "m"), ClassicConsumer(world, 9, instance="i")
    new.beat()
    old.join()
    settle(old, new)
    again = ClassicConsumer(world, 9, instance="i")
    again.join()
    assert again.owned == old.owned
    assert world.heartbeat(old.member_id, old.generation, instance="i") == 82
    assert world.leave(instance="i") == 0


def test_what_a_classic_member_may_not_do_in_a_consumer_group() -> None:
    world = World()
    new, old = Client(world, "m"), ClassicConsumer(world)
    new.beat()
    old.join()
    assert world.heartbeat("stranger", 1) == 25
    assert world.heartbeat("m", 1) == 25
    assert world.heartbeat(old.member_id, 99) == 22
    assert world.leave("stranger") == 25
    assert world.join(protocols={"other": old.subscription()}).value.error_code == 23
    assert world.join(protocols={"range": b"?"}).value.error_code == 23
    assert world.join(protocol_type="connect").value.error_code == 23


def test_a_classic_member_that_does_not_join_again_is_removed() -> None:
    world = World()
    old, new = ClassicConsumer(world, rebalance_ms=10_000), Client(world, "m")
    old.join()
    for _ in range(5):
        new.beat()
        world.heartbeat(old.member_id, old.generation)
        world.pass_time(3_000)
    settle(new)
    assert new.owned == ALL


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_a_classic_group_stays_one_where_the_policy_says_so(policy: str) -> None:
    world = World(group_consumer_migration_policy=policy)
    ClassicConsumer(world).join()
    assert heartbeat(world).error_code == 69
    assert kind(world) == ["classic"]


def test_a_consumer_group_stays_one_where_the_policy_says_so() -> None:
    world = World(group_consumer_migration_policy="upgrade")
    old, new = ClassicConsumer(world), Client(world, "m")
    old.join()
    new.beat()
    new.leave()
    assert kind(world) == ["consumer"]


def test_a_group_whose_members_say_what_cannot_be_read_is_not_upgraded() -> None:
    world = World()
    world.stable(1)
    refused = heartbeat(world)
    assert refused.error_code == 69
    assert "malformed" in str(refused.error_message)
    world = World()
    world.stable(1, protocol_type="connect")
    assert heartbeat(world).error_code == 69


def test_joins_that_wait_are_answered_when_the_group_changes_its_protocol() -> None:
    world = World()
    old = ClassicConsumer(world)
    old.join()
    waiting = world.join(protocols={"cooperative-sticky": old.subscription()})
    assert waiting.waits
    heartbeat(world)
    assert waiting.value.error_code == 27


def test_a_change_that_cannot_be_kept_is_none() -> None:
    world = World()
    old, new = ClassicConsumer(world), Client(world, "m")
    old.join()
    world.append_error = 19
    new.beat()
    assert (new.error, kind(world)) == (15, ["classic"])
    world.append_error = 0
    old.beat()
    assert (old.error, old.owned) == (0, ALL)


def test_a_restart_goes_on_with_members_of_both_protocols() -> None:
    world = World()
    old, new = ClassicConsumer(world), Client(world, "m")
    old.join()
    new.beat()
    settle(old, new)
    before = world.groups.consumer_group("g")
    world.start()
    after = world.groups.consumer_group("g")
    assert isinstance(after, ConsumerGroup)
    for member_id, member in before.members.items():
        assert after.members[member_id].subscription == member.subscription
        assert after.members[member_id].current == member.current
    settle(old, new)
    assert old.owned | new.owned == ALL
    assert not any("fault" in each for each in world.records("g"))
    mine = [each_partition(m.current.assigned) for m in after.members.values()]
    assert sum(map(len, mine)) == 4
