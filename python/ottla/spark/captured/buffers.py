"""The record sets of a batch of Arrow rows, without copying."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ottla.spark.captured.options import NO_RECORDS, no_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from ottla.spark.captured.options import JudgeContext


def column_arguments(batch: pa.RecordBatch, context: JudgeContext) -> dict[str, Any]:
    """Returns the record sets of a batch, and what they are judged by.

    They are the arguments of `ottla.records.validate_column`.
    """
    sets = batch.column(context.records)
    options = dict(context.constants)
    options |= {name: batch.column(at).to_pylist() for name, at in context.columns.items()}
    unjudged: list[str | None] = [None] * len(sets)
    config: Any = context.config
    if isinstance(config, dict):
        topics = batch.column(context.topic).to_pylist()
        unjudged = [None if topic in config else no_config(topic) for topic in topics]
        config = [config.get(topic) for topic in topics]
    if sets.null_count:
        valid = sets.is_valid().to_pylist()
        unjudged = [why if v else NO_RECORDS for why, v in zip(unjudged, valid, strict=True)]
    ends, data = bytes_and_ends(sets)
    return {
        "ends": ends,
        "data": data,
        "config": config,
        "profile": context.profile,
        "kafka_version": context.kafka_version,
        "unjudged": unjudged,
        **options,
    }


def record_sets(
    batch: pa.RecordBatch, context: JudgeContext
) -> Iterator[tuple[memoryview | None, Callable[[Any], Any]]]:
    """Yields each record set of a batch, with a function from a column to its value in the row."""
    values = {index: batch.column(index).to_pylist() for index in set(context.positions())}
    for number, records in enumerate(byte_views(batch.column(context.records))):
        yield records, lambda index, number=number: values[index][number]  # type: ignore[misc]


def byte_views(array: pa.Array) -> Iterator[memoryview | None]:
    """Yields the values of a binary array without copying them; None for null."""
    ends, data = bytes_and_ends(array)
    view = data.data
    valid = None if array.null_count == 0 else array.is_valid().to_pylist()
    for index, (begin, end) in enumerate(pairwise(ends.tolist())):
        yield view[begin:end] if valid is None or valid[index] else None


def bytes_and_ends(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Returns the ends of the values of a binary array, from 0, and their bytes, not copied."""
    import numpy as np
    import pyarrow as pa

    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
        array = array.cast(pa.large_binary())
    width: Any = np.int64 if pa.types.is_large_binary(array.type) else np.int32
    _, ends, data = array.buffers()
    if ends is None or not len(array):
        return np.zeros(len(array) + 1, np.int64), np.zeros(0, np.uint8)
    first = array.offset
    bounds = np.frombuffer(ends, width)[first : first + len(array) + 1].astype(np.int64)
    return bounds, np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)
