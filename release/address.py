"""Writes into a checkout where its repository is: `python -m release.address ADDRESS TAG`.

A checkout does not know its address, and a fork has another. The release workflow does: before it
builds, this makes the links of the README absolute, so that a package index shows them, and adds
the address to the metadata of package and crates.
"""

import re
import sys
from pathlib import Path

from release.crates import ROOT

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")
_ADDRESS = re.compile(r"https://[\w.-]+(/[\w.-]+){2}")
# Pages that an index of packages or crates shows, where links begin elsewhere.
PAGES = (
    "README.md",
    "rust/ottla-kernels/README.md",
    "rust/ottla-format/README.md",
    "rust/ottla-log/README.md",
)


def main() -> int:
    """Writes the address into the checkout."""
    match sys.argv[1:]:
        case [address, tag] if _ADDRESS.fullmatch(address):
            write(ROOT, address, tag)
            return 0
    print("usage: python -m release.address https://HOST/OWNER/NAME TAG", file=sys.stderr)
    return 2


def write(root: Path, address: str, tag: str) -> None:
    """Writes an address and the name of a release into the checkout at `root`."""
    for name in PAGES:
        page = root / name
        page.write_text(with_links(page.read_text(encoding="utf-8"), name, address, tag), "utf-8")
    _replace(root / "pyproject.toml", "\n[project.scripts]\n", _urls(address, tag))
    _replace(root / "Cargo.toml", "\n[workspace.dependencies]\n", f'repository = "{address}"\n')
    for crate in PAGES[1:]:
        manifest = (root / crate).with_name("Cargo.toml")
        _replace(manifest, "license.workspace = true\n", "repository.workspace = true\n")


def with_links(text: str, name: str, address: str, tag: str) -> str:
    """Returns a page whose links lead into the repository from anywhere."""
    folder = name.rpartition("/")[0]

    def absolute(link: re.Match[str]) -> str:
        picture, label, path = link.groups()
        parts: list[str] = folder.split("/") if folder else []
        for part in path.split("/"):
            parts = parts[:-1] if part == ".." else [*parts, part]
        return (
            f"{picture}[{label}]({address}/{'raw' if picture else 'blob'}/{tag}/{'/'.join(parts)})"
        )

    return _LINK.sub(absolute, text)


def _urls(address: str, tag: str) -> str:
    lines = (
        "\n[project.urls]",
        f'Repository = "{address}"',
        f'Documentation = "{address}/blob/{tag}/README.md"',
        f'Changelog = "{address}/blob/{tag}/CHANGELOG.md"',
        f'Issues = "{address}/issues"',
        f'Security = "{address}/security/policy"',
    )
    return "\n".join(lines) + "\n"


def _replace(file: Path, before: str, text: str) -> None:
    """Puts a text into a file, before the first place of another, which stays."""
    old = file.read_text(encoding="utf-8")
    if before not in old:
        raise ValueError(f"{file} has no {before.strip()}")
    if text not in old:
        file.write_text(old.replace(before, text + before, 1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
