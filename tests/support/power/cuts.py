"""Power cuts of a broker that was recorded: each is a disk, and what a broker finds on it."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from support.power.checks import problems
from support.power.disk import Disk
from support.power.journal import Entry, Recorder
from support.power.workload import History, Workload

# A sync that takes longer has more before its end that is not to be relied on.
SYNC_US = 1000
ENDS = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)


class Recorded(NamedTuple):
    """What a broker did to its disk over more than one life, and what its clients were told."""

    entries: list[Entry]
    history: History


def record(folder: Path, seed: int, *, count: int = 12) -> Recorded:
    """Records a broker that is killed, stopped cleanly, and killed again.

    The journal is checked: played to its end it gives what is on the disk.
    """
    directory = folder / "recorded"
    directory.mkdir()
    recorder = Recorder(folder, directory, sync_us=SYNC_US)
    workload = Workload(recorder, seed)
    for how in ENDS:
        workload.live(count, how)
    recorded = Recorded(recorder.read(), workload.history)
    disk, played = Disk(), folder / "played"
    disk.play(recorded.entries)
    disk.leave_all(played)
    assert files(played) == files(directory)
    shutil.rmtree(played)
    return recorded


def files(path: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()
    }


def cut_again_and_again(
    recorded: Recorded, folder: Path, seed: int, count: int, *, syncs: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Yields places of the journal at which the power is cut, and what a broker lacks then.

    Half of them are where somebody has just been told something.
    """
    random = Random(seed)
    told, ends = recorded.history.places(), [entry.end for entry in recorded.entries]
    cuts = sorted(random.choice(random.choice((told, ends))) for _ in range(count))
    disk, played = Disk(syncs=syncs), 0
    for number, cut in enumerate(cuts):
        before = played
        while played < len(ends) and ends[played] <= cut:
            played += 1
        disk.play(recorded.entries[before:played])
        left = folder / f"cut-{number}"
        disk.leave(left, Random(f"{seed} {number}"))
        yield cut, [*problems(left / "data", recorded.history, cut)]
        shutil.rmtree(left)
