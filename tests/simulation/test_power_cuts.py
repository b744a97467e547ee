"""A power cut takes what was not synced: what that may be depends on what an answer had said."""

import os
import sys
from pathlib import Path
from random import Random

import pytest
from support.simulation.compiled import compiled, played
from support.simulation.disk import torn

# `make simulate` asks for more.
SEEDS = int(os.environ.get("OTTLA_SIMULATIONS", "300"))


@pytest.fixture(scope="module")
def preload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("disk"))


def play(seeds: range, path: Path, preload: Path) -> None:
    done = played("power", path, seeds, preload=preload)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the calls of Linux are watched")
def test_promises_are_kept_whenever_the_power_is_cut(tmp_path: Path, preload: Path) -> None:
    play(range(4), tmp_path, preload)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the calls of Linux are watched")
def test_promises_are_kept_in_many_histories_with_power_cuts(tmp_path: Path, preload: Path) -> None:
    play(range(1000, 1000 + SEEDS // 10), tmp_path, preload)


def test_what_was_synced_of_a_file_is_never_torn() -> None:
    random = Random(1)
    synced, written = random.randbytes(700), random.randbytes(3000)
    left = {torn(random, synced, synced + written) for _ in range(200)}
    assert all(each.startswith(synced) for each in left)
    assert any(len(each) < 3700 for each in left), "nothing was ever cut off"
    assert any(len(each) == 3700 and each != synced + written for each in left), (
        "nothing was ever damaged"
    )


def test_a_file_that_was_written_over_is_as_before_or_behind() -> None:
    random = Random(1)
    assert {torn(random, b"before", b"behind") for _ in range(50)} == {b"before", b"behind"}
