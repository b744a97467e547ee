"""Bytes beside those of Kafka's own classes, which read what we write and write what we read."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from ottla.protocol.codec import encode
from ottla.protocol.wire import Message, schema
from support.apache_messages import NEWEST, OLDER, definitions, jars, versions_of
from support.messages import all_messages, any_message

pytestmark = pytest.mark.slow

REWRITE = Path(__file__).with_name("Rewrite.java")
# Only what hangs takes as long.
WITHIN_S = 300


def class_of(message: type[Message], release: str) -> str:
    """Java's class of a message."""
    name = schema(message).name
    kind = definitions(release)[name]["type"]
    if kind in {"request", "response"}:
        return f"org.apache.kafka.common.message.{name}Data"
    if kind == "data":
        return f"org.apache.kafka.common.message.{name}"
    if kind == "metadata":
        return f"org.apache.kafka.common.metadata.{name}"
    coordinator = "transaction" if name.startswith("Transaction") else "group"
    return f"org.apache.kafka.coordinator.{coordinator}.generated.{name}"


def cases(release: str) -> Iterator[tuple[str, int, str]]:
    random = Random(release)
    for message in all_messages():
        definition = definitions(release).get(schema(message).name)
        for version in versions_of(definition["validVersions"] if definition else None):
            for _ in range(5):
                ours = any_message(message, version, random, private=False)
                frame = b"".join(encode(message, version)(ours))
                yield class_of(message, release), version, frame.hex()


@pytest.mark.parametrize("release", [NEWEST, OLDER])
def test_kafka_reads_our_bytes_and_writes_the_same(release: str) -> None:
    written = list(cases(release))
    done = subprocess.run(
        ["java", "-cp", f"{jars(release)}/*", REWRITE],
        input="".join(f"{name} {version} {frame}\n" for name, version, frame in written),
        capture_output=True,
        text=True,
        check=True,
        timeout=WITHIN_S,
    )
    rewritten = done.stdout.splitlines()
    assert len(rewritten) == len(written)
    differing = {
        (name, version): its[:200]
        for (name, version, frame), its in zip(written, rewritten, strict=True)
        if its != frame
    }
    assert differing == {}
