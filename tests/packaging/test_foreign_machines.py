"""Wheels for other machines than this one, each on a Python of its kind, where one is to be had.

`make wheels` prints which were left out, and why: of those only the contents were checked.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.wheels import all_wheels, install, is_for_this_machine, unpacked

pytestmark = pytest.mark.slow

GLIBC_OF_ARM = [f"manylinux_2_{minor}_aarch64" for minor in (28, 27, 17)] + [
    "manylinux2014_aarch64"
]
MUSL_OF_X86 = ["musllinux_1_2_x86_64", "musllinux_1_1_x86_64"]
VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def wheel_named(part: str) -> Path:
    found = [wheel for wheel in all_wheels() if part in wheel.name]
    if not found:
        pytest.skip(f"no {part} in dist/")
    return found[0]


def try_in(python: list[str], wheel: Path, platforms: list[str], root: Path, home: Path) -> None:
    asked = subprocess.run([*python, "-c", VERSION], check=True, capture_output=True, text=True)
    install(wheel, home / "site", asked.stdout.strip(), platforms)
    done = subprocess.run(
        [*python, str(root / "release/trial.py"), str(root / "examples/data")],
        cwd=home,
        env={"PYTHONPATH": str(home / "site"), "HOME": str(home), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "works on" in done.stdout


def test_a_wheel_for_arm_works_under_qemu(root: Path, tmp_path: Path) -> None:
    wheel = wheel_named("manylinux_2_17_aarch64")
    if is_for_this_machine(wheel):
        pytest.skip("this is such a machine: test_wheel.py tries it")
    qemu = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if qemu is None:
        pytest.skip("qemu-aarch64 is missing: install qemu-user")
    if reason := unpacked("python3", "arm64", tmp_path):
        pytest.skip(reason)
    python = next((tmp_path / "root/usr/bin").glob("python3.*[0-9]"))
    emulated = [qemu, "-L", str(tmp_path / "root"), str(python)]
    try_in(emulated, wheel, GLIBC_OF_ARM, root, tmp_path)


def test_a_wheel_for_musl_works_on_a_python_that_was_built_for_it(
    root: Path, tmp_path: Path
) -> None:
    wheel = wheel_named("musllinux_1_2_x86_64")
    built = root / "target/musl/bin/python3"
    # One that is named and missing is a mistake, and no reason to leave the wheel untried.
    python = os.environ.get("OTTLA_MUSL_PYTHON") or (str(built) if built.exists() else None)
    if python is None:
        pytest.skip(f"{built}, a Python on musl, is missing: run `make musl-python`")
    try_in([python], wheel, MUSL_OF_X86, root, tmp_path)
