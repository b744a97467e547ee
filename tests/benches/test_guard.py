"""The guard's own decisions; the speed itself is no test's."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from benches import calls, guard, instructions
from benches.cases import CASES, LARGE, AbsentLevelError, Case, Outcome
from benches.data import Shape
from benches.peers import AIOKAFKA, OURS
from benches.race import Times
from benches.thresholds import GUARDED, LEVELS, threshold

CASE = Case("check", Shape(100), 1 << 20, 40)
NEEDED = threshold(CASE.title, "bmi2")


def test_every_small_race_with_a_target_has_a_threshold() -> None:
    raced = {case.title for case in CASES if case.size != LARGE and case.target is not None}
    assert {case.title for case in guard.guarded()} == raced == GUARDED


@pytest.mark.parametrize("title", sorted(GUARDED - {"accept 100B-x8000", "accept 1KiB-x1000"}))
def test_no_threshold_is_higher_at_a_lower_level(title: str) -> None:
    at_each = [threshold(title, level) for level in LEVELS]
    assert all(higher >= lower > 0 for higher, lower in pairwise(at_each))
    assert threshold(title, "arm64") == at_each[-1]


def outcome(*ratios: float) -> Outcome:
    ours = Times((1.0,) * len(ratios))
    return Outcome(CASE, {OURS: ours, AIOKAFKA: Times(ratios)}, {})


def fell(monkeypatch: pytest.MonkeyPatch, tries: Iterator[Outcome]) -> list[str]:
    """What the guard reports of one case, raced so often, with the kernels bmi2."""
    monkeypatch.setattr(guard, "guarded", lambda: [CASE])
    monkeypatch.setattr(guard, "kernels", lambda: "bmi2")
    monkeypatch.setattr(guard, "run", lambda _case, *, rounds: next(tries))  # noqa: ARG005
    return guard.ratios_that_fell(3)


def test_a_race_is_held_to_the_threshold_of_the_level_that_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fell(monkeypatch, iter([outcome(NEEDED)])) == []
    assert capsys.readouterr().out.endswith(f"at least {NEEDED:g} at level bmi2\n")


def test_a_race_that_is_slow_at_every_try_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = fell(monkeypatch, iter([outcome(NEEDED - 0.1)] * len(guard.TRIES)))
    assert row.startswith(f"check 100B-x1000: {NEEDED - 0.1:.2f} × aiokafka")


def test_a_busy_moment_is_no_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = outcome(NEEDED / 2)
    assert fell(monkeypatch, iter([slow, slow, outcome(NEEDED)])) == []
    # The medians of the rounds are below it, what both reach at their best is not.
    ours = Times((1.0, 3.0, 3.0))
    base = Times((NEEDED, NEEDED, NEEDED))
    assert fell(monkeypatch, iter([Outcome(CASE, {OURS: ours, AIOKAFKA: base}, {})])) == []


def test_a_level_that_the_cpu_lacks_is_said_to_be_not_held(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(_case: Case, **_: int) -> Outcome:
        raise AbsentLevelError("this CPU has no bmi2")

    monkeypatch.setattr(guard, "guarded", lambda: [CASE])
    monkeypatch.setattr(guard, "run", absent)
    assert guard.ratios_that_fell(3) == []
    assert "not held: check 100B-x1000: this CPU has no bmi2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("of", "factor", "is_held"),
    [("kept", 1.06, False), ("kept", 1.04, True), ("other", 1.2, True), ("other", 1.3, False)],
)
def test_instructions_of_another_compiler_have_a_wider_margin(
    monkeypatch: pytest.MonkeyPatch, of: str, factor: float, *, is_held: bool
) -> None:
    kept = json.loads(guard.COUNTS.read_text())
    host = kept["compiler"].split()[-1]
    counts = {name: int(count * factor) for name, count in kept["instructions"].items()}
    monkeypatch.setattr(guard, "count_instructions", lambda: counts)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/valgrind")
    monkeypatch.setattr(
        guard, "compiler", lambda: kept["compiler"] if of == "kept" else f"rustc 1.0.0 {host}"
    )
    assert (guard.kernels_that_grew() == []) is is_held


def test_instructions_that_are_not_counted_are_said_to_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert guard.kernels_that_grew() == []
    assert "NOT COUNTED: valgrind is not installed" in capsys.readouterr().out


@pytest.mark.parametrize("name", calls.CALLS)
def test_a_call_that_takes_more_instructions_than_it_may_has_grown(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = {call: most for call, (_, most) in calls.CALLS.items()}
    monkeypatch.setattr(calls, "count_calls", lambda: counted)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert calls.calls_that_grew() == []
    counted[name] += 1
    assert [row.partition(":")[0] for row in calls.calls_that_grew()] == [name]


def test_the_interpreters_own_instructions_are_told_from_those_of_what_it_calls(
    tmp_path: Path,
) -> None:
    profile = tmp_path / "callgrind.out"
    interpreter, engine = "ob=/lib/libpython3.so", "ob=/lib/engine.so"
    lines = (
        *("events: Ir", "", interpreter, "fl=ceval.c", "fn=_PyEval_EvalFrameDefault'2"),
        *("12 100", "+3 20", f"c{engine}", "cfn=judge", "calls=1 7", "13 4000", "-1 3", ""),
        *(engine, "fl=judge.rs", "fn=judge", "7 4000", ""),
        *(interpreter, "fl=tuple.c", "fn=PyTuple_New", "* 5", "", "totals: 4128"),
    )
    profile.write_text("\n".join(lines))
    assert instructions.of_interpreter(profile) == 128


@pytest.mark.parametrize("name", instructions.EACH)
def test_one_more_that_takes_more_instructions_than_it_may_has_grown(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = {each: slope.most for each, slope in instructions.EACH.items()}
    monkeypatch.setattr(instructions, "count_each", lambda: counted)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert instructions.each_that_grew() == []
    counted[name] += 1
    assert [row.partition(":")[0] for row in instructions.each_that_grew()] == [name]


def test_calls_are_not_counted_where_their_kernels_do_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert calls.calls_that_grew() == []
    assert "NOT COUNTED: aarch64" in capsys.readouterr().out
