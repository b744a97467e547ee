"""A power cut takes what was not synced: what that may be depends on what an answer had said."""

import os
import sys
from pathlib import Path
from random import Random

import pytest
from support.simulation.compiled import compiled, played, run
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


# A log with garbage at its end is written and opened, and what is sure of it then is told.
CUT_OFF = """
import sys
from pathlib import Path
from random import Random

import ottla
from ottla.broker.plane import DataPlane
from support.plane_frames import Plane, batch
from support.simulation.disk import Disk

root = Path(sys.argv[1])
log = root / "t-0" / "00000000000000000000.log"
plane = Plane(DataPlane())
plane.open(directory=log.parent)
plane.append(batch())
plane.engine.close(0)
whole = log.read_bytes()
log.write_bytes(whole + b"garbage")
disk = Disk(root, Random(1))
Plane(DataPlane()).open(directory=log.parent)
assert log.read_bytes() == whole
assert disk.synced_bytes()["t-0/" + log.name] == whole
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the calls of Linux are watched")
def test_what_a_start_has_cut_off_does_not_come_back(tmp_path: Path, preload: Path) -> None:
    done = run(["-c", CUT_OFF, str(tmp_path)], preload=preload)
    assert done.returncode == 0, done.stderr


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
