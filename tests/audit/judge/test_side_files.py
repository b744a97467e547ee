"""What the small files beside segments say is held against the log: what cannot be is a finding."""

from collections import Counter
from pathlib import Path

import pytest
from ottla.audit.judge.side_files import (
    check_log_directories,
    check_partition,
    check_segments,
    check_topic_ids,
    read_small_files,
)
from ottla.logs.checkpoints import Checkpoints
from ottla.logs.listing import take_inventory
from ottla.storage import LocalFiles
from support.logs import TOPIC_ID, segment, segment_name, write_log_directory, write_partition


def names_of(log_directory: Path, ends: dict[str, int]) -> list[tuple[str, str]]:
    """Findings around the segments of a log directory whose logs end at these offsets."""
    listed = take_inventory([log_directory])
    known = {
        p.directory: ends[listed.display(p.directory)]
        for p in listed.partitions
        if listed.display(p.directory) in ends
    }
    findings = [*check_log_directories(listed.log_directories, listed, Checkpoints(), known)]
    topic_ids: dict[bytes, str | None] = {}
    for partition in listed.partitions:
        small = read_small_files(partition, listed)
        topic_ids[partition.directory] = small.topic_id
        findings += check_partition(partition, known.get(partition.directory), small)
        findings += check_segments(partition, Checkpoints())
    findings += check_topic_ids(listed, listed.partitions, topic_ids)
    return sorted((f.name, listed.display(f.path or b"")) for f in findings)


def test_a_sound_log_directory_gives_no_finding(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0", "orders-1"])
    assert names_of(log_directory, {"orders-0": 24, "orders-1": 24}) == []


@pytest.mark.parametrize(
    "name", ["replication-offset-checkpoint", "recovery-point-offset-checkpoint"]
)
def test_a_checkpoint_beyond_the_end_tells_what_is_gone(tmp_path: Path, name: str) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    (log_directory / name).write_text("0\n1\norders 0 26\n")
    listed = take_inventory([log_directory])
    log = {listed.partitions[0].directory: 24}
    (finding,) = check_log_directories(listed.log_directories, listed, Checkpoints(), log)
    assert (finding.name, finding.severity) == ("checkpoint-mismatch", "error")
    assert finding.path == bytes(log_directory / name)
    assert (finding.first_offset, finding.last_offset) == (24, 25)
    assert finding.directory == bytes(log_directory / "orders-0")
    assert "the last 2 offsets are missing" in finding.message


@pytest.mark.parametrize(
    ("name", "severity", "consequence"),
    [
        ("recovery-point-offset-checkpoint", "error", "would not recover the last segment"),
        ("log-start-offset-checkpoint", "warning", "Kafka deletes every segment"),
        ("replication-offset-checkpoint", "error", "silently uses the end of the log"),
        ("cleaner-offset-checkpoint", "info", "the cleaner starts again at the log start offset"),
    ],
)
def test_a_checkpoint_beyond_the_end_says_what_kafka_makes_of_it(
    tmp_path: Path, name: str, severity: str, consequence: str
) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    (log_directory / name).write_text("0\n1\norders 0 26\n")
    listed = take_inventory([log_directory])
    log = {listed.partitions[0].directory: 24}
    (finding,) = check_log_directories(listed.log_directories, listed, Checkpoints(), log)
    assert finding.severity == severity
    assert consequence in finding.message


def test_a_checkpoint_says_nothing_of_a_log_that_was_not_read_whole(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    (log_directory / "replication-offset-checkpoint").write_text("0\n1\norders 0 26\n")
    assert names_of(log_directory, {}) == []


@pytest.mark.parametrize(
    ("file", "finding"),
    [
        ("meta.properties", "metadata-mismatch"),
        ("replication-offset-checkpoint", "checkpoint-mismatch"),
        ("orders-0/partition.metadata", "metadata-mismatch"),
        ("orders-0/leader-epoch-checkpoint", "epoch-checkpoint-mismatch"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_one_finding(
    tmp_path: Path, file: str, finding: str
) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    (log_directory / file).write_bytes(b"\0\0\0\0")
    assert names_of(log_directory, {"orders-0": 24}) == [(finding, file)]


def test_partitions_of_one_topic_have_one_topic_id(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    write_partition(log_directory / "orders-1", {0: b""}, topic_id="B" * 22)
    assert names_of(log_directory, {}) == [("metadata-mismatch", "orders-1/partition.metadata")]


def test_copies_of_a_partition_in_one_cluster_have_one_topic_id(tmp_path: Path) -> None:
    for broker, topic_id in (("a", "B" * 22), ("b", TOPIC_ID), ("c", TOPIC_ID)):
        write_log_directory(tmp_path / broker, [])
        write_partition(tmp_path / broker / "orders-0", {0: b""}, topic_id=topic_id)
    assert names_of(tmp_path, {}) == [("metadata-mismatch", "a/orders-0/partition.metadata")]
    (tmp_path / "a" / "meta.properties").write_text("version=1\ncluster.id=other\nnode.id=1\n")
    assert names_of(tmp_path, {}) == []


def test_an_epoch_beyond_the_end_is_worth_knowing(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    (log_directory / "orders-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 25\n")
    assert names_of(log_directory, {"orders-0": 24}) == [
        ("epoch-checkpoint-mismatch", "orders-0/leader-epoch-checkpoint")
    ]


def test_names_tell_what_is_missing_foreign_and_left_over(tmp_path: Path) -> None:
    partition = write_partition(tmp_path / "orders-0", {0: segment(1)})
    (partition / segment_name(0, "timeindex")).unlink()
    (partition / segment_name(0, "log.swap")).write_bytes(segment(1))
    (partition / "notes.txt").write_text("mine")
    write_partition(tmp_path / "orders-1", {})
    assert names_of(tmp_path, {}) == [
        ("index-missing", "orders-0/00000000000000000000.log"),
        ("leftover-file", "orders-0/00000000000000000000.log.swap"),
        ("missing-segment", "orders-1"),
        ("unknown-file", "orders-0/notes.txt"),
    ]


class CountingFiles(LocalFiles):
    """Local files that count how often each is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[bytes] = Counter()

    def read(self, path: bytes, limit: int) -> bytes:
        self.reads[path] += 1
        return super().read(path, limit)


def test_each_disk_of_a_broker_is_asked_once_whose_it_is(tmp_path: Path) -> None:
    for number in range(20):
        disk = write_log_directory(tmp_path / f"disk-{number}", [f"orders-{number}"])
        (disk / "replication-offset-checkpoint").write_text("0\n2\norders 0 1\npayments 0 1\n")
    files = CountingFiles()
    listed = take_inventory([tmp_path], files=files)
    findings = [*check_log_directories(listed.log_directories, listed, Checkpoints(), {})]
    assert [f.message.count("payments-0") for f in findings] == [1] * 20
    assert [f.message for f in findings if "orders-0" in f.message] == []
    # Once to be checked, once to tell the broker.
    assert {path: n for path, n in files.reads.items() if n > 2} == {}
