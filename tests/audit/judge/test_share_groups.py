"""Share and streams groups of 4.2 and newer in the table `groups`, by name."""

from pathlib import Path
from typing import Any

import ottla
from logs.test_coordinator_records import OFFSETS, RECORDS, STATE
from support.logs import TIMESTAMP, segment, write_log_directory, write_partition


def records(*rows: tuple[bytes, bytes | None], at: int = 0) -> bytes:
    return ottla.build_batch(
        [ottla.NewRecord(key, value, TIMESTAMP) for key, value in rows],
        base_offset=at,
        partition_leader_epoch=0,
    )


def row_of(name: str) -> tuple[bytes, bytes]:
    _, key, value, *_ = RECORDS[name]
    return bytes.fromhex(key), bytes.fromhex(value)


def a_broker(above: Path, offsets: bytes, states: bytes) -> Path:
    directory = above / "broker"
    write_log_directory(directory)
    write_partition(directory / "t-0", {0: segment(8, records=8)})
    write_partition(directory / f"{OFFSETS}-0", {0: offsets})
    write_partition(directory / f"{STATE}-0", {0: states})
    return directory


def shown(directory: Path) -> list[tuple[Any, ...]]:
    return [
        (row["group"], row["type"], row["topic"], row["partition"], row["offset"])
        for row in ottla.audit(directory).groups
    ]


def test_groups_without_committed_offsets_are_shown_by_name(tmp_path: Path) -> None:
    offsets = records(row_of("share-group"), row_of("streams-group"))
    broker = a_broker(tmp_path, offsets, b"")
    assert shown(broker) == [
        ("g", "share", None, None, None),
        ("s", "streams", None, None, None),
    ]


def test_a_share_group_is_shown_with_its_topics_and_how_far_it_has_come(tmp_path: Path) -> None:
    offsets = records(row_of("share-group"), row_of("share-group-state-partitions"))
    key, snapshot = row_of("share-snapshot")
    update_key, _ = row_of("share-update")
    # Its state of partition 0, moved on by an update; and that of partition 4, which is not named.
    key_0, update_0 = key[:-1] + b"\0", update_key[:-1] + b"\0"
    moved = bytes.fromhex("000000000001000000030000000000000029" + "0100")
    states = records((key, snapshot), (key_0, snapshot), (update_0, moved))
    broker = a_broker(tmp_path, offsets, states)
    assert shown(broker) == [
        ("g", "share", "t", 0, 41),
        ("g", "share", "AAAAAAAAAAEAAAAAAAAAAg", 4, 40),
    ]
    row = next(iter(ottla.audit(broker).groups))
    assert row["lag"] == 64 - 41
    assert (row["leader_epoch"], row["commit_timestamp_ms"]) == (3, 6)


def test_a_deleted_group_and_a_deleted_state_are_not_shown(tmp_path: Path) -> None:
    group, state = row_of("share-group"), row_of("share-snapshot")
    offsets = records(group) + records((group[0], None), at=1)
    states = records(state) + records((state[0], None), at=1)
    assert shown(a_broker(tmp_path, offsets, states)) == []


def test_committed_offsets_say_of_which_type_their_group_is(tmp_path: Path) -> None:
    key, value = row_of("streams-group")
    commit_key, commit = row_of("offset-commit")
    of_streams = commit_key.replace(b"\0\1c", b"\0\1s")
    offsets = records((key, value), (of_streams, commit), (commit_key, commit))
    assert shown(a_broker(tmp_path, offsets, b"")) == [
        ("c", None, "t", 0, 9),
        ("s", "streams", "t", 0, 9),
    ]


def test_a_state_that_cannot_be_decoded_is_a_finding(tmp_path: Path) -> None:
    key, _ = row_of("share-snapshot")
    broker = a_broker(tmp_path, b"", records((key, b"\0\7")))
    found = [row for row in ottla.audit(broker).findings if row["name"] == "undecoded-record"]
    assert [row["found"] for row in found] == ["version 7 is not known, only 0 to 0"]
