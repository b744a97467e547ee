"""Every finding of the catalogue has a small broken log that yields it, and a clean twin.

A case is a module named for its finding: `offset_repeat.py` is the case of `offset-repeat`.
"""

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path

import ottla
import pytest
from ottla.audit.catalogue.explain import catalogue
from support.finding_case import Case, Found

NAMES = sorted(catalogue())


def case_of(name: str) -> Case:
    case = importlib.import_module(f"findings.{name.replace('-', '_')}").CASE
    assert isinstance(case, Case)
    return case


def found_in(directory: Path, meanwhile: Callable[[Path], None] | None = None) -> Iterator[Found]:
    def progress(*_: int) -> None:
        if meanwhile is not None:
            meanwhile(directory)

    for row in ottla.audit(directory, threads=1, progress=progress).findings:
        yield Found(
            row["name"],
            row["severity"],
            row["file"],
            topic_partition=None if row["topic"] is None else f"{row['topic']}-{row['partition']}",
            position=row["position"],
            offsets=(row["first_offset"], row["last_offset"]),
        )


def test_every_finding_has_a_case_and_every_case_a_finding() -> None:
    modules = {path.stem for path in Path(__file__).parent.glob("*.py")} - {Path(__file__).stem}
    assert sorted(modules) == sorted(name.replace("-", "_") for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_log_yields_its_finding_and_no_other_than_listed(
    name: str, tmp_path: Path
) -> None:
    case = case_of(name)
    assert name in {found.name for found in case.found}
    case.broken(tmp_path)
    assert list(found_in(tmp_path, case.meanwhile)) == list(case.found)


@pytest.mark.parametrize("name", NAMES)
def test_the_clean_twin_of_a_broken_log_yields_no_finding(name: str, tmp_path: Path) -> None:
    case_of(name).clean(tmp_path)
    assert list(found_in(tmp_path)) == []
