"""Results that appear whole or not at all."""

import os
from pathlib import Path
from typing import Any

import pytest
from ottla.storage.directory import new_directory, new_file


@pytest.mark.parametrize("make", [new_directory, new_file])
def test_ctrl_c_as_soon_as_the_place_beside_a_target_is_made_leaves_nothing(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def interrupted(path: str, mode: int = 0o777) -> None:
        mkdir(path, mode)
        if ".partial-" in path:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), make(str(tmp_path / "out")):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("make", [new_directory, new_file])
def test_what_another_process_has_begun_beside_a_target_is_left_alone(
    make: Any, tmp_path: Path
) -> None:
    other = tmp_path / f".out.partial-{os.getpid()}-0"
    other.mkdir()
    with make(str(tmp_path / "out")):
        assert other.is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, "out"]
