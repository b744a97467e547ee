"""Checkpoints and metadata are read as Kafka writes them, and refused with a reason."""

from pathlib import Path

import pytest
from ottla.logs.checkpoints import parse_leader_epochs, parse_offset_checkpoint
from ottla.logs.listing import take_inventory
from ottla.logs.metadata import parse_meta_properties, parse_partition_metadata
from ottla.logs.side_files import MAX_FILE_BYTES, SideFileError, read_side_file
from support.logs import TOPIC_ID, write_partition


def test_a_checkpoint_gives_offsets_by_partition() -> None:
    data = b"0\n2\norders 0 42\n__consumer_offsets 13 7\n"
    assert parse_offset_checkpoint(data) == {("orders", 0): 42, ("__consumer_offsets", 13): 7}


def test_an_empty_checkpoint_has_no_entries() -> None:
    assert parse_offset_checkpoint(b"") == {}
    assert parse_offset_checkpoint(b"0\n0\n") == {}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"1\n0\n", "unknown version"),
        (b"0\n", "line 2 is no count"),
        (b"0\nmany\n", "line 2 is no count"),
        (b"0\n2\norders 0 1\n", "the count is wrong"),
        (b"0\n1\norders 0\n", "line 3 is not `topic partition offset`"),
        (b"0\n1\norders 0 x\n", "line 3 holds no number"),
        (b"0\n1\norders 0 99999999999999999999\n", "line 3 holds no number"),
        (b"0\n1\norders 0 " + b"9" * 5000, "line 3 holds no number"),
        (b"0\n1\norders 0 \xd9\xa1\n", "line 3 holds no number"),
        (b"\0\0\0\0", "unknown version"),
        (b"\xff\xfe", "no text"),
    ],
)
def test_a_garbled_checkpoint_says_which_line(data: bytes, message: str) -> None:
    with pytest.raises(SideFileError, match=f"^{message}$"):
        parse_offset_checkpoint(data)


def test_leader_epochs_must_increase_in_epoch_and_offset() -> None:
    assert parse_leader_epochs(b"0\n2\n0 0\n2 79\n") == [(0, 0), (2, 79)]
    for lines in (b"2 0\n0 79", b"0 5\n2 5", b"0 0\n0 9"):
        with pytest.raises(SideFileError, match="line 4 does not increase"):
            parse_leader_epochs(b"0\n2\n" + lines + b"\n")


def test_partition_metadata_has_a_topic_id_other_than_zero() -> None:
    assert parse_partition_metadata(f"version: 0\ntopic_id: {TOPIC_ID}".encode()) == TOPIC_ID
    for text in (
        "version: 0\n",
        "version: 0\ntopic_id: short",
        f"version: 0\ntopic_id: {'A' * 22}",
    ):
        with pytest.raises(SideFileError, match="no topic id"):
            parse_partition_metadata(text.encode())
    with pytest.raises(SideFileError, match="no version"):
        parse_partition_metadata(f"topic_id: {TOPIC_ID}".encode())


def test_meta_properties_name_the_broker() -> None:
    assert parse_meta_properties(b"#\nversion=1\nnode.id=3\n")["node.id"] == "3"
    assert parse_meta_properties(b"version=0\nbroker.id=3\n")["broker.id"] == "3"
    for data in (b"", b"version=2\nnode.id=3\n", b"version=1\nbroker.id=3\n", b"\0\0\0\0"):
        with pytest.raises(SideFileError):
            parse_meta_properties(data)


def test_a_side_file_larger_than_any_is_refused_unread(tmp_path: Path) -> None:
    partition = write_partition(tmp_path / "orders-0", {0: b""})
    with (partition / "partition.metadata").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    (listed,) = take_inventory([partition]).partitions
    metadata = next(f for f in listed.files if f.kind == "partition-metadata")
    with pytest.raises(SideFileError, match="too large"):
        read_side_file(metadata)
