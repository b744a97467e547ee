"""`ottla audit`: the verdict first, the same numbers in every form, the right exit status."""

import json
import os
import pty
import struct
import subprocess
import sys
from pathlib import Path

import ottla
import pytest
from ottla.audit.result.result import SAVED_TABLES
from support.commands import Run
from support.logs import files_under, segment, segment_name, write_log_directory, write_partition


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    return write_log_directory(tmp_path / "kafka")


def damage(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 - 1] + b"!" + data[len(data) // 2 :])


def test_a_sound_log_is_0_and_says_so_first(run: Run, log_directory: Path) -> None:
    ran = run("audit", log_directory)
    assert ran.status == 0
    assert ran.out.startswith("SOUND: no error and no warning\n")
    assert "3 partitions, 24 batches, 72 records" in ran.out
    assert ran.err == ""


def test_warnings_are_1_and_say_what_to_do(run: Run, demo: Path) -> None:
    ran = run("audit", demo)
    assert ran.status == 1
    assert ran.out.startswith("SUSPECT: 2 warnings in 2 of 14 partitions\n")
    assert "refunds-0/00000000000000000000.log, position 11826, offsets 8 to 17" in ran.out
    assert "Do first: if its producer is gone, end the transaction by its id." in ran.out
    assert "  $ kafka-transactions.sh --bootstrap-server" in ran.out


def test_errors_are_2_and_name_the_place(run: Run, log_directory: Path) -> None:
    damage(log_directory / "orders-1" / segment_name(12))
    ran = run("audit", log_directory)
    assert ran.status == 2
    assert ran.out.startswith("DAMAGED: 1 error in 1 of 3 partitions\n")
    assert "error crc-mismatch: " in ran.out
    assert "orders-1/00000000000000000012.log, position " in ran.out
    assert ran.out.count("$ ottla inspect ") == 1


def test_the_command_it_gives_to_copy_shows_the_damage(
    run: Run, log_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log_directory)
    damage(log_directory / "orders-1" / segment_name(12))
    (line,) = [x for x in run("audit", ".").out.splitlines() if x.startswith("  $ ottla ")]
    shown = run(*line.split()[2:])
    assert shown.status == 0
    assert "CRC MISMATCH" in shown.out.splitlines()[1]


def test_what_could_not_be_read_is_3_and_wins_over_errors(run: Run, log_directory: Path) -> None:
    damage(log_directory / "orders-1" / segment_name(12))
    ran = run("audit", log_directory, log_directory / "nowhere")
    assert ran.status == 3
    assert ran.out.startswith("INCOMPLETE: 1 path could not be read")
    assert "no such file or directory" in ran.out
    assert "crc-mismatch" in ran.out


def test_the_demo_fits_a_screen(run: Run, demo: Path) -> None:
    lines = run("audit", demo).out.splitlines()
    screen_lines = sum(max(1, -(-len(line) // 80)) for line in lines)
    assert screen_lines <= 24


def test_piped_text_has_no_colours_and_no_trailing_blanks(run: Run, demo: Path) -> None:
    out = run("audit", demo).out
    assert "\x1b" not in out
    assert [line for line in out.splitlines() if line != line.rstrip()] == []


@pytest.mark.parametrize("columns", [20, 40, 60, 200])
def test_a_name_is_never_cut_however_narrow_the_terminal(
    run: Run, demo: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out = run("audit", demo).out
    for name in ("refunds-0/00000000000000000000.log", "\nrefunds ", "Id refunds-dead\n"):
        assert name in out
    sound = run("audit", demo, "--topic", "__cluster_metadata").out
    assert "\n__cluster_metadata " in sound


def test_a_terminal_gets_colours(demo: Path) -> None:
    master, slave = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    done = subprocess.Popen(
        [sys.executable, "-c", "from ottla.cli import main; main()", "audit", demo],
        stdout=slave,
        stderr=slave,
        env={**environment, "TERM": "xterm"},
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # The other end is closed, as Linux tells it.
            break
        if not piece:
            break
        shown += piece
    os.close(master)
    assert done.wait(60) == 1
    assert b"\x1b[" in shown
    assert b"SUSPECT" in shown


def test_many_findings_of_a_kind_are_counted_and_not_listed(run: Run, tmp_path: Path) -> None:
    for partition in range(30):
        directory = write_partition(tmp_path / f"orders-{partition}", {0: segment(4)})
        damage(directory / segment_name(0))
    ran = run("audit", tmp_path)
    assert "error crc-mismatch (30): " in ran.out
    assert "  and 27 more\n" in ran.out
    assert len(ran.out.splitlines()) <= 28


def test_json_is_one_object_that_equals_the_text_in_its_numbers(
    run: Run, log_directory: Path
) -> None:
    damage(log_directory / "orders-1" / segment_name(12))
    ran = run("audit", log_directory, "--format", "json")
    result = json.loads(ran.out)
    assert list(result) == [
        "version",
        "summary",
        "paths",
        "started_ms",
        "elapsed_s",
        "events",
        "findings",
        "gaps",
        "transactions",
        "producers",
        "epochs",
        "timeline",
        "metrics",
        "differences",
        "recovery",
        "groups",
        "transactional_ids",
        "files",
        "advice",
    ]
    assert result["version"] == ottla.__version__
    assert result["summary"] == {
        "files": 6,
        "partitions": 3,
        "batches": 23,
        "records": 69,
        "bytes": sum(p.stat().st_size for p in log_directory.rglob("*.log")),
        "findings": {"error": 1, "warning": 0, "info": 0},
        "not_read": 0,
        "exit_code": 2,
        "verdict": "DAMAGED",
        "events": {"error": 1, "warning": 0, "info": 0},
        "left_out": {"error": 0, "warning": 0, "info": 0},
    }
    assert ran.status == 2
    (finding,) = result["findings"]
    assert finding["name"] == "crc-mismatch"
    assert finding["severity"] == "error"
    assert (finding["first_offset"], finding["last_offset"]) == (15, 17)
    assert finding["next_good_offset"] == 18


def test_topics_may_be_chosen_by_several_patterns(run: Run, log_directory: Path) -> None:
    write_partition(log_directory / "audit-0", {0: segment(1)})
    ran = run("audit", log_directory, "--topic", "pay*", "--topic", "audit", "--format", "json")
    assert {file["topic"] for file in json.loads(ran.out)["files"]} == {"payments", "audit"}


@pytest.mark.parametrize("level", ["crc", "decode", "full"])
def test_every_level_gives_the_same_numbers_on_a_sound_log(
    run: Run, demo: Path, level: str
) -> None:
    summary = json.loads(run("audit", demo, "--level", level, "--format", "json").out)["summary"]
    assert (summary["batches"], summary["records"]) == (357, 1203)


def test_output_has_every_table_twice_where_pyarrow_is(
    run: Run, log_directory: Path, tmp_path: Path
) -> None:
    ran = run("audit", log_directory, "--output", tmp_path / "out")
    assert ran.status == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"summary.json", *(f"{name}.parquet" for name in SAVED_TABLES)}


def test_output_has_the_formats_and_tables_that_are_asked_for(
    run: Run, log_directory: Path, tmp_path: Path
) -> None:
    formats = ("--table-format", "jsonl", "--table-format", "parquet")
    ran = run("audit", log_directory, "--output", tmp_path / "out", "--batches", *formats)
    assert ran.status == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    tables = (*SAVED_TABLES, "batches")
    files = {f"{name}.{suffix}" for name in tables for suffix in ("jsonl", "parquet")}
    assert names == {"summary.json", *files}


def test_parquet_that_cannot_be_written_is_refused_before_anything_is_read(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    ran = run("audit", "nowhere", "--output", tmp_path / "out", "--table-format", "parquet")
    assert "Parquet needs pyarrow: pip install 'ottla[arrow]', or write jsonl" in ran.err
    assert ran.out == ""


def test_output_does_without_pyarrow(
    run: Run, log_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    ran = run("audit", log_directory, "--output", tmp_path / "out", "--records")
    assert ran.status == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"summary.json", "records.jsonl", *(f"{n}.jsonl" for n in SAVED_TABLES)}
    records = (tmp_path / "out" / "records.jsonl").read_text().splitlines()
    assert len(records) == 72
    assert json.loads(records[0])["value"] == "v" * 20


def test_output_never_replaces_anything(run: Run, log_directory: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    ran = run("audit", log_directory, "--output", tmp_path / "out")
    assert ran.status == 64
    assert "use a new or an empty directory" in ran.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_nothing_is_written_into_what_is_audited(run: Run, log_directory: Path) -> None:
    before = list(files_under(log_directory))
    run("audit", log_directory)
    run("audit", log_directory, "--format", "json")
    assert list(files_under(log_directory)) == before


def test_the_bound_on_speed_is_kept(run: Run, tmp_path: Path) -> None:
    data = segment(4, records=1, value_size=100_000)
    partition = write_partition(tmp_path / "orders-0", {0: data})
    ran = run("audit", partition, "--max-mb-per-s", "1")
    seconds = float(ran.out.split(" s\n")[0].rpartition(" in ")[2])
    assert seconds >= len(data) / 1e6 - 0.01


def test_a_size_field_that_lies_costs_only_its_batch(run: Run, tmp_path: Path) -> None:
    data = bytearray(segment(4))
    struct.pack_into(">i", data, len(data) // 4 + 8, 2**31 - 1)
    partition = write_partition(tmp_path / "orders-0", {0: bytes(data)})
    summary = json.loads(run("audit", partition, "--format", "json").out)["summary"]
    assert summary["batches"] >= 3


def test_a_sound_directory_of_a_thousand_partitions_fits_a_screen(run: Run, tmp_path: Path) -> None:
    for number in range(1000):
        write_partition(tmp_path / f"topic-{number // 10:03}-{number % 10}", {0: segment(1)})
    ran = run("audit", tmp_path)
    assert ran.status == 0
    assert ran.out.startswith("SOUND: no error and no warning\n")
    lines = ran.out.splitlines()
    assert sum(max(1, -(-len(line) // 80)) for line in lines) <= 24
    assert lines[-1].startswith("and ")
    assert lines[-1].endswith(" more topics")


def test_what_consumers_do_not_get_lawfully_is_a_sentence(run: Run, demo: Path) -> None:
    out = " ".join(run("audit", demo, "--all").out.split())
    assert (
        "Offsets that consumers rightly do not receive: compacted 210 in customers;"
        " control records 25 in 3 topics; aborted (read_committed only) 49 in 2 topics."
    ) in out
    assert "Transactions: 15 committed, 8 aborted, 2 open." in out


def test_damage_is_told_with_the_offset_where_consumers_go_on_and_nothing_gives_records_up(
    run: Run, log_directory: Path
) -> None:
    damage(log_directory / "orders-1" / segment_name(12))
    out = run("audit", log_directory).out
    assert "next good offset 18" in out
    text = " ".join(out.split())
    assert "Without one, consumers go on at offset 18: see `ottla explain crc-mismatch`" in text
    assert "Do not delete .kafka_cleanshutdown: without it the start cuts the log off" in text
    assert "kafka-delete-records.sh" not in out
    assert "--to-offset" not in out


def test_deeds_stand_in_the_report_with_their_price_and_the_best_first(
    run: Run, log_directory: Path
) -> None:
    for name in ("orders-1", "payments-0"):
        with (log_directory / name / segment_name(12)).open("ab") as file:
            file.write(bytes(100))
    damage(log_directory / "orders-1" / segment_name(12))
    text = " ".join(run("audit", log_directory).out.split())
    save, best, nothing = (
        text.index(f"$ ottla read {log_directory}/orders-1 --format jsonl > orders-1.jsonl"),
        text.index(
            f"1. Delete orders-1/{segment_name(12, 'index')} and"
            f" payments-0/{segment_name(12, 'index')}: keeps offsets 0 to 17; cuts off 3 readable"
            " records of 21 in orders-1."
        ),
        text.index("Do nothing: orders-1 and payments-0 keep the broker from starting."),
    )
    assert save < best < nothing


def test_where_other_copies_have_the_records_nothing_that_deletes_is_offered(
    run: Run, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        write_log_directory(tmp_path / name)
    (tmp_path / "b" / ".kafka_cleanshutdown").unlink()
    (tmp_path / "b" / "recovery-point-offset-checkpoint").unlink()
    damage(tmp_path / "b" / "orders-1" / segment_name(0))
    named = [f"--replica={name}={tmp_path / name}" for name in ("a", "b", "c")]
    text = " ".join(run("audit", *named).out.split())
    assert "Next start: cuts off records: b/orders-1" in text
    assert "orders-1: a and c have offsets 3 to 5." in text
    assert "Delete" not in text


def test_a_configuration_makes_a_gap_lawful(run: Run, tmp_path: Path) -> None:
    whole = segment(3)
    size = len(whole) // 3
    write_partition(tmp_path / "orders-0", {0: whole[:size] + whole[2 * size :]})
    unexplained = run("audit", tmp_path)
    assert unexplained.status == 1
    assert "(unexplained: " in " ".join(unexplained.out.split())
    lawful = run("audit", tmp_path, "--topic-config", "ord*:cleanup.policy=compact,delete")
    assert lawful.status == 0
    assert "compacted 3 in orders" in lawful.out
    wrong = run("audit", tmp_path, "--topic-config", "cleanup.policy=compact")
    assert wrong.status == 64
    assert "orders:cleanup.policy=compact" in wrong.err


def test_named_replicas_are_compared_and_the_good_one_is_named(run: Run, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write_log_directory(tmp_path / name)
    damage(tmp_path / "b" / "orders-1" / segment_name(12))
    named = [f"--replica={name}={tmp_path / name}" for name in ("a", "b", "c")]
    ran = run("audit", *named, "--format", "json")
    assert ran.status == 2
    (difference,) = json.loads(ran.out)["differences"]
    assert (difference["good_replicas"], difference["bad_replicas"]) == (["a", "c"], ["b"])


def test_a_replica_without_a_name_is_wrong_usage(run: Run, tmp_path: Path) -> None:
    ran = run("audit", "--replica", str(tmp_path))
    assert ran.status == 64
    assert "is not NAME=PATH" in ran.err


def test_the_text_gives_the_command_that_saves_what_one_copy_alone_has(
    run: Run, tmp_path: Path
) -> None:
    paths = [write_log_directory(tmp_path / name) for name in ("a", "b", "c")]
    for path in paths[:2]:
        for file in (path / "orders-1").glob(f"{12:020}.*"):
            file.unlink()
    ran = run("audit", *paths)
    assert ran.status == 2
    assert "error checkpoint-mismatch (2): The log ends before offsets" in ran.out
    text = " ".join(ran.out.split())
    leads = "Before the broker of a/orders-1 starts, see that c leads the partition"
    assert f"Do first: c has offsets 12 to 23. {leads}" in text
    assert "Lost: 24 records: orders-1 on a and orders-1 on b; c has them." in ran.out
    assert "What to do: Nothing while the broker is down or catching up." in ran.out
    assert f"$ ottla read {paths[2]}/orders-1 --from 12 --to 24 --format jsonl" in ran.out
