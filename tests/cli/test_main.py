"""Exit statuses and wrong usage, the same for every verb."""

import os
import re
import subprocess
import sys
from pathlib import Path

import ottla
import pytest
from ottla import cli
from support.commands import Run
from support.logs import segment, segment_name, write_log_directory, write_partition


def test_the_version_is_the_packages(run: Run) -> None:
    assert run("--version").out == f"ottla {ottla.__version__}\n"


def test_help_names_every_verb(run: Run) -> None:
    ran = run("--help")
    assert ran.status == 0
    assert set(re.findall(r"^  (\w+)  ", ran.out, re.MULTILINE)) == set(cli.VERBS)


@pytest.mark.parametrize("arguments", [["audti", "."], ["help", "audti"]])
def test_the_verb_that_may_be_meant_is_named(run: Run, arguments: list[str]) -> None:
    assert "did you mean audit?" in run(*arguments).err


@pytest.mark.parametrize("verb", sorted(cli.VERBS))
def test_every_verb_has_help(run: Run, verb: str) -> None:
    ran = run(verb, "--help")
    assert ran.status == 0
    assert ran.out.startswith(f"Usage: ottla {verb}")


def test_no_sentence_of_help_is_cut_and_every_status_has_a_line(run: Run) -> None:
    assert "..." not in run("--help").out.partition("Commands:")[2]
    for verb in ("audit", "validate", "inspect", "read", "rebuild"):
        statuses = run(verb, "--help").out.partition("Exit status:\n")[2].partition("\n\n")[0]
        assert len(statuses.splitlines()) > 2
        assert all(re.match(r" {4}\d+ +\w", line) for line in statuses.splitlines())


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("audti", "."),
        ("audit",),
        ("audit", "--level", "deep", "."),
        ("audit", "--threads", "0", "."),
        ("audit", "--threads", "many", "."),
        ("audit", "--max-mb-per-s", "0", "."),
        ("audit", "--format", "xml", "."),
        ("audit", "--frobnicate", "."),
        ("audit", "--records", "."),
        ("audit", "--batches", "."),
        ("audit", "--table-format", "jsonl", "."),
        ("inspect",),
        ("inspect", "--offset", "-1", "x"),
        ("explain", "no-such-finding"),
        ("explain", "crc-mismatch", "zero-tail"),
    ],
)
def test_wrong_usage_is_64_with_nothing_on_standard_output(
    run: Run, arguments: tuple[str, ...]
) -> None:
    ran = run(*arguments)
    assert ran.status == 64
    assert ran.out == ""
    assert "Usage: ottla" in ran.err


def test_a_reader_that_stops_reading_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / segment_name(0)
    path.write_bytes(segment(5000, records=1))
    for verb in ("inspect", "inspect --records", "inspect --format jsonl", "audit --format json"):
        line = f'"$PYTHON" -c "from ottla.cli import main; main()" {verb} "$LOG" | head -n 1'
        done = subprocess.run(
            ["bash", "-c", line],
            env={**os.environ, "PYTHON": sys.executable, "LOG": str(path)},
            capture_output=True,
            timeout=60,
            check=True,
        )
        assert done.stderr == b"", verb
        assert done.stdout.count(b"\n") == 1, verb


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_verdict_stands_when_nobody_reads_it(tmp_path: Path, form: str) -> None:
    partition = write_partition(tmp_path / "orders-0", {0: b"\x01" * 1000 + segment(3000)})
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as nowhere:
        done = subprocess.run(
            [
                *(sys.executable, "-c", "from ottla.cli import main; main()"),
                *("audit", "--format", form, partition),
            ],
            stdout=nowhere,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_said_and_is_no_success(demo: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from ottla.cli import main; main()", "audit", demo],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert done.returncode == 3
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_python_runs_it_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ottla", "serve", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: ottla serve [OPTIONS]")


@pytest.mark.parametrize("output", [None, "results"])
def test_ctrl_c_ends_at_once_with_130_and_leaves_nothing(
    tmp_path: Path, output: str | None
) -> None:
    log = write_log_directory(tmp_path / "kafka")
    (log / "orders-0" / segment_name(24)).write_bytes(
        segment(20, base_offset=24, records=1, value_size=1 << 20)
    )
    target = ("--output", str(tmp_path / "out" / output)) if output else ()
    program = "from ottla.cli import main; print('ready', flush=True); main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "audit", log, "--max-mb-per-s", "0.1", *target],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        # By now it sleeps between reads: at this speed it would take minutes.
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.send_signal(2)
        # Far less than these minutes: only what hangs takes as long.
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == b""
    assert err == b"ottla: interrupted\n"
    assert not (tmp_path / "out").exists()
