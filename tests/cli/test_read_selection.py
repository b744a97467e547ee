"""Which records `ottla read` prints: of which partitions, by time and key, the first or last."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import Ran, Run
from support.logs import TIMESTAMP, segment, segment_name, write_log_directory, write_partition

from benches.data import encode_batch

PROGRAM = "from ottla.cli import main; main()"


@pytest.fixture
def kafka(tmp_path: Path) -> Path:
    """Two partitions of orders and one of payments, 24 records each."""
    return write_log_directory(tmp_path / "kafka")


@pytest.fixture
def partition(kafka: Path) -> Path:
    return kafka / "orders-0"


def places(ran: Ran) -> list[tuple[str, int, int]]:
    """Topic, partition and offset of each JSON line."""
    rows = [json.loads(line) for line in ran.out.splitlines()]
    return [(row["topic"], row["partition"], row["offset"]) for row in rows]


def offsets(ran: Ran) -> list[int]:
    return [offset for _, _, offset in places(ran)]


def test_a_log_directory_is_read_partition_by_partition(run: Run, kafka: Path) -> None:
    ran = run("read", kafka, "-J", "--from", 23)
    assert (ran.status, ran.err) == (0, "")
    assert places(ran) == [("orders", 0, 23), ("orders", 1, 23), ("payments", 0, 23)]


def test_topics_and_partitions_can_be_chosen(run: Run, kafka: Path) -> None:
    assert places(run("read", kafka, "-J", "-c", 1, "-t", "pay*")) == [("payments", 0, 0)]
    ran = run("read", kafka, "-J", "--from", 23, "-t", "orders", "-p", 1)
    assert places(ran) == [("orders", 1, 23)]


def test_several_paths_are_read_in_their_order(run: Run, kafka: Path) -> None:
    ran = run("read", kafka / "orders-1", kafka / "orders-0" / segment_name(12), "-J", "--from", 23)
    assert places(ran) == [("orders", 1, 23), ("orders", 0, 23)]


def test_lines_of_text_say_which_of_several_partitions_they_are_of(run: Run, kafka: Path) -> None:
    lines = run("read", kafka, "--from", 23).out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["orders-0", "23"],
        ["orders-1", "23"],
        ["payments-0", "23"],
    ]


def test_a_topic_that_is_not_there_comes_with_the_nearest(run: Run, kafka: Path) -> None:
    ran = run("read", kafka, "-t", "ordres")
    assert (ran.status, ran.out) == (3, "")
    assert "no topic matches 'ordres': did you mean orders?" in ran.err
    assert "no partition has the number 7; those here: 0 and 1" in run("read", kafka, "-p", 7).err


def test_a_directory_that_no_broker_reads_is_left_out_and_named(run: Run, kafka: Path) -> None:
    (kafka / "orders-1").rename(kafka / f"orders-1.{'0' * 32}-delete")
    ran = run("read", kafka, "-J", "--from", 23)
    assert places(ran) == [("orders", 0, 23), ("payments", 0, 23)]
    assert "left out, as no broker reads it from there: orders-1.0" in ran.err


def test_a_partition_that_cannot_be_read_leaves_the_others(run: Run, kafka: Path) -> None:
    (kafka / "orders-1" / segment_name(12)).unlink()
    (kafka / "orders-1" / segment_name(12)).symlink_to("nowhere")
    ran = run("read", kafka, "-J", "--from", 23)
    assert ran.status == 3
    assert places(ran) == [("orders", 0, 23), ("payments", 0, 23)]
    assert "orders-1" in ran.err


@pytest.mark.parametrize(
    ("first", "end", "found"),
    [
        (str(TIMESTAMP + 3), str(TIMESTAMP + 5), [3, 4]),
        ("2025-10-09T08:53:20.003Z", "2025-10-09T10:53:20.005+02:00", [3, 4]),
        ("2025-10-09 08:53:20.022", None, [22, 23]),
        (None, "2025-10-09T08:53:20.001", [0]),
    ],
)
def test_records_are_chosen_by_their_timestamps(
    run: Run, partition: Path, first: str | None, end: str | None, found: list[int]
) -> None:
    asked = [*(("--from-time", first) if first else ()), *(("--to-time", end) if end else ())]
    assert offsets(run("read", partition, "-J", *asked)) == found


def test_timestamps_decide_whatever_their_order(run: Run, tmp_path: Path) -> None:
    batch = encode_batch([(time, None, b"v", ()) for time in (5, 1, 9, 2)])
    path = write_partition(tmp_path / "orders-0", {0: batch})
    assert offsets(run("read", path, "-J", "--from-time", 2, "--to-time", 9)) == [0, 3]


@pytest.mark.parametrize("time", ["yesterday", "2025-13-01", "-5", "12:00", "2026", "1760000000"])
def test_what_is_no_time_is_wrong_usage(run: Run, partition: Path, time: str) -> None:
    ran = run("read", partition, "--from-time", time)
    assert ran.status == 64
    assert "is not a time such as 2026-11-21" in " ".join(ran.err.split())


def test_a_key_chooses_its_records(run: Run, tmp_path: Path) -> None:
    keys = (b"a", None, b"b", b"a", "é".encode())
    batch = encode_batch([(TIMESTAMP, key, b"v", ()) for key in keys])
    path = write_partition(tmp_path / "orders-0", {0: batch})
    assert offsets(run("read", path, "-J", "-k", "a")) == [0, 3]
    assert offsets(run("read", path, "-J", "--key", "b", "--key", "é")) == [2, 4]
    assert (
        'no record with the key "c"; the log holds offsets 0 to 4'
        in run("read", path, "-k", "c").err
    )


def test_the_first_records_are_counted_over_all_partitions(run: Run, kafka: Path) -> None:
    ran = run("read", kafka, "-J", "--limit", 26)
    assert (ran.status, ran.err) == (0, "")
    assert places(ran)[-2:] == [("orders", 1, 0), ("orders", 1, 1)]


@pytest.mark.parametrize("count", [1, 12, 13, 24, 100])
def test_the_last_records_are_those_of_each_partition(run: Run, kafka: Path, count: int) -> None:
    found = places(run("read", kafka, "-t", "orders", "-J", "--tail", count))
    expected = list(range(24))[-count:]
    assert found == [("orders", number, offset) for number in (0, 1) for offset in expected]


def test_the_last_records_are_counted_among_those_that_fit(run: Run, tmp_path: Path) -> None:
    segments = {
        base: b"".join(
            encode_batch([(TIMESTAMP, b"%d" % (at % 3), b"v", ())], base_offset=at)
            for at in range(base, base + 10)
        )
        for base in range(0, 50, 10)
    }
    path = write_partition(tmp_path / "orders-0", segments)
    assert offsets(run("read", path, "-J", "-n", 5, "-k", "1")) == [37, 40, 43, 46, 49]
    assert offsets(run("read", path, "-J", "-n", 2, "--to", 9, "-k", "1")) == [4, 7]
    assert offsets(run("read", path, "-J", "-n", 9, "--from", 44)) == [44, 45, 46, 47, 48, 49]


def test_the_end_of_a_long_log_is_found_without_its_beginning(run: Run, tmp_path: Path) -> None:
    segments = {base: segment(4, base_offset=base) for base in range(0, 120, 12)}
    path = write_partition(tmp_path / "orders-0", segments)
    (path / segment_name(0)).write_bytes(b"damage" * 100)
    ran = run("read", path, "-J", "--tail", 3)
    assert (ran.status, offsets(ran), ran.err) == (0, [117, 118, 119], "")


@pytest.mark.parametrize(
    ("bound", "found"),
    [
        ("22", [22, 23]),
        ("-2", [22, 23]),
        ("s@1760000000022", [22, 23]),
        ("e@1760000000002", [0, 1]),
        ("beginning", list(range(24))),
    ],
)
def test_offsets_are_asked_for_as_kcat_has_them(
    run: Run, partition: Path, bound: str, found: list[int]
) -> None:
    assert offsets(run("read", partition, "-J", "-o", bound)) == found


@pytest.mark.parametrize(
    "options",
    [("-o", "end"), ("-o", "1", "-o", "2"), ("-o", "1", "--from", "1"), ("-o", "s@never")],
)
def test_offsets_that_say_nothing_or_twice_are_wrong_usage(
    run: Run, partition: Path, options: tuple[str, ...]
) -> None:
    assert run("read", partition, *options).status == 64


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("--from", 30), "no record from offset 30 on;"),
        (("--from", 5, "--to", 5), "no record from offset 5 on and below offset 5;"),
        (("--from-time", "2026-01-01"), "no record of 2026-01-01T00:00:00.000Z or later;"),
        (("--to-time", "2025-01-01"), "no record of before 2025-01-01T00:00:00.000Z;"),
    ],
)
def test_a_range_that_holds_nothing_says_what_the_log_holds(
    run: Run, partition: Path, asked: tuple[object, ...], words: str
) -> None:
    ran = run("read", partition, *asked)
    assert (ran.status, ran.out) == (0, "")
    assert ran.err == (
        f"ottla: {partition}: {words} the log holds offsets 0 to 23, written from"
        " 2025-10-09T08:53:20.000Z to 2025-10-09T08:53:20.023Z\n"
    )


def test_an_empty_log_says_that_it_is(run: Run, tmp_path: Path) -> None:
    path = write_partition(tmp_path / "orders-0", {0: b""})
    ran = run("read", path)
    assert (ran.status, ran.out, ran.err) == (
        0,
        "",
        f"ottla: {path}: no record; the log holds no batch\n",
    )


def test_partitions_without_such_a_record_are_named_beside_the_others(
    run: Run, kafka: Path
) -> None:
    (kafka / "orders-1" / segment_name(12)).unlink()
    for checkpoint in kafka.glob("*-checkpoint"):
        checkpoint.unlink()
    ran = run("read", kafka, "-J", "-t", "orders", "--from", 23)
    assert places(ran) == [("orders", 0, 23)]
    assert ran.err == "ottla: no such record in orders-1\n"


def test_only_so_many_empty_partitions_are_told_one_by_one(run: Run, tmp_path: Path) -> None:
    for number in range(13):
        write_partition(tmp_path / f"orders-{number}", {0: segment(1)})
    ran = run("read", tmp_path, "--from", 100)
    lines = ran.err.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "ottla: nor in 3 more partitions"


def test_the_first_lines_come_before_a_large_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large-0" / segment_name(0)
    path.parent.mkdir()
    with path.open("wb") as file:
        file.write(segment(2))
        # Sparse: it would take long to read, and is no batch.
        file.truncate(3 << 30)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "read", str(path), "-c", "6", "-f", "%o "],
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == b"0 1 2 3 4 5 "
