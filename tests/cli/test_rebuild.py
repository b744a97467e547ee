"""`ottla rebuild`: files beside segments, built into a new directory."""

from pathlib import Path

import pytest
from ottla.cli import run
from support.logs import segment, write_log_directory, write_partition


def test_every_partition_gets_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    target = tmp_path / "new"
    assert run(["rebuild", str(log_directory), "--output", str(target), "--topic", "orders"]) == 0
    assert capsys.readouterr().out == "orders-0: 7 files\norders-1: 7 files\n"
    assert len(list((target / "orders-0").iterdir())) == 7


def test_damage_is_told_and_is_the_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(segment(4))
    data[-1] ^= 1
    write_partition(tmp_path / "kafka" / "orders-0", {0: bytes(data)})
    status = run(["rebuild", str(tmp_path / "kafka"), "--output", str(tmp_path / "new")])
    assert status == 2
    assert "ottla: orders-0: up to 00000000000000000000.log, position" in capsys.readouterr().err


def test_what_cannot_be_read_or_written_is_status_3_or_64(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rebuild", str(tmp_path / "nowhere"), "--output", str(tmp_path / "new")]) == 3
    assert "no such file or directory" in capsys.readouterr().err
    log_directory = write_log_directory(tmp_path / "kafka")
    assert run(["rebuild", str(log_directory), "--output", str(log_directory)]) == 64
    assert run(["rebuild", str(log_directory)]) == 64
