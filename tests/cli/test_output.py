"""Results are written where no broker looks for logs."""

import subprocess
import sys
from pathlib import Path

import ottla
import pytest
from support.commands import Run
from support.logs import files_under, segment_name, write_log_directory

# A disk that takes no file of more than 2,000 bytes, as a full one takes none.
SMALL_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))
from ottla.cli import main
main()
"""


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    return write_log_directory(tmp_path / "kafka", ["orders-0"])


@pytest.mark.parametrize("inside", ["out", "orders-0/out", "new/out", "../link/out"])
@pytest.mark.parametrize("verb", ["audit", "rebuild"])
def test_an_output_inside_what_is_read_is_refused_before_anything_is_read(
    run: Run, log_directory: Path, verb: str, inside: str
) -> None:
    (log_directory.parent / "link").symlink_to(log_directory)
    before = dict(files_under(log_directory))
    ran = run(verb, log_directory, "--output", log_directory / inside)
    assert (ran.status, ran.out) == (64, "")
    assert f"is inside {log_directory}, which is read and never modified" in ran.err
    assert dict(files_under(log_directory)) == before


def test_an_output_beside_a_segment_of_a_partition_is_refused(
    run: Run, log_directory: Path
) -> None:
    partition = log_directory / "orders-0"
    ran = run("audit", partition / segment_name(0), "--output", partition / "out")
    assert ran.status == 64
    assert not (partition / "out").exists()


@pytest.mark.parametrize("inside", ["out", "new/out", "payments-0/out"])
@pytest.mark.parametrize("verb", ["audit", "rebuild"])
def test_an_output_in_the_log_directory_above_a_partition_is_refused(
    run: Run, log_directory: Path, verb: str, inside: str
) -> None:
    before = dict(files_under(log_directory))
    ran = run(verb, log_directory / "orders-0", "--output", log_directory / inside)
    assert (ran.status, ran.out) == (64, "")
    assert f"is inside {log_directory}, the log directory of a broker" in ran.err
    assert dict(files_under(log_directory)) == before


def test_an_output_beside_a_copy_of_a_partition_is_written(
    run: Run, log_directory: Path, tmp_path: Path
) -> None:
    partition = (log_directory / "orders-0").rename(tmp_path / "orders-0")
    assert run("rebuild", partition, "--output", tmp_path / "out").status == 0
    assert (tmp_path / "out").is_dir()


def test_an_output_beside_a_captured_file_is_written(run: Run, tmp_path: Path) -> None:
    data = (write_log_directory(tmp_path / "kafka") / "orders-0" / segment_name(0)).read_bytes()
    (tmp_path / "captured.bin").write_bytes(data)
    assert run("audit", tmp_path / "captured.bin", "--output", tmp_path / "out").status == 0


def test_a_result_is_not_saved_among_the_logs_it_is_about(log_directory: Path) -> None:
    result = ottla.audit(log_directory)
    with pytest.raises(ValueError, match="is read and never modified"):
        result.save(log_directory / "out")
    assert not (log_directory / "out").exists()


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_of_an_output_that_does_not_fit_on_the_disk_nothing_is_left(
    tmp_path: Path, form: str
) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    target = tmp_path / "results" / "out"
    wanted = ("--batches", "--records", "--table-format", form, "--output", target)
    command: list[str | Path] = [sys.executable, "-c", SMALL_DISK, "audit", log_directory, *wanted]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 3
    assert f"{target}: file too large".lower() in ran.stderr.lower()
    assert list(target.parent.iterdir()) == []
