"""Wheels that are shipped in place of the installed package, and those that are refused."""

import subprocess
import sys
import zipfile
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import ottla
import ottla.spark
import pytest
from ottla.spark.work.worker import find_ottla, remember_shipped, run_in_worker

pytestmark = pytest.mark.spark

PACKAGE = Path(ottla.__file__).parent


def wheel_of(directory: Path, version: str, members: dict[str, bytes]) -> Path:
    wheel = directory / f"ottla-{version}-cp310-abi3-manylinux_2_34_x86_64.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return wheel


def test_a_wheel_is_shipped_in_place_of_the_installed_package(
    new_cluster: Any, tmp_path: Path
) -> None:
    members = {
        path.relative_to(PACKAGE.parent).as_posix(): path.read_bytes()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    members["ottla/from_the_wheel.py"] = b"def hand_on(payload):\n    return iter\n"
    name = ottla.spark.ship(new_cluster, wheel_of(tmp_path, ottla.__version__, members))
    assert name.startswith(f"ottla-{ottla.__version__}-")
    function = run_in_worker("ottla.from_the_wheel:hand_on", None)
    frame = new_cluster.range(0, 4, 1, 2).mapInArrow(function, "id bigint")
    assert sorted(row.id for row in frame.collect()) == [0, 1, 2, 3]


def test_shipping_again_does_nothing(spark: Any) -> None:
    name = ottla.spark.ship(spark)
    archives = spark.sparkContext.listArchives
    assert ottla.spark.ship(spark) == name
    assert spark.sparkContext.listArchives == archives


@pytest.mark.parametrize(
    ("version", "members", "says"),
    [
        ("9.9.9", {"ottla/__init__.py": b""}, "not of the driver's version"),
        (ottla.__version__, {"other/__init__.py": b""}, "is not a wheel of Ottla"),
    ],
)
def test_another_wheel_is_refused(
    spark: Any, tmp_path: Path, version: str, members: dict[str, bytes], says: str
) -> None:
    with pytest.raises(ottla.SparkError, match=says):
        ottla.spark.ship(spark, wheel_of(tmp_path, version, members))


def test_a_file_that_is_no_wheel_is_refused(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "ottla-0.1.0.whl").write_bytes(b"no archive")
    with pytest.raises(ottla.SparkError, match="cannot be read as a wheel"):
        ottla.spark.ship(spark, tmp_path / "ottla-0.1.0.whl")
    with pytest.raises(ottla.SparkError, match="cannot be read as a wheel"):
        ottla.spark.ship(spark, tmp_path / "absent.whl")


FIND = """
import pickle, sys
from pyspark import SparkFiles
SparkFiles._is_running_on_worker, SparkFiles._root_directory = True, sys.argv[1]
pickle.load(sys.stdin.buffer)()
print(sys.modules["ottla"].BUILD)
"""


def test_each_session_finds_the_build_that_was_shipped_to_it(tmp_path: Path) -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    for build in ("aaaa", "bbbb"):
        package = tmp_path / f"ottla-{ottla.__version__}-{build}" / "ottla"
        package.mkdir(parents=True)
        code = f"__version__, BUILD = {ottla.__version__!r}, {build!r}\n"
        (package / "__init__.py").write_text(code)
    # Of a classic session, archives are remembered by its context.
    first, second, neither = (SimpleNamespace(sparkContext=Event()) for _ in range(3))
    remember_shipped(first, f"ottla-{ottla.__version__}-aaaa")
    remember_shipped(second, f"ottla-{ottla.__version__}-bbbb")

    def found(session: Any) -> str:
        find = cloudpickle.dumps(find_ottla(session))
        # Without the directory of this checkout in the path.
        site = [path for path in sys.path if path.endswith("site-packages")]
        done = subprocess.run(
            [sys.executable, "-S", "-c", f"import sys; sys.path += {site!r}\n{FIND}", tmp_path],
            input=find, capture_output=True, check=False, env={}, cwd="/",
        )  # fmt: skip
        assert not done.stderr, done.stderr.decode()
        return str(done.stdout, "utf-8").strip()

    assert found(first) == "aaaa"
    assert found(second) == "bbbb"
    # Shipped by another process: whichever comes first by name.
    assert found(neither) == "aaaa"
