"""Tests that need the corpora beside the repository, where there are none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

NEEDY = "tests/accept/test_accept.py::test_the_demo_has_no_finding_of_an_error"


def outcome(root: Path, corpora: Path, *, ci: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CI": ci, "OTTLA_SHARED": str(corpora)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rsfE", "-m", "", "-p", "no:cacheprovider", NEEDY],
        cwd=root,
        env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_stranger_is_told_what_is_left_out(root: Path, tmp_path: Path) -> None:
    done = outcome(root, tmp_path / "none", ci="")
    assert done.returncode == 0, done.stdout
    assert "1 skipped" in done.stdout
    assert f"needs the corpora in {tmp_path / 'none'}" in done.stdout


@pytest.mark.parametrize("ci", ["1", "true"])
def test_continuous_integration_fails_without_the_corpora(
    ci: str, root: Path, tmp_path: Path
) -> None:
    done = outcome(root, tmp_path / "none", ci=ci)
    assert done.returncode == 1, done.stdout
    assert "1 failed" in done.stdout or "1 error" in done.stdout
    assert f"needs the corpora in {tmp_path / 'none'}" in done.stdout
