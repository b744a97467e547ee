"""Files cut into ranges that threads share: the result never depends on it."""

import os
import pickle
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla._engine import Chunk, Segment
from ottla.audit.judge.collector import Outcome
from ottla.audit.pipeline import carry_out
from ottla.audit.plan.logs import ENDLESS
from ottla.audit.plan.plan import make_plan
from ottla.audit.result.result import make_result
from ottla.audit.run import scan
from ottla.audit.run.threads import ThreadRunner
from ottla.logs.listing import take_inventory
from support.logs import TIMESTAMP, segment, segment_name, write_log_directory, write_partition

from benches.data import encode_batch

MIB = 1 << 20
NOW_MS = 1_700_000_000_000


def everything(result: ottla.AuditResult) -> dict[str, Any]:
    """All that an audit says, but for the time it took."""
    names = ("files", "batches", "findings", "gaps", "transactions", "producers", "epochs")
    tables = {name: list(getattr(result, name)) for name in (*names, "timeline", "metrics")}
    return tables | {"summary": asdict(result.summary)}


def run(path: Path, *, threads: int, split_bytes: int | None, **options: Any) -> Outcome:
    plan = make_plan(take_inventory([path]), split_bytes=split_bytes)
    return carry_out(ThreadRunner(plan, level="full", threads=threads, **options))


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A partition with one segment of 3 MB, hurt in a few places."""
    data = bytearray(segment(3000, records=3, value_size=300))
    for position in (100_000, 1_500_003, MIB + 20_000):
        data[position] ^= 0x20
    data[2_000_000:2_050_000] = bytes(50_000)
    return write_partition(tmp_path / "orders-0", {0: bytes(data[:-30])})


@pytest.mark.parametrize("split_bytes", [1 << 16, MIB, None])
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_and_cuts_change_nothing(
    large: Path, threads: int, split_bytes: int | None
) -> None:
    expected = everything(ottla.audit(large, threads=1))
    assert len(expected["findings"]) >= 5
    result = ottla.audit(large, threads=threads, split_bytes=split_bytes)
    assert everything(result) == expected


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("name", ["corpus/kafka", "corpus/demo", "damage/cases"])
def test_threads_and_cuts_change_nothing_in_logs_of_brokers(shared: Path, name: str) -> None:
    expected = everything(ottla.audit(shared / name, threads=1))
    assert expected["summary"]["batches"] > 300
    for threads, split_bytes in [(1, MIB), (2, 1 << 16), (7, 1 << 16)]:
        result = ottla.audit(shared / name, threads=threads, split_bytes=split_bytes)
        assert everything(result) == expected
    # Far more cuts than anybody may ask for.
    plan = make_plan(take_inventory([shared / name]), split_bytes=3001)
    outcome = carry_out(ThreadRunner(plan, level="full", threads=3))
    result = make_result(plan, outcome, level="full", fail_on="error")
    assert everything(result) == expected


def test_a_sound_file_is_read_once_however_it_is_cut(tmp_path: Path) -> None:
    path = write_partition(tmp_path / "orders-0", {0: segment(2000, value_size=200)})
    assert run(path, threads=2, split_bytes=50_000).read_again == 0


def test_a_range_that_begins_inside_captured_batches_is_read_again(tmp_path: Path) -> None:
    captured = segment(400, records=1, base_offset=1)
    holder = encode_batch([(TIMESTAMP, None, captured, ())], base_offset=1)
    after = segment(200, base_offset=2, value_size=200)
    path = write_partition(tmp_path / "orders-0", {0: segment(1, records=1) + holder + after})
    outcome = run(path, threads=2, split_bytes=len(captured) - 1000)
    assert outcome.read_again > 0
    assert outcome.findings == run(path, threads=1, split_bytes=None).findings
    assert sum(file.batches for file in outcome.files.values()) == 202


def test_progress_of_ranges_grows_to_the_bytes_of_the_plan(large: Path) -> None:
    told: list[tuple[int, int]] = []
    run(large, threads=2, split_bytes=300_000, progress=lambda *at: told.append(at))
    read = [done for done, _ in told]
    size = (large / segment_name(0)).stat().st_size
    assert read == sorted(read)
    assert told[-1] == (size, size)


def test_a_fault_in_the_callback_stops_all_ranges(large: Path) -> None:
    def fail(read: int, _total: int) -> None:
        if read > MIB:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(large, threads=3, split_bytes=1 << 16, progress=fail)
    assert not [t for t in threading.enumerate() if t.name.startswith("ottla-audit")]


def test_ranges_are_held_to_the_bound_of_all_threads_together(large: Path) -> None:
    size = (large / segment_name(0)).stat().st_size
    outcome = run(large, threads=4, split_bytes=1 << 18, max_mb_per_s=10.0)
    assert outcome.elapsed_s >= size / 10e6


class HeldBack:
    """A segment whose first range arrives once no other has begun for a while."""

    def __init__(self, opened: Segment) -> None:
        self.opened = opened
        self.begun: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.opened, name)

    def scan_range(self, start: int, stop: int, **options: Any) -> Chunk:
        if start:
            self.begun.append(start)
        else:
            seen = -1
            while seen < len(self.begun):
                seen = len(self.begun)
                time.sleep(0.5)
            self.ahead = seen
        return self.opened.scan_range(start, stop, **options)


@pytest.mark.parametrize("threads", [2, 3])
def test_ranges_wait_for_the_one_to_the_left_of_them(
    large: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[HeldBack] = []

    class Request:
        def __init__(self, request: Any) -> None:
            self.request = request

        def open(self) -> HeldBack:
            held.append(HeldBack(self.request.open()))
            return held[-1]

    requested = scan.scan_request
    monkeypatch.setattr(scan, "scan_request", lambda *args, **kw: Request(requested(*args, **kw)))
    outcome = run(large, threads=threads, split_bytes=1 << 16)
    assert len(outcome.files) == 1
    (segment_in_ranges,) = held
    assert len(segment_in_ranges.begun) > 30
    assert segment_in_ranges.ahead <= 2 * threads


def test_a_file_that_is_gone_is_unread_once(large: Path) -> None:
    plan = make_plan(take_inventory([large]), split_bytes=1 << 18)
    (large / segment_name(0)).unlink()
    outcome = carry_out(ThreadRunner(plan, level="full", threads=3))
    assert [finding.name for finding in outcome.findings] == ["unreadable"]
    assert list(outcome.reasons.values()) == ["no such file or directory"]
    assert not outcome.files


def test_bytes_appended_meanwhile_are_not_seen_by_any_range(tmp_path: Path) -> None:
    data = segment(1000, value_size=300)
    path = write_partition(tmp_path / "orders-0", {0: data}) / segment_name(0)

    def grow(_read: int, _total: int) -> None:
        with path.open("ab") as file:
            file.write(b"\xff" * 1000)

    outcome = run(path.parent, threads=2, split_bytes=100_000, progress=grow)
    assert [finding.name for finding in outcome.findings] == []
    assert outcome.files[os.fsencode(path)].size == len(data)


def test_a_file_cut_meanwhile_ends_where_it_ends(tmp_path: Path) -> None:
    data = segment(3000, value_size=300)
    path = write_partition(tmp_path / "orders-0", {0: data}) / segment_name(0)
    plan = make_plan(take_inventory([path.parent]), split_bytes=100_000)
    os.truncate(path, 250_000)
    outcome = carry_out(ThreadRunner(plan, level="full", threads=2))
    assert [finding.name for finding in outcome.findings] == ["truncated-tail"]
    assert outcome.files[os.fsencode(path)].size == 250_000


def test_ranges_follow_each_other_up_to_whatever_end_the_file_has(large: Path) -> None:
    plan = make_plan(take_inventory([large]), split_bytes=1_000_000)
    (task,) = plan.tasks
    starts = range(0, task.file.size, 1_000_000)
    assert [start for start, _ in task.ranges] == list(starts)
    assert [stop for _, stop in task.ranges] == [*starts[1:], ENDLESS]
    (task,) = make_plan(take_inventory([large])).tasks
    assert task.ranges == [(0, ENDLESS)]


@pytest.mark.parametrize("split_bytes", [0, 65_535])
def test_tiny_ranges_are_refused(tmp_path: Path, split_bytes: int) -> None:
    with pytest.raises(ValueError, match=f"split_bytes is {split_bytes}, must be at least 65536"):
        ottla.audit(tmp_path, split_bytes=split_bytes)


def opened(path: Path, **options: Any) -> Segment:
    return Segment(bytes(path / segment_name(0)), base_offset=0, now_ms=NOW_MS, **options)


def test_chunks_travel_as_bytes_and_merge_in_any_grouping(large: Path) -> None:
    source = opened(large)
    ranges = [(0, 700_000), (700_000, MIB), (MIB, 2_020_000), (2_020_000, ENDLESS)]
    # As on executors: each opens the file anew, and sends its chunk home.
    sent = [pickle.dumps(opened(large).scan_range(*at)) for at in ranges]
    chunks = [pickle.loads(data) for data in sent]  # noqa: S301
    a, b, c, d = chunks
    assert Chunk.from_bytes(a.to_bytes()) == a
    left = source.resolve(a.merge(b)).merge(c).merge(d)
    right = a.merge(b.merge(c.merge(d)))
    assert (left.start, left.stop) == (right.start, right.stop) == (0, ENDLESS)
    expected = source.scan()
    for whole in (left, right):
        scan = source.finish(whole)
        assert scan.findings == expected.findings
        assert (scan.batches, scan.records) == (expected.batches, expected.records)
    assert source.resolve(right).pieces == 1


def test_chunks_that_do_not_belong_together_are_refused(large: Path) -> None:
    source = opened(large)
    a, b, c = (source.scan_range(start, start + 100_000) for start in (0, 100_000, 200_000))
    with pytest.raises(ValueError, match="ends at position 100000, the right one begins at 200000"):
        a.merge(c)
    with pytest.raises(ValueError, match="different segments"):
        a.merge(opened(large, level="crc").scan_range(100_000, 200_000))
    with pytest.raises(ValueError, match="does not begin with the segment"):
        source.finish(b.merge(c))
    with pytest.raises(ValueError, match="another level"):
        opened(large, level="crc").finish(a)
    with pytest.raises(ValueError, match="no chunk or scan of this version"):
        Chunk.from_bytes(b"\x01nonsense")
    with pytest.raises(ValueError, match="stop is 1, below start 2"):
        source.scan_range(2, 1)


def test_many_partitions_in_ranges_are_as_in_one_pass(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    expected = run(log_directory, threads=1, split_bytes=None)
    outcome = run(log_directory, threads=4, split_bytes=100)
    assert outcome.findings == expected.findings
    assert outcome.files == expected.files
    assert outcome.tables == expected.tables
