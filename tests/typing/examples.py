"""Calls as users write them, with the types that mypy must see."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import ottla
from numpy.typing import NDArray
from ottla.testing import Broker, Scope
from typing_extensions import assert_type


def reading(data: bytes) -> None:
    """Read batches and records."""
    assert_type(list(ottla.read(data)), list[ottla.Record])
    assert_type(ottla.read(data, control=True), Iterator[ottla.Record])
    for batch in ottla.read_batches(data):
        assert_type(batch, ottla.RecordBatch)
        assert_type(batch.base_offset, int)
        assert_type(batch.compression, str)
        assert_type(batch.delete_horizon_ms, int | None)
        assert_type(batch.record_count, int | None)
        batch.verify()
        for record in batch.records():
            assert_type(record, ottla.Record)
            assert_type(record.key, bytes | None)
            assert_type(record.headers, list[tuple[str, bytes | None]])
            assert_type(record.raw_headers, list[tuple[bytes, bytes | None]])
            assert_type(record.control, str | None)


def reading_a_partition(directory: str) -> None:
    """Read as a consumer would, and be told of damage."""
    told: list[ottla.Damage] = []
    records = ottla.read_partition(
        directory, isolation="read_committed", from_offset=5, on_damage=told.append
    )
    assert_type(next(records), ottla.Record)
    assert_type(records.stopped_by, tuple[int, int] | None)
    assert_type(told[0].next_good_offset, int | None)
    ottla.read_partition(directory, isolation="committed")  # type: ignore[arg-type]


def checking(data: bytearray) -> None:
    """Check at a level, and ask an error for what it knows."""
    assert_type(ottla.check_batches(data, level="crc"), int)
    ottla.check_batches(data, level="deep")  # type: ignore[arg-type]
    try:
        ottla.check_batches(data)
    except ottla.RecordBatchError as error:
        assert_type(error.kind, str)
        assert_type(error.position, int)
        assert_type(error.record_index, int | None)


def columns(data: memoryview) -> None:
    """Read columns."""
    found = ottla.read_columns(data, views=True)
    assert_type(found, ottla.Columns)
    assert_type(found.offset, NDArray[np.int64])
    assert_type(found.value_length, NDArray[np.int32])
    assert_type(found.numbers(), tuple[NDArray[Any], ...])
    assert_type(found.inflated, bytes)


def building() -> None:
    """Build batches."""
    record = ottla.NewRecord(key=b"k", value=None, headers=[("h", b"x"), (b"i", None)])
    assert_type(ottla.build_batch([record], compression="zstd"), bytes)
    ottla.build_batch([record], compression="brotli")  # type: ignore[arg-type]
    ottla.build_message_set([record], magic=1, compression="lz4")
    ottla.build_message_set([record], magic=1, compression="zstd")  # type: ignore[arg-type]
    ottla.build_message_set([record], magic=2)  # type: ignore[arg-type]
    ottla.NewRecord(value="text")  # type: ignore[arg-type]
    record.timestamp = 5  # type: ignore[misc]


def testing(kafka: Scope) -> None:
    """Ask the fixture of pytest, whose type has a name."""
    topic = kafka.topic("orders", partitions=3)
    fault = kafka.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", topic=topic, times=2)
    kafka.fail("Produce", eror="NOT_LEADER_OR_FOLLOWER")  # type: ignore[call-arg]
    assert_type(fault.hits, int)
    kafka.wait_for(topic=topic, records=2, timeout_s=1)
    kafka.wait_for(topic=topic, record=2)  # type: ignore[call-arg]
    kafka.wait_for(topic=topic, records="2")  # type: ignore[arg-type]
    kafka.clock.advance(seconds=3)  # type: ignore[attr-defined]
    assert_type(kafka.broker.clock.now_ms, int)
    assert_type(kafka.records(topic), list[ottla.Record])


async def testing_in_a_coroutine() -> None:
    """Wait without holding others up."""
    async with Broker(topics=["orders"]) as broker:
        await broker.wait_for_async(group="readers", members=2)
        await broker.wait_for_async(group="readers", member=2)  # type: ignore[call-arg]
