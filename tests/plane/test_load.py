"""Directories of partitions, loaded: what a start of Kafka makes of them is done to their files."""

import json
import shutil
from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla.errors import LogDirectoryError
from support import damage, loading
from support.logs import TOPIC_ID, files_under, segment, segment_name, write_partition

DAMAGE = Path(__file__).parents[1] / "samples" / "damage.tar.xz"


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The damaged logs; tests only read them."""
    return damage.unpack(DAMAGE, tmp_path_factory.mktemp("damage"))


def check_load(directory: Path, copy: Path, log_start_offset: int, *, clean: bool) -> str:
    """Load a copy of a directory, and hold it to what is predicted of it. Returns what it was."""
    shutil.copytree(directory, copy)
    start: dict[str, Any] = {"log_start_offset": log_start_offset, "is_clean": clean}
    after = ottla.predict_recovery(directory, clean=clean, log_start_offset=log_start_offset)
    before = list(files_under(copy))
    try:
        plane, handle = loading.load(copy, **start)
    except LogDirectoryError as error:
        assert str(copy) in str(error)
        assert list(files_under(copy)) == before
        how = "refused" if not after.opens else "refused at its end"
        if after.opens:
            after = loading.predict_end(directory, after, log_start_offset)
        assert (after.error or "opens") in str(error)
        return how
    assert after.opens, after.message
    found = loading.loaded(copy, plane, handle)
    expected = loading.predicted(directory, after)
    how = "as predicted"
    if clean and found != expected:
        end = loading.predict_end(directory, after, log_start_offset)
        expected, how = loading.predicted(directory, end), "recovered at its end"
    assert found == expected
    plane.close(handle)

    left = dict(files_under(copy))
    if clean and not ottla.predict_recovery(copy, clean=True).opens:
        # Kafka has left damage, which keeps it from starting again.
        return f"{how}, and never again"
    again, handle = loading.load(copy, **start)
    assert loading.loaded(copy, again, handle).log_end_offset == found.log_end_offset
    if again.changes(handle):
        # Kafka has deleted the snapshot by which it knew what was before the log start.
        changed = {name for name, data in files_under(copy) if left[name] != data}
        assert how != "as predicted" or {Path(name).suffix for name in changed} <= {".txnindex"}
        how += ", and changed again"
    return how


def check_all(damage_directory: Path, tmp_path: Path, every: int = 1) -> dict[str, int]:
    """Load the partitions of the corpus of damage after either stop. Returns what they were."""
    outcomes: dict[str, int] = {}
    lines = (damage_directory / "recovery.jsonl").read_text().splitlines()
    for line in lines[::every]:
        row = json.loads(line)
        directory = damage_directory / row["dir"]
        for clean in (False, True):
            copy = tmp_path / "copy" / directory.name
            how = check_load(directory, copy, row["log_start_checkpoint"], clean=clean)
            outcomes[how] = outcomes.get(how, 0) + 1
            shutil.rmtree(copy)
    return outcomes


def test_a_damaged_directory_is_left_as_a_start_leaves_it(damaged: Path, tmp_path: Path) -> None:
    outcomes = check_all(damaged, tmp_path, every=6)
    assert outcomes.keys() >= {"as predicted", "refused", "recovered at its end"}


@pytest.mark.slow
def test_every_damaged_directory_is_left_as_a_start_leaves_it(
    damaged: Path, tmp_path: Path
) -> None:
    print(check_all(damaged, tmp_path))


@pytest.mark.shared
@pytest.mark.slow
def test_every_directory_of_the_corpus_of_damage_is_left_as_a_start_leaves_it(
    shared: Path, tmp_path: Path
) -> None:
    print(check_all(shared / "damage", tmp_path))
