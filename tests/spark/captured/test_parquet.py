"""Record sets in Parquet files that the tasks read themselves."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import ottla
import ottla.spark
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ottla.spark.captured import files
from ottla.storage.objects import ObjectFile

pytestmark = pytest.mark.spark

VALID = [column.name for column in ottla.spark.VALID_COLUMNS]
NOW_MS = 1_700_000_000_000
BATCH = ottla.build_batch([ottla.NewRecord(b"a", b"1"), ottla.NewRecord(None, b"2")])
DAMAGED = BATCH[:-1] + b"\x07"
CONFIGS = {"plain": ottla.TopicConfig(), "compact": ottla.TopicConfig(cleanup_policy="compact")}


def captures(count: int) -> pa.Table:
    """Rows of several types, a third of them refused and some null."""
    sets = [(BATCH, DAMAGED, None, BATCH)[number % 4] for number in range(count)]
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "records": pa.array(sets, pa.binary()),
            "topic": ["plain" if number % 3 else "compact" for number in range(count)],
            "captured": pa.array([NOW_MS * 1000] * count, pa.timestamp("us", tz="UTC")),
            "at_ms": pa.array([NOW_MS] * count, pa.int64()),
            "client": pa.array([None if number % 2 else "c" for number in range(count)]),
        }
    )


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return two files of several row groups."""
    table = captures(900)
    for number in (0, 1):
        part = table.slice(450 * number, 450)
        pq.write_table(part, tmp_path / f"{number}.parquet", row_group_size=70)
    return tmp_path


def same(everything: Any) -> list[Any]:
    return sorted((tuple(row) for row in everything.collect()), key=repr)


@pytest.mark.parametrize("kind", ["spark", "connect"])
def test_verdicts_are_those_on_the_frame_of_the_files(
    sessions: Any, kind: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = replace(files.TASK_SIZE, max_bytes=3_000, min_bytes=3_000)
    monkeypatch.setattr(files, "TASK_SIZE", size)
    spark = sessions.get(kind)
    if kind != "spark":
        ottla.spark.ship(spark)
    given: dict[str, Any] = {"now_ms": "at_ms", "config": CONFIGS}
    frame = spark.read.parquet(str(directory))
    by_spark = ottla.spark.validate(frame, keep_records=False, **given)
    by_tasks = ottla.spark.validate_parquet(spark, str(directory), **given)
    assert by_tasks.schema == by_spark.schema
    assert same(by_tasks) == same(by_spark)
    everything = ottla.spark.validate_parquet(spark, [str(directory)], keep_records=True, **given)
    assert same(everything) == same(ottla.spark.validate(frame, **given))


@pytest.mark.parametrize("kind", ["spark", "cluster", "connect"])
def test_records_are_those_of_the_frame_of_the_files(
    sessions: Any, kind: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = replace(files.TASK_SIZE, max_bytes=3_000, min_bytes=3_000)
    monkeypatch.setattr(files, "TASK_SIZE", size)
    spark = sessions.get(kind)
    if kind != "spark":
        ottla.spark.ship(spark)
    path = str(directory)
    given: dict[str, Any] = {"now_ms": "at_ms", "config": CONFIGS}
    pruned: dict[str, Any] = {**given, "record_columns": ["value", "offset"], "prefix": "r_"}
    by_spark = ottla.spark.split(spark.read.parquet(path), **given)
    by_tasks = ottla.spark.split_parquet(spark, path, **given)
    few = ottla.spark.split_parquet(spark, [path], columns=["topic", "id"], **pruned)
    for from_frame, from_files, pruned_half in zip(by_spark, by_tasks, few, strict=True):
        assert from_files.schema == from_frame.schema
        assert from_files.count() > 100
        assert same(from_files) == same(from_frame)
        reasons = [c.name for c in ottla.spark.QUARANTINE_COLUMNS[len(VALID) :]]
        told = ["value", "offset", *(reasons if pruned_half is few[1] else ())]
        assert pruned_half.columns == ["id", "topic", *(f"r_{name}" for name in told)]
        assert same(pruned_half) == same(from_frame.select("id", "topic", *told))


def test_records_of_a_frame_have_the_columns_that_are_named(spark: Any, directory: Path) -> None:
    frame = spark.read.parquet(str(directory)).select("id", "records")
    for given in (frame, frame.select("records")):
        valid, quarantine = ottla.spark.split(given, now_ms=NOW_MS, record_columns=["offset"])
        others = [name for name in given.columns if name != "records"]
        assert valid.columns == [*others, "offset"]
        assert quarantine.columns[: len(others) + 2] == [*others, "offset", "error"]
        assert valid.agg({"offset": "sum"}).first()[0] == 450
        assert quarantine.count() == 450


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "record_columns names no column: leave it out for all of a record"),
        (["price"], "'price' in record_columns= is none of batch_position, offset"),
        (["key", "key"], "'key' is 2 times in record_columns="),
        (["reason"], "'reason' in record_columns= is none of"),
    ],
)
def test_columns_of_records_that_do_not_fit_are_told_before_any_job(
    spark: Any, directory: Path, names: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ottla.spark.split_parquet(spark, str(directory), now_ms=NOW_MS, record_columns=names)
    frame = spark.read.parquet(str(directory))
    with pytest.raises(ValueError, match=message):
        ottla.spark.split(frame, now_ms=NOW_MS, record_columns=names)


def test_columns_of_directories_and_columns_that_a_file_lacks(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "day=2026-11-21" / "shard=7").mkdir(parents=True)
    (tmp_path / "day=2026-11-22" / "shard=__HIVE_DEFAULT_PARTITION__").mkdir(parents=True)
    table = captures(3)
    pq.write_table(table, next(tmp_path.glob("*21/*")) / "a.parquet")
    pq.write_table(table.drop_columns(["client"]), next(tmp_path.glob("*22/*")) / "b.parquet")
    spark.conf.set("spark.sql.parquet.mergeSchema", "true")
    try:
        judged = ottla.spark.validate_parquet(
            spark, str(tmp_path), now_ms=NOW_MS, columns=["id", "client", "day", "shard"]
        )
    finally:
        spark.conf.unset("spark.sql.parquet.mergeSchema")
    found = judged.orderBy("day", "id").selectExpr("client", "string(day)", "shard", "error")
    assert [tuple(row) for row in found.collect()] == [
        ("c", "2026-11-21", 7, 0),
        (None, "2026-11-21", 7, 2),
        ("c", "2026-11-21", 7, None),
        (None, "2026-11-22", None, 0),
        (None, "2026-11-22", None, 2),
        (None, "2026-11-22", None, None),
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"column": "client"}, "column 'client' is of type string, expected binary"),
        ({"columns": ["id", "dates"]}, "dates in columns= is not in the columns"),
        ({"columns": ["list"]}, r"column 'list' is of type array<bigint>, which cannot be kept"),
        ({"now_ms": "captured"}, "of type timestamp, .*; convert it with unix_millis"),
    ],
)
def test_what_does_not_fit_is_told_before_any_job(
    spark: Any, tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    table = captures(2).append_column("list", pa.array([[1], [2]]))
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=message):
        ottla.spark.validate_parquet(spark, str(tmp_path), **{"now_ms": NOW_MS, **given})


def test_an_option_that_is_an_expression_is_refused(spark: Any, directory: Path) -> None:
    later = spark.range(1)["id"] + 1
    with pytest.raises(TypeError, match="now_ms must be a value or the name of a column"):
        ottla.spark.validate_parquet(spark, str(directory), now_ms=later)


def test_a_cut_file_is_named_in_one_sentence(spark: Any, directory: Path) -> None:
    cut = directory / "1.parquet"
    cut.write_bytes(cut.read_bytes()[:-9])
    whole = str(directory / "0.parquet")
    schema_by_first = ottla.spark.validate_parquet(spark, [whole, str(cut)], now_ms=NOW_MS)
    with (
        pytest.raises(ottla.SparkError, match=r"judging failed: .*1\.parquet: cannot be read as"),
        ottla.spark.job("judging"),
    ):
        schema_by_first.count()
    with pytest.raises(ottla.SparkError, match=r"reading the schema of .*1\.parquet failed"):
        ottla.spark.validate_parquet(spark, str(cut), now_ms=NOW_MS)
    with pytest.raises(ottla.SparkError, match="reading the schema of /nowhere failed"):
        ottla.spark.validate_parquet(spark, "/nowhere", now_ms=NOW_MS)


class Held:
    """Bytes as an object in a store is read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)

    def read_at(self, position: int, size: int) -> memoryview:
        return memoryview(self.data)[position : position + size]


def test_an_object_in_a_store_is_read_like_a_file(directory: Path) -> None:
    path = directory / "0.parquet"
    held: Any = Held(path.read_bytes())
    file = io.BufferedReader(ObjectFile(held))
    assert pq.ParquetFile(pa.PythonFile(file, mode="r")).read() == pq.read_table(path)
