"""Where `ottla read` writes: files appear whole or not at all, in the layout of Hive."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from support.commands import Run
from support.logs import segment, segment_name, write_log_directory, write_partition

PROGRAM = "from ottla.cli import main; main()"


@pytest.fixture
def kafka(tmp_path: Path) -> Path:
    return write_log_directory(tmp_path / "kafka")


def names(directory: Path) -> list[str]:
    return sorted(
        str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()
    )


def test_a_directory_has_a_file_a_partition_in_the_layout_of_hive(
    run: Run, kafka: Path, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    ran = run("read", kafka, "--output", target)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == f"{target}: 72 records of 3 partitions\n"
    assert names(target) == [
        "topic=orders/partition=0/part-0.parquet",
        "topic=orders/partition=1/part-0.parquet",
        "topic=payments/partition=0/part-0.parquet",
    ]
    found = ds.dataset(target, partitioning="hive").to_table().to_pylist()
    places = {(row["topic"], row["partition"], row["offset"]) for row in found}
    assert places == {
        (topic, number, offset)
        for topic, number in (("orders", 0), ("orders", 1), ("payments", 0))
        for offset in range(24)
    }


@pytest.mark.parametrize("form", ["jsonl", "csv", "arrow", "raw", "text"])
def test_files_of_the_layout_leave_to_their_names_what_these_say(
    run: Run, kafka: Path, tmp_path: Path, form: str
) -> None:
    target = tmp_path / "out"
    ran = run("read", kafka, "-t", "pay*", "--output", target, "--output-format", form)
    assert ran.status == 0
    (file,) = (target / "topic=payments" / "partition=0").iterdir()
    if form == "jsonl":
        assert list(json.loads(file.read_text().splitlines()[0]))[:2] == ["offset", "timestamp"]
    if form == "csv":
        assert file.read_text().startswith("offset,timestamp,key,value,headers\n0,")


def test_a_file_has_the_format_that_its_name_says(run: Run, kafka: Path, tmp_path: Path) -> None:
    target = tmp_path / "orders.jsonl"
    assert run("read", kafka, "-t", "orders", "--output-file", target).status == 0
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert [row["partition"] for row in rows] == [0] * 24 + [1] * 24
    ran = run("read", kafka, "--output-file", tmp_path / "orders.xlsx")
    assert ran.status == 64
    assert "its name does not end in one of .jsonl" in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("option", "name", "reason"),
    [
        ("--output-file", "there.csv", "there.csv exists"),
        ("--output", "full", "full exists: use a new or an empty directory"),
        ("--output", "kafka/new", "is inside"),
        ("--output-file", "kafka/orders-0/x.csv", "is inside"),
    ],
)
def test_nothing_is_written_over_or_among_logs(
    run: Run, kafka: Path, option: str, name: str, reason: str
) -> None:
    tmp_path = kafka.parent
    (tmp_path / "there.csv").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    before = names(tmp_path)
    ran = run("read", kafka, option, tmp_path / name)
    assert ran.status == 64
    assert reason in " ".join(ran.err.split())
    assert names(tmp_path) == before


def test_one_partition_twice_has_no_place_in_the_layout(
    run: Run, kafka: Path, tmp_path: Path
) -> None:
    other = write_partition(tmp_path / "other" / "orders-0", {0: segment(1)})
    ran = run("read", kafka, other, "--output", tmp_path / "out")
    assert ran.status == 64
    assert "are both orders-0" in " ".join(ran.err.split())


def test_what_cannot_be_read_leaves_no_output(run: Run, kafka: Path, tmp_path: Path) -> None:
    (kafka / "payments-0" / segment_name(12)).unlink()
    (kafka / "payments-0" / segment_name(12)).symlink_to("nowhere")
    for option, name in (("--output", "out"), ("--output-file", "out.csv")):
        ran = run("read", kafka, option, tmp_path / name)
        assert ran.status == 3
        assert sorted(path.name for path in tmp_path.iterdir()) == ["kafka"]


def test_damage_leaves_the_rest_and_its_status(run: Run, kafka: Path, tmp_path: Path) -> None:
    path = kafka / "orders-0" / segment_name(0)
    path.write_bytes(path.read_bytes().replace(b"v", b"w", 1))
    ran = run("read", kafka, "--output", tmp_path / "out")
    assert ran.status == 2
    assert "69 records of 3 partitions" in ran.out
    assert "offsets 0 to 2 are lost" in ran.err


@pytest.mark.parametrize(
    ("option", "name"), [("--output", "out"), ("--output-file", "out.parquet")]
)
def test_ctrl_c_leaves_nothing_half_written(tmp_path: Path, option: str, name: str) -> None:
    logs = write_partition(tmp_path / "kafka" / "orders-0", {0: segment(60_000, value_size=100)})
    command = [sys.executable, "-c", PROGRAM, "read", str(logs), option, str(tmp_path / name)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        while process.poll() is None and not any(
            path.name.startswith(".out") for path in [*tmp_path.iterdir()]
        ):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    left = sorted(path.name for path in tmp_path.iterdir())
    if process.returncode == 0:
        # It was faster.
        assert left == ["kafka", name]
        return
    assert process.returncode == 130
    assert err == b"ottla: interrupted\n"
    assert left == ["kafka"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("form", ["text", "csv", "parquet", "arrow"])
def test_a_full_disk_is_said_and_is_no_success(kafka: Path, form: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "read", str(kafka), "--output-format", form],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert done.returncode == 3
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr
