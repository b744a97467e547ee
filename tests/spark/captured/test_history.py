"""`validate_in_order`: one leader for each partition of a capture, wherever its sets are judged."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import ottla
import ottla.spark
import pytest
from support.producing import captured_sets

pytest.importorskip("pyspark", minversion="4.0")

from ottla.spark.captured.history import EXPIRY_INTERVAL_MS, History, HistoryJob
from ottla.spark.captured.options import JudgeContext
from pyspark.sql import functions as f

COLUMNS = "topic string, partition int, position bigint, records binary, origin string, now bigint"
OPTIONS: dict[str, Any] = {"order": "position", "now_ms": "now", "transactional_id": "t"}

Answer = tuple[Any, ...]


def rows_of(partitions: int, count: int = 30) -> list[tuple[Any, ...]]:
    return [
        ("orders", partition, position, bytearray(one.records), one.origin, one.now_ms)
        for partition in range(partitions)
        for position, one in enumerate(captured_sets(partition, count))
    ]


def by_one_leader(rows: list[tuple[Any, ...]]) -> dict[tuple[int, int], Answer]:
    """Answer every set by a leader of its partition, in this process."""
    leaders: dict[int, ottla.Leader] = {}
    looked: dict[int, int] = {}
    found = {}
    for _, partition, position, records, origin, now_ms in rows:
        leader = leaders.setdefault(
            partition, ottla.Leader(unknown_producer="accept", transaction_verification=False)
        )
        if now_ms >= looked.setdefault(partition, now_ms) + EXPIRY_INTERVAL_MS:
            leader.expire_producers(now_ms)
            looked[partition] = now_ms
        verdict = leader.append(bytes(records), now_ms=now_ms, origin=origin, transactional_id="t")
        found[partition, position] = (
            verdict.accepted, verdict.error, verdict.base_offset, verdict.last_offset,
            verdict.is_duplicate,
        )  # fmt: skip
    return found


def answers_of(rows: list[Any]) -> dict[tuple[int, int], Answer]:
    return {
        (row.partition, row.position): (
            row.accepted, row.error, row.base_offset, row.last_offset, row.is_duplicate,
        )
        for row in rows
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_a_history_that_is_resumed_anywhere_answers_as_one_leader(seed: int) -> None:
    constants = {"api_version": 11, "transactional_id": "t"}
    columns = {"now_ms": "now", "origin": "origin"}
    context = JudgeContext("records", None, constants, columns, None, "strict")
    job = HistoryJob(context, (0, 1), (2,), 6, (), "accept")
    random, history = Random(seed), History(job, "orders", seed)
    found = {}
    for position, one in enumerate(captured_sets(seed, 60)):
        if random.random() < 0.3:
            state, history = history.state(), History(job, "orders", seed)
            history.resume(state)
            assert len(state) < 2_000
        row = {"now": one.now_ms, "origin": one.origin}
        values = history.judge(one.records, row.__getitem__)
        found[seed, position] = (values[0], values[1], values[6], values[7], values[-1])
    rows = [
        ("orders", seed, position, one.records, one.origin, one.now_ms)
        for position, one in enumerate(captured_sets(seed, 60))
    ]
    assert found == by_one_leader(rows)
    with pytest.raises(ValueError, match="newer Ottla"):
        history.resume(b"\x02" + history.state()[1:])


@pytest.mark.spark
def test_sets_in_any_order_are_judged_as_by_one_leader_a_partition(everywhere: Any) -> None:
    rows = rows_of(5)
    shuffled = Random(1).sample(rows, len(rows))
    frame = everywhere.createDataFrame(shuffled, COLUMNS)
    judged = ottla.spark.validate_in_order(frame, origin=f.col("origin"), **OPTIONS)
    assert answers_of(judged.collect()) == by_one_leader(rows)
    assert judged.columns == [*frame.columns, *(c.name for c in ottla.spark.HISTORY_COLUMNS)]


@pytest.mark.spark
def test_a_stream_that_is_stopped_and_started_goes_on_with_its_leaders(
    spark: Any, tmp_path: Path
) -> None:
    pytest.importorskip("pandas")
    rows = rows_of(3, 20)
    source, out, checkpoint = (str(tmp_path / name) for name in ("in", "out", "checkpoint"))

    def follow() -> None:
        frame = spark.readStream.schema(COLUMNS).parquet(source)
        judged = ottla.spark.validate_in_order(frame, origin=f.col("origin"), **OPTIONS)
        query = (
            judged.writeStream.option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start(out, format="parquet", outputMode="append")
        )
        try:
            query.awaitTermination()
        finally:
            query.stop()

    for part in parts_of(rows, 2):
        spark.createDataFrame(Random(2).sample(part, len(part)), COLUMNS).coalesce(1).write.mode(
            "append"
        ).parquet(source)
        follow()
    assert answers_of(spark.read.parquet(out).collect()) == by_one_leader(rows)


def parts_of(rows: list[Any], count: int) -> Iterator[list[Any]]:
    """Divide rows by position, as they come trigger by trigger."""
    end = max(row[2] for row in rows) + 1
    for number in range(count):
        bounds = range(number * end // count, (number + 1) * end // count)
        yield [row for row in rows if row[2] in bounds]


@pytest.mark.spark
def test_a_column_that_orders_nothing_is_an_error_of_the_call(spark: Any) -> None:
    frame = spark.createDataFrame(rows_of(1, 3), COLUMNS)
    with pytest.raises(ValueError, match="needs one column 'place'"):
        ottla.spark.validate_in_order(frame, order="place", now_ms="now")
    with pytest.raises(ValueError, match="unknown_producer is"):
        ottla.spark.validate_in_order(frame, unknown_producer="maybe", **OPTIONS)
