"""What two revisions take is printed side by side, and what one of them lacks is left out."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benches import compare_counts


def test_each_count_stands_beside_that_of_the_other_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def append(site: Path | None) -> dict[str, int]:
        return {"append": 2000 if site is None else 2500}

    def json(site: Path | None) -> dict[str, int]:
        if site is not None:
            raise subprocess.CalledProcessError(64, "audit")
        return {"json": 10_000}

    def counted() -> Iterator[compare_counts.Count]:
        yield append
        yield json

    monkeypatch.setattr(compare_counts, "_counted", counted)
    compare_counts.print_table(tmp_path, "6335b00")
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| append | 2,500 | 2,000 | 0.800 |",
        "| json | – | 10,000 | – |",
    ]
