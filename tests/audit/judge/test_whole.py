"""Logs judged in one call of the engine come to what the long way comes to."""

import importlib
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ottla
import pytest
from ottla import _engine
from ottla.audit.plan.logs import Log, Logs
from ottla.audit.result.columns import TABLES
from ottla.audit.run import scan, threads
from ottla.audit.run.scan import scan_request
from ottla.errors import AuditCancelledError
from ottla.logs.listing import take_inventory
from support import damage
from support.finding_case import Case
from support.logs import TIMESTAMP, segment, segment_name, write_log_directory, write_partition
from support.mutated_directories import write_mutated_directory
from support.random_logs import write_random_log

ROOT = Path(__file__).parents[3]
FINDINGS = sorted(
    path.stem
    for path in (ROOT / "tests" / "findings").glob("*.py")
    if not path.stem.startswith(("test_", "__"))
)


def told(directory: Path, **options: Any) -> dict[str, Any]:
    """Everything that an audit tells, but when it was."""
    result = ottla.audit(directory, **options)
    tables: dict[str, Any] = {
        name: [dict(row) for row in getattr(result, name)]
        for name in TABLES
        if name not in ("batches", "records", "quarantine")
    }
    return tables | {"summary": result.summary, "advice": result.advice}


@pytest.fixture
def by_the_long_way(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    def long_way(directory: Path, **options: Any) -> dict[str, Any]:
        with monkeypatch.context() as patched:
            patched.setattr(threads, "may_be_judged_whole", lambda _: False)
            return told(directory, **options)

    return long_way


def test_random_logs_are_judged_as_by_the_long_way(
    tmp_path: Path, by_the_long_way: Callable[..., dict[str, Any]]
) -> None:
    for seed in range(60):
        directory = tmp_path / str(seed) / "orders-0"
        write_random_log(directory, random.Random(seed))
        level = ("full", "decode", "crc")[seed % 3]
        found = told(directory.parent, level=level)
        assert found == by_the_long_way(directory.parent, level=level), seed


def test_mutated_log_directories_are_judged_as_by_the_long_way(
    tmp_path: Path, by_the_long_way: Callable[..., dict[str, Any]]
) -> None:
    for seed in range(20):
        directory = write_mutated_directory(tmp_path / str(seed), random.Random(seed))
        assert told(directory) == by_the_long_way(directory), seed
        shutil.rmtree(directory)


@pytest.mark.parametrize("finding", FINDINGS)
def test_each_finding_and_its_clean_twin_are_judged_as_by_the_long_way(
    tmp_path: Path, by_the_long_way: Callable[..., dict[str, Any]], finding: str
) -> None:
    module = importlib.import_module(f"findings.{finding}")
    cases = [value for value in vars(module).values() if isinstance(value, Case)]
    for number, case in enumerate(cases):
        for name, write in (("clean", case.clean), ("broken", case.broken)):
            directory = tmp_path / f"{name}-{number}"
            directory.mkdir()
            write(directory)
            assert told(directory) == by_the_long_way(directory)


def test_the_samples_of_damage_are_judged_as_by_the_long_way(
    tmp_path: Path, by_the_long_way: Callable[..., dict[str, Any]]
) -> None:
    cases = damage.unpack(ROOT / "tests" / "samples" / "damage.tar.xz", tmp_path) / "cases"
    for case in sorted(cases.iterdir()):
        assert told(case) == by_the_long_way(case), case.name


def test_the_configuration_of_a_topic_counts_in_both_ways(
    tmp_path: Path, by_the_long_way: Callable[..., dict[str, Any]]
) -> None:
    """Offsets that are missing between batches are compaction's, or nobody's."""
    data = segment(2) + segment(2, base_offset=9)
    write_partition(tmp_path / "orders-0", {0: data, 15: segment(2, base_offset=15)})
    configs = {"orders": {"cleanup.policy": "compact"}}
    found = told(tmp_path, topic_configs=configs)
    assert found == by_the_long_way(tmp_path, topic_configs=configs)
    assert found != told(tmp_path)


def test_python_takes_no_part_in_the_segments_of_a_sound_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a segment was scanned by itself")

    directory = write_log_directory(tmp_path / "logs")
    monkeypatch.setattr(scan, "scan_request", refused)
    result = ottla.audit(directory)
    assert result.exit_code == 0
    assert len(result.timeline) == 6


def test_python_takes_no_part_in_the_segments_of_a_damaged_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a segment was scanned by itself")

    directory = write_log_directory(tmp_path / "logs")
    path = directory / "orders-1" / segment_name(0)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    monkeypatch.setattr(scan, "scan_request", refused)
    result = ottla.audit(directory)
    assert result.exit_code == 2
    assert "crc-mismatch" in {row["name"] for row in result.findings}


def test_a_batch_that_is_written_meanwhile_is_no_finding_of_one_call(tmp_path: Path) -> None:
    data = segment(3)
    directory = tmp_path / "orders-0"
    write_partition(directory, {0: data})
    names = sorted(path.name for path in directory.iterdir())

    def judged(size: int) -> Any:
        listed = {name: (directory / name).stat().st_size for name in names}
        partition = SimpleNamespace(
            directory=bytes(directory),
            topic="orders",
            state="live",
            names=tuple(map(str.encode, names)),
            sizes=tuple((listed | {segment_name(0): size}).values()),
            stopped_cleanly=False,
        )
        logs: Any = [(partition, (None, None, None, None))]
        return _engine.judge_whole_logs(logs, settings={}, level="full", now_ms=1 << 42)[0]

    assert judged(len(data))[2] is None
    assert judged(len(data) - 1) is None
    (directory / segment_name(0)).write_bytes(data[:-1])
    assert [name for name, _, _ in judged(len(data) - 1)[2].kinds()] == ["truncated-tail"]


@pytest.mark.parametrize("known", range(4))
def test_a_log_of_which_a_checkpoint_knows_more_takes_the_long_way(
    tmp_path: Path, known: int
) -> None:
    """So the end of a log that one call judged is compared with no checkpoint again."""
    (partition,) = take_inventory(
        [write_partition(tmp_path / "orders-0", {0: segment(3)})]
    ).partitions
    for offset, is_judged in ((9, True), (10, False)):
        offsets = tuple(offset if number == known else None for number in range(4))
        logs: Any = [(partition, offsets)]
        (judged,) = _engine.judge_whole_logs(logs, settings={}, level="full", now_ms=1 << 42)
        assert (judged is not None) == is_judged


def test_a_log_that_lost_its_end_goes_the_long_way_and_the_others_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned = []
    original = scan_request

    def noted(task: Any, *arguments: Any, **options: Any) -> Any:
        scanned.append(Path(task.file.path.decode()).parent.name)
        return original(task, *arguments, **options)

    directory = write_log_directory(tmp_path / "logs")
    path = directory / "orders-1" / segment_name(12)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    monkeypatch.setattr(scan, "scan_request", noted)
    assert ottla.audit(directory).exit_code == 2
    assert set(scanned) == {"orders-1"}


@pytest.mark.parametrize("count", [1, 2])
def test_logs_judged_together_are_in_the_order_of_the_plan(
    tmp_path: Path,
    by_the_long_way: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    count: int,
) -> None:
    """Of eleven logs two are damaged, which are judged after those that a call took with them."""
    monkeypatch.setattr(threads, "LOGS_AT_ONCE", 4)
    monkeypatch.setattr(threads, "SHARES", 1)
    for number in range(11):
        data = bytearray(segment(2 + number % 3))
        if number in (3, 8):
            data[-1] ^= 1
        write_partition(tmp_path / f"orders-{number}", {0: bytes(data)})
    found = told(tmp_path, threads=count)
    assert found == by_the_long_way(tmp_path, threads=1)
    assert [row["partition"] for row in found["findings"]] == [3, 8]
    assert len(found["metrics"]) == 11


def test_whoever_waits_is_told_while_logs_are_judged_together(tmp_path: Path) -> None:
    """After the first log, so that one with slow files is not waited for behind many others."""
    write_log_directory(tmp_path / "logs")
    partitions = [(p, (None,) * 4) for p in take_inventory([tmp_path]).partitions]
    reported: list[int] = []

    def stop(read: int) -> bool:
        reported.append(read)
        return False

    with pytest.raises(AuditCancelledError):
        _engine.judge_whole_logs(
            partitions, settings={}, level="full", now_ms=2 * TIMESTAMP, progress=stop
        )
    assert reported == [2 * len(segment(4))]


@pytest.mark.parametrize(
    ("changed", "level", "fault"),
    [
        ({"state": "gone"}, "full", "gone is no state of a partition"),
        ({}, "quick", "level"),
    ],
)
def test_states_and_levels_that_are_none_are_refused(
    tmp_path: Path, changed: dict[str, Any], level: str, fault: str
) -> None:
    write_log_directory(tmp_path / "logs")
    (partition, *_) = take_inventory([tmp_path]).partitions
    given = [(partition._replace(**changed), (None,) * 4)]
    with pytest.raises(ValueError, match=fault):
        _engine.judge_whole_logs(given, settings={}, level=level, now_ms=0)


def test_progress_reaches_the_end_over_whole_logs(tmp_path: Path) -> None:
    reported: list[tuple[int, int]] = []
    directory = write_log_directory(tmp_path / "logs")
    ottla.audit(directory, progress=lambda read, total: reported.append((read, total)))
    total = 6 * len(segment(4))
    assert reported[-1] == (total, total)


def packed_log() -> _engine.PackedLog:
    data = segment(4)
    place = HeldBytes(data)
    scan = _engine.Segment(place, base_offset=0, now_ms=0).scan()
    return _engine.PackedLog([(0, scan)], [_engine.merge_partition([(0, scan)], topic="orders")])


class HeldBytes:
    """Bytes in memory, as a place of the engine."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read_at(self, position: int, size: int) -> bytes:
        return self._data[position : position + size]


def test_the_files_of_a_log_are_made_once_for_all_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    with_gaps = [
        ottla.build_batch([ottla.NewRecord(None, b"v")], base_offset=2 * number)
        for number in range(200)
    ]
    for first in (0, 100):
        data = b"".join(with_gaps[first : first + 100])
        (partition / segment_name(2 * first)).write_bytes(data)
    result = ottla.audit(tmp_path)
    made: list[int] = []
    make = Logs._item

    def counted(logs: Logs, number: int) -> Log:
        made.append(number)
        return make(logs, number)

    monkeypatch.setattr(Logs, "_item", counted)
    rows = [dict(row) for row in result.gaps]
    assert len(rows) == 199
    assert len({row["file"] for row in rows}) == 2
    assert len(made) <= 1


def test_a_packed_log_goes_through_bytes() -> None:
    packed = packed_log()
    again = _engine.PackedLog.from_bytes(packed.to_bytes())
    assert again == packed
    for table in table_names():
        assert again.rows(table, 0) == packed.rows(table, 0)
    assert again.files(0) == packed.files(0)
    assert again.files(1) is None


def table_names() -> list[str]:
    return [name for name, _ in _engine.partition_tables()]


def test_changed_bytes_of_a_packed_log_are_refused_or_read_and_never_crash() -> None:
    data = packed_log().to_bytes()
    rng = random.Random(17)
    for _ in range(2000):
        changed = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        try:
            log = _engine.PackedLog.from_bytes(bytes(changed[: rng.randint(0, len(changed))]))
            for table in table_names():
                log.rows(table, 0)
            log.files(0)
        except ValueError:
            pass
