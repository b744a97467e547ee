"""A broker and its clients under a seed: whatever the network loses, Kafka's promises are kept."""

import os
import shutil
from pathlib import Path

import pytest
from support.simulation.history import History
from support.simulation.play import hold, hold_with_crashes, play
from support.simulation.stage import a_broker, logs_of
from support.simulation.world import World

# `make simulate` asks for more.
SEEDS = int(os.environ.get("OTTLA_SIMULATIONS", "300"))


@pytest.mark.parametrize("seed", range(30))
def test_promises_are_kept_whatever_the_network_loses(seed: int) -> None:
    hold(seed)


def test_a_seed_is_played_again_the_same() -> None:
    worlds = World(7, a_broker), World(7, a_broker)
    histories = History(), History()
    for world, history in zip(worlds, histories, strict=True):
        play(7, world, history)
    assert histories[0] == histories[1]
    assert logs_of(worlds[0].broker) == logs_of(worlds[1].broker)


@pytest.mark.parametrize("seed", range(6))
def test_promises_are_kept_whenever_the_broker_is_killed(seed: int, tmp_path: Path) -> None:
    hold_with_crashes(seed, tmp_path / "data")


@pytest.mark.slow
def test_promises_are_kept_in_many_histories_with_crashes(tmp_path: Path) -> None:
    for seed in range(1000, 1000 + SEEDS // 10):
        try:
            hold_with_crashes(seed, tmp_path / str(seed))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
        shutil.rmtree(tmp_path / str(seed))


@pytest.mark.slow
def test_promises_are_kept_in_many_histories() -> None:
    for seed in range(1000, 1000 + SEEDS):
        try:
            hold(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
