"""What a package index shows of Ottla, and the addresses that a release writes into it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.metadata import Metadata
from readme_renderer import markdown

from release import address

tomllib = pytest.importorskip("tomllib", reason="Python reads TOML from 3.11 on")

ADDRESS, TAG = "https://example.org/owner/name", "v0.1.0"
WRITTEN = ("pyproject.toml", "Cargo.toml", "README.md")


@pytest.fixture
def released(root: Path, tmp_path: Path) -> Path:
    """Return the files of a checkout that a release has written its address into."""
    crates = [f"rust/{name}" for name in ("ottla-kernels", "ottla-format", "ottla-log")]
    files = [f"{crate}/{file}" for crate in crates for file in ("README.md", "Cargo.toml")]
    for name in (*WRITTEN, *files):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    address.write(tmp_path, ADDRESS, TAG)
    return tmp_path


def project(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return found


def test_the_metadata_is_what_package_indexes_ask_for(released: Path) -> None:
    found = project(released)
    metadata = Metadata.from_raw(
        {
            "metadata_version": "2.4",
            "name": found["name"],
            "version": "0.1.0",
            "summary": found["description"],
            "license_expression": found["license"],
            "license_files": found["license-files"],
            "requires_python": found["requires-python"],
            "classifiers": found["classifiers"],
            "keywords": found["keywords"],
            "project_urls": found["urls"],
            "description_content_type": "text/markdown",
        },
        validate=True,
    )
    assert metadata.license_expression == "Apache-2.0"


def test_the_classifiers_name_the_systems_and_versions(root: Path) -> None:
    classifiers = project(root)["classifiers"]
    for system in ("POSIX :: Linux", "MacOS", "Microsoft :: Windows"):
        assert f"Operating System :: {system}" in classifiers
    versions = [name for name in classifiers if re.search(r"Python :: 3\.\d+$", name)]
    assert versions == [f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 15)]


def test_a_release_knows_the_address_of_its_repository(released: Path) -> None:
    urls = project(released)["urls"]
    assert urls["Repository"] == ADDRESS
    assert urls["Changelog"] == f"{ADDRESS}/blob/{TAG}/CHANGELOG.md"
    workspace = tomllib.loads((released / "Cargo.toml").read_text())["workspace"]
    assert workspace["package"]["repository"] == ADDRESS
    crate = tomllib.loads((released / "rust/ottla-log/Cargo.toml").read_text())["package"]
    assert crate["repository"] == {"workspace": True}


def test_an_address_that_is_written_twice_is_written_once(released: Path) -> None:
    before = {name: (released / name).read_text() for name in WRITTEN}
    address.write(released, ADDRESS, TAG)
    assert {name: (released / name).read_text() for name in WRITTEN} == before


@pytest.mark.parametrize("page", address.PAGES)
def test_a_page_leads_into_the_repository_from_a_package_index(released: Path, page: str) -> None:
    rendered = markdown.render((released / page).read_text())
    assert rendered is not None
    links = re.findall(r'(?:href|src)="([^"]*)"', rendered)
    assert links
    elsewhere = (ADDRESS, "https://", "#user-content-")
    assert [link for link in links if not link.startswith(elsewhere)] == []


@pytest.mark.parametrize("page", address.PAGES)
def test_what_a_page_leads_to_is_in_the_repository(root: Path, released: Path, page: str) -> None:
    links = re.findall(
        rf"\({re.escape(ADDRESS)}/(?:raw|blob)/{TAG}/([^)#]*)", (released / page).read_text()
    )
    assert [link for link in links if not (root / link).exists()] == []


def test_the_picture_of_the_readme_is_shown(released: Path) -> None:
    rendered = markdown.render((released / "README.md").read_text())
    assert rendered is not None
    assert f'src="{ADDRESS}/raw/{TAG}/docs/speed.svg"' in rendered


@pytest.mark.parametrize(
    "given", [(), ("http://example.org/owner/name", "v1"), ("owner/name", "v1")]
)
def test_an_address_that_is_none_is_refused(root: Path, given: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "release.address", *given]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage: python -m release.address https://HOST/OWNER/NAME TAG" in done.stderr
