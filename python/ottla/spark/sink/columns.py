"""What a frame to be written as logs has to look like, and the options of the writer."""

from __future__ import annotations

import base64
import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, get_args

from ottla.errors import SparkError
from ottla.records import Compression
from ottla.spark.work.schema import SQL_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql.types import StructType

COLUMNS = {
    "topic": ("string",),
    "partition": ("int", "bigint"),
    "timestamp": ("bigint", "timestamp"),
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "headers": (SQL_TYPES["headers"],),
}
"""The columns that are written, with the types they may have."""

OPTIONS = {
    "path": "the argument of save()",
    "topic": "the topic of all rows",
    "partition": "the partition of all rows",
    "topic_id": "the id of that topic, as Kafka prints it",
    "compression": f"one of {', '.join(get_args(Compression))}",
    "batch_bytes": "bytes of keys, values and headers in a batch, 1 to 67108864",
    "segment_bytes": "bytes after which a segment ends, at least 1",
}

MAX_BATCH_BYTES = 64 << 20

MAX_PARTITION = 2**31 - 1


@dataclass(frozen=True, slots=True)
class SinkRequest:
    """The checked options of a write."""

    path: str
    topic: str | None
    partition: int | None
    topic_id: str | None
    compression: Compression
    batch_bytes: int
    segment_bytes: int


def parse_sink(
    options: Mapping[str, str], schema: StructType, *, is_overwrite: bool
) -> SinkRequest:
    """Checks the options of a write, and the columns of what is written.

    Raises:
        SparkError: an option is unknown, or has an invalid value; a column is missing, unknown or
            of another type; the mode is ``overwrite``.
    """
    if is_overwrite:
        raise SparkError(
            "logs are never replaced: write with mode('append') to a new or an empty directory"
        )
    given = {name.lower(): value for name, value in options.items()}
    for name in given:
        if name not in OPTIONS:
            known = ", ".join(known for known in OPTIONS if known != "path")
            raise SparkError(f"writing with ottla has no option {name!r}, only {known}")
    path = given.get("path", "")
    if not path:
        raise SparkError("writing with ottla needs a path: save('/backup/kafka')")
    if "://" in path:
        raise SparkError(
            f"{path} is no directory that the driver and the executors share: logs are written to"
            " such directories only"
        )
    codec = given.get("compression", "none")
    if codec not in get_args(Compression):
        raise SparkError(f"compression is {codec!r}, not {OPTIONS['compression']}")
    _check_columns(schema, given)
    topic, partition = given.get("topic"), None
    if "partition" in given:
        partition = _number(given, "partition", 0, 0, 2**31 - 1)
    if topic is not None:
        check_topic(topic, partition or 0)
    return SinkRequest(
        path.removeprefix("file:"),
        topic,
        partition,
        _topic_id(given),
        cast("Compression", codec),
        _number(given, "batch_bytes", 1 << 19, 1, MAX_BATCH_BYTES),
        _number(given, "segment_bytes", 1 << 30, 1, 2**31 - 1),
    )


def check_topic(topic: str, partition: int) -> None:
    """Raises SparkError unless there can be a partition of this name."""
    is_topic = re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic) and topic not in (".", "..")
    if not is_topic or not 0 <= partition <= MAX_PARTITION:
        raise SparkError(f"{topic!r} and {partition} are not the name of a partition")


def _check_columns(schema: StructType, options: Mapping[str, str]) -> None:
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    foreign = [name for name in types if name not in COLUMNS]
    if foreign:
        what = f"column {foreign[0]} is" if len(foreign) == 1 else f"columns {_and(foreign)} are"
        hint = ": offsets are given anew, from 0" if "offset" in foreign else ""
        raise SparkError(
            f"{what} not written, only {_and(COLUMNS)}: leave out by select() what is no part of a"
            f" record{hint}"
        )
    for name, found in types.items():
        if found not in COLUMNS[name]:
            expected = " or ".join(COLUMNS[name])
            raise SparkError(f"column {name} is {found}, expected {expected}{_hint(name, found)}")
        if name in ("topic", "partition") and name in options:
            raise SparkError(f"{name} is an option and a column of the frame: leave one out")
    for name in ("value", "topic", "partition"):
        if name not in types and (name == "value" or name not in options):
            also = "" if name == "value" else f", or the option {name}"
            raise SparkError(f"the frame needs a column {name}{also}")


def _hint(name: str, found: str) -> str:
    """Returns how a column becomes what is written, if one expression does it."""
    if name == "timestamp" and found in ("timestamp_ntz", "date"):
        return ": cast it to timestamp, in the time zone that is meant"
    if name == "headers" and found == "string":
        return ": headers as JSON text were made by headers=json, read them without it"
    if name == "headers" and found.startswith("map<"):
        return ": transform(map_entries(headers), e -> named_struct('key', …, 'value', …)) makes it"
    return ""


def _and(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def new_topic_id() -> str:
    """Returns a random id of a topic, as Kafka makes and prints them: not beginning with ``-``."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def _topic_id(options: Mapping[str, str]) -> str | None:
    text = options.get("topic_id")
    if text is None:
        return None
    if "topic" not in options:
        raise SparkError("topic_id is the id of one topic: it needs the option topic")
    if not re.fullmatch(r"[A-Za-z0-9_-]{22}", text):
        raise SparkError(f"topic_id is {text!r}, must be 22 characters as kafka-topics prints them")
    return text


def _number(options: Mapping[str, str], name: str, default: int, minimum: int, maximum: int) -> int:
    text = options.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and minimum <= int(text) <= maximum):
        raise SparkError(f"{name} is {text!r}, must be a number of {minimum} to {maximum}")
    return int(text)
