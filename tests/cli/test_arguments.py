"""Whatever stands on the command line: an answer or one clear line, and the right exit status."""

import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from ottla import cli
from support.commands import Run
from support.logs import segment_name, write_log_directory

ODD = [
    "",
    "9223372036854775808",
    "18446744073709551616",
    "9" * 5000,
    "nan",
    "inf",
    "=",
    "a=",
    "a:=",
    "a:b=c",
    "orders:max.message.bytes=99999999999999999999",
    "orders:cleanup.policy=\udcff",
    "max.message.bytes=9999999999999999999999",
    "[",
    "\udcff",
    "x" * 5000,
    "file://elsewhere/x",
    "s3://",
    "a\0b",
]
"""Texts that one kind of option or another takes badly."""


def valid(verb: str, log_directory: Path, tmp_path: Path) -> list[str]:
    """A command line of the verb that succeeds."""
    partition = str(log_directory / "orders-0")
    return {
        "audit": ["audit", str(log_directory)],
        "completion": ["completion", "bash"],
        "explain": ["explain"],
        "help": ["help"],
        "inspect": ["inspect", f"{partition}/{segment_name(0)}"],
        "read": ["read", partition],
        "rebuild": ["rebuild", partition, "--output", str(tmp_path / "rebuilt")],
        "serve": ["serve", "--port", "0"],
        "validate": ["validate", f"{partition}/{segment_name(0)}", "--now-ms", "1"],
        "version": ["version"],
    }[verb]


def takes_value(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Argument) or not getattr(parameter, "is_flag", False)


CASES = [
    (verb, parameter.opts[0] if isinstance(parameter, click.Option) else None)
    for verb in sorted(cli.VERBS)
    for parameter in cli.command_of(verb).params
    # A session of Spark takes seconds to start.
    if takes_value(parameter) and parameter.name not in ("engine", "master")
]


@pytest.mark.parametrize(("verb", "option"), CASES)
def test_no_argument_leads_to_a_traceback_or_to_a_status_of_findings(
    run: Run, tmp_path: Path, verb: str, option: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    monkeypatch.chdir(log_directory)
    # A broker that is ready ends at once.
    monkeypatch.setattr(signal, "sigtimedwait", lambda *_: signal.SIGTERM, raising=False)
    monkeypatch.setattr(signal, "sigwait", lambda _: signal.SIGTERM)
    for number, text in enumerate(ODD):
        line = valid(verb, log_directory, tmp_path / str(number))
        line += [text] if option is None else [option, text]
        ran = run(*line)
        assert "internal error" not in ran.err, (line, ran.err)
        # Nothing is wrong with the log: 2 of `validate` is its verdict on another configuration.
        allowed = (0, 2, 3, 64) if verb == "validate" else (0, 3, 64)
        assert ran.status in allowed, (line, ran)


@pytest.mark.parametrize(("verb", "option"), CASES)
def test_an_empty_argument_is_a_usage_error(
    run: Run, tmp_path: Path, verb: str, option: str | None
) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    line = valid(verb, log_directory, tmp_path)
    ran = run(*([*line[:1], "", *line[2:]] if option is None else [*line, option, ""]))
    assert (ran.status, ran.out) == (64, "")
    assert "it is empty" in ran.err


def test_an_error_of_ours_is_one_line_and_no_status_of_findings(
    run: Run, monkeypatch: pytest.MonkeyPatch, log_directory: Path
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("of nothing")

    monkeypatch.setattr("ottla.cli.audit.audit_sources", fail)
    ran = run("audit", log_directory)
    assert ran.status == 3
    assert ran.err == (
        "ottla: internal error: ZeroDivisionError: of nothing; please report it"
        " (python -X dev shows where)\n"
    )


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    return write_log_directory(tmp_path / "kafka", ["orders-0"])


def test_ctrl_c_while_the_program_is_imported_is_one_line() -> None:
    # The first import of the package is interrupted, as by a user who has changed his mind.
    program = (
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'ottla':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import ottla_command\n"
        "ottla_command.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 128 + signal.SIGINT
    assert done.stderr == b"ottla: interrupted\n"
