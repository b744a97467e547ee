"""Writes `THIRD-PARTY-LICENSES.txt`: what is linked into a wheel, and under which licence.

`python -m release.licences` writes it anew; `--check` says whether it is as it should be.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from release.crates import ROOT, SYSTEMS, Crate, linked

PAGE = ROOT / "THIRD-PARTY-LICENSES.txt"

# The C libraries that crates bring along, by the files of their licences. zstd may be had under the
# GPL instead, as COPYING beside the file says.
BUNDLED = {
    "libdeflate-sys": ("libdeflate", "libdeflate/COPYING"),
    "libz-sys": ("zlib", "src/zlib/LICENSE"),
    "lz4-sys": ("lz4", "liblz4/lib/LICENSE"),
    "zstd-sys": ("zstd", "zstd/LICENSE"),
}

TOP = """\
Ottla is licensed under the Apache License 2.0: see LICENSE. The extension of a wheel holds the Rust
crates and C libraries below as well, each under its own licence. What is the same stands here once.

Rust's standard library is linked in, too: MIT OR Apache-2.0, copyright of the contributors to the
Rust project. So are, in wheels for Linux, LLVM's compiler-rt and libunwind: Apache-2.0 WITH
LLVM-exception.
"""

_LICENCE_FILE = re.compile(r"(licen[cs]e|copying|notice|unlicense|copyright)", re.IGNORECASE)
_LINE = "-" * 80


class MissingTextError(Exception):
    """A crate is linked in whose package holds no text of its licence."""


def page() -> str:
    """Returns the whole page."""
    crates = [crate for crate in linked() if crate.source]
    rows, texts = [], dict[str, tuple[str, list[str]]]()
    for crate in crates:
        title = f"{crate.name} {crate.version}"
        rows.append(f"{title}: {crate.licence}{_systems_of(crate)}")
        for name, text in texts_of(crate):
            rows += [f"  with the C library {name}"] if name else []
            holders = texts.setdefault(" ".join(text.split()), (text, []))[1]
            holders.append(f"{title}, {name}" if name else title)
    parts = [
        f"{_LINE}\n{', '.join(holders)}\n{_LINE}\n\n{text}\n" for text, holders in texts.values()
    ]
    return "\n".join((TOP, *rows, "", *parts))


def _systems_of(crate: Crate) -> str:
    systems = {
        system
        for name, system in (("linux", "Linux"), ("apple", "macOS"), ("windows", "Windows"))
        if any(name in target for target in crate.targets)
    }
    is_everywhere = set(crate.targets) == set(SYSTEMS)
    return "" if is_everywhere else f" (on {' and '.join(sorted(systems))})"


def texts_of(crate: Crate) -> Iterator[tuple[str, str]]:
    """Returns the texts of a crate, and of the C library in it, with the name of that.

    Raises:
        MissingTextError: there is none.
    """
    files = [file for file in sorted(crate.directory.iterdir()) if _LICENCE_FILE.match(file.name)]
    if not files:
        raise MissingTextError(f"{crate.directory} has no file with its licence ({crate.licence})")
    for file in files:
        yield "", text_of(file)
    if crate.name in BUNDLED:
        library, name = BUNDLED[crate.name]
        yield library, text_of(crate.directory / name)


def text_of(file: Path) -> str:
    """Returns a text without spaces at the ends of its lines."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def main() -> int:
    """Writes the page, or compares it."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    is_current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page()
    print(f"{PAGE.name} is {'current' if is_current else 'stale: python -m release.licences'}")
    return 0 if is_current else 1


if __name__ == "__main__":
    sys.exit(main())
