"""Where a stream begins with a partition that it has not read before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors import SparkError
from ottla.logs.segment import segment_table
from ottla.spark.source.offsets import EARLIEST, LATEST
from ottla.spark.source.positions import Origin

if TYPE_CHECKING:
    from ottla.spark.source.growing import GrowingLog
    from ottla.spark.source.offsets import Choice


def check_ending(ending: Choice) -> None:
    """Raises SparkError if a stream is to end somewhere: as in Spark's Kafka source, none does."""
    if ending.end != "latest" or not ending.is_default:
        raise SparkError(
            f"{ending.option} is of spark.read: a stream goes on; trigger(availableNow=True) ends"
            " at what is there when it starts"
        )


def origin_of(log: GrowingLog, choice: Choice) -> Origin:
    """Returns the first offset to read of a log, as the options of Spark's Kafka source say it.

    A partition that no option names is read from its start.

    Raises:
        SparkError: no record is as new as a timestamp that was asked for.
        OSError: a segment cannot be read.
    """
    place = (log.topic or "", log.partition or 0)
    timestamp = choice.timestamps.get(place, choice.timestamp)
    if timestamp is not None:
        return _at_timestamp(log, timestamp, choice)
    named = EARLIEST if choice.end == "earliest" else LATEST
    offset = choice.offsets.get(place, EARLIEST if choice.offsets or choice.timestamps else named)
    if offset == EARLIEST:
        return Origin(log.first_offset)
    return Origin(log.end()[1] if offset == LATEST else offset, has_earlier=True)


def _at_timestamp(log: GrowingLog, timestamp: int, choice: Choice) -> Origin:
    import pyarrow as pa

    for segment in log.segments:
        for rows in segment_table(
            segment.place, "records", columns=["offset"], min_timestamp=timestamp
        ):
            batch = pa.record_batch(rows)
            if batch.num_rows:
                return Origin(batch.column(0)[0].as_py(), has_earlier=True)
    if choice.is_latest_if_none:
        return Origin(log.end()[1], has_earlier=True)
    raise SparkError(
        f"{log.name}: no record is as new as {timestamp} ms, as {choice.option} asks;"
        " starting_offsets_by_timestamp_strategy=latest begins behind the last one"
    )
