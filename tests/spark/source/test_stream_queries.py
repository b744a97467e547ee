"""Streams over logs to which something happens, in Spark itself."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.logs import segment, segment_name, write_partition
from support.transactions import transactional_log

pytest.importorskip("pyspark", minversion="4.0")

from ottla.spark.source.stream import ReadMaxBytes
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Observation, SparkSession, functions

pytestmark = pytest.mark.spark

OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def put(root: Path, base_offset: int) -> None:
    (root / "orders-0").mkdir(parents=True, exist_ok=True)
    data = segment(2, base_offset=base_offset)
    (root / "orders-0" / segment_name(base_offset)).write_bytes(data)


def run(spark: SparkSession, root: Path, out: Path, **options: str) -> Any:
    """Run a query of what is available; its progress."""
    frame = spark.readStream.format("ottla").options(columns="offset", **options).load(str(root))
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(out / "checkpoint"))
        .option("path", str(out / "table"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query.lastProgress


def offsets(spark: SparkSession, out: Path) -> list[int]:
    return sorted(row[0] for row in spark.read.parquet(str(out / "table")).collect())


def test_a_late_segment_is_waited_for_and_the_progress_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    root, out = tmp_path / "logs", tmp_path / "out"
    put(root, 0)
    put(root, 12)
    progress = run(spark, root, out)
    assert offsets(spark, out) == list(range(6))
    if ReadMaxBytes is not None:
        (source,) = progress["sources"]
        left = source["latestOffset"]
        left = json.loads(left) if isinstance(left, str) else left
        assert left["partitions_waiting"] == 1
        assert "offsets 6 to 11 are missing" in str(left["behind"])
    with pytest.raises(StreamingQueryException, match="offsets 6 to 11 are missing"):
        run(spark, root, out, late_segments="fail")
    put(root, 6)
    run(spark, root, out)
    assert offsets(spark, out) == list(range(18))


def test_a_batch_that_is_replayed_is_what_was_planned(spark: SparkSession, tmp_path: Path) -> None:
    root, out = tmp_path / "logs", tmp_path / "out"
    for base_offset in (0, 6, 12):
        put(root, base_offset)
    run(spark, root, out)
    # The driver dies before it notes the batch as done.
    for commit in (out / "checkpoint" / "commits").iterdir():
        commit.unlink()
    for entry in (out / "table" / "_spark_metadata").iterdir():
        entry.unlink()
    (root / "orders-0" / segment_name(0)).unlink()
    with pytest.raises(StreamingQueryException, match="not what was planned: offsets 0 to 5"):
        run(spark, root, out)
    put(root, 0)
    run(spark, root, out)
    assert offsets(spark, out) == list(range(18))


def test_a_topic_that_was_created_again_can_be_begun_anew(
    spark: SparkSession, tmp_path: Path
) -> None:
    root, out = tmp_path / "logs", tmp_path / "out"
    directory = write_partition(root / "orders-0", {0: segment(2)})
    run(spark, root, out)
    shutil.rmtree(directory)
    write_partition(directory, {0: segment(3)}, topic_id=OTHER_ID)
    with pytest.raises(StreamingQueryException, match="was deleted and created again: topic id"):
        run(spark, root, out)
    run(spark, root, out, recreatedTopics="begin_anew")
    assert offsets(spark, out) == sorted([*range(6), *range(9)])


def test_transactions_and_damage_in_a_query_are_those_of_one_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    directory = transactional_log(tmp_path / "logs", random.Random(5))
    whole = {path: path.read_bytes() for path in sorted(directory.glob("*.log"))}
    first, data = next(iter(whole.items()))
    whole[first] = data[:70] + bytes([data[70] ^ 1]) + data[71:]
    options = {"isolation_level": "read_committed", "on_damage": "quarantine"}
    for share in (0.4, 1):
        size = int(share * sum(map(len, whole.values())))
        for path, data in whole.items():
            path.write_bytes(data[: max(0, size)])
            size -= len(data)
        run(spark, tmp_path / "logs", out, **options)
    reader = spark.read.format("ottla").options(columns="offset", **options)
    expected = reader.load(str(tmp_path / "logs")).collect()
    found = spark.read.parquet(str(out / "table")).collect()
    assert any(row.damage for row in expected)
    assert any(row.offset is not None for row in expected)
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_what_is_left_out_is_counted_by_spark_in_the_progress_and_in_one_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    data = bytearray(segment(3))
    data[len(data) // 3 + 80] ^= 1
    write_partition(tmp_path / "logs" / "orders-0", {0: bytes(data)})

    def counted(frame: DataFrame, name: Observation | str) -> DataFrame:
        times, size = functions.count("damage"), functions.sum("damage.size")
        observed = frame.observe(name, times.alias("times"), size.alias("bytes"))
        return observed.where("damage IS NULL").drop("damage")

    options = {"columns": "offset", "on_damage": "quarantine"}
    observation = Observation("damage")
    frame = spark.read.format("ottla").options(**options).load(str(tmp_path / "logs"))
    assert counted(frame, observation).count() == 6
    lost = {"times": 1, "bytes": len(data) // 3}
    assert observation.get == lost
    stream = spark.readStream.format("ottla").options(**options).load(str(tmp_path / "logs"))
    query = (
        counted(stream, "damage")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .option("path", str(tmp_path / "table"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = [progress["observedMetrics"]["damage"] for progress in query.recentProgress]
    assert [dict(row.asDict()) for row in found if row["times"]] == [lost]
