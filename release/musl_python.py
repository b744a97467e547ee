"""Builds a Python on musl beside a system of another libc, to try the wheel for musl on.

Zig is the compiler. The loader is in Debian's package of musl, which is unpacked and not installed.
Only what such a Python needs to run Ottla is built: it has no TLS, no ctypes and no zlib.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "target/musl"
TARGET = "x86_64-linux-musl"


def main() -> int:
    """Builds it. Prints where it is."""
    parser = argparse.ArgumentParser(prog="python -m release.musl_python", description=__doc__)
    parser.add_argument("source", help="CPython's sources: the path or URL of a .tar.xz")
    source = parser.parse_args().source
    if "://" not in source and not Path(source).is_file():
        parser.error(f"{source} is no file: name the .tar.xz of CPython's sources, by path or URL")
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    compiler = written_compiler(unpacked_loader())
    sources = unpacked_sources(source)
    settings = [
        f"CC={compiler}",
        # The compiler's own headers do not show by what CPython knows musl.
        f"CPP={compiler} -E -D__DEFINED_va_list",
        f"AR={zig()} ar",
        # Zig's musl has these, and that of Debian 12 does not.
        "ac_cv_func_preadv2=no",
        "ac_cv_func_pwritev2=no",
        # Checks that Zig makes unasked.
        "CFLAGS=-fno-sanitize=undefined -Wno-date-time",
        # What it finds is of this system's libc.
        "PKG_CONFIG=false",
        f"--prefix={HOME}",
        "--disable-test-modules",
        "--without-ensurepip",
    ]
    caches = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(ROOT / "target/zig")}
    for command in (
        ["./configure", "--quiet", *settings],
        ["make", "-s", f"-j{os.cpu_count()}"],
        ["make", "-s", "install"],
    ):
        with (HOME / "build.log").open("ab") as log:
            subprocess.run(command, check=True, cwd=sources, env=caches, stdout=log, stderr=log)
    print(f"{HOME}/bin/python3")
    return 0


def zig() -> Path:
    """The program of the package ziglang."""
    return Path(sysconfig.get_path("purelib")) / "ziglang/zig"


def unpacked_loader() -> Path:
    """Musl's loader, which is its libc as well."""
    subprocess.run(
        ["apt-get", "--quiet", "--option=APT::Sandbox::User=root", "download", "musl"],
        check=True,
        cwd=HOME,
    )
    for package in HOME.glob("musl_*.deb"):
        subprocess.run(["dpkg-deb", "--extract", package, HOME / "root"], check=True)
    return next((HOME / "root").rglob("libc.so"))


def unpacked_sources(source: str) -> Path:
    """CPython's sources."""
    archive = Path(source)
    if "://" in source:
        archive = HOME / "sources.tar.xz"
        urllib.request.urlretrieve(source, archive)  # noqa: S310 - the caller's own address
    with tarfile.open(archive) as sources:
        sources.extractall(HOME / "sources", filter="data")
    return next((HOME / "sources").glob("*/configure")).parent


def written_compiler(loader: Path) -> Path:
    """A command that compiles for musl, and has programs run by a loader that is not installed."""
    command = HOME / "cc"
    command.write_text(
        f'#!/bin/sh\nexec {zig()} cc -target {TARGET} -dynamic -Wl,--dynamic-linker={loader} "$@"\n'
    )
    command.chmod(0o755)
    return command


if __name__ == "__main__":
    sys.exit(main())
