"""`ottla inspect` of the files beside a segment, and of standard input."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import Run
from support.logs import segment, segment_name

PROGRAM = "from ottla.cli import main; main()"


def rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


def test_an_offset_index_has_offsets_and_positions(run: Run, tmp_path: Path) -> None:
    path = tmp_path / segment_name(100, "index")
    path.write_bytes(struct.pack(">iiii", 7, 4100, 15, 8200) + bytes(80))
    ran = run("inspect", path)
    assert (ran.status, ran.err) == (0, "")
    assert rows(ran.out)[:3] == [["offset", "position"], ["107", "4100"], ["115", "8200"]]
    assert ran.out.endswith("and 80 bytes of zeros that no entry uses yet\n")
    lines = run("inspect", path, "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"offset": 107, "position": 4100},
        {"offset": 115, "position": 8200},
    ]


def test_offsets_of_an_index_without_a_name_are_relative(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "copied"
    path.write_bytes(struct.pack(">ii", 7, 4100))
    assert rows(run("inspect", path, "--as", "offset-index").out) == [
        ["relative_offset", "position"],
        ["7", "4100"],
    ]


def test_a_time_index_has_times_and_offsets(run: Run, tmp_path: Path) -> None:
    path = tmp_path / segment_name(100, "timeindex")
    path.write_bytes(struct.pack(">qi", 1_760_000_000_000, 3))
    assert rows(run("inspect", path).out) == [
        ["timestamp", "offset"],
        ["2025-10-09T08:53:20.000Z", "103"],
    ]


def test_an_empty_index_has_a_head_alone(run: Run, tmp_path: Path) -> None:
    for suffix in ("index", "timeindex", "txnindex"):
        path = tmp_path / segment_name(0, suffix)
        path.touch()
        ran = run("inspect", path)
        assert (ran.status, len(ran.out.splitlines())) == (0, 1)


def test_those_of_the_demo_are_read(run: Run, demo: Path) -> None:
    partition = demo / "refunds-0"
    (aborted,) = run(
        "inspect", partition / segment_name(0, "txnindex"), "--format", "jsonl"
    ).out.splitlines()
    assert json.loads(aborted) == {
        "producer_id": 1002,
        "first_offset": 4,
        "last_offset": 7,
        "last_stable_offset": 8,
    }
    producers = rows(run("inspect", partition / segment_name(25, "snapshot")).out)
    assert producers[0][:2] == ["producer_id", "producer_epoch"]
    assert producers[1] == ["1001", "0", "9", "17", "4", "2026-11-21T04:06:11.905Z", "-1", "8"]
    assert producers[2][-1] == "-"
    assert rows(run("inspect", partition / "leader-epoch-checkpoint").out)[0] == [
        "epoch",
        "start_offset",
    ]
    points = rows(run("inspect", demo / "replication-offset-checkpoint").out)
    assert ["refunds", "0", "25"] in points
    assert rows(run("inspect", partition / "partition.metadata").out)[0] == ["topic_id"]
    assert "cluster.id" in run("inspect", demo / "meta.properties").out


def test_every_file_of_the_demo_can_be_inspected_or_says_why_not(run: Run, demo: Path) -> None:
    for path in sorted(demo.rglob("*")):
        if path.is_file():
            ran = run("inspect", path)
            assert ran.status == 0 or "not a segment" in ran.err, path
            assert "internal" not in ran.err


@pytest.mark.parametrize(
    ("suffix", "data", "fault"),
    [
        ("index", struct.pack(">iii", 7, 4100, 15), "4 bytes at position 8 are no entry"),
        ("timeindex", struct.pack(">qiB", 1, 2, 3), "1 byte at position 12 is no entry"),
        ("txnindex", bytes(33), "33 bytes at position 0 are no entry"),
        ("txnindex", bytes(34) + b"\1" + bytes(33), "34 bytes at position 34 are no entry"),
        ("snapshot", b"\0\1\0\0", "producer snapshot of 4 bytes, expected 10: it is cut"),
        ("snapshot", b"\0\2" + bytes(8), "producer snapshot of version 2, expected 1"),
    ],
)
def test_what_is_cut_or_of_another_version_is_told_behind_what_is_whole(
    run: Run, tmp_path: Path, suffix: str, data: bytes, fault: str
) -> None:
    path = tmp_path / segment_name(0, suffix)
    path.write_bytes(data)
    ran = run("inspect", path)
    assert ran.status == 3
    assert ran.err == f"ottla: {path}: {fault}\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("leader-epoch-checkpoint", "0\n2\n1 5\n0 9\n"),
        ("leader-epoch-checkpoint", "7\n"),
        ("replication-offset-checkpoint", "0\n1\norders x 1\n"),
        ("partition.metadata", "version: 0\n"),
        ("meta.properties", "version=9\n"),
    ],
)
def test_a_text_file_that_kafka_does_not_read_says_why(
    run: Run, tmp_path: Path, name: str, text: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    ran = run("inspect", path)
    assert ran.status == 3
    assert ran.err.startswith(f"ottla: {path}: ")
    assert "internal" not in ran.err


def test_text_of_a_checkpoint_is_made_harmless(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "replication-offset-checkpoint"
    path.write_text("0\n1\nor\x1b[2Jders 0 1\n")
    ran = run("inspect", path)
    assert "\x1b" not in ran.out
    assert "or\\x1b[2Jders" in ran.out


@pytest.mark.parametrize(
    "options", [("--records",), ("--offset", "1"), ("--api-version", "1"), ("--as", "lock")]
)
def test_options_of_segments_do_not_go_with_other_files(
    run: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = tmp_path / segment_name(0, "index")
    path.touch()
    assert run("inspect", path, *options).status == 64


def piped(data: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "inspect", "-", *arguments],
        input=data,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_standard_input_is_a_segment_or_what_it_is_said_to_be() -> None:
    done = piped(segment(3))
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 4)
    done = piped(segment(3), "--records", "--offset", "7")
    assert [line.split()[0] for line in done.stdout.splitlines()] == [b"7", b"8"]
    done = piped(struct.pack(">ii", 7, 4100), "--as", "offset-index")
    assert done.stdout.splitlines()[1].split() == [b"7", b"4100"]


def test_what_has_no_batch_is_said_to_have_none(run: Run, tmp_path: Path) -> None:
    done = piped(b"no log")
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"standard input: no record batch in its 6 bytes; --as says what else" in done.stderr
    (tmp_path / "notes.txt").write_text("no log")
    assert run("inspect", tmp_path / "notes.txt").status == 3
    assert piped(b"").returncode == 0


def test_bytes_behind_the_last_batch_are_shown_as_such(run: Run, tmp_path: Path) -> None:
    path = tmp_path / segment_name(0)
    path.write_bytes(segment(2)[:-10])
    assert rows(run("inspect", path).out)[-1] == ["151", "141", "not", "a", "batch"]
