"""What the simulation is worth: each change that breaks a promise shows in some seed."""

import re
import shutil
import sys
from pathlib import Path

import ottla
import pytest
from support.simulation.compiled import compiled, played
from support.simulation.mutants import MUTANTS, Mutant

SEEDS = 300


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
    if mutant.needs_power_cuts and sys.platform != "linux":
        pytest.skip("the calls of Linux are watched")
    packages = [with_mutant(tmp_path, mutant)]
    preload = compiled(tmp_path) if mutant.needs_power_cuts else None
    kind = "power" if mutant.needs_power_cuts else "network"
    done = played(kind, tmp_path, range(SEEDS), preload=preload, packages=packages)
    assert done.returncode, f"{SEEDS} seeds noticed nothing"
    why = done.stderr.rsplit("\n", 2)[-2]
    assert re.search(mutant.shows, why), f"{why} where /{mutant.shows}/ is expected"
