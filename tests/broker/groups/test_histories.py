"""Random histories of groups against what must always hold, with restarts and a log that fails."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.broker.groups.classic_group import ClassicGroup
from ottla.broker.groups.consumer_group import ConsumerGroup, ConsumerMember
from ottla.broker.groups.records import each_partition
from support.consumer_world import Client, heartbeat, settle
from support.group_world import Answer, World

TOPICS = {"t": 5, "u": 2}


class ClassicClient:
    """A consumer of the classic protocol; the leader gives everybody its name and generation."""

    def __init__(self, world: World, instance: str | None, version: int) -> None:
        self.world = world
        self.instance = instance
        self.version = version
        self.member_id = ""
        self.generation = -1
        self.answer: Answer | None = None
        self.is_joining = False
        self.joined: ClassicGroup | None = None
        self.seen: list[tuple[ClassicGroup, int, str]] = []

    def act(self) -> None:
        """Does what a consumer does next."""
        if self.answer is not None:
            if not self.answer.waits:
                self._take(self.answer.value)
        elif self.generation < 0:
            self.is_joining = True
            self.answer = self.world.join(
                self.member_id, instance=self.instance, version=self.version
            )
            # After a restart it is another one of the same name.
            group = self.world.groups.store.groups.get("g")
            self.joined = group if isinstance(group, ClassicGroup) else None
        else:
            self._heed(
                self.world.heartbeat(self.member_id, self.generation, instance=self.instance)
            )

    def _take(self, answer: Any) -> None:
        self.answer = None
        if answer.error_code:
            if answer.error_code == 79:
                self.member_id = answer.member_id
            self._heed(answer.error_code)
        elif self.is_joining:
            self._joined(answer)
        else:
            # A static member that came back has what its instance was given under its former id.
            owner, _, generation = answer.assignment.decode().partition("@")
            assert generation in {"", str(self.generation)}
            if self.instance is None:
                assert owner in {"", self.member_id}
            else:
                assert owner.startswith(f"{self.instance}-") or not owner

    def _joined(self, answer: Any) -> None:
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self.is_joining = False
        if self.joined is not None:
            self.seen.append((self.joined, answer.generation_id, answer.leader))
        assigned = {
            each.member_id: f"{each.member_id}@{self.generation}".encode()
            for each in answer.members
        }
        self.answer = self.world.sync(answer, assigned, group_instance_id=self.instance)

    def _heed(self, error: int) -> None:
        if error:
            self.generation = -1
        if error in {25, 82}:
            self.member_id = ""

    def leave(self) -> None:
        self.world.leave(self.member_id, instance=self.instance)
        self.crash()

    def crash(self) -> None:
        self.member_id, self.generation, self.answer = "", -1, None


steps = st.tuples(
    st.sampled_from(["act"] * 8 + ["leave", "crash", "wait", "commit", "restart", "fail", "long"]),
    st.integers(0, 3),
)


def offsets_of(world: World) -> list[tuple[str, int, int]]:
    return sorted((t, p, value.offset) for t, p, value in world.groups.store.offsets.of_group("g"))


def restart(world: World, clients: list[ClassicClient]) -> None:
    """Restarts, and holds what is loaded against what was there."""
    before = world.groups.describe("g")
    offsets = offsets_of(world)
    world.start()
    after = world.groups.describe("g")
    assert offsets_of(world) == offsets
    if before.group_state == "Stable":
        assert after == before
    for client in clients:
        if client.answer is not None and client.answer.waits:
            client.crash()


def one_step(
    world: World, clients: list[ClassicClient], step: str, client: ClassicClient
) -> int | None:
    """Takes a step. Returns the offset that was committed in it."""
    world.append_error = 0
    if step == "act":
        client.act()
    elif step == "fail":
        world.append_error = 19
        client.act()
    elif step == "leave":
        client.leave()
    elif step == "crash":
        client.crash()
    elif step in {"wait", "long"}:
        world.pass_time(3_000 if step == "wait" else 30_000)
    elif step == "restart":
        restart(world, clients)
    elif step == "commit":
        offset = world.now_ms % 1_000_003
        refused = world.commit(
            offset, member_id=client.member_id, generation_id=client.generation, version=9
        )
        return None if refused else offset
    return None


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=120), st.integers(0, 3_000))
def test_classic_groups_keep_their_promises(history: list[tuple[str, int]], delay_ms: int) -> None:
    world = World(topics=TOPICS, group_initial_rebalance_delay_ms=delay_ms)
    clients = [
        ClassicClient(world, instance, version)
        for instance, version in ((None, 3), (None, 9), ("i", 9), ("j", 5))
    ]
    committed = -1
    for step, index in history:
        offset = one_step(world, clients, step, clients[index])
        committed = committed if offset is None else offset
        # Offsets go nowhere but where they were committed.
        assert world.committed() == committed
        group = world.groups.store.groups.get("g")
        if isinstance(group, ClassicGroup):
            assert (group.leader is None) == (not group.members)
            assert group.leader is None or group.leader in group.members
            statics = {m.group_instance_id: m.member_id for m in group.members.values()}
            assert group.static_members == {k: v for k, v in statics.items() if k is not None}
    leaders: dict[tuple[int, int], set[str]] = {}
    for client in clients:
        # A static leader that came back has a new id, so generations of dynamic ones count.
        for group, generation, leader in client.seen:
            if not leader.startswith(("i-", "j-")):
                leaders.setdefault((id(group), generation), set()).add(leader)
    assert all(len(each) == 1 for each in leaders.values())
    # All that are alive come to one generation, once nothing fails.
    world.append_error = 0
    for _ in range(80):
        for client in clients:
            client.act()
        world.pass_time(1_000)
    assert {client.generation for client in clients} == {clients[0].generation}
    assert len({client.member_id for client in clients}) == 4
    assert world.state() == "Stable"


class SlowClient(Client):
    """A consumer of KIP-848 that gives up partitions later than it is told."""

    told: set[tuple[str, int]] | None = None

    def beat(self) -> Any:
        owned = set(self.owned)
        answer = super().beat()
        if self.error == 0 and self.owned != owned:
            # What it may have it takes at once, what it is to give up it keeps for now.
            self.told = set(self.owned)
            self.owned |= owned & self.held()
        return answer

    def held(self) -> set[tuple[str, int]]:
        """What the coordinator takes it to have."""
        group = self.world.groups.store.groups.get(self.group)
        member = group.members.get(self.member_id) if isinstance(group, ConsumerGroup) else None
        if not isinstance(member, ConsumerMember):
            return set()
        return {
            (topic_id.rstrip(b"\0").decode(), partition)
            for each in (member.current.assigned, member.current.pending_revocation)
            for topic_id, partition in each_partition(each)
        }

    def release(self) -> None:
        if self.told is not None:
            self.owned &= self.told


def check_consumer_group(world: World, clients: list[SlowClient]) -> None:
    group = world.groups.store.groups.get("g")
    if not isinstance(group, ConsumerGroup):
        return
    taken: set[tuple[bytes, int]] = set()
    for member in group.members.values():
        assert member.epoch <= group.target_epoch <= group.epoch
        mine = {
            *each_partition(member.current.assigned),
            *each_partition(member.current.pending_revocation),
        }
        assert not mine & taken
        assert all(group.owners[partition] == member.member_id for partition in mine)
        taken |= mine
    assert group.owners.keys() == taken
    owned: set[tuple[str, int]] = set()
    for client in clients:
        # One that was removed and has not heard of it may go on for a while.
        if client.epoch > 0 and client.member_id in group.members:
            assert not client.owned & owned
            owned |= client.owned


def snapshot(world: World) -> Any:
    group = world.groups.store.groups.get("g")
    if not isinstance(group, ConsumerGroup):
        return None
    members = {
        each.member_id: (each.subscription, each.target, each.current)
        for each in group.members.values()
    }
    return group.epoch, group.metadata_hash, group.target_epoch, members, group.regexes


consumer_steps = st.tuples(
    st.sampled_from(
        ["beat"] * 8 + ["release"] * 4
        + ["leave", "away", "crash", "wait", "restart", "fail", "grow", "lost", "long"]
    ),
    st.integers(0, 4),
)  # fmt: skip


def consumer_step(world: World, step: str, client: SlowClient) -> None:
    world.append_error = 0
    if step == "beat":
        client.beat()
    elif step == "fail":
        world.append_error = 19
        client.beat()
    elif step == "release":
        client.release()
    elif step == "lost":
        # The answer is lost; the client says everything in the next heartbeat.
        heartbeat(world, client.member_id, client.epoch, owned=client.owned, **client.said())
        client.says_all = True
    elif step == "leave" or (step == "away" and client.epoch > 0):
        client.leave(-2 if step == "away" and "instance_id" in client.fields else -1)
    elif step == "crash":
        client.epoch, client.owned = 0, set()
    elif step in {"wait", "long"}:
        world.pass_time(3_000 if step == "wait" else 30_000)
    elif step == "grow":
        world.set_topics({"t": 5, "u": 2 + world.now_ms % 3})
    elif step == "restart":
        before = snapshot(world)
        world.start()
        assert snapshot(world) == before


@settings(max_examples=60, deadline=None)
@given(st.lists(consumer_steps, max_size=120))
def test_consumer_groups_keep_their_promises(history: list[tuple[str, int]]) -> None:
    world = World(topics=TOPICS)
    clients = [
        SlowClient(world, "a", topics=["t", "u"]),
        SlowClient(world, "b", topics=["t"]),
        SlowClient(world, "c", topics=["t", "u"], instance_id="i"),
        SlowClient(world, "d", subscribed_topic_regex="[tu]"),
        SlowClient(world, "e", topics=["u"], server_assignor="range"),
    ]
    for step, index in history:
        consumer_step(world, step, clients[index])
        check_consumer_group(world, clients)
    world.append_error = 0
    # Those that crashed are removed in time, then everybody comes to its target.
    for _ in range(60):
        for client in clients:
            client.beat()
            client.release()
        check_consumer_group(world, clients)
        world.pass_time(1_000)
    settle(*clients, rounds=2)
    group = world.groups.consumer_group("g")
    assert group.state == "Stable"
    assert set().union(*(client.owned for client in clients)) == {
        (topic, partition)
        for topic, count in (("t", 5), ("u", len(world.image.topics["u"].partitions)))
        for partition in range(count)
    }
