"""Partitions that the engine lists by the hundred are as listing them file by file tells."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from ottla import _engine
from ottla.logs.inventory import Inventory
from ottla.logs.listing import take_inventory
from ottla.storage import files_within
from support.logs import segment, segment_name, write_log_directory, write_partition
from support.mutated_directories import write_mutated_directory

BothWays = Callable[..., tuple[Inventory, Inventory]]


@pytest.fixture
def both_ways(monkeypatch: pytest.MonkeyPatch) -> BothWays:
    """What the engine lists, and what is listed file by file."""

    def listed(directory: Path, threads: int = 1) -> tuple[Inventory, Inventory]:
        files = files_within([directory])
        by_engine = take_inventory([directory], files=files, threads=threads)
        with monkeypatch.context() as patched:
            patched.setattr(
                _engine, "list_plain_partitions", lambda paths, **_: [[None] * len(paths)]
            )
            return by_engine, take_inventory([directory], files=files)

    return listed


def plain(directory: Path) -> object:
    ((listed,),) = _engine.list_plain_partitions([bytes(directory)])
    return listed


def test_mutated_log_directories_are_listed_as_file_by_file(
    tmp_path: Path, both_ways: BothWays
) -> None:
    for seed in range(150):
        directory = write_mutated_directory(tmp_path / str(seed), random.Random(seed))
        by_engine, by_file = both_ways(directory, threads=1 + seed % 3)
        assert by_engine == by_file, seed
        shutil.rmtree(directory)


def test_directories_of_directories_are_listed_as_file_by_file(
    tmp_path: Path, both_ways: BothWays
) -> None:
    for host in ("a", "b"):
        write_log_directory(tmp_path / host / "disk" / "kafka")
    (tmp_path / "a" / "notes").mkdir()
    (tmp_path / "a" / "notes" / "2024.log").write_text("a line\n")
    (tmp_path / "b" / "again").symlink_to(tmp_path / "a")
    by_engine, by_file = both_ways(tmp_path)
    assert by_engine == by_file
    assert len(by_engine.partitions) == 6


def test_more_partitions_than_are_listed_at_once_are_all_there_in_order(
    tmp_path: Path, both_ways: BothWays
) -> None:
    first = write_partition(tmp_path / "orders-0", {0: segment(1)})
    for number in range(1, 300):
        shutil.copytree(first, tmp_path / f"orders-{number}")
    (tmp_path / "orders-7" / "notes").mkdir()
    by_engine, by_file = both_ways(tmp_path, threads=3)
    assert by_engine == by_file
    assert len(by_engine.partitions) == 300


def test_python_lists_no_plain_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = write_log_directory(tmp_path / "kafka")
    listed: list[bytes] = []
    scan = os.scandir

    def scanned(path: bytes) -> object:
        listed.append(path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scanned)
    assert len(take_inventory([directory]).partitions) == 3
    assert listed == [bytes(directory)]


SPOILED: dict[str, Callable[[Path], object]] = {
    "a directory": Path.mkdir,
    "a link to a file": lambda path: path.symlink_to(segment_name(0)),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a FIFO": os.mkfifo,
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_what_is_not_a_regular_file_is_left_to_python(
    tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    partition = write_partition(tmp_path / "orders-0", {0: segment(1)})
    assert plain(partition) is not None
    spoil(partition / segment_name(9))
    assert plain(partition) is None


def test_what_is_no_partition_by_its_files_is_left_to_python(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    assert plain(tmp_path / "orders-0") is None
    (tmp_path / "orders-0" / "2024.log").write_bytes(b"")
    assert plain(tmp_path / "orders-0") is None
    (tmp_path / "orders-0" / segment_name(0)).write_bytes(b"")
    assert plain(tmp_path / "orders-0") is not None
    (tmp_path / "orders-0" / "meta.properties").write_bytes(b"")
    assert plain(tmp_path / "orders-0") is None


def test_a_directory_that_is_gone_or_a_file_is_left_to_python(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert plain(tmp_path / "nowhere") is None
    assert plain(tmp_path / "file") is None
    assert list(_engine.list_plain_partitions([b"a\0b", b""], threads=9)) == [[None, None]]
    assert list(_engine.list_plain_partitions([], threads=2)) == []


def test_a_link_to_a_partition_is_listed_only_where_links_may_lead(
    tmp_path: Path, both_ways: BothWays
) -> None:
    elsewhere = write_partition(tmp_path / "elsewhere" / "orders-1", {0: segment(1)})
    given = write_log_directory(tmp_path / "given", ["orders-0"])
    (given / "orders-1").symlink_to(elsewhere)
    by_engine, by_file = both_ways(given)
    assert by_engine == by_file
    assert [p.partition for p in by_engine.partitions] == [0]
    followed = take_inventory([given], files=files_within([given], follow_links=True))
    assert [p.partition for p in followed.partitions] == [0, 1]
