"""Running the program: in this process where its answer counts, in its own where its life does."""

import os
import subprocess
import sys

import pytest
from ottla import cli
from support.commands import Ran, Run

PROGRAM = "from ottla.cli import main; main()"


def _text(argument: object) -> str:
    return os.fsdecode(argument) if isinstance(argument, bytes | os.PathLike) else str(argument)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs `ottla` with arguments, on a screen of 24 lines of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")

    def run_here(*arguments: object) -> Ran:
        status = cli.run([_text(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run_here


@pytest.fixture
def spawn() -> Run:
    """Return a function that runs `ottla` as a process of its own, which may not take long."""

    def run_there(*arguments: object) -> Ran:
        command = [sys.executable, "-c", PROGRAM, *(_text(argument) for argument in arguments)]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run_there
