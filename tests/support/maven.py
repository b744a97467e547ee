"""Jars that tests need, through Maven, kept below `target`."""

import shutil
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benches.maven import MavenError, run_maven

_TARGET = Path(__file__).resolve().parents[2] / "target"
# Only what hangs takes as long, on any machine.
_MAVEN_WITHIN_S = 300
_fetching = threading.Lock()


class MissingError(Exception):
    """Something that is not here: Java, Maven, or what Maven has to fetch."""


@dataclass(frozen=True)
class Jar:
    """What Maven knows a jar by, and whether it takes those it depends on along."""

    group: str
    artifact: str
    version: str
    with_dependencies: bool = True

    @property
    def dependency(self) -> str:
        """The element of a pom."""
        alone = (
            ""
            if self.with_dependencies
            else "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId>"
            "</exclusion></exclusions>"
        )
        return (
            f"<dependency><groupId>{self.group}</groupId><artifactId>{self.artifact}</artifactId>"
            f"<version>{self.version}</version>{alone}</dependency>"
        )


def fetched(name: str, jars: Sequence[Jar]) -> Path:
    """The directory of jars under a name below `target`, fetched the first time.

    Raises:
        MissingError: no Java or Maven, or Maven reaches no repository or not such a jar.
    """
    folder = _TARGET / name
    with _fetching:
        if not folder.is_dir():
            _fetch(folder, jars)
    return folder


def _fetch(folder: Path, jars: Sequence[Jar]) -> None:
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise MissingError(f"no command {program}: install Java 17 or newer, and Maven")
    growing = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
    growing.mkdir(parents=True)
    try:
        pom = growing / "pom.xml"
        pom.write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>ottla</groupId><artifactId>jars</artifactId><version>0</version>"
            "<packaging>pom</packaging><dependencies>"
            + "".join(jar.dependency for jar in jars)
            + "</dependencies></project>"
        )
        copying = ("dependency:copy-dependencies", "-DincludeScope=runtime")
        try:
            run_maven(pom, [*copying, f"-DoutputDirectory={growing}"], within_s=_MAVEN_WITHIN_S)
        except MavenError as error:
            raise MissingError(str(error)) from None
        try:
            growing.rename(folder)
        except OSError:
            # Another process was first.
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(growing, ignore_errors=True)
