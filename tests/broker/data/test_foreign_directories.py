"""Directories that are a part of somebody's cluster: refused, and left as they are."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from ottla.broker.data.metadata_log import METADATA_DIRECTORY, MetadataLog
from ottla.broker.plane import build_quorum_batch
from ottla.errors import LogDirectoryError
from ottla.protocol.codec import encode
from ottla.protocol.messages import cluster_metadata as layouts
from ottla.protocol.messages.voters_record import Voter, VotersRecord
from ottla.protocol.metadata_record import record_bytes
from support.kept_broker import kept_broker
from support.wire_client import NOW_MS

TOPIC_ID = bytes(15) + b"\7"
HERE = bytes(range(16, 32))
ELSEWHERE = bytes(range(32, 48))
META = "version=1\ncluster.id=abc\nnode.id=1\n"
WITH_ID = f"{META}directory.id=EBESExQVFhcYGRobHB0eHw\n"
UNASSIGNED = bytes(16)


def directory_with(
    path: Path, meta: str = WITH_ID, replicas: Sequence[int] = (1,), directory: bytes = HERE
) -> Path:
    """What node 1 has of a cluster with one partition."""
    path.mkdir()
    (path / "meta.properties").write_text(meta)
    log = MetadataLog(str(path / METADATA_DIRECTORY), 1, print)
    list(log.load())
    log.begin_term(NOW_MS)
    partition = layouts.PartitionRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        replicas=list(replicas),
        isr=list(replicas),
        leader=replicas[0],
        leader_epoch=3,
        partition_epoch=3,
        directories=[directory] * len(replicas),
    )
    level = layouts.FeatureLevelRecord(name="metadata.version", feature_level=20)
    topic = layouts.TopicRecord(name="orders", topic_id=TOPIC_ID)
    values = [record_bytes(level), record_bytes(topic), record_bytes(partition, 1)]
    log.append(values, NOW_MS)
    log.close()
    return path


def files_of(path: Path) -> dict[str, str]:
    """All of them but for those that whoever reads a log builds again."""
    rebuilt = {".timeindex", ".index", ".snapshot"}
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in path.rglob("*")
        if file.is_file() and file.name != ".lock" and file.suffix not in rebuilt
    }


def refusal(path: Path) -> str:
    """Why it is refused; a start that is leaves it as it was."""
    before = files_of(path)
    with pytest.raises(LogDirectoryError) as caught, kept_broker(path):
        pass
    assert files_of(path) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("meta", [META, WITH_ID], ids=["before 3.7", "since 3.7"])
@pytest.mark.parametrize("replicas", [(1, 2, 3), (2,)])
def test_a_directory_of_a_cluster_with_other_brokers_is_refused_and_stays_as_it_is(
    tmp_path: Path, meta: str, replicas: tuple[int, ...]
) -> None:
    path = directory_with(tmp_path / "data", meta, replicas)
    assert "partition orders-0 is on the brokers" in refusal(path)


def test_a_directory_whose_voters_are_in_its_log_and_elsewhere_is_refused_and_stays_as_it_is(
    tmp_path: Path,
) -> None:
    path = directory_with(tmp_path / "data")
    log = MetadataLog(str(path / METADATA_DIRECTORY), 1, print)
    list(log.load())
    log.begin_term(NOW_MS)
    voters = VotersRecord(voters=[Voter(voter_id=1), Voter(voter_id=2)])
    value = b"".join(encode(VotersRecord, 0)(voters))
    log._append(build_quorum_batch(6, value, timestamp=NOW_MS), NOW_MS)
    log.close()
    # As Kafka leaves it where voters are in the log: there are none in the file.
    state = '{"leaderId":2,"leaderEpoch":9,"votedId":-1,"data_version":1}'
    (path / METADATA_DIRECTORY / "quorum-state").write_text(state)
    assert "names the voters 2 beside node 1" in refusal(path)


def test_one_of_several_log_directories_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = directory_with(tmp_path / "data", directory=ELSEWHERE)
    assert (
        "partition orders-0 is in the log directory with the directory.id ICEiIyQlJicoKSorLC0uLw"
        in refusal(path)
    )


@pytest.mark.parametrize("directory", [HERE, UNASSIGNED])
def test_a_partition_whose_directory_is_gone_begins_empty_and_that_is_told(
    tmp_path: Path, directory: bytes
) -> None:
    path = directory_with(tmp_path / "data", directory=directory)
    lines: list[str] = []
    with kept_broker(path, lines=lines):
        pass
    (line,) = lines
    assert "1 partitions of the cluster are not in" in line
    assert "(orders-0), and begin empty" in line
    lines.clear()
    with kept_broker(path, lines=lines):
        pass
    assert not lines
