"""The wheel as a stranger gets it: an empty environment, no compiler, no optional package."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.wheels import MISSING, all_wheels, is_for_this_machine

pytestmark = pytest.mark.slow

READS_AND_CHECKS = """
import pathlib, sys
import ottla

data = pathlib.Path(sys.argv[1]).read_bytes()
assert ottla.check_batches(data) == 85, ottla.check_batches(data)
assert [record.offset for record in ottla.read(data)] == list(range(85))
for absent in ("pyarrow", "polars", "duckdb", "pyspark"):
    assert absent not in sys.modules, absent
"""


@pytest.fixture(scope="module")
def wheel() -> Path:
    """Return the wheel for this machine."""
    wheels = [wheel for wheel in all_wheels() if is_for_this_machine(wheel)]
    assert len(wheels) == 1, f"{wheels}: {MISSING}"
    return wheels[0]


@pytest.fixture(scope="module")
def stranger(wheel: Path, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the bin directory of an environment with only the wheel and its dependencies."""
    home = tmp_path_factory.mktemp("stranger")
    subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True)
    bin_directory: Path = home / "venv" / "bin"
    python = str(bin_directory / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
    subprocess.run(
        [*install, "-c", str(root / "constraints.txt"), str(wheel)],
        check=True,
        env=without_compiler(bin_directory),
    )
    return bin_directory


def without_compiler(bin_directory: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    kept.pop("PIP_CONSTRAINT", None)
    return {**kept, "PATH": str(bin_directory), "HOME": str(bin_directory), "LANG": "C.UTF-8"}


def run(stranger: Path, *command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [stranger / str(command[0]), *map(str, command[1:])],
        cwd=cwd,
        env=without_compiler(stranger),
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_wheel_serves_every_python_from_3_10(wheel: Path) -> None:
    assert "-cp310-abi3-" in wheel.name


def test_the_wheel_reads_and_checks_without_pyarrow(
    stranger: Path, demo: Path, tmp_path: Path
) -> None:
    segment = demo / "orders-0" / "00000000000000000000.log"
    result = run(stranger, "python", "-c", READS_AND_CHECKS, segment, cwd=tmp_path)
    assert result.stderr == ""
    assert result.returncode == 0


def test_the_wheel_does_what_a_release_asks_of_it(
    stranger: Path, root: Path, tmp_path: Path
) -> None:
    trial, data = root / "release/trial.py", root / "examples/data"
    result = run(stranger, "python", "-I", trial, data, cwd=tmp_path)
    assert result.returncode == 0, result.stderr


def test_the_wheel_audits_a_log_directory(stranger: Path, demo: Path, tmp_path: Path) -> None:
    result = run(stranger, "ottla", "audit", "--format", "json", demo, cwd=tmp_path)
    assert result.returncode in {1, 2}, result.stderr
    summary = json.loads(result.stdout)["summary"]
    assert summary["exit_code"] == result.returncode
    assert summary["records"] == 1203


def test_the_wheel_holds_types_and_no_tests(stranger: Path, tmp_path: Path) -> None:
    listing = "import ottla, os; print(*os.listdir(os.path.dirname(ottla.__file__)))"
    names = run(stranger, "python", "-c", listing, cwd=tmp_path).stdout.split()
    assert {"py.typed", "_engine.pyi", "_engine.abi3.so"} <= set(names)
    assert not {"tests", "benches"} & set(names)
