"""Copies of a partition: which directories are compared, and what is said of their differences."""

import json
import shutil
from pathlib import Path
from typing import Any

import ottla
import pytest
from support.logs import batches, segment, segment_name, write_log_directory, write_partition

SIZE = len(batches(1)[0])


def broker(directory: Path, node: int, cluster: str = "MkU3OEVBNTcwNTJENDM2Qk") -> Path:
    """A log directory of one broker, with the partitions of `write_log_directory`."""
    write_log_directory(directory)
    (directory / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id={node}\n")
    return directory


@pytest.fixture
def brokers(tmp_path: Path) -> list[Path]:
    """The log directories of three brokers of one cluster, all in one directory."""
    return [broker(tmp_path / f"broker-{node}", node) for node in (1, 2, 3)]


def log(directory: Path, base_offset: int = 0, partition: str = "orders-0") -> Path:
    return directory / partition / segment_name(base_offset)


def change_bytes(path: Path) -> None:
    """Return the second batch of a segment other values, with a right CRC."""
    data = path.read_bytes()
    other = batches(2, value_size=20)[1].replace(b"v" * 20, b"w" * 20)
    resealed = reseal(other)
    path.write_bytes(data[:SIZE] + resealed + data[2 * SIZE :])


def reseal(batch: bytes) -> bytes:
    return batch[:17] + crc32c(batch[21:]).to_bytes(4, "big") + batch[21:]


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def said(result: ottla.AuditResult) -> list[tuple[Any, ...]]:
    """What is said of differences, without where."""
    return [
        (f["severity"], f["replica"], f["first_offset"], f["last_offset"], f["good_replicas"])
        for f in result.findings
        if f["name"] == "replica-difference"
    ]


def test_equal_copies_of_three_brokers_give_no_finding_and_no_difference(
    brokers: list[Path],
) -> None:
    result = ottla.audit(brokers)
    assert list(result.findings) == []
    assert list(result.differences) == []


def test_two_copies_against_one_tell_which_bytes_are_right(brokers: list[Path]) -> None:
    change_bytes(log(brokers[1]))
    result = ottla.audit(brokers)
    assert said(result) == [("warning", "broker-2", 3, 5, ("broker-1", "broker-3"))]
    (finding,) = result.findings
    assert finding["file"] == f"broker-2/orders-0/{segment_name(0)}"
    assert (finding["position"], finding["size"]) == (SIZE, SIZE)
    (row,) = result.differences
    assert row["kind"] == "different-bytes"
    assert row["replicas"] == ["broker-1", "broker-2", "broker-3"]
    assert row["positions"] == [SIZE] * 3
    assert result.exit_code == 1


def test_a_damaged_copy_names_the_sound_ones(brokers: list[Path]) -> None:
    data = bytearray(log(brokers[0]).read_bytes())
    data[-1] ^= 1
    log(brokers[0]).write_bytes(bytes(data))
    result = ottla.audit(brokers)
    assert said(result) == [("info", "broker-1", 9, 11, ("broker-2", "broker-3"))]
    assert result.exit_code == 2


def test_what_only_one_copy_has_comes_with_the_command_that_saves_it(
    brokers: list[Path], tmp_path: Path
) -> None:
    for directory in brokers[:2]:
        log(directory, 12).write_bytes(segment(2, base_offset=12))
    result = ottla.audit(brokers)
    assert said(result) == [
        ("error", "broker-1", 18, 23, ("broker-3",)),
        ("error", "broker-2", 18, 23, ("broker-3",)),
    ]
    (row,) = result.differences
    assert (row["kind"], row["only_replica"]) == ("behind", "broker-3")
    directory = tmp_path / "broker-3" / "orders-0"
    assert row["commands"] == [
        f"ottla read {directory} --from 18 --to 24 --format jsonl > orders-0-from-18.jsonl"
    ]


def test_copies_may_have_rolled_at_other_offsets(brokers: list[Path]) -> None:
    shutil.rmtree(brokers[2] / "orders-0")
    write_partition(brokers[2] / "orders-0", {0: segment(7), 21: segment(1, base_offset=21)})
    assert said(ottla.audit(brokers)) == []


def test_log_directories_of_several_brokers_below_one_path_are_compared(
    brokers: list[Path],
) -> None:
    change_bytes(log(brokers[1]))
    assert [row[1] for row in said(ottla.audit(brokers[0].parent))] == ["broker-2"]


def test_partitions_of_different_clusters_are_no_copies(tmp_path: Path) -> None:
    directories = [broker(tmp_path / "a", 1), broker(tmp_path / "b", 2, "another-cluster-of-mine")]
    change_bytes(log(directories[1]))
    assert said(ottla.audit(directories)) == []
    assert said(ottla.audit(tmp_path)) == []


def test_log_directories_of_unknown_clusters_below_one_path_are_no_copies(
    brokers: list[Path],
) -> None:
    change_bytes(log(brokers[1]))
    for directory in brokers:
        (directory / "meta.properties").write_text("version=0\nbroker.id=1\n")
    assert list(ottla.audit(brokers[0].parent).findings) == []
    assert [row[1] for row in said(ottla.audit(brokers))] == ["broker-2"]


def test_named_replicas_are_copies_whatever_their_files_say(tmp_path: Path) -> None:
    one = broker(tmp_path / "a", 1)
    other = broker(tmp_path / "b", 1, "another-cluster-of-mine")
    change_bytes(log(other))
    result = ottla.audit(replicas={"here": one, "there": [other]})
    (row,) = result.differences
    assert row["replicas"] == ["here", "there"]
    assert row["good_replicas"] == []


def test_a_broker_that_has_a_partition_twice_does_not_start(tmp_path: Path) -> None:
    broker(tmp_path / "disk-1", 1)
    broker(tmp_path / "disk-2", 1)
    shutil.rmtree(tmp_path / "disk-2" / "orders-1")
    result = ottla.audit(tmp_path)
    found = {(f["name"], f["severity"], f["file"]) for f in result.findings}
    assert found == {
        ("duplicate-partition", "warning", "disk-2/orders-0"),
        ("duplicate-partition", "warning", "disk-2/payments-0"),
    }
    assert list(result.differences) == []


def test_results_do_not_depend_on_threads(brokers: list[Path]) -> None:
    change_bytes(log(brokers[1]))
    change_bytes(log(brokers[0], partition="payments-0"))
    log(brokers[2], 12, "orders-1").unlink()
    first = ottla.audit(brokers, threads=1)
    for threads in (2, 7):
        result = ottla.audit(brokers, threads=threads)
        assert list(result.findings) == list(first.findings)
        assert list(result.differences) == list(first.differences)


def test_a_copy_that_cannot_be_read_leaves_the_others_compared(brokers: list[Path]) -> None:
    change_bytes(log(brokers[1]))
    unreadable = log(brokers[2], 12)
    unreadable.unlink()
    unreadable.symlink_to(unreadable)
    result = ottla.audit(brokers)
    assert result.exit_code == 3
    (row,) = result.differences
    assert row["replicas"] == ["broker-1", "broker-2"]


def test_nothing_to_audit_is_an_error() -> None:
    with pytest.raises(ValueError, match="no source and no replica"):
        ottla.audit()


@pytest.mark.shared
def test_every_planted_difference_is_found_with_its_good_copies(shared: Path) -> None:
    cases = [
        case
        for case in sorted((shared / "damage" / "cases").iterdir())
        if (case / "log" / "replica-1").is_dir()
    ]
    assert len(cases) == 11
    for case in cases:
        result = ottla.audit(sorted((case / "log").iterdir()))
        truth = json.loads((case / "injuries.json").read_text(encoding="utf-8"))
        injuries = {injury["kind"]: injury for injury in truth["injuries"]}
        told = [f for f in result.findings if f["name"] == "replica-difference"]
        if not injuries or "replica-topic-id" in injuries:
            assert told == [], case.name
            continue
        ((injury),) = injuries.values()
        (finding,) = told
        assert list(finding["good_replicas"]) == injury["good_replicas"], case.name
        offsets = [finding["first_offset"], finding["last_offset"]]
        assert offsets == injury.get("lost_on_election", injury["offsets"]), case.name
