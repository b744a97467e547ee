"""The options of the data source: their names, in every spelling, and what they mean.

Each has a name in our spelling, and the same without underscores: `fail_on_data_loss` is also
`failOnDataLoss`, as in Spark's own sources. Spark passes names in lower case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, get_args

from ottla.audit.pipeline import Level
from ottla.audit.result.columns import TABLES
from ottla.errors import SparkError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MIN_TASK_BYTES = 64 << 10

STORAGE_PREFIX = "storage."
"""Prefix of options that are settings of an object store; see `ottla.storage.files_of`."""

OPTIONS = {
    "path": "the argument of load()",
    "paths": "the argument of load()",
    "table": f"one of {', '.join(TABLES)}",
    "schema": "ottla or kafka",
    "columns": "names of columns, separated by commas",
    "headers": "structs or json",
    "include_headers": "true or false",
    "impossible_timestamps": "error, null or clamp",
    "topics": "patterns of topics, separated by commas",
    "subscribe": "names of topics, separated by commas",
    "subscribe_pattern": "a regular expression of topics",
    "assign": 'partitions as JSON: {"orders": [0, 1]}',
    "isolation_level": "read_uncommitted or read_committed",
    "starting_offsets": 'earliest, latest or JSON: {"orders": {"0": 23, "1": -2}}',
    "ending_offsets": 'latest or JSON: {"orders": {"0": 50, "1": -1}}',
    "starting_timestamp": "ms since 1970",
    "ending_timestamp": "ms since 1970",
    "starting_offsets_by_timestamp": 'JSON: {"orders": {"0": 1700000000000}}',
    "ending_offsets_by_timestamp": 'JSON: {"orders": {"0": 1700000000000}}',
    "starting_offsets_by_timestamp_strategy": "error or latest",
    "on_damage": "fail, skip or quarantine",
    "late_segments": "wait or fail",
    "recreated_topics": "fail or begin_anew",
    "compacted_topics": "patterns of topics, separated by commas",
    "fail_on_data_loss": "true or false",
    "level": f"one of {', '.join(get_args(Level))}",
    "partition_bytes": f"bytes per task, at least {MIN_TASK_BYTES}",
    "max_bytes_per_trigger": "bytes per trigger",
}

ALSO = {"kafka.isolation.level": "isolation_level"}
"""Names of Spark's Kafka source that are not ours without underscores."""

OF_CONSUMERS = (
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "minPartitions",
    "maxRecordsPerPartition",
)
"""Options of Spark's Kafka source about its consumers. Like `kafka.…`, they mean nothing to files,
and are accepted with `schema=kafka`, so that a job need not be changed."""

INSTEAD = {
    "maxOffsetsPerTrigger": "max_bytes_per_trigger limits a trigger",
    "minOffsetsPerTrigger": "a trigger reads what there is",
    "maxTriggerDelay": "a trigger reads what there is",
}
"""What to do in place of an option of Spark's Kafka source."""


class GivenOptions(NamedTuple):
    """Options under our names."""

    values: Mapping[str, str]
    typed: Mapping[str, str]
    """Names as the user wrote them."""
    storage_options: Mapping[str, str]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _key(name: str) -> str:
    return name.lower().replace("_", "")


_NAMES = {_key(name): name for name in OPTIONS} | {_key(name): own for name, own in ALSO.items()}

# Spark passes names in lower case: this is how they were typed.
_SPELLINGS = {
    spelled.lower(): spelled
    for name in (*OPTIONS, *ALSO, *OF_CONSUMERS, *INSTEAD)
    for spelled in (name, _camel(name))
}


def as_typed(name: str) -> str:
    """Returns an option's name in the spelling that users write.

    >>> as_typed("failondataloss"), as_typed("fail_on_data_loss"), as_typed("colour")
    ('failOnDataLoss', 'fail_on_data_loss', 'colour')
    """
    return _SPELLINGS.get(name.lower(), name) if name.islower() else name


def take_options(options: Mapping[str, str]) -> GivenOptions:
    """Returns options under our names, however they are spelled.

    >>> take_options({"failondataloss": "false", "storage.region": "eu"}).values
    {'fail_on_data_loss': 'false'}

    Raises:
        SparkError: an option is unknown, or given twice in two spellings.
    """
    values: dict[str, str] = {}
    typed: dict[str, str] = {}
    storage_options: dict[str, str] = {}
    unknown: list[str] = []
    for given, value in options.items():
        if given.lower().startswith(STORAGE_PREFIX):
            storage_options[given.lower().removeprefix(STORAGE_PREFIX)] = value
            continue
        name = _NAMES.get(_key(given))
        if name is None:
            unknown.append(given)
        elif name in values:
            raise SparkError(
                f"the option {name} is given twice: {typed[name]}={values[name]!r} and"
                f" {as_typed(given)}={value!r}; leave one of them out"
            )
        else:
            values[name], typed[name] = value, as_typed(given)
    is_like_kafka = values.get("schema", "").lower() == "kafka"
    for given in unknown:
        if not (is_like_kafka and _is_of_consumers(given)):
            raise _unknown(given)
    return GivenOptions(values, typed, storage_options)


def _is_of_consumers(given: str) -> bool:
    name = given.lower()
    return name.startswith("kafka.") or name in (other.lower() for other in OF_CONSUMERS)


def _unknown(given: str) -> SparkError:
    # It is loaded for a mistake alone.
    from difflib import get_close_matches

    typed = as_typed(given)
    known = _without(("path", "paths"))
    if typed in INSTEAD:
        return SparkError(f"the data source ottla has no option {typed!r}: {INSTEAD[typed]}")
    if _is_of_consumers(given):
        hint = "options of a consumer are accepted with schema=kafka, and have no effect"
        return SparkError(f"the data source ottla has no option {typed!r}: {hint}")
    near = get_close_matches(_key(given), [_key(name) for name in known], n=1)
    question = f" (did you mean {_NAMES[near[0]]}?)" if near else ""
    return SparkError(
        f"the data source ottla has no option {typed!r}{question}, only {', '.join(known)} and"
        f" {STORAGE_PREFIX}endpoint and similar"
    )


def _without(names: Iterable[str]) -> list[str]:
    left_out = set(names)
    return [name for name in OPTIONS if name not in left_out]
