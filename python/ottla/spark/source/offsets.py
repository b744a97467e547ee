"""Where a read begins and ends in each partition, as the options of Spark's Kafka source say it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ottla.errors import SparkError
from ottla.logs.names import MAX_OFFSET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.spark.source.names import GivenOptions

EARLIEST = -2
LATEST = -1
"""Numbers that stand for the first and the next offset of a partition, as in Kafka's protocol."""

TopicPartition = tuple[str, int]

End = Literal["earliest", "latest"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Where a read begins, or ends, in each partition.

    One of these decides: offsets of single partitions, timestamps of single partitions, one
    timestamp for all, one end of the log for all.
    """

    option: str
    """The option that decided, as typed."""
    end: End
    timestamp: int | None = None
    """The first record at or after this time, ms since 1970."""
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Offsets; `EARLIEST` and `LATEST` stand for the ends."""
    timestamps: Mapping[TopicPartition, int] = field(default_factory=dict)
    is_latest_if_none: bool = False
    """Whether a timestamp later than all records means the end of the log, and is no error."""

    @property
    def is_default(self) -> bool:
        """Whether nothing was chosen."""
        return not (self.offsets or self.timestamps) and self.timestamp is None

    @property
    def needs_reading(self) -> bool:
        """Whether only the records show where that is."""
        return self.timestamp is not None or bool(self.timestamps)


FROM_EARLIEST = Choice("starting_offsets", "earliest")
TO_LATEST = Choice("ending_offsets", "latest")


def parse_starting(given: GivenOptions) -> Choice:
    """Returns where to begin, by default with the first record.

    The order in which options decide is that of Spark's Kafka source: `starting_timestamp`,
    `starting_offsets_by_timestamp`, `starting_offsets`.

    Raises:
        SparkError: an option has an invalid value.
    """
    name = "starting_offsets_by_timestamp_strategy"
    strategy = given.values.get(name, "error").lower()
    if strategy not in ("error", "latest"):
        typed = given.typed[name]
        raise SparkError(f"{typed} is {given.values[name]!r}, must be error or latest")
    is_latest_if_none = strategy == "latest"
    return _parse(given, "starting", "earliest", is_latest_if_none=is_latest_if_none)


def parse_ending(given: GivenOptions) -> Choice:
    """Returns where to end, by default behind the last record.

    Raises:
        SparkError: an option has an invalid value.
    """
    return _parse(given, "ending", "latest", is_latest_if_none=True)


def _parse(given: GivenOptions, which: str, default: End, *, is_latest_if_none: bool) -> Choice:
    values = given.values
    for name in (f"{which}_timestamp", f"{which}_offsets_by_timestamp", f"{which}_offsets"):
        if name in values:
            break
    else:
        return FROM_EARLIEST if which == "starting" else TO_LATEST
    typed, text = given.typed[name], values[name].strip()
    if name == f"{which}_timestamp":
        if re.fullmatch(r"[0-9]{1,19}", text) is None or int(text) > MAX_OFFSET:
            raise SparkError(f"{typed} is {text!r}, must be a number of ms since 1970")
        return Choice(typed, default, int(text), is_latest_if_none=is_latest_if_none)
    if name == f"{which}_offsets_by_timestamp":
        timestamps = _by_partition(typed, text, lowest=0)
        return Choice(typed, default, timestamps=timestamps, is_latest_if_none=is_latest_if_none)
    if text.lower() in ("earliest", "latest"):
        end: End = "earliest" if text.lower() == "earliest" else "latest"
        if which == "ending" and end == "earliest":
            raise SparkError(f"{typed} is {text!r}, must be latest or JSON: nothing would be read")
        return Choice(typed, end)
    offsets = _by_partition(typed, text, lowest=EARLIEST)
    if which == "ending" and EARLIEST in offsets.values():
        raise SparkError(f"{typed} has {EARLIEST}, which is earliest: nothing would be read")
    return Choice(typed, default, offsets=offsets)


def _by_partition(typed: str, text: str, *, lowest: int) -> dict[TopicPartition, int]:
    """Returns numbers of single partitions from JSON such as ``{"orders": {"0": 23}}``."""
    example = '{"orders": {"0": 23}}'
    expected = f"must be JSON such as {example}"
    found: dict[TopicPartition, int] = {}
    for topic, numbers in parse_json_object(typed, text, expected).items():
        if not isinstance(numbers, dict):
            raise SparkError(f"{typed} has {numbers!r} for topic {topic!r}, {expected}")
        for partition, number in numbers.items():
            if re.fullmatch(r"[0-9]{1,10}", partition) is None:
                raise SparkError(f"{typed} has a partition {partition!r} of {topic!r}, {expected}")
            is_number = isinstance(number, int) and not isinstance(number, bool)
            if not (is_number and lowest <= number <= MAX_OFFSET):
                raise SparkError(
                    f"{typed} has {number!r} for {topic}-{partition}, must be a number from"
                    f" {lowest} to {MAX_OFFSET}"
                )
            found[topic, int(partition)] = number
    if not found:
        raise SparkError(f"{typed} is {text!r}, {expected}")
    return found


def parse_assign(typed: str, text: str) -> tuple[TopicPartition, ...]:
    """Returns partitions from JSON such as ``{"orders": [0, 1]}``.

    >>> parse_assign("assign", '{"orders": [0, 1]}')
    (('orders', 0), ('orders', 1))

    Raises:
        SparkError: it is something else.
    """
    example = '{"orders": [0, 1]}'
    expected = f"must be JSON such as {example}"
    found: dict[TopicPartition, None] = {}
    for topic, numbers in parse_json_object(typed, text, expected).items():
        for number in numbers if isinstance(numbers, list) else [None]:
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise SparkError(f"{typed} has {numbers!r} for topic {topic!r}, {expected}")
            found[topic, number] = None
    if not found:
        raise SparkError(f"{typed} is {text!r}, {expected}")
    return tuple(found)


def parse_json_object(typed: str, text: str, expected: str) -> dict[str, Any]:
    """Returns the members of a JSON object.

    Raises:
        SparkError: it is something else, or has a member twice.
    """

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise SparkError(f"{typed} has {twice!r} twice")
        return found

    try:
        value = json.loads(text, object_pairs_hook=members)
    except (ValueError, RecursionError) as error:
        raise SparkError(f"{typed} is {text!r}, {expected}: {error}") from error
    if not isinstance(value, dict):
        raise SparkError(f"{typed} is {text!r}, {expected}")
    return value
