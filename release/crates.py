"""The crates that are linked into the extension, on every system that has wheels."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SYSTEMS = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
)


class Crate(NamedTuple):
    """A package of crates.io."""

    name: str
    version: str
    licence: str
    source: str | None
    """Where cargo has it from; None for a crate of this repository."""
    directory: Path
    targets: tuple[str, ...]
    """The systems whose extension it is linked into."""


def linked() -> list[Crate]:
    """Returns what is linked in, ours too, sorted. Macros and what only builds are not."""
    found: dict[str, Crate] = {}
    for system in SYSTEMS:
        for package in _linked_on(system):
            known = found.get(package["id"])
            targets = (*known.targets, system) if known else (system,)
            found[package["id"]] = Crate(
                package["name"],
                package["version"],
                package["license"],
                package["source"],
                Path(package["manifest_path"]).parent,
                targets,
            )
    return sorted(found.values())


def _linked_on(system: str) -> Iterator[dict[str, Any]]:
    command = ["cargo", "metadata", "--locked", "--format-version=1", "--filter-platform", system]
    done = subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    metadata = json.loads(done.stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    left = [key for key, package in packages.items() if package["name"] == "ottla-py"]
    seen = set()
    while left:
        key = left.pop()
        if key in seen or any("proc-macro" in made["kind"] for made in packages[key]["targets"]):
            continue
        seen.add(key)
        yield packages[key]
        # A dependency for building or testing has a kind that says so.
        left += [
            needed["pkg"]
            for needed in nodes[key]["deps"]
            if any(kind["kind"] is None for kind in needed["dep_kinds"])
        ]
