"""How `ottla read` writes records: lines of one's own, JSON, CSV, Arrow and Parquet."""

import csv
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ottla import cli
from ottla.cli.reading import tables
from support.commands import Run
from support.logs import TIMESTAMP, segment, write_partition

from benches.data import encode_batch

PROGRAM = "from ottla.cli import main; main()"
RECORDS = [
    (TIMESTAMP, b"k", b"one", ()),
    (TIMESTAMP + 1, None, None, (("a", b"1"), ("b", None))),
    (TIMESTAMP + 2, b"", b'x,"y"\nz', ()),
    (-1, b"\xff", b"\x1b[2J\xc2\x9b", ()),
]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return write_partition(tmp_path / "orders-3", {0: encode_batch(RECORDS)})


def output_of(*arguments: object) -> bytes:
    """What a program writes to a pipe."""
    command = [sys.executable, "-c", PROGRAM, "read", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=60, check=True).stdout


def test_a_format_string_is_that_of_kcat(partition: Path) -> None:
    form = r"%t/%p/%o %T k=%k(%K) v=%s(%S) h=%h %%\t\x41\\\n"
    lines = output_of(partition, "-f", form, "--to", 2).decode().splitlines()
    assert lines == [
        f"orders/3/0 {TIMESTAMP} k=k(1) v=one(3) h= %\tA\\",
        f"orders/3/1 {TIMESTAMP + 1} k=(-1) v=(-1) h=a=1,b= %\tA\\",
    ]


def test_null_has_a_name_where_it_is_asked_for(partition: Path) -> None:
    assert output_of(partition, "-Z", "-f", "%k:%s;", "--to", 2) == b"k:one;NULL:NULL;"


def test_sizes_can_be_binary_so_that_a_program_finds_values(partition: Path) -> None:
    assert output_of(partition, "-f", "%R%s", "--to", 2) == b"\0\0\0\3one\xff\xff\xff\xff"


def test_a_pipe_gets_the_bytes_as_they_are(partition: Path) -> None:
    assert output_of(partition, "-f", "%k=%s", "--from", 3) == b"\xff=\x1b[2J\xc2\x9b"


@pytest.mark.parametrize(
    ("form", "fault"),
    [
        ("%x", "%x at character 1 is none of %s %S"),
        ("ab%", "% at character 3 is none of"),
        (r"%s\q", r"\q at character 3 is none of \n"),
        (r"%s\x4", r"\x at character 3 is none of"),
        ("jsn", "it has no directive such as %s"),
    ],
)
def test_a_format_string_that_is_none_says_where(
    run: Run, partition: Path, form: str, fault: str
) -> None:
    ran = run("read", partition, "-f", form)
    assert (ran.status, ran.out) == (64, "")
    assert fault in " ".join(ran.err.split())


def on_a_terminal(*arguments: object) -> bytes:
    """What a terminal gets."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, "read", *map(str, arguments)]
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        process.wait(60)
        assert process.stderr is not None
        shown += process.stderr.read()
    os.close(ours)
    return shown


@pytest.mark.parametrize("options", [("-f", "%k %s\n"), ("--output-format", "csv"), ("-J",), ()])
def test_a_terminal_obeys_nothing_that_a_record_holds(
    partition: Path, options: tuple[str, ...]
) -> None:
    shown = on_a_terminal(partition, "--from", 3, *options)
    assert b"\x1b" not in shown
    assert b"\xc2\x9b" not in shown
    assert b"2J" in shown


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_a_terminal_gets_no_table(partition: Path, form: str) -> None:
    assert b"is nothing for a terminal" in on_a_terminal(partition, "--output-format", form)


def test_csv_tells_null_from_nothing_and_quotes_what_it_must(partition: Path) -> None:
    text = output_of(partition, "--output-format", "csv").decode()
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
    assert [row[5] for row in rows[1:4]] == ["one", "", 'x,"y"\nz']
    assert json.loads(rows[2][6]) == [["a", "1"], ["b", None]]
    assert json.loads(rows[4][4]) == {"base64": "/w=="}
    lines = text.splitlines()
    assert lines[2].startswith(f'orders,3,1,{TIMESTAMP + 1},,,"[[')
    assert lines[3].startswith(f'orders,3,2,{TIMESTAMP + 2},"","x,')


def table(data: bytes, form: str) -> pa.Table:
    if form == "parquet":
        return pq.read_table(io.BytesIO(data))
    return pa.ipc.open_stream(data).read_all()


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_tables_have_times_as_times_and_headers_as_structs(partition: Path, form: str) -> None:
    found = table(output_of(partition, "--output-format", form), form)
    assert found.schema.field("timestamp").type == pa.timestamp("ms", tz="UTC")
    rows = found.to_pylist()
    assert [row["value"] for row in rows] == [value for _, _, value, _ in RECORDS]
    assert rows[1]["headers"] == [{"key": "a", "value": b"1"}, {"key": "b", "value": None}]
    assert [row["timestamp"] is None for row in rows] == [False, False, False, True]
    assert {(row["topic"], row["partition"]) for row in rows} == {("orders", 3)}


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_a_table_without_a_record_has_its_columns(partition: Path, form: str) -> None:
    found = table(output_of(partition, "--output-format", form, "--from", 99), form)
    assert (found.num_rows, len(found.schema.names)) == (0, 7)


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_a_large_table_comes_in_pieces(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_partition(tmp_path / "orders-0", {0: segment(40, value_size=100)})
    monkeypatch.setattr(tables, "BATCH_BYTES", 1000)
    target = tmp_path / f"all.{form}"
    assert cli.run(["read", str(path), "--output-file", str(target)]) == 0
    found = pq.read_table(target) if form == "parquet" else pa.ipc.open_file(target).read_all()
    assert found["offset"].to_pylist() == list(range(120))
    if form == "arrow":
        assert pa.ipc.open_file(target).num_record_batches > 10


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--key", "k"),
        ("--key", "k", "--key", "nope"),
        ("--from-time", TIMESTAMP + 1),
        ("--from-time", "1969-12-31T23:59:59Z"),
        ("--to-time", TIMESTAMP + 2),
        ("--from-time", TIMESTAMP, "--to-time", TIMESTAMP + 1, "--key", "k"),
        ("--tail", 2, "--to-time", TIMESTAMP + 2),
        ("--from", 1, "--to", 3),
    ],
    ids=lambda options: " ".join(map(str, options)) or "all",
)
def test_a_table_made_of_batches_has_the_rows_of_one_made_of_records(
    partition: Path, options: tuple[object, ...]
) -> None:
    of_batches = table(output_of(partition, "--output-format", "arrow", *options), "arrow")
    # With a limit, records are looked at one by one.
    limit = ("--limit", 1000)
    of_records = table(output_of(partition, "--output-format", "arrow", *options, *limit), "arrow")
    assert of_batches.equals(of_records)
    lines = output_of(partition, "-J", *options).splitlines()
    assert of_batches["offset"].to_pylist() == [json.loads(line)["offset"] for line in lines]


def test_few_records_of_many_partitions_are_one_row_group(run: Run, tmp_path: Path) -> None:
    for number in range(20):
        write_partition(tmp_path / "logs" / f"orders-{number}", {0: segment(2)})
    target = tmp_path / "all.parquet"
    assert run("read", tmp_path / "logs", "--output-file", target).status == 0
    assert (pq.read_metadata(target).num_rows, pq.read_metadata(target).num_row_groups) == (120, 1)


@pytest.mark.parametrize("form", ["text", "jsonl", "csv", "arrow", "parquet", "raw"])
def test_a_reader_that_has_seen_enough_ends_every_format_quietly(tmp_path: Path, form: str) -> None:
    path = write_partition(tmp_path / "orders-0", {0: segment(20_000, value_size=100)})
    command = [sys.executable, "-c", PROGRAM, "read", str(path), "--output-format", form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize(
    "options",
    [
        ("-J", "--output-format", "csv"),
        ("-J", "-f", "%s"),
        ("-Z",),
        ("-f", "csv", "-J"),
        ("--output-format", "xml"),
    ],
)
def test_formats_that_contradict_each_other_are_wrong_usage(
    run: Run, partition: Path, options: tuple[str, ...]
) -> None:
    assert run("read", partition, *options).status == 64
