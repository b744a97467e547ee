"""Groups whose members come, go, die and are cut off, by seeds: a partition has one owner."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from ottla.client.errors import PollIntervalExceededError
from ottla.client.groups.membership import EventKind
from ottla.protocol.error_code import ErrorCode
from support.group_members import GroupMembers, Member
from support.simulation.stage import Starts

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.broker.broker import Broker

KINDS: dict[str, dict[str, Any]] = {
    "range": {"partition_assignment_strategy": "range"},
    "sticky": {"partition_assignment_strategy": "sticky"},
    "cooperative": {"partition_assignment_strategy": "cooperative-sticky"},
    "consumer": {"group_protocol": "consumer"},
}
TOPICS = {"t": 5, "u": 3}


class Play:
    """A history of a group."""

    def __init__(self, seed: int, kind: str, **options: Any) -> None:
        self.world = GroupMembers(
            seed, topics=TOPICS, most_latency_ms=30, most_work_ms=400, **options
        )
        self.random = self.world.random
        self.settings = KINDS[kind]
        self.names = iter(f"m{number}" for number in range(1000))
        self.leaving: list[Member] = []

    @property
    def alive(self) -> list[Member]:
        return [each for each in self.world.members if each.is_alive and each not in self.leaving]

    def join(self) -> None:
        member = self.world.member(next(self.names), **self.settings)
        member.subscribe(*self.random.choice([("t", "u"), ("t", "u"), ("t",)]))

    def leave(self) -> None:
        if len(self.alive) > 1:
            member = self.random.choice(self.alive)
            self.leaving.append(member)
            pending = member.membership.leave(self.world.now_ms)
            pending.when_done(member.die)

    def die(self) -> None:
        if len(self.alive) > 1:
            self.random.choice(self.alive).die()

    def cut(self) -> None:
        self.world.cut(self.random.choice(self.alive))

    def resubscribe(self) -> None:
        topics = self.random.choice([("t", "u"), ("u",), ("t",)])
        self.random.choice(self.alive).subscribe(*topics)

    def pause(self) -> None:
        member = self.random.choice(self.alive)
        member.is_polling = False
        self.world.after(self.random.choice([2000, 20_000]), partial(self._go_on, member))

    def _go_on(self, member: Member) -> None:
        member.is_polling = True

    def come_back(self) -> None:
        """A static member ends, and starts again under its name."""
        static = [each for each in self.alive if each.settings.group_instance_id]
        # Somebody stays, for what the play does next.
        if static and len(self.alive) > 1:
            member = self.random.choice(static)
            instance = member.settings.group_instance_id
            self.leaving.append(member)

            def start_again() -> None:
                member.die()
                self.static(instance)

            member.membership.leave(self.world.now_ms).when_done(start_again)

    def static(self, instance: str | None) -> None:
        settings = {**self.settings, "group_instance_id": instance}
        self.world.member(next(self.names), **settings).subscribe("t", "u")

    def play(self, steps: int, *more: Any) -> None:
        for _ in range(3):
            self.join()
        for _ in range(steps):
            self.world.run(self.random.choice([5, 100, 1000, 5000]))
            acts = [self.join, self.leave, self.die, self.cut, self.cut, self.resubscribe, *more]
            self.random.choice(acts)()
        self.join()
        for each in self.alive:
            each.subscribe("t", "u")
        self.world.settle(900_000)
        self.judge()

    def judge(self) -> None:
        owned = sorted(one for each in self.alive for one in each.owned)
        assert owned == sorted((t, n) for t, count in TOPICS.items() for n in range(count))
        for each in self.world.members:
            assert all(self._is_expected(error, each) for error in each.errors)
            # What came is what is there and what went.
            came = [one for event in each.told(EventKind.ASSIGN) for one in event]
            went = [one for event in each.told(EventKind.REVOKE) for one in event]
            went += [one for event in each.told(EventKind.LOSE) for one in event]
            if each.is_alive:
                assert sorted(came) == sorted(went + each.owned)

    def _is_expected(self, error: Exception, member: Member) -> bool:
        # A static member of KIP-848 whose goodbye was cut off is kept until its session is over:
        # who comes back under its name before is refused.
        settings = member.settings
        may_be_held = settings.group_protocol == "consumer" and settings.group_instance_id
        is_held = getattr(error, "error_code", 0) == ErrorCode.UNRELEASED_INSTANCE_ID
        return isinstance(error, PollIntervalExceededError) or bool(may_be_held and is_held)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_to_members_each_partition_has_one_owner(seed: int, kind: str) -> None:
    Play(seed, kind).play(12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [*range(7), 61, 77, 182, 194])
def test_applications_that_pause_and_static_members_that_come_back_change_nothing_of_it(
    seed: int, kind: str
) -> None:
    play = Play(seed, kind)
    play.settings = {**play.settings, "max_poll_interval_ms": 10_000}
    for number in range(2):
        play.static(f"i{number}")
    play.play(10, play.pause, play.pause, play.come_back, play.come_back)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_broker_that_starts_again_goes_on_with_the_group(
    seed: int, kind: str, tmp_path: Path
) -> None:
    starts = Starts(tmp_path)

    def make(now_ms: int) -> Broker:
        return starts(now_ms)

    with starts.kept:
        play = Play(seed, kind, make=make)
        play.play(8, play.world.crash, play.world.crash)
