"""Compaction of logs in directories: what is left is sound, and what fails leaves everything."""

import gzip
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import ottla
import pytest
from ottla._engine import DataPlane, TopicSettings
from support.compacted import mixed_wrapper, states_of_a_swap
from support.logs import segment_name, write_partition

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
TOPIC_ID = bytes(range(1, 17))
LARGE = b"x" * 300_000
SETTINGS = TopicSettings([("cleanup_policy", "compact"), ("segment_bytes", "1048576")])


class Log:
    """A partition of a compacted topic, in a directory."""

    def __init__(self, directory: Path) -> None:
        self.plane = DataPlane(transaction_verification=False)
        self.now_ms = NOW_MS
        (directory / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
        self.directory = directory / "prices-0"
        self.handle = self.plane.open(
            "prices",
            TOPIC_ID,
            0,
            now_ms=NOW_MS,
            settings=SETTINGS,
            directory=str(self.directory),
            index_interval_bytes=200,
        )
        self.sequences: dict[int, int] = {}

    def append(self, *records: tuple[bytes, bytes | None], producer_id: int = -1) -> None:
        """Appends a batch, of a transaction where the id of its producer is odd."""
        fields: dict[str, Any] = {}
        if producer_id >= 0:
            sequence = self.sequences.get(producer_id, 0)
            self.sequences[producer_id] = sequence + len(records)
            fields = {
                "producer_id": producer_id,
                "producer_epoch": 0,
                "base_sequence": sequence,
                "is_transactional": producer_id % 2 == 1,
            }
        data = ottla.build_batch(
            [
                ottla.NewRecord(key=key, value=value, timestamp=self.now_ms)
                for key, value in records
            ],
            **fields,
        )
        verdict = self.plane.append(self.handle, data, now_ms=self.now_ms, origin="client")
        assert verdict.accepted, verdict

    def end(self, producer_id: int, *, commit: bool) -> None:
        self.plane.end_transaction(
            self.handle,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            commit=commit,
            now_ms=self.now_ms,
        )

    def compact(self) -> ottla._engine.Compaction | None:
        job = self.plane.compact_job(self.handle, now_ms=self.now_ms, is_forced=True)
        if job is None:
            return None
        job.run()
        return self.plane.compacted(job)

    def data(self) -> bytes:
        """All batches."""
        offset, end = self.plane.offsets(self.handle)[0], self.plane.offsets(self.handle)[3]
        found = b""
        while offset < end and (data := self.plane.read(self.handle, offset, 1 << 30)):
            found += data
            offset = list(ottla.read_batches(data))[-1].last_offset + 1
        return found

    def left(self) -> dict[bytes | None, bytes | None]:
        """Values by key."""
        return {record.key: record.value for record in ottla.read(self.data())}


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def test_an_audit_finds_nothing_in_what_is_left(log: Log) -> None:
    random = Random(7)
    for _ in range(6):
        for _ in range(60):
            producer_id = random.choice([-1, 0, 1, 2, 3])
            keys = (b"key-%d" % random.randrange(20) for _ in range(random.randrange(1, 5)))
            values = (random.choice([None, random.randbytes(random.randrange(90))]) for _ in "123")
            log.append(*zip(keys, values, strict=False), producer_id=producer_id)
            if random.random() < 0.2:
                log.end(random.choice([1, 3]), commit=random.random() < 0.5)
        for producer_id in (1, 3):
            log.end(producer_id, commit=True)
        assert log.compact() is not None
        log.plane.flush(log.handle)
        found = ottla.audit(str(log.directory.parent))
        # A hole is told of as what it is, and is no fault.
        told = [each["name"] for each in found.findings if each["severity"] != "info"]
        assert told == []
        assert {each["name"] for each in found.findings} == {"offset-gap"}
        log.now_ms += DAY_MS // 2
    assert len(log.left()) <= 20


def test_a_job_that_is_stopped_leaves_everything_as_it_was(log: Log) -> None:
    for _ in range(9):
        log.append((b"a", LARGE))
    before = log.data()
    job = log.plane.compact_job(log.handle, now_ms=log.now_ms, is_forced=True)
    assert job is not None
    files = sorted(log.directory.iterdir())
    job.stop()
    job.run()
    assert log.plane.compacted(job) is None
    assert log.data() == before
    assert sorted(log.directory.iterdir()) == files
    # Another one does it.
    assert log.compact() is not None
    assert log.left() == {b"a": LARGE}


def test_tombstones_go_once_their_horizon_has_passed(log: Log) -> None:
    log.append((b"a", b"1"), (b"b", b"1"))
    log.append((b"a", None))
    log.compact()
    assert log.left() == {b"b": b"1", b"a": None}
    log.now_ms += DAY_MS - 1
    log.compact()
    assert log.left() == {b"b": b"1", b"a": None}
    log.now_ms += 1
    log.compact()
    assert log.left() == {b"b": b"1"}
    # Its offset is not given again, and its end is known.
    assert log.plane.offsets(log.handle)[3] == 3


def test_an_aborted_transaction_is_gone_and_the_next_one_of_its_producer_is_not(log: Log) -> None:
    log.append((b"a", b"before"))
    log.append((b"a", b"aborted"), producer_id=1)
    log.end(1, commit=False)
    log.append((b"b", b"committed"), producer_id=1)
    log.end(1, commit=True)
    for _ in range(3):
        log.compact()
        log.now_ms += DAY_MS
        assert log.left() == {b"a": b"before", b"b": b"committed"}
    assert log.plane.leader(log.handle).aborted_transactions == ()
    log.append((b"c", b"next"), producer_id=1)
    log.end(1, commit=True)


def test_what_was_truncated_meanwhile_makes_a_compaction_useless(log: Log) -> None:
    for _ in range(3):
        log.append((b"a", b"value"))
    job = log.plane.compact_job(log.handle, now_ms=NOW_MS, is_forced=True)
    assert job is not None
    log.plane.truncate(log.handle, 2, now_ms=NOW_MS)
    before = log.data()
    job.run()
    assert log.plane.compacted(job) is None
    assert log.plane.compacted(job) is None
    assert log.data() == before
    assert not [*log.directory.glob("*.cleaned")]
    assert log.compact() is not None
    assert log.left() == {b"a": b"value"}


def test_what_is_appended_meanwhile_stays(log: Log) -> None:
    log.append((b"a", b"1"))
    log.append((b"a", b"2"))
    job = log.plane.compact_job(log.handle, now_ms=NOW_MS, is_forced=True)
    assert job is not None
    job.run()
    log.append((b"a", b"3"))
    done = log.plane.compacted(job)
    assert done is not None
    assert (done.records_read, done.records_kept, done.first_dirty_offset) == (2, 1, 2)
    assert [record.value for record in ottla.read(log.data())] == [b"2", b"3"]
    assert log.plane.cleaner_offsets() == [("prices", 0, 2)]


def test_a_partition_that_is_gone_takes_nothing_back(log: Log) -> None:
    log.append((b"a", b"1"))
    job = log.plane.compact_job(log.handle, now_ms=NOW_MS, is_forced=True)
    assert job is not None
    log.plane.remove(log.handle)
    job.run()
    assert log.plane.compacted(job) is None
    assert not log.directory.exists()


def test_a_damaged_log_is_left_as_it_is(log: Log) -> None:
    log.append((b"a", b"1"))
    log.append((b"a", b"2"))
    job = log.plane.compact_job(log.handle, now_ms=NOW_MS, is_forced=True)
    assert job is not None
    (segment, _) = sorted(log.directory.glob("*.log"))
    damaged = segment.read_bytes()[:-1] + b"\xff"
    segment.write_bytes(damaged)
    job.run()
    with pytest.raises(ottla.KafkaError, match="segment 0, batch at position 7") as raised:
        log.plane.compacted(job)
    assert raised.value.error == "CORRUPT_MESSAGE"
    assert segment.read_bytes() == damaged
    assert not [*log.directory.glob("*.cleaned")]


def test_nothing_is_due_below_the_dirty_ratio_but_what_has_waited_too_long(log: Log) -> None:
    large = b"x" * 400_000
    for key in (b"a", b"b", b"c", b"d"):
        log.append((key, large))
    # Two segments: the second is active.
    assert log.plane.compact_job(log.handle, now_ms=NOW_MS, min_cleanable_dirty_ratio=1.0) is None
    assert log.plane.compact_job(log.handle, now_ms=NOW_MS) is not None
    late: dict[str, Any] = {"min_cleanable_dirty_ratio": 1.0, "max_compaction_lag_ms": 1000}
    at_the_limit = NOW_MS + 1000
    assert log.plane.compact_job(log.handle, now_ms=at_the_limit, **late) is None
    assert log.plane.compact_job(log.handle, now_ms=at_the_limit + 1, **late) is not None
    young: dict[str, Any] = {"min_compaction_lag_ms": 1000}
    assert log.plane.compact_job(log.handle, now_ms=at_the_limit - 1, **young) is None
    assert log.plane.compact_job(log.handle, now_ms=at_the_limit, **young) is not None


def test_a_log_that_is_not_compacted_is_left_alone() -> None:
    plane = DataPlane()
    handle = plane.open("t", bytes(16), 0, now_ms=NOW_MS)
    data = ottla.build_batch([ottla.NewRecord(key=b"a", value=b"1", timestamp=NOW_MS)])
    assert plane.append(handle, data, now_ms=NOW_MS).accepted
    assert plane.compact_job(handle, now_ms=NOW_MS, is_forced=True) is None


def test_a_start_after_a_crash_at_any_step_finds_the_old_segments_or_the_new_one(
    log: Log, tmp_path: Path
) -> None:
    for _ in range(3):
        for key in (b"a", b"b", b"c"):
            log.append((key, b"x" * 300_000))
    job = log.plane.compact_job(log.handle, now_ms=NOW_MS, is_forced=True)
    assert job is not None
    job.run()
    log.plane.flush(log.handle)
    cleaned = {each.name: each.read_bytes() for each in log.directory.glob("*.cleaned")}
    old = {each.name: each.read_bytes() for each in log.directory.iterdir()}
    old = {name: data for name, data in old.items() if name not in cleaned}
    assert log.plane.compacted(job) is not None
    assert {each.name for each in log.directory.iterdir()} == old.keys()
    states = states_of_a_swap(old, cleaned)

    sizes = []
    for number, state in enumerate(states):
        directory = tmp_path / f"state-{number}" / "prices-0"
        directory.mkdir(parents=True)
        for name, data in state.items():
            (directory / name).write_bytes(data)
        for clean in (False, True):
            found = ottla.predict_recovery(str(directory), clean=clean)
            assert found.opens, number
            assert found.log_end_offset == 9
            # The newest record of each key is there whatever else is.
            assert found.segments["00000000000000000006.log"] == len(
                old["00000000000000000006.log"]
            )
            sizes.append(sum(found.segments.values()))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == sum(len(data) for name, data in old.items() if name.endswith(".log"))
    assert sizes[-1] == sum(len(data) for name, data in states[-1].items() if name.endswith(".log"))
    assert sizes[-1] < sizes[0] / 2


def test_what_is_left_is_as_old_as_what_it_was_made_of(log: Log) -> None:
    log.append((b"a", b"1"))
    log.append((b"a", b"2"))
    log.now_ms += DAY_MS
    assert log.compact() is not None
    log.plane.close(log.handle)
    (compacted, _) = sorted(log.directory.glob("*.log"))
    # A start goes by it: records without a time are as old as their segment.
    assert compacted.stat().st_mtime_ns // 1_000_000 == NOW_MS


def test_records_without_a_time_are_as_young_as_their_segment(log: Log) -> None:
    for _ in range(4):
        data = ottla.build_batch([ottla.NewRecord(key=b"a", value=LARGE, timestamp=-1)])
        assert log.plane.append(log.handle, data, now_ms=NOW_MS).accepted
    young: dict[str, Any] = {"min_compaction_lag_ms": 1000}
    assert log.plane.compact_job(log.handle, now_ms=NOW_MS + 999, **young) is None
    assert log.plane.compact_job(log.handle, now_ms=NOW_MS + 1000, **young) is not None


def test_an_aborted_batch_goes_where_it_is_the_last_that_is_compacted(log: Log) -> None:
    log.append((b"a", LARGE), (b"b", LARGE))
    log.append((b"a", LARGE), producer_id=1)
    # These are in the next segment.
    log.append((b"b", LARGE), producer_id=1)
    log.end(1, commit=False)
    assert [offset for offset, _ in log.plane.segments(log.handle)] == [0, 3]
    job = log.plane.compact_job(log.handle, now_ms=NOW_MS)
    assert job is not None
    job.run()
    assert log.plane.compacted(job) is not None
    assert [batch.base_offset for batch in ottla.read_batches(log.data())] == [0, 3, 4]


def test_a_wrapper_with_records_of_another_magic_is_written_anew(tmp_path: Path) -> None:
    rows = [ottla.NewRecord(key=b"%d" % key, value=b"v", timestamp=NOW_MS) for key in range(3)]
    directory = tmp_path / "prices-0"
    write_partition(directory, {0: mixed_wrapper(rows, 0), 3: mixed_wrapper(rows[:1], 3)})
    plane = DataPlane()
    handle = plane.open(
        "prices", bytes(16), 0, now_ms=NOW_MS, settings=SETTINGS, directory=directory
    )
    job = plane.compact_job(handle, now_ms=NOW_MS)
    assert job is not None
    job.run()
    done = plane.compacted(job)
    assert done is not None
    assert done.records_kept == 3
    (batch,) = ottla.read_batches((directory / segment_name(0)).read_bytes())
    assert [(r.offset, r.key, r.value, r.timestamp) for r in batch.records()] == [
        (offset, b"%d" % offset, b"v", -1) for offset in range(3)
    ]
    # The inner set is of magic 1 now, whose offsets are relative and whose records have a time.
    inner = gzip.decompress((directory / segment_name(0)).read_bytes()[34:])
    assert inner == ottla.build_message_set(
        [ottla.NewRecord(key=row.key, value=b"v", timestamp=-1) for row in rows], magic=1
    )


def test_tombstones_of_old_formats_go_with_segments_older_than_the_last_clean_one(
    tmp_path: Path,
) -> None:
    def row(key: bytes, value: bytes | None) -> bytes:
        record = ottla.NewRecord(key=key, value=value, timestamp=NOW_MS)
        return ottla.build_message_set([record], magic=1)

    def at(offset: int, data: bytes) -> bytes:
        return offset.to_bytes(8, "big") + data[8:]

    directory = tmp_path / "prices-0"
    keys = [b"a", b"b", b"c"]
    write_partition(directory, {n: at(n, row(key, None)) for n, key in enumerate(keys)})
    for number in range(3):
        at_s = NOW_MS // 1000 + number * 3600
        os.utime(directory / segment_name(number), (at_s, at_s))
    plane = DataPlane()
    options: dict[str, Any] = {"segment_index_bytes": 8, "index_interval_bytes": 0}
    handle = plane.open(
        "prices", bytes(16), 0, now_ms=NOW_MS, settings=SETTINGS, directory=directory, **options
    )
    plane.set_cleaner_offset(handle, 2)
    job = plane.compact_job(handle, now_ms=NOW_MS, is_forced=True, delete_retention_ms=3_600_000)
    assert job is not None
    job.run()
    assert plane.compacted(job) is not None
    left = b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
    assert [record.key for record in ottla.read(left)] == [b"b", b"c"]


# What is left takes more than the limit, which stands for a disk.
FULL_DISK = """
import os, resource, sys
sys.path.insert(0, "tests")
from pathlib import Path
import ottla
from plane.test_compaction import LARGE, Log

log = Log(Path(sys.argv[1]))
for key in (b"a", b"b", b"c", b"c"):
    log.append((key, LARGE))
before = log.data()
names = sorted(log.directory.iterdir())
job = log.plane.compact_job(log.handle, now_ms=log.now_ms)
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
job.run()
try:
    log.plane.compacted(job)
except ottla.KafkaError as error:
    assert error.error == "KAFKA_STORAGE_ERROR", error
    assert "segment 0" in str(error) and "File too large" in str(error), error
else:
    raise AssertionError("it has fitted")
assert not log.plane.is_offline(log.handle)
assert (log.data(), sorted(log.directory.iterdir())) == (before, names)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert log.compact().records_kept == 3
"""


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, tmp_path],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_audit_finds_nothing_where_no_batch_of_a_producer_is_left_before_its_snapshot(
    log: Log,
) -> None:
    for _ in range(3):
        log.append((b"a", LARGE), producer_id=2)
    for key in (b"a", b"b", b"c", b"d"):
        log.append((key, LARGE), producer_id=2)
    assert log.compact() is not None
    assert log.plane.segments(log.handle)[0] == (0, 0)
    log.plane.shut_down(log.handle)
    checkpoint = log.directory.parent / "cleaner-offset-checkpoint"
    checkpoint.write_text("0\n1\nprices 0 7\n")
    found = ottla.audit(str(log.directory.parent)).findings
    assert [each["name"] for each in found if each["severity"] != "info"] == []
