"""Directories changed at random: every report of them is a report, whatever they hold.

`pytest tests/cli/test_mutated_directories.py -m slow` tries a thousand; a failure names its seed.
"""

import json
import random
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands import Run
from support.mutated_directories import write_mutated_directory

# Findings of one kind are bounded, and each takes a few lines.
BYTES_OF_A_REPORT = 1 << 20

AUDITS = (("--format", "text"), ("--format", "text", "--all"), ("--format", "json"))


def contents(directory: Path) -> Iterator[tuple[str, object]]:
    """Everything in a directory, its links and pipes not followed."""
    for path in sorted(directory.rglob("*")):
        mode = path.lstat().st_mode
        data = path.read_bytes() if stat.S_ISREG(mode) else path.is_symlink() and path.readlink()
        yield str(path), (stat.S_IFMT(mode), data)


def check_reports(directory: Path, run: Run) -> None:
    before = list(contents(directory))
    statuses = []
    for arguments in AUDITS:
        ran = run("audit", directory, *arguments)
        statuses.append(ran.status)
        assert ran.status in (0, 1, 2, 3), ran.err
        for text in (ran.out, ran.err):
            obeyed = [c for c in text if not c.isprintable() and c != "\n"]
            assert not obeyed, text
            assert len(text) < BYTES_OF_A_REPORT
        if "json" in arguments:
            json.loads(ran.out)
    assert len(set(statuses)) == 1, statuses
    # Nothing is written where an audit reads.
    assert list(contents(directory)) == before


@pytest.mark.parametrize("seed", range(8))
def test_a_mutated_directory_gets_a_report(seed: int, tmp_path: Path, run: Run) -> None:
    check_reports(write_mutated_directory(tmp_path / "kafka", random.Random(seed)), run)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 2000))
def test_each_of_a_thousand_mutated_directories_gets_a_report(
    seed: int, tmp_path: Path, run: Run
) -> None:
    check_reports(write_mutated_directory(tmp_path / "kafka", random.Random(seed)), run)
