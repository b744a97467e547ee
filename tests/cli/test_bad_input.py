"""Whatever a path leads to: one clear line, the right exit status, and the rest is audited."""

import ctypes
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands import Ran, Run
from support.logs import batches, segment, segment_name, write_log_directory, write_partition

PROGRAM = "from ottla.cli import main; main()"
CAP_DAC_OVERRIDE = 1
CAP_DAC_READ_SEARCH = 2
PR_CAPBSET_DROP = 24
NEEDED = {"rebuild": ("--output", "built"), "validate": ("--now-ms", "1")}


def unread(ran: Ran) -> list[str]:
    """The lines that say what could not be read, in the order of the JSON form."""
    findings = json.loads(ran.out)["findings"]
    return [row["message"] for row in findings if row["name"] == "unreadable"]


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    return write_log_directory(tmp_path / "kafka", ["orders-0"])


def audited(ran: Ran) -> int:
    """Records read: 24 are those of the sound partition beside the bad input."""
    return int(json.loads(ran.out)["summary"]["records"])


def test_a_missing_path_is_said_and_the_rest_is_audited(run: Run, log_directory: Path) -> None:
    ran = run("audit", "--format", "json", log_directory, log_directory / "nowhere")
    assert ran.status == 3
    assert unread(ran) == ["nowhere: no such file or directory"]
    assert audited(ran) == 24


def test_a_path_below_a_file_leads_nowhere(run: Run, log_directory: Path) -> None:
    path = log_directory / "meta.properties" / "orders-0"
    ran = run("audit", "--format", "json", path)
    assert ran.status == 3
    assert unread(ran) == [f"{path}: not a directory"]


def test_a_file_that_is_no_log_is_said_to_be_none(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Remember the milk.\n" * 20)
    ran = run("audit", "--format", "json", tmp_path / "notes.txt")
    assert ran.status == 3
    assert unread(ran) == ["notes.txt: not a log: no record batch in its 380 bytes"]
    (finding,) = json.loads(ran.out)["findings"]
    assert finding["name"] == "unreadable"


@pytest.mark.parametrize("given", ["notes.txt", "."])
def test_nobody_is_told_to_replace_a_disk_for_a_wrong_path(
    run: Run, tmp_path: Path, given: str
) -> None:
    (tmp_path / "notes.txt").write_text("Remember the milk.\n" * 20)
    ran = run("audit", tmp_path / given)
    assert ran.status == 3
    assert "What to do: Check the path" in ran.out
    assert "disk" not in ran.out
    assert "recovery" not in ran.out


def test_a_file_of_somebody_among_segments_is_listed_as_unknown(
    run: Run, log_directory: Path
) -> None:
    (log_directory / "orders-0" / "notes.txt").write_text("mine")
    ran = run("audit", "--format", "json", log_directory)
    assert ran.status == 0
    (finding,) = json.loads(ran.out)["findings"]
    assert (finding["name"], finding["file"]) == ("unknown-file", "orders-0/notes.txt")


def test_a_segment_of_noise_is_damage_and_no_reason_to_stop(run: Run, log_directory: Path) -> None:
    noise = bytes(index * 7919 % 251 for index in range(5000))
    (log_directory / "orders-0" / segment_name(0)).write_bytes(noise)
    ran = run("audit", "--format", "json", log_directory)
    assert ran.status == 2
    assert audited(ran) == 12


def test_an_empty_directory_holds_nothing_to_audit(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ran = run("audit", tmp_path / "empty")
    assert ran.status == 3
    assert "the directory holds nothing" in ran.out
    assert "What to do: Check the path" in ran.out
    assert "disk" not in ran.out


def test_a_partition_directory_without_a_segment_is_a_warning(
    run: Run, log_directory: Path
) -> None:
    (log_directory / "orders-1").mkdir()
    ran = run("audit", "--format", "json", log_directory)
    assert ran.status == 1
    (finding,) = json.loads(ran.out)["findings"]
    assert (finding["name"], finding["file"]) == ("missing-segment", "orders-1")


def test_a_segment_of_no_bytes_is_sound(run: Run, log_directory: Path) -> None:
    (log_directory / "orders-0" / segment_name(24)).write_bytes(b"")
    for suffix in ("index", "timeindex"):
        (log_directory / "orders-0" / segment_name(24, suffix)).write_bytes(b"")
    ran = run("audit", "--format", "json", log_directory)
    assert ran.status == 0
    assert json.loads(ran.out)["findings"] == []


@pytest.mark.parametrize("name", ["captured.bin", segment_name(0)])
def test_a_file_of_no_bytes_is_not_called_sound(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    ran = run("audit", tmp_path / name)
    assert ran.status == 3
    assert "the file is empty" in ran.out
    assert "SOUND" not in ran.out


def test_a_fifo_is_never_opened(spawn: Run, log_directory: Path) -> None:
    fifo = log_directory / "orders-0" / segment_name(24)
    os.mkfifo(fifo)
    os.mkfifo(log_directory / "orders-0" / "pipe")
    os.mkfifo(log_directory / "pipe")
    (log_directory / "orders-0" / "partition.metadata").unlink()
    os.mkfifo(log_directory / "orders-0" / "partition.metadata")
    ran = spawn("audit", "--format", "json", log_directory, log_directory / "pipe")
    assert ran.status == 3
    assert unread(ran) == [
        "orders-0/00000000000000000024.log: a FIFO, not a file",
        "pipe: a FIFO, not a file or a directory",
    ]
    assert audited(ran) == 24
    assert spawn("inspect", fifo).status == 3


def test_a_socket_is_named_and_the_rest_is_audited(
    run: Run, log_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log_directory)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("agent.sock")  # By its short name: a socket's path is limited.
        ran = run("audit", "--format", "json", ".", "agent.sock")
    assert ran.status == 3
    assert unread(ran) == ["agent.sock: a socket, not a file or a directory"]
    assert audited(ran) == 24


def test_a_broken_link_says_where_it_leads(run: Run, log_directory: Path) -> None:
    (log_directory / "orders-0" / segment_name(24)).symlink_to("moved-away")
    (log_directory / "payments-0").symlink_to("moved-away")
    ran = run("audit", "--format", "json", log_directory, log_directory / "payments-0")
    assert ran.status == 3
    assert unread(ran) == [
        "orders-0/00000000000000000024.log: broken link to moved-away",
        "payments-0: broken link to moved-away",
    ]
    assert audited(ran) == 24


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_name_that_is_no_utf8_is_audited_and_shown_escaped(
    log_directory: Path, encoding: str
) -> None:
    directory = write_partition(log_directory / os.fsdecode(b"caf\xe9-0"), {0: segment(4)[:200]})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "audit", directory],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"caf\\xe9-0/00000000000000000000.log" in done.stdout


def without_override() -> None:
    """Takes from root, in the process to be started, the right to pass over permissions."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "prctl")


@pytest.fixture
def forbidden(log_directory: Path) -> Iterator[Path]:
    """A log directory with a partition and a segment that may not be read."""
    write_partition(log_directory / "orders-1", {0: segment(1)})
    write_partition(log_directory / "orders-2", {0: segment(1), 3: segment(1, base_offset=3)})
    (log_directory / "orders-1").chmod(0)
    (log_directory / "orders-2" / segment_name(3)).chmod(0)
    yield log_directory
    (log_directory / "orders-1").chmod(0o700)


def test_what_may_not_be_read_is_said_and_the_rest_is_audited(forbidden: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "audit", "--format", "json", forbidden],
        preexec_fn=without_override,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (3, b"")
    ran = Ran(done.returncode, done.stdout.decode(), "")
    assert unread(ran) == [
        "orders-1: permission denied",
        "orders-2/00000000000000000003.log: permission denied",
    ]
    assert audited(ran) == 24 + 3


def test_a_directory_named_like_a_segment_is_no_segment(run: Run, log_directory: Path) -> None:
    (log_directory / "orders-0" / segment_name(24)).mkdir()
    ran = run("audit", "--format", "json", log_directory)
    assert ran.status == 3
    assert unread(ran) == ["orders-0/00000000000000000024.log: a directory, not a file"]
    assert audited(ran) == 24


def test_a_checkpoint_that_cannot_be_parsed_is_a_warning(run: Run, log_directory: Path) -> None:
    (log_directory / "replication-offset-checkpoint").write_bytes(b"\0" * 100)
    ran = run("audit", "--format", "json", log_directory)
    assert ran.status == 1
    (finding,) = json.loads(ran.out)["findings"]
    assert finding["name"] == "checkpoint-mismatch"


@pytest.mark.slow
def test_a_segment_of_three_gigabytes_is_read_to_its_end(run: Run, tmp_path: Path) -> None:
    first, second = batches(2)
    path = tmp_path / "orders-0" / segment_name(0)
    write_partition(path.parent, {0: first})
    behind = 3 << 30
    with path.open("r+b") as file:  # A hole between two batches: the bytes are there to read.
        file.seek(behind)
        file.write(second)
    ran = run("audit", "--format", "json", path.parent)
    assert ran.status == 2
    finding, oversized = json.loads(ran.out)["findings"]
    assert (oversized["name"], oversized["position"]) == ("oversized-segment", (1 << 31) - 1)
    assert (finding["name"], finding["position"]) == ("damaged-range", len(first))
    assert finding["size"] == behind - len(first)
    assert finding["next_good_offset"] == 3
    lines = run("inspect", path, "--offset", "3").out.splitlines()
    assert lines[1].split()[0] == str(behind)


@pytest.mark.slow
def test_a_hundred_thousand_tiny_segments_are_all_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (batch,) = batches(1, records=1)
    for offset in range(100_000):
        path = tmp_path / "orders-0" / segment_name(offset)
        path.write_bytes(offset.to_bytes(8, "big") + batch[8:])
    ran = run("audit", "--format", "json", tmp_path)
    assert ran.status == 0
    result = json.loads(ran.out)
    summary = result["summary"]
    assert (summary["files"], summary["records"]) == (100_000, 100_000)
    # Each lacks its index: so many are findings, the last counts the others.
    assert summary["findings"] == {"error": 0, "warning": 0, "info": 4096 + 1}
    counting = [f["message"] for f in result["findings"] if f["message"].startswith("and ")]
    assert counting == ["and 95,904 more of these in this directory"]


@pytest.mark.parametrize("verb", ["audit", "read", "inspect", "rebuild", "validate"])
def test_a_setting_of_a_store_that_is_none_is_wrong_usage_and_not_repeated(
    run: Run, verb: str
) -> None:
    for text in ("topsecret", "=topsecret"):
        ran = run(verb, "s3://bucket/logs", "--storage-option", text, *NEEDED.get(verb, ()))
        assert ran.status == 64
        assert "is not KEY=VALUE, such as region=eu-central-1" in " ".join(ran.err.split())
        assert "topsecret" not in ran.err
    twice = ("--storage-option", "region=a", "--storage-option", "region=b")
    ran = run(verb, "s3://bucket/logs", *twice, *NEEDED.get(verb, ()))
    assert ran.status == 64
    assert "region has two values" in ran.err


def test_a_typo_is_no_reason_to_replace_a_disk(run: Run, tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    for words, what in (
        ([log_directory, "--topic", "ordres"], "Name a topic that is there"),
        ([tmp_path / "kafak"], "Check the path."),
    ):
        text = " ".join(run("audit", *words).out.split())
        assert "did you mean" in text
        assert f"What to do: {what}" in text
        assert "disk" not in text
