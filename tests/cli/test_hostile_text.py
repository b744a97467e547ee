"""Text of strangers on the terminal: each field that reaches it holds what a terminal obeys."""

import json
import os
import shutil
import struct
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import ottla
import pytest
from ottla.text import json_text, visible
from support.commands import Ran, Run
from support.logs import TIMESTAMP, segment, segment_name, write_log_directory, write_partition

# Window title, clear screen, a carriage return over the line, a bell, C1's CSI, reversed and
# isolated text, line and paragraph separators, next line, marks of direction, a tag.
HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\rSOUND\n\x9b31m\u202e\u2066\u2028\u2029\x85\u200f\u061c\ufeff"
    "\U000e0041"
)
MARK = "hostile"
NAME = f"{MARK}{HOSTILE}"
# In the name of a file or a directory.
PATH_NAME = NAME.replace("/", "")

CONSUMER_OFFSETS = "__consumer_offsets-0"
TRANSACTION_STATE = "__transaction_state-0"


def short_text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded


def group_offset(group: str, topic: str) -> tuple[bytes, bytes]:
    """The record of a committed offset, with metadata of the client."""
    key = struct.pack(">h", 1) + short_text(group) + short_text(topic) + struct.pack(">i", 0)
    value = struct.pack(">hqi", 3, 99, 7) + short_text(NAME) + struct.pack(">q", TIMESTAMP)
    return key, value


def group_members(group: str) -> tuple[bytes, bytes]:
    """The record of a group's generation: protocol, leader, member, client id, host."""
    key = struct.pack(">h", 2) + short_text(group)
    member = short_text(NAME) * 4 + struct.pack(">ii", 1000, 1000)
    member += struct.pack(">i", 3) + b"abc" + struct.pack(">i", 3) + b"abc"
    value = struct.pack(">h", 3) + short_text(NAME) + struct.pack(">i", 1)
    value += short_text(NAME) * 2 + struct.pack(">q", TIMESTAMP) + struct.pack(">i", 1) + member
    return key, value


def transactional_id(name: str, producer: int) -> tuple[bytes, bytes]:
    """The record of a transaction under way over a topic."""
    key = struct.pack(">h", 0) + short_text(name)
    value = struct.pack(">hqhib", 0, producer, 0, 60_000, 1)
    value += struct.pack(">i", 1) + short_text(NAME) + struct.pack(">ii", 1, 0)
    return key, value + struct.pack(">qq", TIMESTAMP, TIMESTAMP)


def records(*pairs: tuple[bytes | None, bytes | None]) -> bytes:
    made = [ottla.NewRecord(key=key, value=value, timestamp=TIMESTAMP) for key, value in pairs]
    return ottla.build_batch(made, partition_leader_epoch=0)


def of_a_producer() -> bytes:
    """An open transaction whose records are hostile in every part."""
    text = NAME.encode()
    return ottla.build_batch(
        [ottla.NewRecord(key=text, value=text, timestamp=TIMESTAMP, headers=[(NAME, text)])],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
        partition_leader_epoch=0,
    )


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """A log directory with hostile names, checkpoints, side files and records."""
    directory = write_log_directory(tmp_path / "kafka", ["orders-0", "damaged-0"])
    write_partition(directory / "records-0", {0: of_a_producer()})
    internal = [group_offset(NAME, "orders"), group_members(NAME), group_offset("group", NAME)]
    write_partition(directory / CONSUMER_OFFSETS, {0: records(*internal)})
    write_partition(directory / TRANSACTION_STATE, {0: records(transactional_id(NAME, 7))})
    write_partition(directory / f"{PATH_NAME}-0", {0: segment(2) + b"damage" * 20})
    (directory / "orders-0" / PATH_NAME).write_bytes(b"unknown")
    (directory / "orders-0" / f"{PATH_NAME}.log").write_bytes(b"unknown")
    (directory / "orders-0" / f"{PATH_NAME}.snapshot").write_bytes(b"unknown")
    (directory / PATH_NAME).write_bytes(b"unknown")
    (directory / f"{PATH_NAME}-directory").mkdir()
    (directory / f"{PATH_NAME}-directory" / segment_name(0)).write_bytes(b"damage")
    damaged = directory / "damaged-0"
    (damaged / segment_name(12)).write_bytes(b"noise" * 100)
    (damaged / "leader-epoch-checkpoint").write_text(f"0\n1\n{NAME} 0\n", encoding="utf-8")
    (damaged / "partition.metadata").write_text(
        f"version: 0\ntopic_id: {NAME}", encoding="utf-8", newline=""
    )
    (directory / "meta.properties").write_text(
        f"version=1\ncluster.id={NAME}\nnode.id={NAME}\n", encoding="utf-8", newline=""
    )
    one_line = NAME.replace("\n", "").replace("\r", "").replace("\x85", "")
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        entries = f"orders 0 24\n{one_line.replace(' ', '')} 0 99\n"
        (directory / name).write_text(f"0\n2\n{entries}", encoding="utf-8", newline="")
    (directory / "log-start-offset-checkpoint").write_text(
        f"0\n1\n{NAME} 0 {NAME}\n", encoding="utf-8", newline=""
    )
    return directory


def obeyed(text: str) -> Sequence[str]:
    """The characters that a terminal or a viewer acts on, line ends aside."""
    return [
        f"U+{ord(c):04X} {unicodedata.name(c, '?')} in {text[max(0, at - 30) : at + 10]!r}"
        for at, c in enumerate(text)
        if not c.isprintable() and c != "\n"
    ]


def assert_harmless(ran: Ran) -> None:
    assert obeyed(ran.out) == []
    assert obeyed(ran.err) == []
    # Nor does a line begin with what a stranger wrote.
    assert not {"SOUND", "SOUND\r"}.intersection((ran.out + ran.err).split("\n"))


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_report_shows_what_strangers_wrote_and_obeys_none_of_it(
    form: str, run: Run, broker: Path
) -> None:
    ran = run("audit", broker, "--format", form)
    assert ran.status in (1, 2, 3)
    assert MARK in ran.out
    assert_harmless(ran)


@pytest.mark.parametrize("width", ["40", "80", "250"])
def test_a_report_is_harmless_at_every_width(
    width: str, run: Run, broker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert_harmless(run("audit", broker))


def test_a_report_on_copies_is_harmless(run: Run, broker: Path, tmp_path: Path) -> None:
    other = tmp_path / f"other{PATH_NAME}"
    shutil.copytree(broker, other)
    ran = run("audit", "--replica", f"one={broker}", "--replica", f"{NAME}={other}")
    assert MARK in ran.out
    assert_harmless(ran)


@pytest.mark.parametrize("form", ["text", "jsonl"])
def test_records_are_printed_with_keys_values_and_headers_that_do_nothing(
    form: str, run: Run, broker: Path
) -> None:
    for command in (
        ("read", broker / "records-0", "--format", form),
        ("inspect", broker / "records-0" / segment_name(0), "--records", "--format", form),
        ("read", broker / CONSUMER_OFFSETS, "--format", form),
        ("read", broker / CONSUMER_OFFSETS, "--decode", "--format", form),
        ("read", broker / TRANSACTION_STATE, "--decode", "--format", form),
    ):
        ran = run(*command)
        assert ran.status == 0, ran
        assert MARK in ran.out, command
        assert_harmless(ran)


@pytest.mark.parametrize("form", ["text", "jsonl"])
def test_other_commands_are_harmless_too(form: str, run: Run, broker: Path, tmp_path: Path) -> None:
    hostile = broker / f"{PATH_NAME}-0"
    for command in (
        ("read", hostile, "--format", form),
        ("inspect", hostile / segment_name(0), "--format", form),
        ("inspect", hostile, "--format", form),
        ("validate", hostile / segment_name(0), "--now-ms", TIMESTAMP, "--format", form),
        ("validate", broker / PATH_NAME, "--now-ms", TIMESTAMP, "--format", form),
        ("rebuild", hostile, "--output", tmp_path / f"rebuilt-{form}"),
    ):
        assert_harmless(run(*command))


def test_errors_quote_what_was_asked_for_and_obey_none_of_it(run: Run, broker: Path) -> None:
    for command in (
        ("audit", broker / f"no{PATH_NAME}"),
        ("audit", broker, "--topic", NAME),
        ("read", broker / f"no{PATH_NAME}"),
        ("inspect", broker / f"no{PATH_NAME}"),
        ("explain", NAME),
        ("validate", broker / f"no{PATH_NAME}", "--now-ms", "0"),
        ("validate", "-", "--now-ms", "0", "--config", NAME),
        ("audit", broker, "--replica", NAME),
        (NAME,),
    ):
        ran = run(*command)
        assert ran.status in (3, 64), command
        assert_harmless(ran)


def test_what_python_shows_of_a_result_is_harmless(broker: Path) -> None:
    result = ottla.audit(broker)
    for finding in result.findings:
        shown = [value for value in finding.values() if isinstance(value, str)]
        assert obeyed("".join((*shown, *finding["commands"]))) == []
    for table in (result.groups, result.transactional_ids, result.transactions, result.recovery):
        for row in table:
            assert obeyed("".join(value for value in row.values() if isinstance(value, str))) == []
    for name in (f"{PATH_NAME}-0", "damaged-0", "orders-0"):
        after = ottla.predict_recovery(os.fsencode(broker / name))
        assert obeyed(f"{after.directory}{after.message}{after.files_deleted}") == []


def test_the_summary_of_saved_tables_is_harmless_and_says_the_same(
    run: Run, broker: Path, tmp_path: Path
) -> None:
    wanted = ("--table-format", "jsonl", "--batches", "--records")
    assert run("audit", broker, "--output", tmp_path / "tables", *wanted).status in (1, 2, 3)
    for file in (tmp_path / "tables").glob("*.json*"):
        text = file.read_text(encoding="utf-8")
        assert obeyed(text) == []
        for line in text.splitlines() if file.suffix == ".jsonl" else [text]:
            json.loads(line)


def test_json_says_what_was_there() -> None:
    assert json.loads(json_text({"name": NAME})) == {"name": NAME}
    assert obeyed(json_text({NAME: [NAME]}, indent=2)) == []


def test_text_that_is_printable_stays_as_it_is() -> None:
    for text in ("orders", "größe", "日本語", "a b", "'\"\\"):
        assert visible(text) == text
        assert json.loads(json_text(text)) == text
