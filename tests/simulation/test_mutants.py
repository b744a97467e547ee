"""What the simulation is worth: each change that breaks a promise shows in some seed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import ottla
import pytest
from support.simulation.mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
SEEDS = 60
PLAY = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("played", sys.argv[1])
played = importlib.util.module_from_spec(spec)
spec.loader.exec_module(played)
for seed in range({SEEDS}):
    try:
        played.hold(seed)
    except Exception as error:
        print(f"seed {{seed}}: {{error!r:.200}}")
        sys.exit(7)
"""


def with_mutant(folder: Path, mutant: Mutant) -> Path:
    """A copy of the package with the change in it."""
    package = Path(ottla.__file__).parent
    shutil.copytree(package, folder / "ottla", ignore=shutil.ignore_patterns("__pycache__"))
    changed = folder / "ottla" / mutant.module
    text = changed.read_text()
    assert text.count(mutant.before) == 1, f"{mutant.module} has no such place: {mutant.before!r}"
    changed.write_text(text.replace(mutant.before, mutant.after))
    return folder


def test_every_mutant_has_its_place() -> None:
    package = Path(ottla.__file__).parent
    for mutant in MUTANTS:
        count = (package / mutant.module).read_text().count(mutant.before)
        assert count == 1, f"{mutant.module} has {count} of {mutant.before!r}"


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.breaks)
def test_the_simulation_notices(mutant: Mutant, tmp_path: Path) -> None:
    place = with_mutant(tmp_path, mutant)
    path = os.pathsep.join(map(str, (place, ROOT / "tests", ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", PLAY, str(ROOT / "tests" / "simulation" / "test_simulation.py")],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 7, f"{SEEDS} seeds noticed nothing: {done.stdout}{done.stderr}"
