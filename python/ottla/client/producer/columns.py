"""What a caller gives, as the producer takes it: serialized, and columns of many rows."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ottla.client.errors import IllegalArgumentError
from ottla.client.producer.rows import Rows
from ottla.records import arrow_column, partitions_of, require_numpy

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from ottla.client.producer.accumulator import Topic
    from ottla.client.producer.core import ProducerCore

__all__ = ["partition_chooser", "rows_of", "serialized"]


def serialized(serializer: Callable[[Any], Any], thing: Any, what: str, topic: str) -> Any:
    """Returns what a serializer makes of a key or value.

    Raises:
        Exception: whatever the serializer raises, with a note of what it was given.
    """
    try:
        return serializer(thing)
    except Exception as error:
        # Python 3.10 has no notes.
        note: Any = getattr(error, "add_note", None)
        if note is not None:
            note(
                f"raised by {what}_serializer for a record of topic {topic}, which was not sent; "
                f"its {what} is of type {type(thing).__name__}"
            )
        raise


def rows_of(
    values: Any,
    keys: Any,
    timestamps_ms: Any,
    headers: Any,
    now_ms: int,
) -> Rows:
    """Returns columns as the engine takes them.

    Raises:
        IllegalArgumentError: they have different lengths, or are of no known kind.
        ImportError: this CPU cannot load NumPy.
    """
    require_numpy("Send each record")
    import numpy as np

    columns = {"values": _column(values, "values"), "keys": _column(keys, "keys")}
    counts = {name: _count(column) for name, column in columns.items() if column is not None}
    timestamps: Any = now_ms if timestamps_ms is None else timestamps_ms
    if not isinstance(timestamps, int):
        timestamps = np.ascontiguousarray(timestamps, np.int64)
        counts["timestamps_ms"] = len(timestamps)
    if headers is not None:
        headers = list(headers)
        counts["headers"] = len(headers)
    if not counts:
        raise IllegalArgumentError("neither values nor keys are given; expected one of them")
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise IllegalArgumentError(f"columns have different lengths: {found}")
    count = next(iter(counts.values()))
    return Rows(count, timestamps, columns["keys"], columns["values"], headers)


def partition_chooser(
    core: ProducerCore, rows: Rows
) -> Callable[[Topic, int], NDArray[np.int32]] | None:
    """Returns what chooses the partition of each row; `None` where batches do."""
    accumulator = core.accumulator
    settings = core.settings
    if settings.partitioner == "default":
        if rows.keys is None or settings.partitioner_ignore_keys:
            return None
        return lambda topic, now_ms: _by_key(core, rows, topic, now_ms)

    import numpy as np

    def each(topic: Topic, now_ms: int) -> NDArray[np.int32]:
        keys = _objects(rows.keys, rows.count)
        values = _objects(rows.values, rows.count)
        chosen = (
            accumulator.choose(topic, key, value, now_ms)
            for key, value in zip(keys, values, strict=True)
        )
        return np.fromiter(chosen, np.int32, rows.count)

    return each


def _by_key(core: ProducerCore, rows: Rows, topic: Topic, now_ms: int) -> NDArray[np.int32]:
    chosen: NDArray[np.int32] = partitions_of(rows.keys, topic.count)
    if (chosen < 0).any():
        chosen = chosen.copy()
        # Those without a key stay together, as a batch's worth of single records would.
        chosen[chosen < 0] = core.accumulator.stick(topic, now_ms)
    return chosen


def _column(column: Any, name: str) -> Any:
    """Returns a column of bytes as the engine takes it: a list, or offsets and data."""
    import numpy as np

    if column is None or isinstance(column, list):
        return column
    if isinstance(column, tuple):
        is_column = len(column) > 1 and isinstance(column[0], np.ndarray)
        return column if is_column else list(column)
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    if hasattr(column, "buffers"):
        return arrow_column(column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "SO":
        return column.tolist()
    if isinstance(column, Iterable) and not isinstance(column, (bytes, bytearray, str, np.ndarray)):
        return list(column)
    raise IllegalArgumentError(
        f"{name} is of type {type(column).__name__}; expected a list of bytes, an Arrow array of "
        "binary, or a tuple of offsets and data, both NumPy arrays"
    )


def _count(column: Any) -> int:
    return len(column) if isinstance(column, list) else max(len(column[0]) - 1, 0)


def _objects(column: Any, count: int) -> list[Any]:
    """Returns the bytes of each row."""
    if column is None:
        return [None] * count
    if isinstance(column, list):
        return column
    offsets, data = column[0], bytes(column[1])
    found: list[Any] = [data[start:stop] for start, stop in pairwise(offsets)]
    validity = column[2:] and column[2]
    if len(validity):
        found = [one if valid else None for one, valid in zip(found, validity, strict=True)]
    return found
