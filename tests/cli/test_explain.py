"""`ottla explain`: the catalogue at a terminal."""

import subprocess
import sys

import pytest
from ottla.audit.catalogue.explain import catalogue, causes
from support.commands import Run


@pytest.mark.parametrize("name", list(catalogue()))
def test_every_finding_is_explained_within_the_width(run: Run, name: str) -> None:
    ran = run("explain", name)
    assert ran.status == 0
    assert ran.out.startswith(f"{name} (")
    text = " ".join(ran.out.split())
    row = catalogue()[name]
    for part in (row.meaning, f"Causes: {row.causes}", f"What to do: {row.action}"):
        assert part in text
    assert max(len(line) for line in ran.out.splitlines()) <= 80


def test_without_a_name_all_findings_are_listed(run: Run) -> None:
    ran = run("explain")
    assert ran.status == 0
    entries = [line for line in ran.out.splitlines() if line.startswith("  ") and line[2] != " "]
    listed = [line.split()[0] for line in entries]
    assert sorted(listed) == sorted([*catalogue(), *causes()])


@pytest.mark.parametrize("name", list(causes()))
def test_every_cause_of_a_gap_is_explained_within_the_width(run: Run, name: str) -> None:
    ran = run("explain", name)
    assert ran.status == 0
    assert f"{name} (cause of a gap)" in ran.out
    text = " ".join(ran.out.split())
    row = causes()[name]
    for part in (row.meaning, f"How it happens: {row.causes}", f"In Kafka: {row.kafka}"):
        assert part in text
        assert part.endswith(".") or part.startswith("In Kafka")
    assert max(len(line) for line in ran.out.splitlines()) <= 80


def test_a_name_almost_right_is_answered_with_the_right_one(run: Run) -> None:
    ran = run("explain", "crc-missmatch")
    assert ran.status == 64
    assert "did you mean crc-mismatch" in ran.err


def test_a_name_like_no_other_is_answered_with_where_to_look(run: Run) -> None:
    assert "`ottla explain` lists all names" in run("explain", "xyz").err


@pytest.mark.parametrize("name", ["CRC-MISMATCH", "crc_mismatch", "Crc-Mismatch"])
def test_a_name_in_another_spelling_is_answered_with_the_right_one(run: Run, name: str) -> None:
    ran = run("explain", name)
    assert (ran.status, ran.out) == (64, "")
    assert "did you mean crc-mismatch" in ran.err


def test_two_lists_at_once_are_wrong_usage(run: Run) -> None:
    ran = run("explain", "--profiles", "--releases")
    assert (ran.status, ran.out) == (64, "")
    assert "give one of them" in ran.err


@pytest.mark.parametrize("name", ["", "--", "-", "a" * 100_000, "\x1b[31mred", "crc-mismatch\n"])
def test_a_name_that_is_none_is_wrong_usage_and_does_nothing_to_the_terminal(
    run: Run, name: str
) -> None:
    ran = run("explain", "--", name)
    assert (ran.status, ran.out) == (64, "")
    assert "\x1b" not in ran.err


@pytest.mark.parametrize("columns", ["1", "20"])
def test_on_a_narrow_terminal_the_list_stays_readable(
    columns: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = len(run("explain").out.splitlines())
    monkeypatch.setenv("COLUMNS", columns)
    assert len(run("explain").out.splitlines()) < 2 * wide


def test_an_explanation_loads_no_more_than_the_catalogue_it_is_from() -> None:
    def loaded(*arguments: str) -> set[str]:
        program = (
            "import sys\nfrom ottla.cli import run\n"
            f"run({arguments!r})\nprint(*sys.modules, file=sys.stderr)"
        )
        command = [sys.executable, "-c", program]
        return set(subprocess.run(command, capture_output=True, check=True).stderr.decode().split())

    explained = loaded("explain", "crc-mismatch")
    own = {name for name in explained - loaded("--version") if name.startswith("ottla.")}
    assert own == {
        "ottla.audit.catalogue",
        "ottla.audit.catalogue.explain",
        "ottla.cli.explain",
        "ottla.cli.options",
        "ottla.logs",
        "ottla.logs.names",
        "ottla.logs.releases",
        "ottla.severity",
    }
    assert explained.isdisjoint({"numpy", "rich", "pyspark", "obstore", "pyarrow", "asyncio"})
