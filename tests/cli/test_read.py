"""`ottla read`: what a consumer would get, on standard output; what it would not, on the other."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ottla.logs.inventory import Inventory
from ottla.logs.listing import take_inventory
from support.commands import Run
from support.logs import (
    TIMESTAMP,
    batches,
    segment,
    segment_name,
    write_log_directory,
    write_partition,
)

from benches.data import encode_batch

PROGRAM = "from ottla.cli import main; main()"


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Two segments of twelve records each."""
    return write_partition(tmp_path / "orders-0", {0: segment(4), 12: segment(4, base_offset=12)})


@pytest.fixture
def hurt(tmp_path: Path) -> Path:
    """Of nine records the three in the middle have a wrong CRC."""
    parts = batches(3)
    parts[1] = parts[1][:-1] + b"\1"
    return write_partition(tmp_path / "hurt-0", {0: b"".join(parts)})


def test_text_is_a_line_a_record(run: Run, partition: Path) -> None:
    ran = run("read", partition)
    assert (ran.status, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert len(lines) == 24
    assert lines[1] == (
        '         1 2025-10-09T08:53:20.001Z key="key" value="vvvvvvvvvvvvvvvvvvvv"'
    )


def test_json_lines_are_named_as_in_the_tables(run: Run, tmp_path: Path) -> None:
    headers = (("source", b"shop"),)
    batch = encode_batch([(TIMESTAMP, b"\xff", None, headers)], base_offset=0)
    path = write_partition(tmp_path / "orders-0", {0: batch})
    (line,) = run("read", path, "--format", "jsonl").out.splitlines()
    assert json.loads(line) == {
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "timestamp": TIMESTAMP,
        "key": {"base64": "/w=="},
        "value": None,
        "headers": [["source", "shop"]],
    }


def test_raw_is_the_values_as_they_are(tmp_path: Path) -> None:
    values = (b"one", None, b"\xff\x00", b"")
    batch = encode_batch([(TIMESTAMP, None, value, ()) for value in values])
    path = write_partition(tmp_path / "orders-0", {0: batch})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "read", str(path), "--format", "raw"],
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"one\n\n\xff\x00\n\n"


def test_a_range_and_a_single_file_can_be_asked_for(run: Run, partition: Path) -> None:
    def asked(*options: object) -> list[int]:
        out = run("read", *options, "--format", "jsonl").out
        return [json.loads(line)["offset"] for line in out.splitlines()]

    assert asked(partition, "--from", 11, "--to", 14) == [11, 12, 13]
    assert asked(partition / segment_name(12), "--to", 14) == [12, 13]


def test_read_committed_says_where_it_ends_and_why(run: Run, demo: Path) -> None:
    ran = run("read", demo / "refunds-0", "--isolation", "read_committed", "--format", "jsonl")
    assert ran.status == 0
    assert [json.loads(line)["offset"] for line in ran.out.splitlines()] == [0, 1, 2, 3]
    assert ran.err == (
        f"ottla: {demo / 'refunds-0'}: read_committed ends at offset 8,"
        " where the open transaction of producer 1001 begins; it holds back"
        " 17 offsets, up to offset 24\n"
    )


def test_behind_an_open_transaction_the_offsets_asked_for_are_counted(run: Run, demo: Path) -> None:
    committed = ("--isolation", "read_committed")
    ran = run("read", demo / "refunds-0", *committed, "--to", 9)
    assert ran.err.endswith(" it holds back 1 offset, up to offset 8\n")


def test_an_end_lost_behind_an_open_transaction_raises_the_status(
    run: Run, demo: Path, tmp_path: Path
) -> None:
    shutil.copytree(demo / "refunds-0", tmp_path / "refunds-0")
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nrefunds 0 40\n")
    ran = run("read", tmp_path / "refunds-0", "--isolation", "read_committed")
    assert ran.status == 2
    assert "is beyond its end; offsets 25 to 39 are lost\n" in ran.err
    assert "read_committed ends at offset 8" in ran.err


def test_what_retention_deletes_meanwhile_is_told_as_lost_records(
    run: Run, partition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_then_delete(*arguments: object, **options: object) -> Inventory:
        inventory = take_inventory(*arguments, **options)  # type: ignore[arg-type]
        (partition / segment_name(0)).unlink()
        return inventory

    monkeypatch.setattr("ottla.logs.reading.take_inventory", list_then_delete)
    ran = run("read", partition, "--format", "jsonl")
    assert ran.status == 2
    assert [json.loads(line)["offset"] for line in ran.out.splitlines()] == list(range(12, 24))
    assert ran.err == (
        f"ottla: orders-0/{segment_name(0)}: deleted while the log was read;"
        " offsets 0 to 11 are lost; reading continues at offset 12\n"
    )


def test_records_of_coordinators_can_be_decoded(run: Run, demo: Path) -> None:
    ids = run("read", demo / "__transaction_state-0", "--decode", "--format", "jsonl")
    first = json.loads(ids.out.splitlines()[0])
    assert (first["offset"], first["type"], first["version"]) == (0, "transactional-id", 1)
    assert first["key"] == {"transactional_id": "payments-eu"}
    assert first["value"]["transaction_partitions"] is None
    offsets = run("read", demo / "__consumer_offsets-0", "--decode", "--from", 2, "--to", 3)
    assert offsets.out == (
        "         2 2026-11-21T10:05:57.004Z offset-commit"
        ' {"group": "billing-0", "topic": "orders", "partition": 0}'
        ' {"offset": 20, "leader_epoch": 0, "metadata": "", "commit_timestamp": 1795255557001}\n'
    )


def test_what_cannot_be_decoded_is_shown_as_it_is(run: Run, tmp_path: Path) -> None:
    batch = encode_batch([(TIMESTAMP, b"\x00\x63key", b"value", ())])
    path = write_partition(tmp_path / "__consumer_offsets-0", {0: batch})
    (line,) = run("read", path, "--decode", "--format", "jsonl").out.splitlines()
    decoded = json.loads(line)
    assert decoded["fault"] == "the record type 99 is not known"
    assert (decoded["key"], decoded["value"]) == ("\x00ckey", "value")


def test_only_records_of_coordinators_can_be_decoded(run: Run, partition: Path, demo: Path) -> None:
    assert run("read", partition, "--decode").status == 64
    assert run("read", demo / "__consumer_offsets-0", "--decode", "--format", "raw").status == 64


def test_damage_is_told_beside_the_records(run: Run, hurt: Path) -> None:
    ran = run("read", hurt, "--format", "jsonl")
    assert ran.status == 2
    assert len(ran.out.splitlines()) == 6
    assert ran.err == (
        f"ottla: hurt-0/{segment_name(0)}: the batch at position 151 has a wrong CRC;"
        " offsets 3 to 5 are lost; reading continues at offset 6\n"
    )


def test_a_torn_end_of_a_killed_broker_is_told_and_is_no_error(run: Run, tmp_path: Path) -> None:
    path = write_partition(tmp_path / "orders-0", {0: segment(4)[:-40]})
    ran = run("read", path)
    assert ran.status == 0
    assert "nothing from offset 9 on can be read" in ran.err


def test_an_end_that_a_checkpoint_knows_more_of_is_an_error(run: Run, tmp_path: Path) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0"]) / "orders-0"
    (path / ".." / ".kafka_cleanshutdown").unlink()
    active = path / segment_name(12)
    active.write_bytes(active.read_bytes() + segment(1, base_offset=24)[:40])
    ran = run("read", path)
    assert (ran.status, ran.err.count("\n")) == (0, 1)
    assert ran.err.endswith("was not looked at: ottla audit does\n")
    (path / ".." / "replication-offset-checkpoint").write_text("0\n1\norders 0 27\n")
    ran = run("read", path)
    assert ran.status == 2
    assert ran.err.endswith(
        "; the high watermark 27 is beyond its end; offsets 24 to 26 are lost\n"
    )


@pytest.mark.parametrize(
    ("name", "witness"),
    [
        ("replication-offset-checkpoint", "the high watermark 27"),
        ("recovery-point-offset-checkpoint", "the recovery point 27"),
    ],
)
def test_a_log_that_ends_at_a_whole_batch_before_a_checkpoint_has_lost_records(
    name: str, witness: str, run: Run, tmp_path: Path
) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0"]) / "orders-0"
    assert (run("read", path).status, run("read", path).err) == (0, "")
    (path / ".." / name).write_text("0\n1\norders 0 27\n")
    ran = run("read", path)
    assert (ran.status, len(ran.out.splitlines())) == (2, 24)
    assert ran.err == (
        f"ottla: orders-0/{segment_name(12)}: the log ends at offset 24; {witness} is beyond its"
        " end; offsets 24 to 26 are lost\n"
    )
    audited = run("audit", path.parent, "--format", "json")
    assert audited.status == ran.status
    asked = ("--from", 3, "--to", 12)
    assert (run("read", path, *asked).status, run("read", path, *asked).err) == (0, "")


def test_zeros_behind_a_log_do_not_hide_what_a_checkpoint_knows(run: Run, tmp_path: Path) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0"]) / "orders-0"
    active = path / segment_name(12)
    active.write_bytes(active.read_bytes() + bytes(100))
    (path / ".." / ".kafka_cleanshutdown").unlink()
    assert run("read", path).status == 0
    (path / ".." / "replication-offset-checkpoint").write_text("0\n1\norders 0 27\n")
    ran = run("read", path)
    assert ran.status == 2
    assert "offsets 24 to 26 are lost" in ran.err


def test_a_log_without_a_file_has_lost_what_a_checkpoint_knows(run: Run, tmp_path: Path) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0"]) / "orders-0"
    for file in path.glob("*.log"):
        file.unlink()
    ran = run("read", path)
    assert (ran.status, ran.out) == (2, "")
    assert "offsets 0 to 23 are lost" in ran.err


def test_a_log_start_offset_that_leaves_no_record_is_said(run: Run, tmp_path: Path) -> None:
    path = write_log_directory(tmp_path / "kafka", ["orders-0"]) / "orders-0"
    (path / ".." / "log-start-offset-checkpoint").write_text("0\n1\norders 0 25\n")
    ran = run("read", path)
    assert (ran.status, ran.out) == (0, "")
    assert "no record from its log start offset 25 on, which log-start-offset" in ran.err
    err = run("read", path, "--from", 30).err
    assert "no record from offset 30 on; the log holds none from its start, offset 25, on" in err


def test_a_path_that_is_not_there_comes_with_the_nearest_one(run: Run, partition: Path) -> None:
    wrong = partition.parent / "ordres-0"
    for arguments in (
        ("read", wrong),
        ("inspect", wrong / segment_name(0)),
        ("rebuild", wrong, "--output", partition.parent / "new"),
    ):
        ran = run(*arguments)
        assert ran.status == 3
        assert f"did you mean {partition}?" in ran.err
    ran = run("rebuild", partition, "--output", partition.parent / "new", "--topic", "ordres")
    assert (ran.status, ran.err) == (
        3,
        "ottla: no topic matches 'ordres': did you mean orders? topics here: orders\n",
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nowhere", "nowhere: No such file or directory"),
        (f"orders-0/{segment_name(0, 'index')}", ".index is neither a partition directory nor"),
    ],
)
def test_what_cannot_be_read_is_said(
    name: str,
    reason: str,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for partition in ("orders-0", "orders-1"):
        write_partition(tmp_path / partition, {0: segment(1)})
    monkeypatch.chdir(tmp_path)
    ran = run("read", name)
    assert (ran.status, ran.out) == (3, "")
    assert reason in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("options", [("--from", "-1"), ("--isolation", "none"), ("--format", "x")])
def test_wrong_usage_is_64(run: Run, partition: Path, options: tuple[str, str]) -> None:
    assert run("read", partition, *options).status == 64


def test_a_reader_that_has_seen_enough_ends_it_quietly(tmp_path: Path) -> None:
    path = write_partition(tmp_path / "orders-0", {0: segment(20_000, value_size=100)})
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "read", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"         0 ")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    path = write_partition(tmp_path / "orders-0", {0: segment(20_000, value_size=100)})
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "read", str(path)],
        stdout=writer,
        stderr=subprocess.PIPE,
    )
    os.close(writer)
    # It is at work once there is output, and the pipe that nobody empties keeps it there.
    assert os.read(reader, 1)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    os.close(reader)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"interrupted" in err


def test_a_first_offset_behind_the_end_of_the_log_is_said_to_be(run: Run, partition: Path) -> None:
    ran = run("read", partition, "--from", "25")
    assert (ran.status, ran.out) == (0, "")
    assert ran.err == (
        f"ottla: {partition}: no record from offset 25 on; the log holds offsets 0 to 23, written"
        " from 2025-10-09T08:53:20.000Z to 2025-10-09T08:53:20.023Z\n"
    )
    assert "no record from offset 24 on; the log holds" in run("read", partition, "--from", 24).err
