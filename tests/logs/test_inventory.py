"""What lies under a path is known by what it holds; nothing odd there stops the listing."""

import os
import socket
from pathlib import Path

import ottla
import pytest
from ottla import _engine
from ottla.logs.listing import take_inventory
from ottla.logs.names import classify, display, parse_partition_name
from ottla.storage import files_within
from support.logs import (
    META_PROPERTIES,
    segment,
    segment_name,
    write_log_directory,
    write_partition,
)


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        (b"orders-0", ("orders", 0, "live")),
        (b"page-views-12", ("page-views", 12, "live")),
        (b"__cluster_metadata-0", ("__cluster_metadata", 0, "live")),
        (b"a-1.1ee4e2924c4147d9948c4c9749eae7ab-delete", ("a", 1, "delete")),
        (b"a-1.1ee4e2924c4147d9948c4c9749eae7ab-future", ("a", 1, "future")),
        (b"a.b-1.1ee4e2924c4147d9948c4c9749eae7ab-stray", ("a.b", 1, "stray")),
        (b"orders", None),
        (b"-0", None),
        (b"orders-", None),
        (b"orders-2147483647", ("orders", 2147483647, "live")),
        (b"orders-2147483648", None),
        (b"orders-00000000001", ("orders", 1, "live")),
        (b"orders-+1", ("orders", 1, "live")),
        (b"orders-++1", None),
        (b"\xff" * 253 + b"-0", ("\\xff" * 253, 0, "live")),
        (b"lost+found", None),
        (b"remote-log-index-cache", None),
    ],
)
def test_a_directory_name_tells_topic_partition_and_state(
    name: bytes, parsed: tuple[str, int, str] | None
) -> None:
    assert parse_partition_name(name) == parsed


@pytest.mark.parametrize(
    ("name", "kind", "state", "base_offset"),
    [
        (b"00000000000000000042.log", "segment", "live", 42),
        (b"42.log", "segment", "live", 42),
        (b"00000000000000000042.log.deleted", "segment", "deleted", 42),
        (b"00000000000000000042.log.swap", "segment", "swap", 42),
        (b"00000000000000000042.timeindex.cleaned", "time-index", "cleaned", 42),
        (b"00000000000000000042.index", "offset-index", "live", 42),
        (b"00000000000000000042.txnindex", "transaction-index", "live", 42),
        (b"00000000000000000042.snapshot", "producer-snapshot", "live", 42),
        (b"00000000000000000042-0000000007.checkpoint", "metadata-snapshot", "live", 42),
        (b"leader-epoch-checkpoint", "leader-epoch-checkpoint", "live", None),
        (b"leader-epoch-checkpoint.tmp", "leader-epoch-checkpoint", "temporary", None),
        (b"quorum-state", "quorum-state", "live", None),
        (b"bootstrap.checkpoint", "metadata-snapshot", "live", None),
        (b".kafka_cleanshutdown", "clean-shutdown", "live", None),
        (b"9223372036854775807.log", "segment", "live", 2**63 - 1),
        (b"9223372036854775808.log", "unknown", "live", None),
        (b"99999999999999999999.log", "unknown", "live", None),
        (b"000000000000000000042.log", "unknown", "live", None),
        (b"-0.log", "unknown", "live", None),
        (b"+1.log", "unknown", "live", None),
        (b"0" * 251 + b".log", "unknown", "live", None),
        (b"\xff" * 255, "unknown", "live", None),
        (b"notes.txt", "unknown", "live", None),
        (b"\xff\xfe.log", "unknown", "live", None),
    ],
)
def test_a_file_name_tells_kind_state_and_base_offset(
    name: bytes, kind: str, state: str, base_offset: int | None
) -> None:
    assert classify(name) == (kind, state, base_offset)


def test_names_are_shown_printable_whatever_their_bytes() -> None:
    assert display(b"orders-0") == "orders-0"
    assert display("größe-0".encode()) == "größe-0"
    assert display(b"caf\xe9") == "caf\\xe9"
    assert display(b"a\x1b[31m\n") == "a\\x1b[31m\\x0a"


def test_a_log_directory_is_listed_with_its_partitions_and_its_own_files(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    (log_directory / "notes.txt").write_text("mine")
    (log_directory / "remote-log-index-cache").mkdir()
    listed = take_inventory([log_directory])
    assert [(p.topic, p.partition) for p in listed.partitions] == [
        ("orders", 0),
        ("orders", 1),
        ("payments", 0),
    ]
    assert [len(p.segments) for p in listed.partitions] == [2, 2, 2]
    (own,) = listed.log_directories
    assert all(p.stopped_cleanly for p in listed.partitions)
    kinds = {listed.display(file.path): file.kind for file in own.files}
    assert kinds["notes.txt"] == "unknown"
    assert kinds["remote-log-index-cache"] == "directory"
    assert kinds["meta.properties"] == "meta-properties"
    assert listed.unreadable == ()


def test_a_partition_directory_is_named_as_in_its_log_directory(tmp_path: Path) -> None:
    partition = write_partition(tmp_path / "orders-7", {0: segment(1)})
    listed = take_inventory([partition])
    assert listed.display(listed.partitions[0].segments[0].path) == (
        "orders-7/00000000000000000000.log"
    )


def test_a_directory_is_known_by_what_it_holds_and_not_by_its_name(tmp_path: Path) -> None:
    write_log_directory(tmp_path / "broker-1", ["orders-0"])
    write_log_directory(tmp_path / "broker-2", ["orders-0"])
    (tmp_path / "lost+found").mkdir()
    listed = take_inventory([tmp_path])
    assert [listed.display(d.path) for d in listed.log_directories] == ["broker-1", "broker-2"]
    assert [listed.display(p.directory) for p in listed.partitions] == [
        "broker-1/orders-0",
        "broker-2/orders-0",
    ]


def test_a_log_directory_without_checkpoints_is_one_all_the_same(tmp_path: Path) -> None:
    write_partition(tmp_path / "orders-0", {0: segment(1)})
    (tmp_path / "notes.txt").write_text("mine")
    listed = take_inventory([tmp_path])
    assert [p.topic for p in listed.partitions] == ["orders"]
    assert [f.name for d in listed.log_directories for f in d.files] == [b"notes.txt"]


def test_leftovers_are_told_from_the_live_log(tmp_path: Path) -> None:
    partition = write_partition(tmp_path / "orders-0", {0: segment(1)})
    for name in ("log.deleted", "log.swap", "log.cleaned", "index.deleted"):
        (partition / segment_name(3, name)).write_bytes(b"")
    (partition / "leader-epoch-checkpoint.tmp").write_bytes(b"")
    (listed,) = take_inventory([partition]).partitions
    assert [f.name for f in listed.segments] == [b"00000000000000000000.log"]
    assert {f.state for f in listed.files} == {"live", "deleted", "swap", "cleaned", "temporary"}


def test_the_kraft_log_is_a_partition_with_snapshots(tmp_path: Path) -> None:
    partition = write_partition(tmp_path / "__cluster_metadata-0", {0: segment(1)})
    (partition / "quorum-state").write_text("{}")
    (partition / f"{3:020}-{1:010}.checkpoint").write_bytes(segment(1))
    (listed,) = take_inventory([partition]).partitions
    kinds = {f.name: f.kind for f in listed.files}
    assert kinds[b"quorum-state"] == "quorum-state"
    assert kinds[b"00000000000000000003-0000000001.checkpoint"] == "metadata-snapshot"


def test_segments_asked_for_by_name_know_their_neighbours(tmp_path: Path) -> None:
    partition = write_partition(
        tmp_path / "orders-0", {0: segment(1), 3: segment(1, base_offset=3), 6: b""}
    )
    (listed,) = take_inventory([partition / segment_name(0)]).partitions
    assert not listed.is_whole
    assert [f.name for f in listed.files] == [b"00000000000000000000.log"]
    assert listed.next_base_offset(listed.files[0]) == 3
    assert (listed.topic, listed.partition) == ("orders", 0)


def test_any_file_asked_for_by_name_is_taken_for_records(tmp_path: Path) -> None:
    (tmp_path / "captured.bin").write_bytes(segment(1))
    listed = take_inventory([tmp_path / "captured.bin"])
    (file,) = listed.partitions[0].files
    assert (file.kind, file.base_offset) == ("segment", None)
    assert listed.display(file.path) == "captured.bin"


def test_an_index_asked_for_by_name_is_answered_with_what_to_name(tmp_path: Path) -> None:
    partition = write_partition(tmp_path / "orders-0", {0: segment(1)})
    (unreadable,) = take_inventory([partition / segment_name(0, "index")]).unreadable
    assert unreadable.reason == "offset index, not a segment: give its .log file or the directory"


def test_what_is_given_twice_is_listed_once(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    (tmp_path / "link").symlink_to(log_directory)
    listed = take_inventory(
        [
            log_directory / "orders-0" / segment_name(0),
            log_directory,
            tmp_path / "link",
            log_directory / "orders-0",
        ]
    )
    assert len(listed.partitions) == 1
    assert listed.partitions[0].is_whole
    assert listed.unreadable == ()


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "data" / "kafka", ["orders-0"])
    (tmp_path / "data" / "up").symlink_to(tmp_path)
    (log_directory / "orders-0" / "up").symlink_to(log_directory)
    assert len(take_inventory([tmp_path]).partitions) == 1


def test_a_missing_path_is_said_to_be_missing(tmp_path: Path) -> None:
    listed = take_inventory([tmp_path / "nowhere"])
    assert [u.reason for u in listed.unreadable] == ["no such file or directory"]


def test_an_empty_directory_holds_nothing_to_audit(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    listed = take_inventory([tmp_path / "empty"])
    assert [u.reason for u in listed.unreadable] == ["the directory holds nothing"]


def test_a_directory_of_other_things_holds_nothing_to_audit(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "2024.log").write_text("a line\n")
    listed = take_inventory([tmp_path])
    assert [u.reason for u in listed.unreadable] == [
        "the directory holds no log directory, partition or segment file"
    ]


def test_a_log_directory_without_partitions_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(META_PROPERTIES)
    listed = take_inventory([tmp_path])
    assert listed.unreadable == ()
    assert len(listed.log_directories) == 1


def test_broken_links_are_listed_and_say_where_they_lead(tmp_path: Path) -> None:
    partition = write_partition(tmp_path / "orders-0", {0: segment(1)})
    (partition / segment_name(3)).symlink_to("moved-away")
    (listed,) = take_inventory([partition]).partitions
    assert [f.fault for f in listed.segments] == [None, "broken link to moved-away"]
    asked = take_inventory([partition / segment_name(3)])
    assert [u.reason for u in asked.unreadable] == ["broken link to moved-away"]


def test_sockets_and_fifos_are_named_and_never_opened(tmp_path: Path) -> None:
    partition = write_partition(tmp_path / "orders-0", {0: segment(1)})
    os.mkfifo(partition / segment_name(3))
    with socket.socket(socket.AF_UNIX) as bound:
        previous = Path.cwd()
        os.chdir(partition)  # A socket's path may not be as long as a temporary one.
        try:
            bound.bind("agent.sock")
        finally:
            os.chdir(previous)
    listed = take_inventory([partition])
    (found,) = listed.partitions
    assert {f.name: f.fault for f in found.files}[b"agent.sock"] == "a socket, not a file"
    assert [f.fault for f in found.segments] == [None, "a FIFO, not a file"]
    asked = take_inventory([partition / segment_name(3)])
    assert [u.reason for u in asked.unreadable] == ["a FIFO, not a file or a directory"]


def test_names_that_are_no_utf8_are_listed(tmp_path: Path) -> None:
    directory = os.fsencode(tmp_path) + b"/caf\xe9-0"
    write_partition(Path(os.fsdecode(directory)), {0: segment(1)})
    listed = take_inventory([directory])
    assert listed.display(listed.partitions[0].segments[0].path) == (
        "caf\\xe9-0/00000000000000000000.log"
    )
    assert listed.partitions[0].topic == "caf\\xe9"


def test_a_directory_that_may_not_be_read_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    (log_directory / "lost+found").mkdir()
    read = os.scandir

    def scandir(path: bytes) -> object:
        if path.endswith((b"orders-1", b"lost+found")):
            raise PermissionError(13, "Permission denied")
        return read(path)

    # A test may run as one who may read everything.
    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(_engine, "list_plain_partitions", lambda paths, **_: [[None] * len(paths)])
    listed = take_inventory([log_directory])
    assert [(listed.display(u.path), u.reason) for u in listed.unreadable] == [
        ("orders-1", "permission denied")
    ]
    assert len(listed.partitions) == 2


def test_every_partition_of_the_demo_is_found(demo: Path) -> None:
    listed = take_inventory([demo])
    assert sum(len(p.segments) for p in listed.partitions) == len(list(demo.rglob("*.log")))
    assert not [f for p in listed.partitions for f in p.files if f.kind == "unknown"]
    assert not [f for d in listed.log_directories for f in d.files if f.kind == "unknown"]


def test_links_out_of_what_is_given_are_not_followed(tmp_path: Path) -> None:
    elsewhere = write_log_directory(tmp_path / "elsewhere", ["orders-1"])
    secret = tmp_path / "secret"
    secret.write_text("0\n1\nsecret 0 1\n")
    given = write_log_directory(tmp_path / "given", ["orders-0"])
    (given / "orders-1").symlink_to(elsewhere / "orders-1")
    (given / "orders-0" / segment_name(24)).symlink_to(secret)
    (given / "orders-0" / "leader-epoch-checkpoint").unlink()
    (given / "orders-0" / "leader-epoch-checkpoint").symlink_to(secret)
    (given / "recovery-point-offset-checkpoint").unlink()
    (given / "recovery-point-offset-checkpoint").symlink_to(secret)
    result = ottla.audit(given)
    unread = {row["file"]: row["message"] for row in result.findings if row["severity"] == "error"}
    checkpoint = "recovery-point-offset-checkpoint"
    assert set(unread) == {"orders-1", f"orders-0/{segment_name(24)}", checkpoint}
    assert f"a link to {elsewhere}/orders-1, outside of what was given" in unread["orders-1"]
    assert result.exit_code == 3
    said = "".join(row["message"] for row in result.findings)
    assert "secret 0 1" not in said
    assert {row["name"] for row in result.findings if row["severity"] == "warning"} == {
        "checkpoint-mismatch",
        "epoch-checkpoint-mismatch",
    }


def test_links_are_followed_where_they_stay_inside_or_are_asked_for(tmp_path: Path) -> None:
    elsewhere = write_partition(tmp_path / "disk" / "orders-1", {0: segment(4)})
    given = write_log_directory(tmp_path / "given", ["orders-0"])
    (given / "orders-0" / segment_name(24)).write_bytes(b"")
    (given / "moved").mkdir()
    moved = (given / "orders-0" / segment_name(12)).rename(given / "moved" / segment_name(12))
    (given / "orders-0" / segment_name(12)).symlink_to(moved)
    (given / "orders-1").symlink_to(elsewhere)
    (tmp_path / "link").symlink_to(given)
    for files in (
        files_within([tmp_path / "link"], follow_links=True),
        files_within([tmp_path / "link", elsewhere]),
        files_within([tmp_path]),
    ):
        listed = take_inventory([tmp_path / "link"], files=files)
        assert listed.unreadable == ()
        assert [p.topic for p in listed.partitions if p.topic] == ["orders", "orders"]
        assert not any(file.fault for p in listed.partitions for file in p.files)
