"""What records of the cluster's metadata amount to, in snapshots: written, chosen, deleted."""

from pathlib import Path

import ottla
import pytest
from ottla.broker.data.cluster_records import values_of
from ottla.broker.data.cluster_state import BROKER, TOPIC, ClusterState
from ottla.broker.data.metadata_log import METADATA_DIRECTORY, MetadataLog
from ottla.broker.data.metadata_snapshot import QuorumRecords, snapshot_bytes, snapshot_values
from ottla.errors import LogDirectoryError
from ottla.protocol.messages import cluster_metadata as layouts
from ottla.protocol.metadata_record import record_bytes
from ottla.protocol.wire import Message
from ottla.testing import Broker
from support.kept_broker import kept_broker
from support.wire_client import NOW_MS

TOPIC_ID = bytes(15) + b"\7"
DIRECTORY_ID = bytes(15) + b"\5"
NO_OP = record_bytes(layouts.NoOpRecord())


def opened(
    path: Path, lines: list[str] | None = None, *, segment_bytes: int = 1 << 20
) -> tuple[MetadataLog, list[bytes]]:
    said: list[str] = [] if lines is None else lines
    log = MetadataLog(str(path), 1, said.append, segment_bytes=segment_bytes)
    return log, list(log.load())


def quota(number: int) -> bytes:
    entity = [layouts.EntityData(entity_type="user", entity_name=f"user-{number}")]
    return record_bytes(layouts.ClientQuotaRecord(entity=entity, key="a", value=1.0))


def with_snapshots(path: Path) -> None:
    """A log of 30 records, with snapshots of the first 10 and 20, and segments of a batch."""
    log, _ = opened(path, segment_bytes=1)
    log.begin_term(5)
    for number in range(30):
        if number in {10, 20}:
            log.write_snapshot([quota(known) for known in range(number)], 6)
        log.append([quota(number)], 6)
    log.close()


def names(path: Path, suffix: str) -> list[str]:
    return sorted(file.name for file in path.iterdir() if file.name.endswith(suffix))


def test_a_log_is_read_from_its_newest_snapshot_on(tmp_path: Path) -> None:
    path = tmp_path / METADATA_DIRECTORY
    with_snapshots(path)
    snapshots = [f"{11:020}-{1:010}.checkpoint", f"{21:020}-{1:010}.checkpoint"]
    assert names(path, ".checkpoint") == snapshots
    log, values = opened(path)
    assert values == [quota(number) for number in range(30)]
    assert (log.start_offset, log.end_offset, log.epoch) == (0, 31, 1)
    log.close()
    for file in names(path, ".log")[:21]:
        (path / file).unlink()
    log, values = opened(path)
    assert values == [quota(number) for number in range(30)]
    assert (log.start_offset, log.end_offset, log.epoch) == (21, 31, 1)
    log.close()


def test_a_snapshot_is_cut_or_changed_anywhere_and_the_one_before_takes_its_place(
    tmp_path: Path,
) -> None:
    path = tmp_path / METADATA_DIRECTORY
    with_snapshots(path)
    newest = path / names(path, ".checkpoint")[-1]
    whole = newest.read_bytes()
    garbled = [whole[:size] for size in range(0, len(whole), 97)]
    garbled += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in (5, 30, 90, 400)]
    garbled += [whole + b"\0", whole + whole]
    for data in garbled:
        newest.write_bytes(data)
        lines: list[str] = []
        log, values = opened(path, lines)
        log.close()
        assert values == [quota(number) for number in range(30)]
        [line] = lines
        assert line.startswith(f"{newest} is no whole snapshot (")
        assert newest.read_bytes() == data


def test_a_log_whose_only_snapshot_is_garbled_and_whose_beginning_is_gone_is_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / METADATA_DIRECTORY
    with_snapshots(path)
    for file in [*names(path, ".log")[:21], names(path, ".checkpoint")[0]]:
        (path / file).unlink()
    (path / names(path, ".checkpoint")[0]).write_bytes(b"")
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    with pytest.raises(LogDirectoryError, match=r"begins at offset 21, and no snapshot .* is no"):
        opened(path)
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before


def test_a_garbled_snapshot_of_what_the_log_has_lost_is_refused(tmp_path: Path) -> None:
    path = tmp_path / METADATA_DIRECTORY
    with_snapshots(path)
    for file in names(path, ".log")[15:]:
        (path / file).unlink()
    (path / names(path, ".checkpoint")[-1]).write_bytes(b"")
    with pytest.raises(LogDirectoryError, match="and the log ends at offset 15"):
        opened(path)


def test_a_snapshot_beyond_the_end_of_the_log_begins_it_anew(tmp_path: Path) -> None:
    path = tmp_path / METADATA_DIRECTORY
    with_snapshots(path)
    for file in names(path, ".log")[15:]:
        (path / file).unlink()
    log, values = opened(path)
    assert values == [quota(number) for number in range(20)]
    assert (log.start_offset, log.end_offset) == (21, 21)
    assert names(path, ".log") == [f"{21:020}.log"]
    log.begin_term(7)
    log.append([quota(20)], 7)
    log.close()
    again, values = opened(path)
    again.close()
    assert values == [quota(number) for number in range(21)]


def test_what_a_crash_leaves_of_a_snapshot_is_removed(tmp_path: Path) -> None:
    path = tmp_path / METADATA_DIRECTORY
    with_snapshots(path)
    half = path / f"{31:020}-{1:010}.checkpoint.part"
    half.write_bytes(b"half")
    lines: list[str] = []
    log, values = opened(path, lines)
    log.close()
    assert (len(values), lines, half.exists()) == (30, [], False)


def test_old_segments_go_with_the_snapshots_before_the_one_that_replaces_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / METADATA_DIRECTORY
    with_snapshots(path)
    log, _ = opened(path)
    log.delete_old(1 << 20)
    assert log.start_offset == 0
    log.delete_old(1)
    assert (log.start_offset, log.end_offset) == (21, 31)
    assert names(path, ".checkpoint") == [f"{21:020}-{1:010}.checkpoint"]
    assert names(path, ".log")[0] == f"{21:020}.log"
    log.close()
    again, values = opened(path)
    again.close()
    assert values == [quota(number) for number in range(30)]


def test_what_a_quorum_knows_of_itself_is_in_its_snapshots() -> None:
    quorum = QuorumRecords()
    quorum.values = {6: b"\0\0voters", 5: b"\0\0\0\1"}
    snapshot = snapshot_bytes([NO_OP], 7, epoch=3, last_contained_timestamp=6, quorum=quorum)
    batches = [*ottla.read_batches(snapshot)]
    assert [record.control for batch in batches for record in batch.records()] == [
        "SNAPSHOT_HEADER", "KRAFT_VERSION", "KRAFT_VOTERS", None, "SNAPSHOT_FOOTER",
    ]  # fmt: skip
    assert {batch.partition_leader_epoch for batch in batches} == {3}
    read = QuorumRecords()
    assert [*snapshot_values(snapshot, "a", read)] == [NO_OP]
    assert read.values == quorum.values


# What records amount to.


def registration(broker_id: int, epoch: int) -> layouts.RegisterBrokerRecord:
    return layouts.RegisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch)


RECORDS: list[Message] = [
    layouts.FeatureLevelRecord(name="metadata.version", feature_level=25),
    layouts.FeatureLevelRecord(name="kraft.version", feature_level=1),
    layouts.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
    registration(1, 3),
    registration(2, 4),
    layouts.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=3, fenced=-1),
    layouts.UnregisterBrokerRecord(broker_id=2, broker_epoch=4),
    layouts.TopicRecord(name="a", topic_id=TOPIC_ID),
    layouts.PartitionRecord(
        partition_id=0, topic_id=TOPIC_ID, replicas=[1], isr=[1], leader=1, leader_epoch=4
    ),
    layouts.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=1),
    layouts.ConfigRecord(resource_type=TOPIC, resource_name="a", name="b", value="c"),
    layouts.ConfigRecord(resource_type=BROKER, resource_name="", name="d", value="e"),
    layouts.ClientQuotaRecord(
        entity=[layouts.EntityData(entity_type="user", entity_name=None)], key="f", value=2.5
    ),
    layouts.ProducerIdsRecord(broker_id=1, next_producer_id=3000),
    layouts.AccessControlEntryRecord(id=TOPIC_ID, resource_name="a", principal="User:g", host="*"),
    layouts.UserScramCredentialRecord(
        name="h", mechanism=1, salt=b"i", stored_key=b"j", server_key=b"k", iterations=4096
    ),
]


def values_like(state: ClusterState) -> list[bytes]:
    return [*values_of(state, DIRECTORY_ID)]


def state_of(values: list[bytes]) -> ClusterState:
    state = ClusterState()
    state.replay_all(values)
    return state


def test_the_records_of_a_snapshot_amount_to_the_same_as_those_before() -> None:
    before = state_of([record_bytes(record) for record in RECORDS])
    values = values_like(before)
    after = state_of(values)
    assert values_like(after) == values
    assert len(values) == len(RECORDS) - 3
    assert after.topics[TOPIC_ID].partitions[0].leader_epoch == 5
    assert after.broker_epochs == {1: 3}
    for name in ("configs", "rules", "credentials", "quotas", "features", "next_producer_id"):
        assert getattr(after, name) == getattr(before, name)


def test_records_without_effect_here_are_carried_on_and_unknown_ones_prevent_a_snapshot() -> None:
    token, removed = b"\1\12\0token", b"\1\32\0token"
    state = state_of([token, removed, b"\1\33\0\0\0\0\1controller"])
    assert values_like(state) == [token, removed, b"\1\33\0\0\0\0\1controller"]
    assert state.is_wholly_known
    state.replay_all([b"\1\144\0unknown"])
    assert not state.is_wholly_known


# A broker.


def test_a_broker_sums_its_metadata_up_and_starts_on_what_it_has_summed_up(
    tmp_path: Path,
) -> None:
    config = {
        "metadata.log.max.record.bytes.between.snapshots": 1000,
        "metadata.max.retention.bytes": 4000,
    }
    directory = tmp_path / METADATA_DIRECTORY
    topics = {f"topic-{number}" for number in range(30)}
    with Broker(data=tmp_path, config=config) as broker:
        for topic in topics:
            broker.create_topic(topic)
    assert names(directory, ".checkpoint") != []
    with Broker(data=tmp_path, config=config) as broker:
        assert {*broker.topics} >= topics
    found = ottla.audit(tmp_path).findings
    assert [(finding["name"], finding["message"]) for finding in found] == []


def test_a_snapshot_that_cannot_be_written_is_told_and_the_change_holds(tmp_path: Path) -> None:
    config = {"metadata.log.max.record.bytes.between.snapshots": "1000"}
    lines: list[str] = []
    path = tmp_path / METADATA_DIRECTORY
    with kept_broker(tmp_path, config, lines=lines) as broker:
        for number in range(40):
            # What stands where the next snapshot is written first.
            for end_offset in range(200):
                (path / f"{end_offset:020}-{1:010}.checkpoint.part").mkdir(exist_ok=True)
            broker.topics.create(f"topic-{number}", 1, {}, NOW_MS)
        assert len(broker.image.topics) == 40
    assert {line.split(":")[0] for line in lines} == {
        "a snapshot of the cluster's metadata cannot be written"
    }
    assert names(path, ".checkpoint") == []


@pytest.mark.shared
def test_a_snapshot_of_a_real_controller_is_read_and_goes_on_in_one_of_ours(
    shared: Path, tmp_path: Path
) -> None:
    source = shared / "corpus" / "kafka" / "kafka-4.1" / METADATA_DIRECTORY
    path = tmp_path / METADATA_DIRECTORY
    path.mkdir()
    for each in source.iterdir():
        (path / each.name).write_bytes(each.read_bytes())
    log, values = opened(path)
    whole = state_of(values)
    log.begin_term(8)
    log.write_snapshot(values_of(whole, DIRECTORY_ID), 8)
    log.close()
    for file in names(path, ".log"):
        (path / file).unlink()
    again, summed_up = opened(path)
    again.close()
    assert values_like(state_of(summed_up)) == values_like(whole)
    assert len(summed_up) < len(values)
