"""Starting up: what a user waits for before anything is read."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benches.whole import OTTLA, write_log_directory

pytestmark = [pytest.mark.bench, pytest.mark.benchmark(group="startup")]


@pytest.mark.parametrize("modules", ["numpy", "numpy, ottla"])
def test_the_package_is_imported(benchmark: Any, modules: str) -> None:
    command = [sys.executable, "-c", f"import {modules}"]
    assert benchmark(lambda: subprocess.run(command, check=False).returncode) == 0


def test_a_small_log_is_audited_by_the_command(benchmark: Any, tmp_path: Path) -> None:
    write_log_directory(tmp_path, 10_000, partitions=1)
    command = [str(OTTLA), "audit", str(tmp_path)]

    def audit() -> int:
        return subprocess.run(command, capture_output=True, check=False).returncode

    assert benchmark(audit) == 0
