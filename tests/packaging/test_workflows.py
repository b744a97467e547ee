"""The release workflow, which no machine of ours runs: a linter that knows GitHub reads it."""

import subprocess
from pathlib import Path

import pytest
import yaml
from support.programs import required

from release.wheels import WHEELS

ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"


@pytest.mark.slow
def test_the_linter_of_workflows_has_nothing_to_say(root: Path) -> None:
    command = [required("go"), "run", ACTIONLINT, ".github/workflows/release.yml"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_nothing_is_published_that_a_job_has_not_tried(root: Path) -> None:
    workflow = yaml.safe_load((root / ".github/workflows/release.yml").read_text())
    jobs = workflow["jobs"]
    assert set(jobs["publish"].pop("needs")) == set(jobs) - {"publish", "pages"}
    assert jobs["pages"]["needs"] == ["site", "publish"]
    for name in ("images", "others", "free-threaded", "source"):
        assert "release/trial.py examples/data" in str(jobs[name]["steps"]), name
    assert {"run": "make wheels"} in jobs["linux"]["steps"]


def test_the_workflow_has_rust_for_every_wheel_of_linux(root: Path) -> None:
    text = (root / ".github/workflows/release.yml").read_text()
    assert [wheel.target for wheel in WHEELS[1:] if wheel.target not in text] == []
