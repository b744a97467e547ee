"""What is linked into a wheel, its licences, and the crates that others may use."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from release import licences
from release.crates import SYSTEMS, linked

tomllib = pytest.importorskip("tomllib", reason="Python reads TOML from 3.11 on")

CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"
FOR_OTHERS = ("ottla-kernels", "ottla-format", "ottla-log")


@pytest.fixture(scope="module")
def rules(root: Path) -> dict[str, Any]:
    """Return what `make deny` goes by."""
    rules: dict[str, Any] = tomllib.loads((root / "deny.toml").read_text())
    return rules


@pytest.fixture(scope="module")
def packages(root: Path) -> dict[str, dict[str, Any]]:
    """Return every crate of the workspace, also those that only build or test, by name@version."""
    found = {}
    for system in SYSTEMS:
        command = ["cargo", "metadata", "--locked", "--format-version=1"]
        done = subprocess.run(
            [*command, "--filter-platform", system], cwd=root, check=True, capture_output=True
        )
        # That list has crates that no feature asks for, too.
        tree = ["cargo", "tree", "--locked", "--workspace", "--prefix=none", "--format={p}"]
        built = subprocess.run(
            [*tree, "--target", system], cwd=root, check=True, capture_output=True, text=True
        ).stdout
        for package in json.loads(done.stdout)["packages"]:
            if f"{package['name']} v{package['version']}" in built:
                found[f"{package['name']}@{package['version']}"] = package
    return found


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Whether each part of a licence leaves a choice that is allowed. `/` is an old `OR`."""
    parts = re.split(r"\s+AND\s+", expression.replace("/", " OR "))
    choices = [re.split(r"\s+OR\s+", part.strip("()")) for part in parts]
    return all(any(choice in allowed for choice in part) for part in choices)


def test_the_page_of_licences_is_current() -> None:
    stale = "THIRD-PARTY-LICENSES.txt is stale: write it by `python -m release.licences`"
    assert licences.PAGE.read_text(encoding="utf-8") == licences.page(), stale


def test_each_library_in_a_wheel_has_its_licence_on_the_page() -> None:
    page = licences.PAGE.read_text(encoding="utf-8")
    others = [crate for crate in linked() if crate.source]
    assert {"snap", "lz4-sys", "zstd-sys", "libz-sys", "libdeflate-sys", "arrow-array"} < {
        crate.name for crate in others
    }
    for crate in others:
        # Once in the list at the top, and once above a text.
        assert len(re.findall(re.escape(f"{crate.name} {crate.version}"), page)) >= 2, crate
    for holder in ("Eric Biggers", "Jean-loup Gailly", "Yann Collet", "Meta Platforms"):
        assert holder in page


def test_a_crate_without_a_text_of_its_licence_is_named(tmp_path: Path) -> None:
    bare = linked()[0]._replace(directory=tmp_path, licence="MIT")
    with pytest.raises(licences.MissingTextError, match=r"has no file with its licence \(MIT\)$"):
        list(licences.texts_of(bare))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("MIT/Apache-2.0", True),
        ("(GPL-2.0 OR MIT) AND Zlib", True),
        ("GPL-2.0", False),
        ("MIT AND GPL-2.0", False),
    ],
)
def test_a_licence_is_allowed_by_what_one_may_choose(expression: str, expected: bool) -> None:
    assert is_allowed(expression, {"MIT", "Zlib"}) is expected


def test_every_crate_has_a_licence_that_is_allowed(
    rules: dict[str, Any], packages: dict[str, dict[str, Any]]
) -> None:
    allowed = set(rules["licenses"]["allow"])
    refused = {
        key: package["license"]
        for key, package in packages.items()
        if not is_allowed(package["license"], allowed)
    }
    assert refused == {}


def test_every_crate_of_others_comes_from_crates_io(packages: dict[str, dict[str, Any]]) -> None:
    sources = {package["source"] for package in packages.values()}
    assert sources == {None, CRATES_IO}


def test_no_crate_is_built_in_two_versions_but_those_that_are_known(
    rules: dict[str, Any], packages: dict[str, dict[str, Any]]
) -> None:
    known = {rule["crate"] for rule in rules["bans"]["skip"]}
    assert known <= set(packages), "deny.toml skips a crate that is no longer there"
    names = [key.rpartition("@")[0] for key in sorted(set(packages) - known)]
    assert sorted({name for name in names if names.count(name) > 1}) == []


@pytest.mark.parametrize("name", FOR_OTHERS)
def test_a_crate_for_others_says_what_it_is(root: Path, name: str) -> None:
    directory = root / "rust" / name
    package = tomllib.loads((directory / "Cargo.toml").read_text())["package"]
    assert package["description"]
    assert package["keywords"]
    assert package["categories"]
    assert package["metadata"]["docs"]["rs"]
    assert "publish" not in package
    assert (directory / "LICENSE").read_text() == (root / "LICENSE").read_text()
    assert (directory / package["readme"]).read_text().startswith(f"# {name}\n")


def test_a_crate_for_others_is_packaged_with_all_it_needs(root: Path) -> None:
    names = [part for name in FOR_OTHERS for part in ("--package", name)]
    command = ["cargo", "package", "--locked", "--offline", "--allow-dirty", "--no-verify"]
    done = subprocess.run([*command, *names], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Packaged") == len(FOR_OTHERS), done.stderr


def test_crates_name_each_other_by_the_version_of_the_workspace(root: Path) -> None:
    workspace = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]
    versions = {
        name: crate["version"]
        for name, crate in workspace["dependencies"].items()
        if isinstance(crate, dict) and "path" in crate and "version" in crate
    }
    assert versions == dict.fromkeys(FOR_OTHERS, workspace["package"]["version"])
