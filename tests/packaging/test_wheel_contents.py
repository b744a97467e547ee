"""What is in each wheel in dist/: nothing of the machine that built it, and all one has to know."""

import json
import os
import re
import subprocess
import sys
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from packaging.metadata import parse_email
from support.wheels import MISSING, all_wheels

from release.wheels import WHEELS, Wheel, machine_paths

pytestmark = pytest.mark.slow

MIB = 1 << 20
# Home directories, and where builders of wheels work.
FOREIGN_PATHS = (
    rb"/(?:home|root|Users|work|tmp|builds|github/workspace)/[\w./-]{3,}|[A-Z]:\\[\w\\.-]{3,}"
)
# The dynamic loader and what stands beside every libc; anything else would have to be bundled.
SYSTEM_LIBRARIES = r"(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux[\w-]*)\.so(\.[\d.]+)?"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    wheels = all_wheels() or [Path("dist")]
    metafunc.parametrize("wheel", wheels, ids=lambda wheel: wheel.name, scope="module")


@pytest.fixture(scope="module")
def contents(wheel: Path) -> dict[str, bytes]:
    assert wheel.suffix == ".whl", MISSING
    with ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


@pytest.fixture(scope="module")
def engine(contents: dict[str, bytes]) -> bytes:
    return next(data for name, data in contents.items() if re.search(r"_engine.*\.(so|pyd)$", name))


def test_a_wheel_and_its_extension_are_small(wheel: Path, engine: bytes) -> None:
    assert wheel.stat().st_size < 5 * MIB
    # Unpacked; for x86-64 there are four kinds of kernels in it.
    assert len(engine) < 5.5 * MIB


def test_an_extension_names_no_place_of_the_machine_that_built_it(engine: bytes) -> None:
    places = [str(path).encode() for path in (*machine_paths(), Path.home()) if len(path.parts) > 2]
    assert [place for place in places if place in engine] == []
    assert b".cargo" not in engine
    assert set(re.findall(FOREIGN_PATHS, engine)) == set()


def test_an_extension_has_no_symbols_but_those_of_the_linker(engine: bytes, tmp_path: Path) -> None:
    file = tmp_path / "engine.so"
    file.write_bytes(engine)
    with file.open("rb") as opened:
        names = {section.name for section in ELFFile(opened).iter_sections()}
    assert ".dynsym" in names
    assert not {name for name in names if name == ".symtab" or name.startswith(".debug")}


def test_an_extension_needs_nothing_but_the_libraries_of_its_system(
    engine: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "engine.so"
    file.write_bytes(engine)
    with file.open("rb") as opened:
        dynamic = ELFFile(opened).get_section_by_name(".dynamic")
        assert isinstance(dynamic, DynamicSection)
        needed = [
            str(getattr(tag, "needed", ""))
            for tag in dynamic.iter_tags()
            if tag.entry.d_tag == "DT_NEEDED"
        ]
    assert [name for name in needed if not re.fullmatch(SYSTEM_LIBRARIES, name)] == []


def test_auditwheel_finds_what_the_name_promises(wheel: Path) -> None:
    if "musllinux" in wheel.name:
        pytest.skip(
            "auditwheel knows the libc of musl by Alpine's name alone: its ELF header tells"
        )
    program = Path(sys.executable).with_name("auditwheel")
    done = subprocess.run([program, "show", wheel], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    (promised,) = [made for made in WHEELS if names(wheel, made)]
    assert f'platform tag: "{promised.platform}_{promised.machine}"' in said


def test_a_wheel_for_musl_asks_for_its_libc_and_no_version_of_another(
    wheel: Path, engine: bytes, tmp_path: Path
) -> None:
    if "musllinux" not in wheel.name:
        pytest.skip("auditwheel looks at those for glibc")
    file = tmp_path / "engine.so"
    file.write_bytes(engine)
    with file.open("rb") as opened:
        elf = ELFFile(opened)
        dynamic = elf.get_section_by_name(".dynamic")
        assert isinstance(dynamic, DynamicSection)
        needed = {getattr(tag, "needed", "") for tag in dynamic.iter_tags()} - {""}
        # Musl's loader takes a name that begins so for itself, as it does the one of Alpine.
        assert needed == {"libc.so"}
        assert elf.get_section_by_name(".gnu.version_r") is None
    assert any(names(wheel, made) for made in WHEELS)


def names(wheel: Path, made: Wheel) -> bool:
    return f"{made.platform}_{made.machine}" in wheel.name


def test_a_wheel_has_the_licences_of_all_it_holds(root: Path, contents: dict[str, bytes]) -> None:
    for name in ("LICENSE", "THIRD-PARTY-LICENSES.txt"):
        found = [data for file, data in contents.items() if file.endswith(f"/licenses/{name}")]
        assert found == [(root / name).read_bytes()]


def test_a_wheel_lists_the_crates_that_are_linked_in(contents: dict[str, bytes]) -> None:
    (bill,) = [data for name, data in contents.items() if name.endswith(".cyclonedx.json")]
    components = {part["name"] for part in json.loads(bill)["components"]}
    assert {
        "ottla-kernels",
        "zstd-sys",
        "lz4-sys",
        "libz-sys",
        "libdeflate-sys",
        "snap",
    } < components
    places = [os.fsencode(path) for path in machine_paths() if len(path.parts) > 2]
    assert [place for place in places if place in bill] == []


def test_a_wheel_knows_each_of_its_files_by_its_hash(contents: dict[str, bytes]) -> None:
    (record,) = [data for name, data in contents.items() if name.endswith(".dist-info/RECORD")]
    rows = [row.split(",") for row in record.decode().splitlines()]
    known = {name: (digest, size) for name, digest, size in rows if digest}
    assert set(contents) - set(known) == {name for name, digest, _ in rows if not digest}
    for name, found in known.items():
        digest = urlsafe_b64encode(sha256(contents[name]).digest()).decode().rstrip("=")
        assert found == (f"sha256={digest}", str(len(contents[name]))), name


def test_a_wheel_holds_the_package_and_the_modules_beside_it(contents: dict[str, bytes]) -> None:
    tops = {name.split("/")[0] for name in contents if ".dist-info/" not in name}
    assert tops == {"ottla", "ottla_command.py", "pyspark_ottla.py", "pytest_ottla.py"}
    stubs = {f"ottla/_engine{part}.pyi" for part in ("", "_logs", "_plane")}
    assert {"ottla/py.typed", *stubs} <= set(contents)


def test_a_wheel_is_described_as_package_indexes_ask(contents: dict[str, bytes]) -> None:
    (text,) = [data for name, data in contents.items() if name.endswith(".dist-info/METADATA")]
    found, unknown = parse_email(text)
    assert unknown == {}
    assert found["license_expression"] == "Apache-2.0"
    assert found["license_files"] == ["LICENSE", "THIRD-PARTY-LICENSES.txt"]
    assert found["description_content_type"].startswith("text/markdown")
