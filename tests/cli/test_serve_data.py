"""`ottla serve --data`: what is said of a directory that cannot be used."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SERVE = "from ottla_command import main; main()"
COMMAND = (sys.executable, "-c", SERVE, "serve", "--port", "0")


class Ended(NamedTuple):
    status: int
    out: str
    err: str


def ended(*options: str) -> Ended:
    """What a server says that does not begin to serve."""
    done = subprocess.run(
        [*COMMAND, *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def refused(path: Path, said: str, *options: str) -> None:
    found = ended("--data", str(path), *options)
    assert (found.status, found.out) == (3, "")
    assert said in found.err
    assert found.err.count("\n") == 1
    assert found.err.startswith("ottla: ")


@contextlib.contextmanager
def served(path: Path, *options: str) -> Iterator[None]:
    """A server that is ready, until the end of the block."""
    with subprocess.Popen(
        [*COMMAND, "--data", str(path), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("ready: ")
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            _, complaints = process.communicate(timeout=60)
        assert (process.returncode, complaints) == (0, "")


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """A directory that a broker has used."""
    path = tmp_path / "data"
    with served(path, "--set", "broker.id=7"):
        pass
    return path


def test_a_directory_that_cannot_be_used_is_told_in_a_line_with_status_3(
    tmp_path: Path, used: Path
) -> None:
    refused(used, "of node 7, not of node 8", "--set", "broker.id=8")
    meta = used / "meta.properties"
    ours = meta.read_text()
    meta.write_text(ours.replace("version=1", "version=0"))
    refused(used, "meta.properties")
    meta.write_text(ours)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("")
    refused(tmp_path / "other", "is no log directory")
    refused(meta, "is a file")
    refused(tmp_path / "a" / "b", "there is no directory")
    with served(used):
        refused(used, "a broker of another process has locked it")


def test_log_dirs_of_a_file_of_settings_mean_the_same(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    (tmp_path / "a").write_text("")
    file.write_text(f"log.dirs={tmp_path / 'a'}\n")
    found = ended("--config", str(file))
    assert (found.status, found.err) == (
        3,
        f"ottla: {tmp_path / 'a'} is a file, and should be a directory for logs\n",
    )
    file.write_text("log.dirs=/a,/b\n")
    found = ended("--config", str(file))
    assert found.status == 64
    assert "log.dirs names 2 directories (/a, /b): one is supported" in found.err


def test_data_of_the_command_line_counts_before_log_dirs_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={tmp_path / 'of-the-file'}\n")
    with served(tmp_path / "given", "--config", str(file)):
        assert (tmp_path / "given" / "meta.properties").exists()
    assert not (tmp_path / "of-the-file").exists()
