"""A broker under which the power fails: what is on the disk then, and what has to be."""

import os
import sys
from pathlib import Path

import pytest
from support.power.cuts import cut_again_and_again, record
from support.power.disk import Directory, Disk, File
from support.power.journal import Entry

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="calls are recorded by LD_PRELOAD, which Linux has"
)

# `make power-cuts` asks for more.
CUTS = int(os.environ.get("OTTLA_CUTS", "100"))
CUTS_OF_A_RUN = 100


def hold(folder: Path, seed: int, count: int, *, size: int) -> None:
    recorded = record(folder, seed, count=size)
    for cut, problems in cut_again_and_again(recorded, folder, seed, count):
        assert problems == [], f"run {seed}, power cut at {cut} of the journal"


def test_what_was_acknowledged_is_there_after_a_few_power_cuts(tmp_path: Path) -> None:
    hold(tmp_path, 0, 6, size=4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 1 + max(1, CUTS // CUTS_OF_A_RUN)))
def test_what_was_acknowledged_is_there_after_many_power_cuts(tmp_path: Path, seed: int) -> None:
    hold(tmp_path, seed, min(CUTS, CUTS_OF_A_RUN), size=24)


@pytest.mark.slow
def test_a_disk_on_which_no_sync_does_anything_is_noticed(tmp_path: Path) -> None:
    recorded = record(tmp_path, 0, count=8)
    found = [
        problem
        for _, problems in cut_again_and_again(recorded, tmp_path, 0, 20, syncs=False)
        for problem in problems
    ]
    told = ("that were acknowledged", "that is lost", "committed is", "were committed are lost")
    for words in told:
        assert any(words in problem for problem in found), words


def played(*entries: tuple[str, int, int, bytes]) -> Disk:
    disk = Disk()
    disk.play(Entry(*entry, end=0) for entry in entries)
    return disk


def file_of(disk: Disk, name: str) -> File:
    found = disk.root.live[name]
    assert isinstance(found, File)
    return found


def test_a_sync_is_of_what_was_written_before_it_began() -> None:
    disk = played(
        ("O", 3, 0o100, b"a"),
        ("W", 3, 0, b"before"),
        ("S", 3, 1, b""),
        ("W", 3, 6, b"meanwhile"),
        ("s", 3, 1, b""),
    )
    file = file_of(disk, "a")
    assert bytes(file.durable) == b"before"
    assert bytes(file.live) == b"beforemeanwhile"


def test_a_name_is_there_once_its_directory_is_synced() -> None:
    written = (("O", 3, 0o100, b"a"), ("W", 3, 0, b"1"), ("S", 3, 1, b""), ("s", 3, 1, b""))
    of_directory = (("O", 4, 0, b""), ("S", 4, 2, b""), ("s", 4, 2, b""))
    assert played(*written).root.durable == {}
    assert [*played(*written, *of_directory).root.durable] == ["a"]
    renamed = played(*written, *of_directory, ("R", -1, 0, b"a\0b"))
    assert [*renamed.root.durable] == ["a"]
    assert [*renamed.root.live] == ["b"]


def test_a_file_that_is_made_anew_is_another_one() -> None:
    disk = played(
        ("O", 3, 0o100, b"a"),
        ("W", 3, 0, b"old"),
        ("U", -1, 0, b"a"),
        ("O", 4, 0o100, b"a"),
        ("W", 4, 0, b"new"),
    )
    assert bytes(file_of(disk, "a").live) == b"new"


def test_a_directory_holds_what_is_in_it_though_it_was_renamed() -> None:
    disk = played(("M", -1, 0, b"d"), ("O", 3, 0o100, b"d/a"), ("R", -1, 0, b"d\0e"))
    directory = disk.root.live["e"]
    assert isinstance(directory, Directory)
    assert [*directory.live] == ["a"]
