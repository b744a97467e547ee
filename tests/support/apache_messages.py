"""Messages as Apache defines them: the JSON inside Kafka's jars."""

import json
import os
import re
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ottla.protocol.wire import NO_UUID
from support.maven import Jar, MissingError, fetched

NEWEST = "4.4.0"
# The last release that had what Kafka 4 took out.
OLDER = "3.9.1"
_JARS = {
    NEWEST: (
        "kafka-clients",
        "kafka-group-coordinator",
        "kafka-transaction-coordinator",
        "kafka-metadata",
    ),
    OLDER: ("kafka-clients", "kafka-metadata"),
}
# What Kafka's records need besides, to be read at all.
_LOGGING = Jar("org.slf4j", "slf4j-api", "1.7.36", with_dependencies=False)
_LAST_VERSION = 32767
_TEXT_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*')
_ZEROS = {"bool": False, "string": "", "bytes": b"", "records": None, "uuid": NO_UUID}


class Fact(NamedTuple):
    """What one version of a message says of a field."""

    name: str
    type: str
    is_array: bool
    may_be_null: bool
    tag: int | None
    default: object
    ignorable: bool
    fields: tuple["Fact", ...]


@cache
def jars(release: str) -> Path:
    """The directory of Kafka's jars, by Maven; without it a test is skipped, and fails in CI."""
    wanted = [
        Jar("org.apache.kafka", name, release, with_dependencies=False) for name in _JARS[release]
    ]
    try:
        return fetched(f"kafka/declarations-{release}", [*wanted, _LOGGING])
    except MissingError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@cache
def definitions(release: str) -> dict[str, dict[str, Any]]:
    """The messages of a release by their names."""
    found = {}
    for name in _JARS[release]:
        with zipfile.ZipFile(jars(release) / f"{name}-{release}.jar") as jar:
            for entry in jar.namelist():
                if entry.startswith(("common/message/", "common/metadata/")) and entry.endswith(
                    ".json"
                ):
                    text = _TEXT_OR_COMMENT.sub(lambda hit: hit[1] or "", jar.read(entry).decode())
                    definition = json.loads(text)
                    found[definition["name"]] = definition
    return found


def versions_of(text: str | None) -> range:
    """The versions that a text of the JSON names; none is a text, or no text at all."""
    if text is None or text == "none":
        return range(0)
    first, _, last = text.rstrip("+").partition("-")
    return range(int(first), (_LAST_VERSION if text.endswith("+") else int(last or first)) + 1)


def snake_case(name: str) -> str:
    """A name as an attribute: ``ISRNodes`` and ``isrNodes`` as ``isr_nodes``."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return words.lower()


def facts(definition: dict[str, Any], version: int) -> tuple[Fact, ...]:
    """What a version of a message has, in the order of the wire, tagged fields behind others."""
    common = {shared["name"]: shared["fields"] for shared in definition.get("commonStructs", [])}
    return tuple(_facts(definition["fields"], version, common))


def _facts(fields: Any, version: int, common: dict[str, Any]) -> Iterator[Fact]:
    found = []
    for field in fields:
        tagged = field.get("taggedVersions")
        if version not in versions_of(field.get("versions", tagged)):
            continue
        kind = field["type"].removeprefix("[]")
        is_array = kind != field["type"]
        inner = field.get("fields") or common.get(kind, ())
        found.append(
            Fact(
                snake_case(field["name"]),
                kind,
                is_array,
                version in versions_of(field.get("nullableVersions")),
                int(field["tag"]) if version in versions_of(tagged) else None,
                _default(field.get("default"), kind, is_array=is_array, is_struct=bool(inner)),
                bool(field.get("ignorable", False)),
                tuple(_facts(inner, version, common)),
            )
        )
    yield from (fact for fact in found if fact.tag is None)
    yield from sorted(
        (fact for fact in found if fact.tag is not None), key=lambda fact: fact.tag or 0
    )


def _default(said: object, kind: str, *, is_array: bool, is_struct: bool) -> object:
    """The value of a field that is not given. Java takes null without quotes for nothing said."""
    if said == "null":
        return None
    if is_array:
        return []
    if is_struct:
        return "a struct of defaults"
    if said is None:
        return _ZEROS.get(kind, 0)
    if kind == "bool":
        return str(said).lower() == "true"
    if kind == "float64":
        return float(str(said))
    return int(str(said), 0) if "int" in kind else said
