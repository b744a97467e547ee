"""The log of a controller: what is read of it, what a crash leaves, what is written."""

import contextlib
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import ottla
import pytest
from ottla.broker.data.cluster_state import BROKER, TOPIC, ClusterState
from ottla.broker.data.metadata_log import METADATA_DIRECTORY, MetadataLog
from ottla.broker.data.metadata_snapshot import snapshot_values
from ottla.broker.data.new_cluster import bootstrap_snapshot
from ottla.errors import LogDirectoryError
from ottla.protocol.messages import cluster_metadata as layouts
from ottla.protocol.metadata_record import record_bytes
from ottla.protocol.wire import Message

GOLDEN = Path(__file__).parents[2] / "golden" / "cluster-metadata.hex"
SEGMENT = f"{0:020}.log"
TOPIC_ID = bytes(15) + b"\7"


def opened(path: Path, lines: list[str] | None = None) -> tuple[MetadataLog, list[bytes]]:
    said: list[str] = [] if lines is None else lines
    log = MetadataLog(str(path), 1, said.append)
    return log, list(log.load())


def written(path: Path, *batches: list[bytes]) -> None:
    log, _ = opened(path)
    log.begin_term(5)
    for batch in batches:
        log.append(batch, 6)
    log.close()


def of_kafka(tmp_path: Path) -> Path:
    path = tmp_path / METADATA_DIRECTORY
    path.mkdir()
    (path / SEGMENT).write_bytes(bytes.fromhex(GOLDEN.read_text()))
    return path


def state_of(records: list[Message]) -> ClusterState:
    state = ClusterState()
    state.replay_all(map(record_bytes, records))
    return state


def test_the_log_of_a_real_controller_says_what_the_cluster_has(tmp_path: Path) -> None:
    log, values = opened(of_kafka(tmp_path))
    log.close()
    state = ClusterState()
    state.replay_all(values)
    names = {topic.name: sorted(topic.partitions) for topic in state.topics.values()}
    assert names == {
        "__transaction_state": [0, 1],
        "crash-compacted": [0],
        "crash-plain": [0],
        "crash-retention": [0],
        "crash-txn": [0],
        "crash-zstd": [0],
    }
    assert state.configs[TOPIC, "crash-zstd"]["internal.segment.bytes"] == "100000"
    assert state.configs[BROKER, ""] == {"min.insync.replicas": "1"}
    assert (state.features["metadata.version"], state.next_producer_id) == (27, 1000)
    assert state.broker_epochs == {1: 10}
    assert state.passed_over == {}
    assert (log.end_offset, log.epoch) == (64, 1)


def test_a_term_begins_behind_what_is_there_in_an_epoch_of_its_own(tmp_path: Path) -> None:
    path = of_kafka(tmp_path)
    before = (path / SEGMENT).read_bytes()
    written(path, [record_bytes(layouts.NoOpRecord())])
    after = (path / SEGMENT).read_bytes()
    assert after.startswith(before)
    change, record = ottla.read_batches(after[len(before) :])
    assert [r.control for r in change.records()] == ["LEADER_CHANGE"]
    assert (change.base_offset, record.base_offset) == (64, 65)
    assert {change.partition_leader_epoch, record.partition_leader_epoch} == {2}
    assert '"leaderEpoch":2' in (path / "quorum-state").read_text()
    assert (path / "leader-epoch-checkpoint").read_text() == "0\n2\n1 0\n2 64\n"


def test_a_crash_at_any_byte_of_an_append_leaves_all_of_it_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / METADATA_DIRECTORY
    written(path, [b"\1\24\0\0"], [b"\1\24\0\0", b"\1\24\0\0"])
    whole = (path / SEGMENT).read_bytes()
    last = [batch.position for batch in ottla.read_batches(whole)][-1]
    for size in range(last, len(whole) + 1):
        (path / SEGMENT).write_bytes(whole[:size])
        lines: list[str] = []
        log, values = opened(path, lines)
        log.close()
        is_whole = size == len(whole)
        assert (len(values), log.end_offset) == ((3, 4) if is_whole else (1, 2))
        assert (path / SEGMENT).read_bytes() == (whole if is_whole else whole[:last])
        assert len(lines) == (0 if is_whole or size == last else 1)


def test_a_batch_with_a_wrong_checksum_and_all_behind_it_are_cut_off(tmp_path: Path) -> None:
    path = of_kafka(tmp_path)
    data = bytearray((path / SEGMENT).read_bytes())
    data[-1] ^= 1
    (path / SEGMENT).write_bytes(data)
    lines: list[str] = []
    log, _ = opened(path, lines)
    log.close()
    assert log.end_offset == 63
    assert (path / SEGMENT).read_bytes() == data[:4471]
    assert "72 bytes behind position 4471 are no whole batch" in lines[0]


def test_damage_with_a_whole_batch_behind_it_is_refused_and_nothing_is_cut(tmp_path: Path) -> None:
    path = of_kafka(tmp_path)
    whole = (path / SEGMENT).read_bytes()
    starts = [batch.position for batch in ottla.read_batches(whole)]
    for damaged_at in (starts[2] + 8, starts[2] + 16, starts[-1] - 1):
        data = bytearray(whole)
        data[damaged_at] ^= 0x41
        (path / SEGMENT).write_bytes(data)
        with pytest.raises(LogDirectoryError, match="no crash did it, since a whole batch follows"):
            opened(path)
        assert (path / SEGMENT).read_bytes() == data


def test_a_term_that_a_crash_ended_before_its_first_record_leaves_a_log_that_is_empty(
    tmp_path: Path,
) -> None:
    path = tmp_path / METADATA_DIRECTORY
    written(path)
    log, _ = opened(path)
    assert (log.end_offset, log.is_empty) == (1, True)
    log.append([b"\1\24\0\0"], 6)
    log.close()
    again, values = opened(path)
    again.close()
    assert (len(values), again.is_empty) == (1, False)


@pytest.mark.parametrize("epoch", [-1, 2**31 - 1, 10**30])
def test_a_log_in_the_last_epoch_or_in_none_is_refused(tmp_path: Path, epoch: int) -> None:
    path = of_kafka(tmp_path)
    log, _ = opened(path)
    log.close()
    log.epoch = epoch
    with pytest.raises(LogDirectoryError, match="expected 0 to 2147483646"):
        log.begin_term(5)


def test_damage_before_another_segment_is_refused_and_nothing_is_cut(tmp_path: Path) -> None:
    path = of_kafka(tmp_path)
    data = bytearray((path / SEGMENT).read_bytes())
    data[1030] ^= 1
    (path / SEGMENT).write_bytes(data)
    (path / f"{64:020}.log").write_bytes(b"")
    with pytest.raises(LogDirectoryError, match="is damaged, and a segment follows it"):
        opened(path)
    assert (path / SEGMENT).read_bytes() == data


def test_a_log_whose_beginning_is_gone_needs_a_snapshot(tmp_path: Path) -> None:
    path = of_kafka(tmp_path)
    (path / SEGMENT).rename(path / f"{64:020}.log")
    (path / f"{64:020}.log").write_bytes(b"")
    with pytest.raises(LogDirectoryError, match="begins at offset 64, and no snapshot"):
        opened(path)
    snapshot = path / f"{64:020}-{3:010}.checkpoint"
    snapshot.write_bytes(bootstrap_snapshot(None, 7))
    log, values = opened(path)
    log.close()
    assert len(values) == 3
    assert (log.end_offset, log.epoch) == (64, 3)


def test_a_snapshot_without_its_foot_is_refused() -> None:
    torn = bootstrap_snapshot(None, 7)[:-75]
    with pytest.raises(LogDirectoryError, match=r"a\.checkpoint.* ends without the foot"):
        list(snapshot_values(torn, "a.checkpoint"))


def test_a_quorum_with_other_voters_is_refused(tmp_path: Path) -> None:
    path = of_kafka(tmp_path)
    state = '{"leaderId":2,"leaderEpoch":9,"currentVoters":[{"voterId":1},{"voterId":2}]}'
    (path / "quorum-state").write_text(state)
    with pytest.raises(LogDirectoryError, match="names the voters 2 beside node 1"):
        opened(path)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"leaderEpoch":"x"}', '{"leaderEpoch":Infinity}', "\0", "[" * 99_999],
)
def test_a_quorum_state_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = of_kafka(tmp_path)
    (path / "quorum-state").write_text(text)
    with pytest.raises(LogDirectoryError, match="is no state of a quorum"):
        opened(path)


def test_an_append_that_fails_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / METADATA_DIRECTORY
    written(path, [b"\1\24\0\0"])
    log, _ = opened(path)
    before = (path / SEGMENT).read_bytes()
    with file_size_limit(len(before) + 40), pytest.raises(OSError, match="File too large"):
        log.append([b"\1\24\0\0"], 7)
    assert (path / SEGMENT).read_bytes() == before
    log.append([b"\1\24\0\0"], 8)
    log.close()
    again, values = opened(path)
    again.close()
    assert len(values) == 2


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Lets no file of this process grow beyond a size, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


# What records amount to.


def test_records_of_a_transaction_hold_when_it_is_ended_and_not_before() -> None:
    begin = layouts.BeginTransactionRecord(name="x")
    topic = layouts.TopicRecord(name="a", topic_id=TOPIC_ID)
    assert state_of([begin, topic]).topics == {}
    assert state_of([begin, topic]).is_in_transaction
    assert [*state_of([begin, topic, layouts.EndTransactionRecord()]).topics] == [TOPIC_ID]
    aborted = state_of([begin, topic, layouts.AbortTransactionRecord()])
    assert (aborted.topics, aborted.is_in_transaction) == ({}, False)


def test_a_topic_that_is_removed_takes_its_settings_along() -> None:
    config = layouts.ConfigRecord(
        resource_type=TOPIC, resource_name="a", name="retention.ms", value="1"
    )
    topic = layouts.TopicRecord(name="a", topic_id=TOPIC_ID)
    assert state_of([topic, config]).configs == {(TOPIC, "a"): {"retention.ms": "1"}}
    gone = state_of([topic, config, layouts.RemoveTopicRecord(topic_id=TOPIC_ID)])
    assert (gone.topics, gone.configs) == ({}, {})


def test_each_change_of_a_leader_is_an_epoch_and_each_change_counts() -> None:
    topic = layouts.TopicRecord(name="a", topic_id=TOPIC_ID)
    partition = layouts.PartitionRecord(
        partition_id=0, topic_id=TOPIC_ID, replicas=[1], leader=1, leader_epoch=4, partition_epoch=6
    )
    same = layouts.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=[1])
    other = layouts.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=-1)
    found = state_of([topic, partition, same, other]).topics[TOPIC_ID].partitions[0]
    assert (found.leader, found.leader_epoch, found.partition_epoch) == (-1, 5, 8)


def test_records_of_kinds_that_are_not_known_are_counted_and_passed_over() -> None:
    state = ClusterState()
    state.replay_all([b"\1\12\0whatever", b"\1\12\0", b"\1\144\0", b"\1\24\0\0"])
    assert state.passed_over == {10: 2, 100: 1}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"", "a record without a type"),
        (b"\2\2\0", "version 2 of a frame"),
        (b"\1\2\7", "TopicRecord has no version 7"),
        (b"\1\2\0\5ab", "cannot be read"),
    ],
)
def test_a_record_that_cannot_be_read_is_refused(value: bytes, said: str) -> None:
    with pytest.raises(LogDirectoryError, match=said):
        ClusterState().replay_all([value])


def test_a_record_about_a_topic_that_is_not_there_is_refused() -> None:
    with pytest.raises(LogDirectoryError, match="which no record before it has"):
        state_of([layouts.RemoveTopicRecord(topic_id=TOPIC_ID)])


@pytest.mark.shared
@pytest.mark.parametrize("log", ["kafka-4.1", "kafka-4.1-killed"])
def test_snapshots_and_logs_of_real_controllers_are_read(
    shared: Path, tmp_path: Path, log: str
) -> None:
    source = shared / "corpus" / "kafka" / log / METADATA_DIRECTORY
    path = tmp_path / METADATA_DIRECTORY
    path.mkdir()
    for file in source.iterdir():
        (path / file.name).write_bytes(file.read_bytes())
    read, values = opened(path)
    read.close()
    state = ClusterState()
    state.replay_all(values)
    known = {f"{t.name}-{index}" for t in state.topics.values() for index in t.partitions}
    on_disk = {entry.name for entry in source.parent.iterdir() if (entry / SEGMENT).exists()}
    assert on_disk - known - {METADATA_DIRECTORY} == {
        name for name in on_disk if name.endswith("-delete")
    }
    assert state.passed_over == {}
