"""The source package: what is built from it has our licence and those of all that is linked in."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

LICENCES = ("LICENSE", "THIRD-PARTY-LICENSES.txt")


@pytest.fixture(scope="module")
def packed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files of the source package by name, without the folder they are in."""
    folder = tmp_path_factory.mktemp("source")
    command = [sys.executable, "-m", "maturin", "sdist", "--out", str(folder)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (package,) = folder.iterdir()
    found = {}
    with tarfile.open(package) as opened:
        for member in opened:
            file = opened.extractfile(member)
            found[member.name.partition("/")[2]] = b"" if file is None else file.read()
    return found


def test_the_source_package_has_our_licence_and_those_of_others(
    root: Path, packed: dict[str, bytes]
) -> None:
    metadata = packed["PKG-INFO"].decode().splitlines()
    for name in LICENCES:
        assert packed[name] == (root / name).read_bytes(), name
        assert f"License-File: {name}" in metadata
    assert "License-Expression: Apache-2.0" in metadata


def test_the_source_package_has_the_sources_of_both_languages(packed: dict[str, bytes]) -> None:
    assert {"Cargo.lock", "pyproject.toml", "rust/ottla-py/src/lib.rs"} <= set(packed)
    assert {"python/ottla/__init__.py", "python/ottla/py.typed", "README.md"} <= set(packed)
    assert [name for name in packed if name.endswith((".so", ".pyd"))] == []
