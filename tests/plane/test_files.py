"""Logs of a data plane in directories: what is on disk is what Kafka would have there."""

import os
import random
import struct
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import ottla
import pytest
from ottla import NewRecord, TopicConfig, build_batch
from ottla._engine import DataPlane
from ottla.logs.names import LEADER_EPOCHS, PARTITION_METADATA
from support.plane_frames import CODE, NOW_MS, TOPIC_ID, Asked, Plane, batch, values

UUID_OF_U = UUID(int=TOPIC_ID.int + 1)
SMALL = TopicConfig(segment_bytes=40_000)
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="Linux alone tells files and memory so"
)


def plane_of() -> Plane:
    return Plane(DataPlane(transaction_verification=False))


@dataclass
class Writer:
    """Writes to a partition what producers of all kinds write."""

    plane: Plane
    handle: int
    random: random.Random
    now_ms: int = NOW_MS
    sequences: dict[int, int] = field(default_factory=dict)
    open_transactions: set[int] = field(default_factory=set)

    def append(self) -> None:
        """Append a batch: of no producer, of an idempotent one, or of one with transactions."""
        kind = self.random.randrange(3)
        self.now_ms += self.random.randrange(-5, 20)
        count = self.random.randrange(1, 20)
        records = [
            NewRecord(
                value=self.random.randbytes(self.random.randrange(300)), timestamp=self.now_ms
            )
            for _ in range(count)
        ]
        fields: dict[str, Any] = {}
        if kind:
            producer_id = kind * 10 + self.random.randrange(3)
            sequence = self.sequences.get(producer_id, 0)
            fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
            self.sequences[producer_id] = sequence + count
            if kind == 2:
                fields["is_transactional"] = True
                self.open_transactions.add(producer_id)
        answer = self.plane.append(
            build_batch(records, compression=self.random.choice(["none", "lz4"]), **fields),
            transactional_id="x" if kind == 2 else None,
            now_ms=self.now_ms,
        )
        assert answer.error_code == 0

    def end_a_transaction(self) -> None:
        """Commit or abort one that is open."""
        if self.open_transactions:
            producer_id = self.random.choice(sorted(self.open_transactions))
            self.open_transactions.remove(producer_id)
            verdict = self.plane.engine.end_transaction(
                self.handle,
                producer_id=producer_id,
                producer_epoch=0,
                coordinator_epoch=0,
                commit=self.random.random() < 0.5,
                now_ms=self.now_ms,
            )
            assert verdict.accepted

    def write(self, appends: int) -> None:
        for _ in range(appends):
            self.append()
            if self.random.random() < 0.3:
                self.end_a_transaction()


def written(plane: Plane, directory: Path, seed: int, appends: int = 150) -> Writer:
    """Return a writer that has written to a partition in a directory."""
    handle = plane.open(directory=directory / "t-0", settings=SMALL)
    writer = Writer(plane, handle, random.Random(seed))
    for leader_epoch in (0, 3, 4):
        plane.engine.configure(handle, leader_epoch=leader_epoch)
        writer.write(appends // 3)
    return writer


def files_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def names_of(directory: Path) -> list[str]:
    return [path.name for path in sorted(directory.iterdir())]


def assert_sound(directory: Path) -> None:
    """The audit finds nothing but transactions that are open, which these are."""
    result = ottla.audit(directory)
    found = [str(finding) for finding in result.findings if finding["name"] != "open-transaction"]
    assert found == []


def side_files(directory: Path) -> dict[str, bytes]:
    others = (".log", PARTITION_METADATA.decode())
    return {name: data for name, data in files_of(directory).items() if not name.endswith(others)}


@pytest.mark.parametrize("seed", range(6))
def test_the_files_after_a_clean_stop_are_those_that_a_recovery_builds(
    tmp_path: Path, seed: int
) -> None:
    plane = plane_of()
    writer = written(plane, tmp_path / "logs", seed)
    assert len(plane.engine.segments(writer.handle)) > 3
    plane.engine.shut_down(writer.handle)
    plane.engine.close(writer.handle)
    (built,) = ottla.rebuild_side_files(tmp_path / "logs", tmp_path / "built")
    assert built.fault is None
    assert side_files(tmp_path / "logs" / "t-0") == files_of(Path(built.target))
    assert_sound(tmp_path / "logs")


@pytest.mark.parametrize("seed", range(6))
def test_the_files_of_sealed_segments_are_those_that_a_recovery_builds(
    tmp_path: Path, seed: int
) -> None:
    plane = plane_of()
    writer = written(plane, tmp_path / "logs", seed)
    (built,) = ottla.rebuild_side_files(tmp_path / "logs", tmp_path / "built")
    ours, theirs = side_files(tmp_path / "logs" / "t-0"), files_of(Path(built.target))
    base_offset = f"{plane.engine.segments(writer.handle)[-1][0]:020}"
    active = {name for name in theirs if name.startswith(base_offset)}
    assert theirs.keys() - ours.keys() == {f"{plane.engine.offsets(writer.handle)[3]:020}.snapshot"}
    # A recovery ends the time index with the largest timestamp, as a roll would.
    time_index = f"{base_offset}.timeindex"
    assert theirs[time_index].startswith(ours[time_index])
    for name in ours.keys() - {time_index}:
        assert ours[name] == theirs[name], name
    assert active - {f"{base_offset}.txnindex", f"{base_offset}.snapshot"} == {
        f"{base_offset}.index",
        time_index,
    }
    assert_sound(tmp_path / "logs")


def test_a_partition_begins_with_its_topic_id_its_epoch_and_an_empty_segment(
    tmp_path: Path,
) -> None:
    plane = Plane()
    plane.open(directory=tmp_path / "t-0", leader_epoch=7)
    assert files_of(tmp_path / "t-0") == {
        "00000000000000000000.index": b"",
        "00000000000000000000.log": b"",
        "00000000000000000000.timeindex": b"",
        LEADER_EPOCHS.decode(): b"0\n1\n7 0\n",
        PARTITION_METADATA.decode(): b"version: 0\ntopic_id: AAAAAAAAAAABI0VniavN7w\n",
    }


def test_what_is_read_of_files_is_what_is_read_of_memory(tmp_path: Path) -> None:
    planes = plane_of(), plane_of()
    writers = [
        Writer(plane, plane.open(settings=SMALL, directory=directory), random.Random(5))
        for plane, directory in zip(planes, (None, tmp_path / "t-0"), strict=True)
    ]
    for writer in writers:
        writer.write(120)
    memory, files = (plane.engine for plane in planes)
    assert files.segments(0) == memory.segments(0)
    assert files.offsets(0) == memory.offsets(0)
    for offset in range(0, files.offsets(0)[3], 7):
        assert files.read(0, offset, 5000) == memory.read(0, offset, 5000)
    for timestamp in range(NOW_MS - 10, NOW_MS + 1500, 13):
        assert files.find_offset(0, timestamp) == memory.find_offset(0, timestamp)
    assert files.find_offset(0, -3) == memory.find_offset(0, -3)


def test_retention_deletes_the_files_of_segments_and_their_snapshots(tmp_path: Path) -> None:
    plane = plane_of()
    writer = written(plane, tmp_path, 1)
    before = plane.engine.segments(writer.handle)
    plane.engine.configure(writer.handle, retention_bytes=100_000)
    assert plane.engine.apply_retention(writer.now_ms) == (writer.handle,)
    kept = plane.engine.segments(writer.handle)
    assert 1 < len(kept) < len(before)
    assert plane.engine.offsets(writer.handle)[0] == kept[0][0]
    bases = {name.split(".")[0] for name in names_of(tmp_path / "t-0") if name[0].isdigit()}
    assert bases == {f"{base:020}" for base, _ in kept}
    assert plane.engine.checkpoints()[0][3] == kept[0][0]
    assert_sound(tmp_path)


def test_a_log_whose_records_are_all_too_old_begins_anew_behind_them(tmp_path: Path) -> None:
    plane = Plane()
    handle = plane.open(directory=tmp_path / "t-0", retention_ms=1000)
    for _ in range(3):
        plane.append(batch())
    assert plane.engine.apply_retention(NOW_MS + 2000) == (handle,)
    assert plane.engine.segments(handle) == [(3, 0)]
    assert plane.engine.offsets(handle) == (3, 3, 3, 3)
    assert [name for name in names_of(tmp_path / "t-0") if name[0].isdigit()] == [
        "00000000000000000003.index",
        "00000000000000000003.log",
        "00000000000000000003.snapshot",
        "00000000000000000003.timeindex",
    ]
    assert_sound(tmp_path)


def test_deleted_records_take_their_segments_along_and_move_the_first_epoch(
    tmp_path: Path,
) -> None:
    plane = plane_of()
    writer = written(plane, tmp_path, 2)
    (_, _), (second, _), (third, _), *_ = plane.engine.segments(writer.handle)
    plane.engine.delete_records(writer.handle, third - 1)
    # A reader of the checkpoint knows which epoch the first record has that is left.
    epochs = (tmp_path / "t-0" / LEADER_EPOCHS.decode()).read_text().splitlines()
    assert epochs[2] == f"0 {third - 1}"
    plane.engine.apply_retention(NOW_MS)
    assert plane.engine.segments(writer.handle)[0][0] == second
    assert plane.engine.checkpoints() == [
        ("t", 0, 0, third - 1, plane.engine.offsets(writer.handle)[2])
    ]
    assert_sound(tmp_path)


def test_a_truncated_log_forgets_its_files_behind_and_goes_on(tmp_path: Path) -> None:
    plane = plane_of()
    writer = written(plane, tmp_path / "logs", 3)
    bases = [base for base, _ in plane.engine.segments(writer.handle)]
    # Where a batch begins.
    (end,) = struct.unpack(">q", plane.engine.read(writer.handle, bases[2] + 40, 1)[:8])
    plane.engine.truncate(writer.handle, end, now_ms=NOW_MS)
    assert plane.engine.offsets(writer.handle)[3] == end > bases[2]
    assert [base for base, _ in plane.engine.segments(writer.handle)] == bases[:3]
    assert all(
        int(name[:20]) <= end for name in names_of(tmp_path / "logs" / "t-0") if name[0] == "0"
    )
    assert_sound(tmp_path)
    for _ in range(60):
        assert plane.append(batch(bytes(400) * 10)).error_code == 0
    assert len(plane.engine.segments(writer.handle)) > 4
    assert_sound(tmp_path)


def test_a_removed_partition_leaves_nothing(tmp_path: Path) -> None:
    plane = Plane()
    kept = plane.open("u", directory=tmp_path / "u-0", topic_id=UUID_OF_U)
    handle = plane.open(directory=tmp_path / "t-0")
    plane.append(batch())
    plane.engine.remove(handle)
    assert names_of(tmp_path) == ["u-0"]
    with pytest.raises(ValueError, match="no partition has the handle 1"):
        plane.engine.remove(handle)
    plane.engine.close(kept)
    assert names_of(tmp_path) == ["u-0"]


def test_flushing_moves_the_recovery_point_and_jobs_may_come_late(tmp_path: Path) -> None:
    plane = plane_of()
    writer = written(plane, tmp_path, 4)
    engine, handle = plane.engine, writer.handle
    assert engine.unflushed() == [handle]
    assert [row[2] for row in engine.checkpoints()] == [0]
    job = engine.flush_job(handle)
    assert job is not None
    end = engine.offsets(handle)[3]
    assert engine.unflushed() == []
    writer.append()
    job.run()
    engine.flushed(handle, job)
    assert [row[2] for row in engine.checkpoints()] == [end]
    late = engine.flush_job(handle)
    assert late is not None
    engine.truncate(handle, end, now_ms=NOW_MS)
    writer.plane.append(batch())
    late.run()
    engine.flushed(handle, late)
    assert [row[2] for row in engine.checkpoints()] == [end]
    engine.flush(handle)
    assert [row[2] for row in engine.checkpoints()] == [engine.offsets(handle)[3]]
    assert engine.flush_job(handle) is None


def test_nothing_of_a_log_in_memory_is_to_be_synced() -> None:
    plane = Plane()
    handle = plane.open()
    plane.append(batch())
    assert plane.engine.flush_job(handle) is None
    plane.engine.flush(handle)
    plane.engine.shut_down(handle)
    assert (plane.engine.unflushed(), plane.engine.checkpoints()) == ([], [])


def test_a_segment_rolls_where_an_index_is_full(tmp_path: Path) -> None:
    plane = Plane()
    handle = plane.open(directory=tmp_path / "t-0", segment_index_bytes=64, index_interval_bytes=0)
    for number in range(30):
        plane.append(batch(timestamp_ms=NOW_MS + number))
    # Room for eight entries of offsets and for five of timestamps, of which the last is kept free.
    # The first batch has no entry.
    assert [base for base, _ in plane.engine.segments(handle)] == [0, 5, 10, 15, 20, 25]
    assert_sound(tmp_path)


def test_a_partition_that_is_offline_answers_with_a_storage_error(tmp_path: Path) -> None:
    plane = Plane()
    handle = plane.open(directory=tmp_path / "t-0")
    plane.append(batch())
    assert not plane.engine.is_offline(handle)
    plane.engine.take_offline(handle)
    assert plane.engine.is_offline(handle)
    assert plane.append(batch()).error_code == CODE.KAFKA_STORAGE_ERROR
    assert plane.read().error_code == CODE.KAFKA_STORAGE_ERROR
    for ask in (plane.engine.flush, plane.engine.shut_down, plane.engine.flush_job):
        with pytest.raises(ottla.KafkaError, match="t-0 is offline") as raised:
            ask(handle)
        assert raised.value.error_code == CODE.KAFKA_STORAGE_ERROR
    # What deletes goes on with the others.
    assert plane.engine.apply_retention(NOW_MS) == ()


def test_a_log_whose_file_is_gone_takes_its_partition_offline_and_no_other(
    tmp_path: Path,
) -> None:
    plane = Plane()
    other = plane.open(partition=1, directory=tmp_path / "t-1")
    handle = plane.open(directory=tmp_path / "t-0")
    for _ in range(2):
        plane.append(batch())
    (tmp_path / "t-0" / "00000000000000000000.log").write_bytes(b"")
    assert plane.read(0).error_code == CODE.KAFKA_STORAGE_ERROR
    assert plane.engine.is_offline(handle)
    assert plane.append(batch(b"w"), partition=1).error_code == 0
    assert values(plane.read(0, partition=1).records) == [b"w"]
    assert not plane.engine.is_offline(other)


def test_a_file_that_was_taken_away_is_not_made_anew(tmp_path: Path) -> None:
    plane = Plane()
    handle = plane.open(directory=tmp_path / "t-0")
    plane.append(batch())
    plane.engine.shut_down(handle)
    (tmp_path / "t-0" / "00000000000000000000.log").unlink()
    assert plane.append(batch()).error_code == CODE.KAFKA_STORAGE_ERROR
    assert plane.engine.is_offline(handle)
    assert not (tmp_path / "t-0" / "00000000000000000000.log").exists()


def test_a_directory_that_cannot_be_made_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    plane = Plane()
    with pytest.raises(NotADirectoryError) as raised:
        plane.open(directory=tmp_path / "file" / "t-0")
    assert raised.value.filename == str(tmp_path / "file" / "t-0")
    plane.open(directory=tmp_path / "t-0")


@needs_proc
def test_two_thousand_segments_take_few_descriptors_and_little_memory(tmp_path: Path) -> None:
    plane = Plane()
    handle = plane.open(
        directory=tmp_path / "t-0", settings=TopicConfig(segment_bytes=100), index_interval_bytes=0
    )
    first = resident_bytes()
    for number in range(2000):
        plane.append(batch(timestamp_ms=NOW_MS + number))
    # Reading goes through all of them.
    for offset in range(2000):
        assert plane.read(Asked(offset, max_bytes=1)).error_code == 0
    assert len(plane.engine.segments(handle)) == 2000
    ours = [path for path in open_paths() if path.startswith(str(tmp_path))]
    assert len(ours) <= 256
    assert resident_bytes() - first < 2000 * 2500
    plane.engine.close(handle)
    assert [path for path in open_paths() if path.startswith(str(tmp_path))] == []


def open_paths() -> list[str]:
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        # That of the listing itself is gone.
        with suppress(FileNotFoundError):
            found.append(str(descriptor.readlink()))
    return found


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


FULL_DISK = """
import resource, sys
from pathlib import Path
from support.plane_frames import Asked, CODE, NOW_MS, Plane, batch, values

plane = Plane()
handle = plane.open(directory=sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
written = []
for number in range(40):
    value = number.to_bytes(2, "big") * 2000
    code = plane.append(batch(value)).error_code
    if code == 0:
        written.append(value)
    else:
        assert code == CODE.KAFKA_STORAGE_ERROR, code
assert 20 < len(written) < 30, len(written)
assert not plane.engine.is_offline(handle)
# What does not fit costs only itself, and what fits is taken.
last = b"small"
assert plane.append(batch(last)).error_code == 0
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
more = b"more" * 2000
assert plane.append(batch(more)).error_code == 0
assert values(plane.read(0).records) == [*written, last, more]
assert plane.engine.offsets(handle)[3] == len(written) + 2
plane.engine.shut_down(handle)
"""


def test_a_disk_that_is_full_costs_the_append_that_meets_it_and_no_other(tmp_path: Path) -> None:
    # A limit of the process stands for a disk; it ends a write in the middle just so.
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, tmp_path / "t-0"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert_sound(tmp_path)


@needs_proc
@pytest.mark.measures
def test_three_hundred_megabytes_in_files_take_no_memory(tmp_path: Path) -> None:
    plane = Plane()
    handle = plane.open(directory=tmp_path / "t-0", settings=TopicConfig(segment_bytes=64 << 20))
    records = batch(*[random.Random(0).randbytes(1000)] * 1000)
    plane.append(records)
    first = resident_bytes()
    for _ in range(300):
        plane.append(records)
    for offset in range(0, 301_000, 1000):
        plane.read(Asked(offset, max_bytes=1 << 20))
    assert plane.engine.stored_bytes > 300_000_000
    assert resident_bytes() - first < 30 << 20
    plane.engine.close(handle)
