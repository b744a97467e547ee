"""Which engine a command builds: a quick one to try and to test, the optimised one for the rest."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from ottla import _engine

from benches import compare, guard, table
from release import wheels

OPTIMISED = [
    "build",
    "bench",
    "bench-java",
    "bench-spark",
    "bench-kafka",
    "bench-guard",
    "test-all",
]
QUICK = ["demo", "test", "develop", "check", "vectors"]


def commands(root: Path, target: str) -> str:
    """What a command runs where nothing is built yet."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        # Which Python there is, is not looked for.
        ["make", "--dry-run", "--always-make", target, "REV=HEAD", f"PYTHON={sys.executable}"],
        cwd=root,
        env=own,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def builds(root: Path, target: str) -> list[str]:
    """The calls of maturin that a command makes where nothing is built yet."""
    return re.findall(r"maturin ((?:develop|build).*)", commands(root, target))


@pytest.mark.parametrize("target", [*OPTIMISED, "bench-compare"])
def test_what_is_shipped_or_measured_is_optimised(root: Path, target: str) -> None:
    calls = builds(root, target)
    assert calls
    assert [call for call in calls if "--release" not in call] == []


def test_a_wheel_is_optimised(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "-m release.wheels native" in commands(root, "wheel")
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: calls.append(command))
    monkeypatch.setattr(wheels, "DIST", tmp_path)
    wheels.maturin(["--zig"], {})
    assert [set(call) >= {"build", "--release", "--zig"} for call in calls] == [True]


@pytest.mark.parametrize("target", QUICK)
def test_what_is_tried_or_tested_is_quick_to_build(root: Path, target: str) -> None:
    (call,) = builds(root, target)
    assert call.startswith("develop")
    assert "--release" not in call


@pytest.mark.parametrize("program", [guard, table, compare])
def test_nothing_is_measured_with_an_engine_that_is_quick_to_build(
    monkeypatch: pytest.MonkeyPatch, program: ModuleType
) -> None:
    monkeypatch.setattr(_engine, "build_profile", lambda: "dev")
    monkeypatch.setattr("sys.argv", ["benches", *(["HEAD"] if program is compare else [])])
    with pytest.raises(SystemExit, match="the engine in place is not optimised; run `make build`"):
        program.main()
