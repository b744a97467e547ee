"""`ottla inspect`: the batches and records of a file, as the tables name them."""

import json
from pathlib import Path

import pytest
from ottla.logs.columns import BATCH_COLUMNS, RECORD_COLUMNS
from support.commands import Run
from support.logs import TIMESTAMP, batches, segment, segment_name, write_partition

from benches.data import encode_batch


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Five batches of three records."""
    path = tmp_path / segment_name(0)
    path.write_bytes(segment(5))
    return path


def test_batches_are_a_line_each(run: Run, log: Path) -> None:
    ran = run("inspect", log)
    head, *lines = ran.out.splitlines()
    assert ran.status == 0
    assert head.split() == [
        *("position", "size", "offsets", "records", "codec", "max", "timestamp", "attributes")
    ]
    assert lines[1].split() == ["151", "151", "3..5", "3", "none", "2025-10-09T08:53:20.005Z"]
    assert len(lines) == 5


def test_records_are_a_line_each(run: Run, tmp_path: Path) -> None:
    path = tmp_path / segment_name(0)
    headers = (("source", b"shop"), ("none", None))
    path.write_bytes(
        encode_batch(
            [(TIMESTAMP, None, b"a\nb", headers), (TIMESTAMP + 1, b"\xff", None, ())],
            producer_id=7,
            producer_epoch=0,
            base_sequence=40,
        )
    )
    assert run("inspect", path, "--records").out.splitlines() == [
        (
            '         0 2025-10-09T08:53:20.000Z key=null value="a\\x0ab"'
            ' headers={"source": "shop", "none": null} seq 40'
        ),
        '         1 2025-10-09T08:53:20.001Z key="\\xff" value=null seq 41',
    ]


def test_what_sets_a_batch_apart_is_told(run: Run, demo: Path) -> None:
    out = run("inspect", demo / "refunds-0" / segment_name(0)).out
    assert "transactional producer 1001/0 seq 0..4" in out
    assert "control transactional producer 1002/1" in out


def test_json_lines_have_the_columns_of_the_tables(run: Run, log: Path) -> None:
    for option, columns, count in ((), BATCH_COLUMNS, 5), (("--records",), RECORD_COLUMNS, 15):
        lines = run("inspect", log, "--format", "jsonl", *option).out.splitlines()
        assert len(lines) == count
        assert list(json.loads(lines[0])) == [column.name for column in columns]


def test_an_offset_starts_at_the_batch_that_holds_it(run: Run, log: Path) -> None:
    lines = run("inspect", log, "--offset", "7", "--format", "jsonl").out.splitlines()
    assert [json.loads(line)["base_offset"] for line in lines] == [6, 9, 12]


def test_an_offset_starts_at_its_record(run: Run, log: Path) -> None:
    ran = run("inspect", log, "--records", "--offset", "7", "--format", "jsonl")
    assert [json.loads(line)["offset"] for line in ran.out.splitlines()] == list(range(7, 15))


def test_an_offset_beyond_the_end_is_said(run: Run, log: Path) -> None:
    ran = run("inspect", log, "--offset", "15")
    assert ran.status == 3
    assert ran.out == ""
    assert ran.err == f"ottla: {log}: offset 15 is beyond its last batch\n"


def test_bytes_that_are_no_batch_are_shown_as_such(run: Run, log: Path) -> None:
    first, second = batches(2)
    log.write_bytes(first + b"\x01" * 100 + second)
    lines = run("inspect", log).out.splitlines()
    assert lines[2].split() == ["151", "100", "not", "a", "batch"]
    assert lines[3].split()[:3] == ["251", "151", "3..5"]


def test_a_wrong_checksum_stands_out(run: Run, log: Path) -> None:
    log.write_bytes(segment(2)[:-1] + b"!")
    lines = run("inspect", log).out.splitlines()
    assert "CRC MISMATCH" not in lines[1]
    assert "CRC MISMATCH" in lines[2]


def test_timestamps_that_no_calendar_has_are_numbers(run: Run, log: Path) -> None:
    log.write_bytes(encode_batch([(2**62, None, b"v", ())]) + encode_batch([(-1, None, b"v", ())]))
    out = run("inspect", log, "--records").out
    assert f"{2**62} ms" in out
    assert out.splitlines()[1].split()[1] == "-"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nowhere.log", "No such file or directory"),
        ("", "a directory: give a segment in it, or use `ottla audit`"),
        (".lock", "lock, not a segment: give its .log file"),
    ],
)
def test_what_cannot_be_inspected_is_said_on_one_line(
    run: Run, tmp_path: Path, name: str, reason: str
) -> None:
    partition = write_partition(tmp_path / "orders-0", {0: segment(1)})
    (partition / ".lock").touch()
    ran = run("inspect", partition / name)
    assert ran.status == 3
    assert ran.out == ""
    assert reason in ran.err
    assert ran.err.count("\n") == 1


def test_every_segment_of_the_demo_can_be_inspected(run: Run, demo: Path) -> None:
    files = sorted(demo.rglob("*.log"))
    assert files
    for file in files:
        for options in ((), ("--records",)):
            ran = run("inspect", file, *options)
            assert (ran.status, ran.err) == (0, "")
