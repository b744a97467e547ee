"""Wheels in dist/, and where others than this machine's are tried."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename
from support.sources import ROOT

MISSING = "there is no wheel in dist/: run `make wheel`"


def all_wheels() -> list[Path]:
    return sorted((ROOT / "dist").glob("ottla-*.whl"))


def is_for_this_machine(wheel: Path) -> bool:
    return bool(parse_wheel_filename(wheel.name)[3] & set(sys_tags()))


def install(wheel: Path, directory: Path, version: str, platforms: list[str]) -> None:
    """Puts a wheel and what it needs into a directory, for a Python of another machine."""
    options = [f"--platform={platform}" for platform in platforms]
    major = version.replace(".", "")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
    command += ["--target", str(directory), "--python-version", version, "--implementation=cp"]
    command += [f"--abi=cp{major}", "--abi=abi3", "--abi=none", *options, str(wheel)]
    constraints = {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    subprocess.run(command, check=True, env={**os.environ, **constraints})


def unpacked(package: str, architecture: str, directory: Path) -> str | None:
    """Unpacks a package of Debian and what it needs for another machine, beside the system.

    Returns why it cannot, if it cannot.
    """
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return "apt-get is missing"
    for part in ("lists/partial", "cache/archives/partial", "root"):
        (directory / part).mkdir(parents=True, exist_ok=True)
    (directory / "status").touch()
    settings = (
        f'APT::Architectures {{ "{architecture}"; }};',
        f'APT::Architecture "{architecture}";',
        f'Dir::State "{directory}";',
        f'Dir::State::status "{directory}/status";',
        f'Dir::Cache "{directory}/cache";',
        'Debug::NoLocking "1";',
        'APT::Sandbox::User "";',
    )
    (directory / "apt.conf").write_text("\n".join(settings))
    environment = {**os.environ, "APT_CONFIG": str(directory / "apt.conf")}
    fetch = ["install", "--yes", "--quiet", "--download-only", "--no-install-recommends", package]
    for command in (["update", "--quiet"], fetch):
        done = subprocess.run(
            ["apt-get", *command], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            return f"no {package} of {architecture}: {done.stderr.strip()[-200:]}"
    for file in (directory / "cache/archives").glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", file, directory / "root"], check=True)
    return None
