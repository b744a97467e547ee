"""What the engine reads through an object is what it reads of a file with the same bytes."""

import errno
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ottla import _engine
from ottla.audit.judge.packed import ENGINE_TABLES
from ottla.errors import AuditCancelledError
from support.logs import segment, segment_name, write_partition

NOW_MS = 1_700_000_000_000
RANGE = 70_001


@dataclass
class Held:
    """Bytes in memory behind the protocol of a place."""

    data: bytes
    most: int = 1 << 30
    """Bytes given at once."""
    fault: Callable[[int], BaseException | None] = lambda _: None
    """What is raised at a position."""
    kind: type = bytes
    reads: list[tuple[int, int]] = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.data)

    def read_at(self, position: int, size: int) -> Any:
        self.reads.append((position, size))
        if fault := self.fault(position):
            raise fault
        return self.kind(self.data[position : position + min(size, self.most)])


def hurt_log() -> bytes:
    data = bytearray(segment(400, value_size=300))
    data[50_000] ^= 1
    data[200_000:210_000] = bytes(10_000)
    return bytes(data[:-30])


def opened(place: Any, **options: Any) -> _engine.Segment:
    return _engine.Segment(place, base_offset=0, now_ms=NOW_MS, **options)


def copied(value: Any) -> Any:
    """As another process gets it."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301


def whole(scan: _engine.SegmentScan) -> list[Any]:
    """All that a partition of one segment shows."""
    partition = _engine.merge_partition([(0, scan)], topic="orders")
    names = ("log_start_offset", "log_end_offset", "last_stable_offset", "findings")
    packed = _engine.PackedLog([(0, scan)], [partition])
    return [getattr(partition, name) for name in names] + [
        packed.rows(table, 0) for table in ENGINE_TABLES
    ]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / segment_name(0)
    path.write_bytes(hurt_log())
    return path


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
@pytest.mark.parametrize("most", [1 << 30, 997])
def test_an_object_is_scanned_as_a_file_is(log: Path, kind: type, most: int) -> None:
    scan = opened(Held(log.read_bytes(), most=most, kind=kind)).scan()
    assert scan == opened(bytes(log)).scan()
    assert len(scan.findings) >= 2


def test_ranges_of_an_object_join_to_the_whole(log: Path) -> None:
    held = Held(log.read_bytes())
    end = held.size
    chunks = [
        opened(held).scan_range(start, min(start + RANGE, end)) for start in range(0, end, RANGE)
    ]
    left = chunks[0]
    for right in chunks[1:]:
        left = left.merge(copied(right))
    assert opened(held).finish(left) == opened(bytes(log)).scan()


def test_an_object_is_asked_for_nothing_before_it_is_scanned(log: Path) -> None:
    held = Held(log.read_bytes())
    opened(held)
    assert not held.reads


def test_a_segment_may_be_looked_at_in_part_only(log: Path) -> None:
    data = log.read_bytes()
    part = opened(Held(data[:40_000])).scan()
    assert opened(bytes(log), size=40_000).scan() == part
    assert opened(Held(data), size=40_000).scan() == part
    assert opened(bytes(log), size=1 << 40).scan() == opened(bytes(log)).scan()


def test_indexes_are_read_through_objects(log: Path) -> None:
    entries = b"".join(bytes([0, 0, n, 0, 0, n, 0, 0]) for n in range(1, 9))
    for suffix in ("index", "timeindex"):
        (log.parent / segment_name(0, suffix)).write_bytes(entries)
    index, times = (bytes(log.parent / segment_name(0, s)) for s in ("index", "timeindex"))
    expected = opened(bytes(log), offset_index=index, time_index=times).scan()
    held = Held(entries, most=5)
    scan = opened(Held(log.read_bytes()), offset_index=held, time_index=held).scan()
    assert scan == expected
    assert {"index-mismatch", "timeindex-mismatch"} <= {finding.name for finding in scan.findings}


def test_an_index_that_cannot_be_read_is_a_finding_of_the_scan_and_of_its_pickle(
    log: Path,
) -> None:
    fault = Held(b"\0" * 8, fault=lambda _: PermissionError(errno.EACCES, "access denied"))
    scan = opened(bytes(log), offset_index=fault).scan()
    again = copied(scan)
    assert again == scan
    messages = [f.message for f in again.findings if f.name == "index-mismatch"]
    assert messages == ["the index cannot be read: access denied"]


@pytest.mark.parametrize("level", ["crc", "decode", "full"])
@pytest.mark.parametrize("is_compared", [True, False])
def test_a_scan_from_a_pickle_is_the_scan(log: Path, level: str, *, is_compared: bool) -> None:
    scan = opened(bytes(log), level=level, is_compared=is_compared).scan()
    again = copied(scan)
    assert again == scan
    assert whole(again) == whole(scan)
    assert again.to_bytes() == scan.to_bytes()


def test_bytes_that_are_no_scan_are_refused(log: Path) -> None:
    data = opened(bytes(log)).scan().to_bytes()
    chunk = opened(bytes(log)).scan_range(0, 10).to_bytes()
    for wrong in (b"", data[:-1], data + b"\0", b"\x07" + data[1:], chunk):
        with pytest.raises(ValueError, match="no chunk or scan of this version"):
            _engine.SegmentScan.from_bytes(wrong)


def test_an_object_of_which_nothing_can_be_read_raises_what_it_raised() -> None:
    data = segment(10)
    gone = Held(data, fault=lambda _: FileNotFoundError(errno.ENOENT, "vanished", "s3://b/a.log"))
    for read in (
        lambda: opened(gone).scan(),
        lambda: opened(gone).scan_range(100, 200),
        lambda: _engine.segment_batches(gone, 0, 10),
        lambda: _engine.segment_records(gone, 0, 10),
        lambda: _engine.committed_offsets([(gone, 0)], 0),
        lambda: _engine.transactional_ids([(gone, 0)], 0),
        lambda: _engine.Rebuild().segment(gone, 0),
        lambda: list(records_of([(gone, 0)])),
        lambda: predicted({segment_name(0).encode(): gone}),
    ):
        with pytest.raises(FileNotFoundError, match="vanished") as raised:
            read()
        assert raised.value.errno == errno.ENOENT
        assert raised.value.filename == "s3://b/a.log"


def test_an_object_that_fails_on_the_way_is_unreadable_from_there_on(log: Path) -> None:
    def fault(position: int) -> OSError | None:
        return OSError(errno.EIO, "the network is down") if position >= 30_000 else None

    scan = opened(Held(log.read_bytes(), most=10_000, fault=fault)).scan()
    unreadable = [f for f in scan.findings if f.name == "unreadable"]
    assert len(unreadable) == 1
    assert unreadable[0].position == 30_000
    assert "the network is down" in unreadable[0].message


def test_an_exception_that_is_no_error_of_files_is_the_cause_of_one() -> None:
    with pytest.raises(OSError, match="KeyError: 'token'") as raised:
        opened(Held(segment(1), fault=lambda _: KeyError("token"))).scan()
    assert isinstance(raised.value.__cause__, KeyError)


def test_an_interrupt_stops_whatever_reads(log: Path) -> None:
    def fault(position: int) -> BaseException | None:
        return KeyboardInterrupt() if position >= 30_000 else None

    held = Held(log.read_bytes(), most=10_000, fault=fault)
    with pytest.raises(KeyboardInterrupt):
        opened(held).scan()
    assert sum(position >= 30_000 for position, _ in held.reads) == 1
    interrupt = Held(b"\0" * 100, fault=lambda _: KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        opened(bytes(log), offset_index=interrupt)
    scan = opened(bytes(log)).scan()
    with pytest.raises(KeyboardInterrupt):
        _engine.merge_partition([(0, scan)], snapshots=[(0, interrupt)], transaction_indexes=[None])


def test_a_scan_of_an_object_can_be_cancelled(log: Path) -> None:
    with pytest.raises(AuditCancelledError):
        opened(Held(log.read_bytes())).scan(progress=lambda _: False)


def test_python_may_scan_while_it_is_called_for_progress_or_for_bytes(log: Path) -> None:
    data = log.read_bytes()
    expected = whole(opened(bytes(log)).scan())
    inside: list[list[Any]] = []

    def scan_too(_: int) -> bool:
        inside.append(whole(opened(bytes(log)).scan()))
        return True

    held = Held(data, fault=lambda position: None if scan_too(position) else OSError())
    assert whole(opened(held).scan(progress=scan_too)) == expected
    assert len(inside) == len(held.reads) * 2
    assert all(found == expected for found in inside)


@pytest.mark.parametrize("place", ["a.log", 5, None])
def test_what_is_neither_a_path_nor_an_object_that_reads_is_refused(place: Any) -> None:
    with pytest.raises(TypeError, match="a path as bytes, or an object with size and read_at"):
        opened(place)


def records_of(segments: Sequence[tuple[Any, int | None]]) -> _engine.PartitionRecords:
    return _engine.PartitionRecords(
        segments,
        isolation="read_uncommitted",
        start_offset=0,
        end_offset=1 << 40,
        stopped_cleanly=False,
        on_damage=lambda _: None,
        on_end=lambda _: None,
        on_missing=lambda _: None,
    )


def predicted(files: dict[bytes, Any]) -> _engine.Recovery:
    return _engine.predict_recovery(
        files,
        partition="orders-0",
        clean=False,
        recovery_point=0,
        log_start_offset=0,
        aborted=None,
    )


def test_every_reader_reads_objects(tmp_path: Path) -> None:
    directory = write_partition(tmp_path / "orders-0", {0: segment(40), 120: segment(40)[:-9]})
    paths = {path.name.encode(): bytes(path) for path in directory.iterdir()}
    held = {path.name.encode(): Held(path.read_bytes(), most=777) for path in directory.iterdir()}
    logs = sorted(name for name in paths if name.endswith(b".log"))
    of_files = [(paths[name], int(name[:20])) for name in logs]
    of_objects = [(held[name], int(name[:20])) for name in logs]
    for (path, _), (place, _) in zip(of_files, of_objects, strict=True):
        assert _engine.segment_batches(place, 0, 7) == _engine.segment_batches(path, 0, 7)
        assert _engine.segment_records(place, 0, 7) == _engine.segment_records(path, 0, 7)
        assert _engine.Rebuild().segment(place, 0) == _engine.Rebuild().segment(path, 0)
    offsets = [[r.offset for r in records_of(each)] for each in (of_files, of_objects)]
    assert offsets[0] == offsets[1] != []
    assert predicted(held) == predicted(paths)


def test_copies_are_compared_through_objects(log: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.log"
    other.write_bytes(segment(400, value_size=300))

    def compared(places: list[Any]) -> Any:
        copies = []
        for number, place in enumerate(places):
            scan = opened(place, is_compared=True).scan()
            partition = _engine.merge_partition([(0, scan)])
            copies.append((f"copy {number}", _engine.Copy(partition), [place]))
        return _engine.compare_copies(copies)

    of_files = compared([bytes(log), bytes(other)])
    assert of_files[0]
    assert compared([Held(path.read_bytes()) for path in (log, other)]) == of_files


def test_side_files_are_read_through_objects(log: Path) -> None:
    scan = opened(bytes(log)).scan()
    log.with_suffix(".txnindex").write_bytes(b"\1" * 34)
    log.with_suffix(".snapshot").write_bytes(b"none")

    def merged(snapshot: Any, index: Any) -> list[tuple[int, _engine.Finding]]:
        partition = _engine.merge_partition(
            [(0, scan)], snapshots=[(0, snapshot)], transaction_indexes=[index]
        )
        return partition.findings

    paths = [log.with_suffix(suffix) for suffix in (".snapshot", ".txnindex")]
    expected = merged(*map(bytes, paths))
    assert merged(*(Held(path.read_bytes(), most=3) for path in paths)) == expected
    assert {"snapshot-mismatch", "txnindex-mismatch"} <= {finding.name for _, finding in expected}
