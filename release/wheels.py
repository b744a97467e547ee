"""Builds wheels: `make wheel` that of this machine, `make wheels` those of every Linux.

Zig is compiler and linker, so that a wheel runs on a libc older than that of this machine, or on
another. Rust's standard library for it is rustup's, or is built from Rust's sources where those are
(`rust-src` of rustup, `rust-web-src` of Debian).
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from release import bill

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"


class Wheel(NamedTuple):
    """A wheel by its machine and the oldest libc it runs on."""

    name: str
    target: str
    platform: str

    @property
    def machine(self) -> str:
        """The name of its CPUs."""
        return self.target.partition("-")[0]

    def is_of_this_machine(self) -> bool:
        """Whether it is the one to install here."""
        return (
            self.name == f"{platform.machine()}-{'many' if platform.libc_ver()[0] else 'musl'}linux"
        )


WHEELS = (
    Wheel("x86_64-manylinux", "x86_64-unknown-linux-gnu", "manylinux_2_17"),
    Wheel("aarch64-manylinux", "aarch64-unknown-linux-gnu", "manylinux_2_17"),
    Wheel("x86_64-musllinux", "x86_64-unknown-linux-musl", "musllinux_1_2"),
    Wheel("aarch64-musllinux", "aarch64-unknown-linux-musl", "musllinux_1_2"),
)

# Zig's clang makes a smaller zstd of it, which decompresses as gcc's does, an eighth faster than
# its own for speed, and compresses as fast. Gcc's is a fifth slower: so it is not in `Cargo.toml`.
SMALL_ZSTD = 'profile.release.package.zstd-sys.opt-level="s"'


class MissingStandardLibraryError(Exception):
    """Rust's standard library for a target is neither here nor to be had."""


def main() -> int:
    """Builds the wheels that were asked for. Returns how many could not be built."""
    parser = argparse.ArgumentParser(prog="python -m release.wheels", description=__doc__)
    names = [wheel.name for wheel in WHEELS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"native, {', '.join(names)}")
    asked = parser.parse_args().names
    wanted = asked or names
    if unknown := [name for name in wanted if name not in (*names, "native")]:
        parser.error(f"no wheel {unknown[0]}: there are native, {', '.join(names)}")
    DIST.mkdir(exist_ok=True)
    for old in () if asked else DIST.glob("*.whl"):
        old.unlink()
    if wanted == ["native"] and sys.platform != "linux":
        maturin([], environment())
        return 0
    wheels = [
        wheel
        for wheel in WHEELS
        if wheel.name in wanted or ("native" in wanted and wheel.is_of_this_machine())
    ]
    return left_out(wheels)


def left_out(wheels: Iterable[Wheel]) -> int:
    """Builds wheels. Returns how many were left out, which is said."""
    count = 0
    for wheel in wheels:
        try:
            build(wheel)
        except MissingStandardLibraryError as error:
            print(f"Wheel {wheel.name}: left out: {error}", file=sys.stderr)
            count += 1
    return count


def build(wheel: Wheel) -> None:
    """Builds a wheel into `dist`."""
    print(f"Wheel {wheel.name}: {wheel.platform}", flush=True)
    variables = environment(*standard_library(wheel.target))
    if wheel.target.endswith("musl"):
        variables["CARGO_ENCODED_RUSTFLAGS"] += "\x1f-Ctarget-feature=-crt-static"
    how = ["--zig", "--target", wheel.target, "--compatibility", wheel.platform]
    maturin([*how, "--config", SMALL_ZSTD], variables)


def maturin(arguments: list[str], variables: dict[str, str]) -> None:
    """Calls maturin for an optimised, stripped wheel."""
    program = str(Path(sys.executable).with_name("maturin"))
    command = [program, "build", "--release", "--locked", "--strip", "--quiet", "--out", str(DIST)]
    subprocess.run([*command, *arguments], check=True, cwd=ROOT, env=variables)
    for wheel in DIST.glob("*.whl"):
        bill.clean(wheel, ROOT)


def standard_library(target: str) -> list[str]:
    """Looks for Rust's standard library. Returns the variables by which cargo would build it.

    Raises:
        MissingStandardLibraryError: it is not here, and neither are its sources.
    """
    if has_library(target):
        return []
    if shutil.which("rustup") and "RUSTC" not in os.environ:
        subprocess.run(["rustup", "target", "add", target], check=False, capture_output=True)
        if has_library(target):
            return []
    if (sysroot() / "lib/rustlib/src/rust/library/Cargo.lock").exists():
        return ["RUSTC_BOOTSTRAP=1", "CARGO_UNSTABLE_BUILD_STD=std,panic_unwind"]
    raise MissingStandardLibraryError(
        f"Rust's standard library for {target} is missing, and so are its sources:"
        f" rustup target add {target}, or rustup component add rust-src"
    )


def has_library(target: str) -> bool:
    """Whether the compiler has a standard library for a target."""
    directory = Path(answer_of("--print", "target-libdir", "--target", target))
    return any(directory.glob("libstd-*.rlib"))


def sysroot() -> Path:
    """The directory of the compiler."""
    return Path(answer_of("--print", "sysroot"))


def answer_of(*arguments: str) -> str:
    """What the Rust compiler says."""
    compiler = os.environ.get("RUSTC", "rustc")
    done = subprocess.run([compiler, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def machine_paths() -> dict[Path, str]:
    """Directories of this machine that a compiler would name, and what stands for each instead."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    sources = sysroot() / "lib/rustlib/src/rust"
    paths = {ROOT: "/ottla", home / "registry/src": "/crates", sources: "/rust"}
    return paths | {sources.resolve(): "/rust"}


def environment(*variables: str) -> dict[str, str]:
    """The variables of a build that leaves no path of this machine in what it builds."""
    paths = machine_paths().items()
    rust = [f"--remap-path-prefix={path}={name}" for path, name in paths]
    c = [f"-ffile-prefix-map={path}={name}" for path, name in paths]
    # No panic passes through C, so nothing reads its tables of how to unwind it.
    c += ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
    built = ROOT / "target"
    programs = Path(sys.executable).parent
    return {
        **os.environ,
        # Where maturin finds zig.
        "PATH": os.pathsep.join((str(programs), os.environ["PATH"])),
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(rust),
        "CFLAGS": " ".join(c) if sys.platform != "win32" else "",
        # Of its own, so that no other build is waited for.
        "CARGO_TARGET_DIR": str(built / "wheels"),
        "ZIG_GLOBAL_CACHE_DIR": str(built / "zig"),
        "CARGO_ZIGBUILD_CACHE_DIR": str(built / "zigbuild"),
        **dict(variable.split("=", 1) for variable in variables),
    }


if __name__ == "__main__":
    sys.exit(main())
