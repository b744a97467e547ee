"""`make mutants`: the changes it makes, and that it tells those that no test notices."""

from pathlib import Path

import pytest
from support import mutants


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("a < b", ["a <= b"]),
        ("a is not None", ["a is None"]),
        ("a and b", ["a or b"]),
        ("a + 1", ["a - 1", "a + 2"]),
        ("x = True", ["x = False"]),
        ("print(a)", ["None"]),
        ("if a:\n    b", ["if not a:\n    b"]),
        ("def f() -> int:\n    return a", ["def f() -> int:\n    return None"]),
    ],
)
def test_each_mutant_has_one_small_change(source: str, changed: list[str]) -> None:
    assert [mutant.source for mutant in mutants.mutants_of(source)] == changed


@pytest.mark.parametrize(
    "source",
    ["x: int | None", "def f(a: int | None) -> int | str:\n    pass", '"""Words."""\nx = "text"'],
)
def test_what_only_type_checkers_and_readers_see_is_left_alone(source: str) -> None:
    assert list(mutants.mutants_of(source)) == []


def test_every_package_has_tests_that_are_run() -> None:
    for package in mutants.PACKAGES:
        for path in (mutants.CODE / "ottla" / package).rglob("*.py"):
            assert mutants.tests_of(path), path


def test_a_mutant_that_no_test_notices_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "python" / "ottla" / "logs").mkdir(parents=True)
    for package in ("ottla", "ottla/logs"):
        (tmp_path / "python" / package / "__init__.py").touch()
    module = tmp_path / "python" / "ottla" / "logs" / "sums.py"
    module.write_text("def least(a, b):\n    return a if a < b else b\n")
    tests = tmp_path / "tests" / "logs"
    tests.mkdir(parents=True)
    (tests / "test_sums.py").write_text(
        "from ottla.logs.sums import least\n\n\ndef test_least():\n    assert least(1, 2) == 1\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    spark\n    shared\n")
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(mutants, "CODE", tmp_path / "python")
    told: list[str] = []
    tried = [(module, mutant) for mutant in mutants.mutants_of(module.read_text())]
    assert mutants.try_all(tried, told.append) == 1
    assert told == ["python/ottla/logs/sums.py:2: a < b  ->  a <= b\n"]
