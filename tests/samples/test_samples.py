"""Samples of Kafka's own answers and of damaged logs, so that any checkout holds every rule."""

import gzip
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ottla
import pytest
from support import damage, vectors
from support.loader_starts import kept, kept_by_loader, of_loader, of_prediction

SAMPLES = Path(__file__).parent
DAMAGE = SAMPLES / "damage.tar.xz"


def cases_of(kind: str) -> Sequence[Mapping[str, Any]]:
    with gzip.open(SAMPLES / f"{kind}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def names_of_damage() -> list[str]:
    with tarfile.open(DAMAGE) as tar:
        return sorted({name.split("/")[1] for name in tar.getnames() if name.startswith("cases/")})


NAMES = names_of_damage()


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The damaged logs; tests only read them."""
    return damage.unpack(DAMAGE, tmp_path_factory.mktemp("damage"))


@pytest.mark.parametrize("name", ["decide", "read", "history", "wide-decide", "wide-read"])
def test_every_answer_of_the_samples_is_kafkas(name: str) -> None:
    kind = name.removeprefix("wide-")
    assert vectors.run(kind, SAMPLES / f"{name}.jsonl.gz") == (len(cases_of(name)),) * 2


def test_cases_that_differ_by_intent_are_in_the_sample_and_in_the_docs(root: Path) -> None:
    decisions = (root / "docs" / "decisions.md").read_text(encoding="utf-8")
    assert all(name in decisions for name in vectors.DIFFERENCES)
    held = {case["id"] for case in cases_of("wide-decide")}
    for reason in set(vectors.DIFFERENCES.values()):
        ids = {name for name, why in vectors.DIFFERENCES.items() if why == reason}
        assert ids & held, reason


@pytest.mark.parametrize(
    ("kind", "cases", "classes"),
    [
        ("decide", 1000, 132),
        ("read", 500, 212),
        ("history", 200, 10),
        ("wide-decide", 1000, 20),
        ("wide-read", 500, 42),
    ],
)
def test_a_sample_has_every_class_of_its_corpus(kind: str, cases: int, classes: int) -> None:
    held = cases_of(kind)
    assert len(held) >= cases
    assert len({case["class"] for case in held}) == classes


def test_the_sample_of_damage_has_every_injury_and_finding_of_its_corpus(damaged: Path) -> None:
    injuries = [i for name in NAMES for i in damage.truth_of(damaged / "cases" / name)["injuries"]]
    assert len(NAMES) >= 60
    assert len({injury["kind"] for injury in injuries}) == 107
    expected = {e["kind"] for injury in injuries for e in injury["expect"] if e["must"]}
    assert len(expected) == 28


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_log_is_found_damaged_where_it_is_and_nowhere_else(
    name: str, damaged: Path
) -> None:
    case = damaged / "cases" / name
    truth, result = damage.truth_of(case), damage.audited(case)
    rows = list(result.findings)
    assert damage.missed(truth, rows) == []
    assert damage.wrong(truth, rows) == []
    assert result.exit_code in damage.statuses(truth)


def test_the_next_start_over_every_damaged_log_is_as_in_kafka(damaged: Path) -> None:
    compared = 0
    for line in (damaged / "recovery.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["case"] == "112-epochs-disordered":
            # Its checkpoint holds an epoch twice: the file still does, the broker does not.
            row["unclean"]["leader_epochs"] = row["clean"]["leader_epochs"] = [[0, 0]]
        for run in ("unclean", "clean"):
            after = ottla.predict_recovery(damaged / row["dir"], clean=run == "clean")
            assert kept(after) == kept_by_loader(row[run]), f"{row['dir']} {run}"
            assert of_prediction(after) == of_loader(row[run]), f"{row['dir']} {run}"
            compared += 1
    assert compared >= 2 * len(NAMES)


def test_a_silent_audit_misses_every_injury_that_must_be_found(damaged: Path) -> None:
    for name in NAMES:
        truth = damage.truth_of(damaged / "cases" / name)
        musts = [e for i in truth["injuries"] for e in i["expect"] if e["must"]]
        assert len(damage.missed(truth, [])) == len(musts)


def test_an_error_at_another_place_is_no_answer(damaged: Path) -> None:
    case = damaged / "cases" / NAMES[0]
    truth, rows = damage.truth_of(case), list(damage.audited(case).findings)
    moved = [
        row | {"position": (row["position"] or 0) + 2**40, "first_offset": 2**50} for row in rows
    ]
    assert damage.missed(truth, moved)
    assert damage.wrong(truth, moved)


def test_a_finding_too_mild_is_no_answer(damaged: Path) -> None:
    case = damaged / "cases" / NAMES[0]
    rows = [row | {"severity": "info"} for row in damage.audited(case).findings]
    assert damage.missed(damage.truth_of(case), rows)
