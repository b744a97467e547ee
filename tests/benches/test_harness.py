"""The benchmarks' own parts: data that is what it says, ratios that are what they say."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from aiokafka.record import _crecords
from hypothesis import given
from support.strategies import DrawnRecord, batches_of_records, int64

from benches.cases import CASES, JAVA_CASES, SMALL, Case, Outcome
from benches.chart import Bar, draw
from benches.data import (
    CODECS,
    MIB,
    Compression,
    Shape,
    encode_batch,
    encode_varint,
    generate,
    renumbered,
)
from benches.peers import AIOKAFKA, CALLS, JAVA, JOBS, OURS, READ, STORED, VALIDATE
from benches.peers.maven import java_worker, missing
from benches.race import Times, race
from benches.table import beside_java, markdown
from benches.whole import peak_memory, slopes, write_log_directory
from benches.worker import WorkerError


def plain(record: DrawnRecord) -> tuple[int, bytes | None, bytes | None, tuple[object, ...]]:
    return record.timestamp, record.key, record.value, record.headers


@given(int64())
def test_a_varint_is_the_zigzag_of_protocol_buffers(value: int) -> None:
    encoded = encode_varint(value)
    rest = sum((byte & 0x7F) << (7 * index) for index, byte in enumerate(encoded))
    assert (rest >> 1) ^ -(rest & 1) == value
    assert all(byte & 0x80 for byte in encoded[:-1])
    assert not encoded[-1] & 0x80


@given(batches_of_records())
def test_a_peer_reads_the_records_that_were_written(records: list[DrawnRecord]) -> None:
    data = encode_batch([(r.timestamp, r.key, r.value, r.headers) for r in records], base_offset=5)
    batch = _crecords.MemoryRecords(data).next_batch()
    assert batch.validate_crc()
    read = [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
    assert read == [(5 + index, *plain(record)) for index, record in enumerate(records)]


@pytest.mark.parametrize("codec", CODECS)
def test_the_same_shape_gives_the_same_bytes_in_every_codec(codec: Compression) -> None:
    shape = Shape(200, 10, compression=codec)
    generate.cache_clear()
    first = generate(shape, 20_000)
    generate.cache_clear()
    assert generate(shape, 20_000).log == first.log
    assert JOBS["check"][AIOKAFKA](first)() == first.records
    assert 20_000 <= first.raw_size < 23_000


def test_renumbered_batches_have_offsets_without_a_gap() -> None:
    batches = generate(Shape(100, 10), 5000).batches
    log, end = renumbered([*batches, *batches], 100)
    offsets = [record.offset for batch in read_by_peer(log) for record in batch]
    assert offsets == list(range(100, end))


def read_by_peer(log: bytes) -> list[list[_crecords.DefaultRecord]]:
    batches = _crecords.MemoryRecords(log)
    found = []
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc()
        found.append(list(batch))
    return found


@pytest.mark.parametrize("size", [10_000, 40 * MIB])
def test_a_log_directory_has_about_the_size_that_was_asked_for(tmp_path: Path, size: int) -> None:
    written = write_log_directory(tmp_path, size, partitions=2)
    assert size <= written <= 1.7 * size
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.log")) == written


def test_the_memory_of_a_program_is_not_that_of_who_starts_it() -> None:
    filled = bytearray(b"x") * (200 * MIB)
    status, small = peak_memory([sys.executable, "-c", "raise SystemExit(2)"])
    assert status == 2
    assert small < 100 * MIB < len(filled)
    _, large = peak_memory([sys.executable, "-c", "bytearray(b'x') * (200 << 20)"])
    assert large > 200 * MIB


def test_each_round_runs_every_candidate_once_in_turn() -> None:
    taken: list[str] = []

    def candidate(name: str, seconds: float) -> float:
        taken.append(name)
        return seconds

    times = race({"a": lambda: candidate("a", 1.0), "b": lambda: candidate("b", 4.0)}, 3)
    assert taken == ["a", "b"] * 4
    assert times["a"].seconds == (1.0,) * 3
    assert times["a"].faster_than(times["b"]) == 4.0


def test_a_slow_moment_of_the_machine_leaves_the_ratio_alone() -> None:
    ours, theirs = Times((1.0, 9.0, 1.1)), Times((4.0, 36.0, 4.4))
    assert ours.faster_than(theirs) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("base", "read", "met_by", "cell"),
    [
        (26.0, 0.91, AIOKAFKA, "≥ 25 | 26.00 | yes |"),
        (20.0, 0.91, READ, "≥ 25 | 20.00 | yes, 0.91 of a bare read |"),
        (20.0, 0.89, None, "≥ 25 | 20.00 | **no** |"),
    ],
)
def test_a_target_is_met_by_a_yardstick_that_the_table_names(
    base: float, read: float, met_by: str | None, cell: str
) -> None:
    case = Case("check", Shape(), SMALL, 25, read_target=0.9)
    times = {OURS: Times((1.0,)), AIOKAFKA: Times((base,)), READ: Times((read,))}
    outcome = Outcome(case, times, {})
    assert (outcome.met_by, outcome.is_met) == (met_by, met_by is not None)
    on = dict.fromkeys(("cpu", "level", "python", "aiokafka"), "x")
    assert cell in markdown([outcome], [], on)


def test_the_slope_of_an_audit_leaves_out_what_a_start_costs() -> None:
    few, many = Times((3.0, 5.0)), Times((9.0, 11.0))
    assert slopes(few, many, 6).seconds == (1.0, 1.0)


def test_no_two_cases_are_the_same_race() -> None:
    assert len({(case.title, case.size) for case in CASES}) == len(CASES)


def test_the_chart_is_well_formed_and_marks_the_target() -> None:
    drawn = draw([("check <100 B>", [Bar(41.3, 40, "small"), Bar(20, 25, "large")])], "a & b")
    tree = ET.fromstring(drawn)  # noqa: S314  (our own text)
    texts = ["".join(node.itertext()) for node in tree.iter() if node.tag.endswith("text")]
    assert {"check <100 B>", "41.3", "20.0", "a & b"} <= set(texts)


def commands_in(folder: Path, **prints: str) -> Path:
    """Write commands that say one thing, to stderr as java does."""
    for name, line in prints.items():
        command = folder / name
        command.write_text(f"#!/bin/sh\necho '{line}' >&2\n")
        command.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("prints", "found"),
    [
        ({}, "no Java: install a JDK 17"),
        ({"java": 'openjdk version "17.0.15" 2025-04-15', "mvn": ""}, "no Java: install a JDK 17"),
        ({"java": 'java version "1.8.0_392"', "javac": "", "mvn": ""}, "Java 8 is too old"),
        ({"java": 'openjdk version "11.0.2" 2019-01-15', "javac": ""}, "Java 11 is too old"),
        ({"java": "not a version", "javac": "", "mvn": ""}, "java -version names no version"),
        ({"java": 'openjdk version "21" 2023-09-19', "javac": ""}, "no Maven"),
        ({"java": 'openjdk version "17-ea" 2021-09-14', "javac": "", "mvn": ""}, None),
        ({"java": 'openjdk version "25.0.1" 2025-10-21 LTS', "javac": "", "mvn": ""}, None),
    ],
)
def test_what_java_needs_and_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prints: dict[str, str], found: str | None
) -> None:
    monkeypatch.setenv("PATH", str(commands_in(tmp_path, **prints)))
    said = missing()
    assert said is None if found is None else (said or "").startswith(found)


def test_without_java_the_race_beside_it_ends_with_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benches.table", "--java"],
        env={**os.environ, "PATH": str(tmp_path)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("not measured beside Java: no Java: install a JDK 17 or newer")


def test_a_run_of_many_calls_is_shown_as_one_beside_java() -> None:
    case = JAVA_CASES[-1]
    size = case.data.raw_size
    ns_a_call = {JAVA: 200, OURS: 100, VALIDATE: 160, STORED: 400}
    times = {peer: Times((CALLS * ns / 1e9,) * 3) for peer, ns in ns_a_call.items()}
    rows = beside_java([Outcome(case, times, {})]).splitlines()[2:]
    assert rows == [
        f"| 1 × 100 B, Java | 200 | {size / 200:.3g} | 1.00 | – |  |",
        f"| 1 × 100 B, `Leader.append` | 100 | {size / 100:.3g} | 2.00 | ≥ 1.5 | yes |",
        f"| 1 × 100 B, `validate` | 160 | {size / 160:.3g} | 1.25 | ≥ 1.5 | **no** |",
        f"| 1 × 100 B, `Leader.append(…).stored` | 400 | {size / 400:.3g} | 0.50 | – |  |",
    ]


@pytest.mark.slow
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
@pytest.mark.parametrize("job", ["check", "decide"])
def test_kafkas_own_classes_take_what_ours_take(job: str) -> None:
    data = generate(Shape(100, 10), 1)
    assert JOBS[job][OURS](data)() == data.records
    try:
        with java_worker(job, data, calls=3) as worker:
            assert worker.records == 3 * data.records
            assert worker() > 0
    except WorkerError as error:
        if not str(error).startswith("Maven") or "COMPILATION" in str(error):
            raise
        pytest.skip(f"no way to Kafka's classes: {error}")
