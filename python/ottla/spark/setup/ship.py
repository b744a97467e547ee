"""Sends Ottla to workers that lack it: the driver's package, as an archive of the session."""

from __future__ import annotations

import functools
import hashlib
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import ottla
from ottla.errors import SparkError
from ottla.spark.setup.register import register_source
from ottla.spark.work.kind import is_connect, require_pyspark
from ottla.spark.work.worker import owner_of, remember_shipped

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["ship"]

# Names of the archives sent to each session; for a classic session, to its context.
_sent: WeakKeyDictionary[object, set[str]] = WeakKeyDictionary()


def ship(spark: SparkSession, wheel: str | os.PathLike[str] | None = None) -> str:
    """Sends Ottla to the workers of a session, whose Python needs NumPy and pyarrow.

    The installed package, with its extension, is sent to every executor as an archive. The
    functions of `ottla.spark` and `spark.read.format("ottla")` use it in preference to an installed
    package. A worker that has already imported Ottla keeps it, so ship before the first job.
    Shipping the same package again does nothing. Where Ottla is installed, none of this is needed.

    Args:
        spark: a session, classic or Spark Connect.
        wheel: a wheel of the same version to send instead of the installed package, for workers on
            another platform than the driver.

    Returns:
        The name of the directory it is unpacked to, in the working directory of each worker.

    Raises:
        MissingDependencyError: PySpark is not installed.
        SparkError: the wheel is not one of Ottla, or not of the driver's version.

    Example:
        >>> ship(spark)  # doctest: +SKIP
        'ottla-0.1.0-5f0c3b1a'
    """
    require_pyspark()
    members = dict(_members_of(Path(wheel)) if wheel is not None else _installed())
    name = _name_of(members)
    sent = _sent.setdefault(owner_of(spark), set())
    if name not in sent:
        archive = f"{_archive(name, members)}#{name}"
        if is_connect(spark):
            spark.addArtifacts(archive, archive=True)
        else:
            spark.sparkContext.addArchive(archive)
        sent.add(name)
        remember_shipped(spark, name)
        register_source(spark)
    remember_shipped(spark, name)
    return name


def _installed() -> Iterator[tuple[str, bytes]]:
    package = Path(ottla.__file__).parent
    for path in package.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(package.parent).as_posix(), path.read_bytes()
    source = package.parent / "pyspark_ottla.py"
    if source.is_file():
        yield source.name, source.read_bytes()


def _members_of(wheel: Path) -> Iterator[tuple[str, bytes]]:
    version = wheel.name.split("-")[1:2]
    try:
        archive = zipfile.ZipFile(wheel)
    except (OSError, zipfile.BadZipFile) as error:
        raise SparkError(f"{wheel} cannot be read as a wheel: {error}") from error
    with archive:
        if "ottla/__init__.py" not in archive.namelist():
            raise SparkError(f"{wheel} is not a wheel of Ottla: it has no ottla/__init__.py")
        if version != [ottla.__version__]:
            raise SparkError(
                f"{wheel.name} is not of the driver's version, {ottla.__version__}: "
                "workers and driver must have the same version"
            )
        for name in archive.namelist():
            if not name.endswith("/"):
                yield name, archive.read(name)


def _name_of(members: dict[str, bytes]) -> str:
    digest = hashlib.blake2b(digest_size=4)
    for name, content in sorted(members.items()):
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return f"ottla-{ottla.__version__}-{digest.hexdigest()}"


def _archive(name: str, members: dict[str, bytes]) -> Path:
    """Writes the archive, which executors fetch as long as the driver runs."""
    path = Path(_folder().name) / f"{name}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for member, content in sorted(members.items()):
            archive.writestr(zipfile.ZipInfo(member), content, zipfile.ZIP_DEFLATED, 1)
    return path


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="ottla-")
