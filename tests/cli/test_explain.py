"""`ottla explain`: the catalogue at a terminal."""

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
