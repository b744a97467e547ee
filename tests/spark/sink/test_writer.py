"""`df.write.format("ottla")`: rows become logs that an audit finds sound."""

import pickle
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import ottla
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", minversion="4.0")

from ottla.errors import SparkError
from ottla.spark.sink.writer import make_writer
from pyspark import cloudpickle
from pyspark.sql import types as t

SCHEMA = t.StructType(
    [
        t.StructField("topic", t.StringType()),
        t.StructField("partition", t.IntegerType()),
        t.StructField("timestamp", t.LongType()),
        t.StructField("key", t.BinaryType()),
        t.StructField("value", t.BinaryType()),
    ]
)
ARROW = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)

HEADERS = t.ArrayType(
    t.StructType([t.StructField("key", t.StringType()), t.StructField("value", t.BinaryType())])
)
ARROW_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

Row = tuple[Any, ...]


def rows_of(seed: int, count: int) -> list[Row]:
    random = Random(seed)
    return [
        (
            random.choice(["orders", "refunds"]),
            random.randrange(3),
            random.choice([None, 1_700_000_000_000 + number]),
            random.choice([None, b"", b"key"]),
            random.choice([None, random.randbytes(random.randrange(200))]),
        )
        for number in range(count)
    ]


def write(path: Path, tasks: list[list[Row]], **options: str) -> None:
    """Write rows as Spark does, each task in a process of its own as far as pickling goes."""
    writer = make_writer({"path": str(path), **options}, SCHEMA, is_overwrite=False)
    messages = []
    for number, rows in enumerate(tasks):
        sent = pickle.loads(cloudpickle.dumps(writer))  # noqa: S301 - our own bytes
        columns = list(zip(*rows, strict=True)) if rows else [()] * 5
        table = pa.table([list(column) for column in columns], schema=ARROW)
        messages.append(sent.write(iter(table.to_batches(max_chunksize=7 + number))))
    writer.commit(pickle.loads(pickle.dumps(messages)))  # noqa: S301 - our own bytes


def records_of(path: Path, topic: str, partition: int) -> list[Row]:
    return [
        (record.offset, record.timestamp, record.key, record.value)
        for record in ottla.read_partition(path / f"{topic}-{partition}")
    ]


def expected(tasks: list[list[Row]], topic: str, partition: int) -> list[Row]:
    rows = [row for rows in tasks for row in rows if row[:2] == (topic, partition)]
    return [
        (offset, -1 if row[2] is None else row[2], row[3], row[4])
        for offset, row in enumerate(rows)
    ]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("seed", range(2))
def test_what_is_written_is_read_again_and_sound(
    seed: int, compression: str, tmp_path: Path
) -> None:
    tasks = [rows_of(seed * 10 + number, 120) for number in range(3)]
    target = tmp_path / "kafka"
    write(target, tasks, compression=compression, batch_bytes="900", segment_bytes="2500")
    assert [path.name for path in tmp_path.iterdir()] == ["kafka"]
    for topic in ("orders", "refunds"):
        for partition in range(3):
            found = records_of(target, topic, partition)
            assert found == expected(tasks, topic, partition)
            assert len(list((target / f"{topic}-{partition}").glob("*.log"))) > 1
    result = ottla.audit(target)
    assert [row for row in result.findings.rows() if row[1] != "info"] == []
    assert result.exit_code == 0


def test_a_broker_starts_on_it_and_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path / "kafka", [rows_of(1, 200)], segment_bytes="2000")
    for partition in (tmp_path / "kafka").iterdir():
        segments = {path.name: path.stat().st_size for path in partition.glob("*.log")}
        for clean in (True, False):
            start = ottla.predict_recovery(partition, clean=clean)
            assert (start.opens, start.is_stray, start.bytes_cut) == (True, False, 0)
            assert start.segments == segments
            assert start.rebuilt == {} or not clean
            assert start.leader_epochs == ((0, 0),)


def test_a_job_that_is_aborted_leaves_nothing(tmp_path: Path) -> None:
    options = {"path": str(tmp_path / "kafka")}
    writer = make_writer(options, SCHEMA, is_overwrite=False)
    table = pa.table([list(c) for c in zip(*rows_of(1, 9), strict=True)], schema=ARROW)
    message = writer.write(iter(table.to_batches()))
    assert list(tmp_path.iterdir())
    writer.abort([message, None])
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_came_meanwhile_is_left_as_it_is(tmp_path: Path) -> None:
    target = tmp_path / "kafka"
    writer = make_writer({"path": str(target)}, SCHEMA, is_overwrite=False)
    table = pa.table([list(c) for c in zip(*rows_of(1, 9), strict=True)], schema=ARROW)
    message = writer.write(iter(table.to_batches()))
    target.mkdir()
    (target / "mine").write_text("mine")
    with pytest.raises(SparkError, match="never added to"):
        writer.commit([message])
    assert [path.name for path in tmp_path.rglob("*")] == ["kafka", "mine"]
    with pytest.raises(SparkError, match="new or an empty directory"):
        make_writer({"path": str(target)}, SCHEMA, is_overwrite=False)


@given(
    st.lists(
        st.none() | st.lists(st.tuples(st.text(max_size=9), st.none() | st.binary(max_size=40))),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([1, 100, 1 << 19]),
)
def test_headers_are_written_as_they_are_read(
    all_headers: list[list[tuple[str, bytes | None]] | None], batch_bytes: int
) -> None:
    rows = [
        {
            "timestamp": 1_700_000_000_000 + number,
            "value": b"v" * number,
            "headers": None if headers is None else [{"key": k, "value": v} for k, v in headers],
        }
        for number, headers in enumerate(all_headers)
    ]
    schema = pa.schema(
        [("timestamp", pa.int64()), ("value", pa.binary()), ("headers", ARROW_HEADERS)]
    )
    with TemporaryDirectory() as directory:
        target = Path(directory) / "kafka"
        options = {"path": str(target), "topic": "orders", "partition": "0"}
        options["batch_bytes"] = str(batch_bytes)
        writer = make_writer(options, with_headers("timestamp", "value"), is_overwrite=False)
        table = pa.Table.from_pylist(rows, schema)
        writer.commit([writer.write(iter(table.to_batches(max_chunksize=7)))])
        found = list(ottla.read_partition(target / "orders-0"))
        batches = list(ottla.read_batches((target / "orders-0" / f"{0:020d}.log").read_bytes()))
    assert [(r.offset, r.timestamp, r.value) for r in found] == [
        (number, row["timestamp"], row["value"]) for number, row in enumerate(rows)
    ]
    assert [list(r.headers) for r in found] == [headers or [] for headers in all_headers]
    if batch_bytes == 1:
        assert [batch.record_count for batch in batches] == [1] * len(rows)


def with_headers(*names: str) -> t.StructType:
    kept = [field for field in SCHEMA.fields if field.name in names]
    return t.StructType([*kept, t.StructField("headers", HEADERS)])


@pytest.mark.parametrize("header", [None, {"key": None, "value": b"v"}])
def test_a_header_without_a_key_fails_its_task_and_says_where(
    header: dict[str, Any] | None, tmp_path: Path
) -> None:
    options = {"path": str(tmp_path / "kafka"), "topic": "orders", "partition": "0"}
    writer = make_writer(options, with_headers("value"), is_overwrite=False)
    schema = pa.schema([("value", pa.binary()), ("headers", ARROW_HEADERS)])
    table = pa.Table.from_pylist([{"value": b"v", "headers": [header]}], schema)
    with pytest.raises(
        SparkError, match=r"orders-0 cannot be written: a header is null, or its key"
    ):
        writer.write(iter(table.to_batches()))


def test_an_impossible_timestamp_fails_its_task_and_says_where(tmp_path: Path) -> None:
    row = ("orders", 1, -7, None, b"v")
    with pytest.raises(SparkError, match=r"orders-1 cannot be written: record 0: timestamp -7"):
        write(tmp_path / "kafka", [[row]])


def without(*names: str) -> t.StructType:
    return t.StructType([field for field in SCHEMA.fields if field.name not in names])


def quarantine() -> t.StructType:
    """Return what `split` gives for records that are not valid."""
    return t.StructType([*SCHEMA.fields, t.StructField("reason", t.StringType())])


def of(columns: str) -> t.StructType:
    """Return the columns of records with others in place of those of the same name."""
    names = {
        "int": t.IntegerType(),
        "string": t.StringType(),
        "date": t.DateType(),
        "map<string,binary>": t.MapType(t.StringType(), t.BinaryType()),
    }
    others = [column.split(" ") for column in columns.split(", ")]
    return t.StructType(
        [
            *without(*(name for name, _ in others)).fields,
            *(t.StructField(name, names[kind]) for name, kind in others),
        ]
    )


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        (t.StructType([*SCHEMA.fields, t.StructField("offset", t.LongType())]), {}, "given anew"),
        (quarantine(), {}, "column reason is not written"),
        (of("timestampType int, reason string"), {}, "timestampType and reason are not written"),
        (of("timestamp date"), {}, "timestamp is date, expected bigint or timestamp: cast it"),
        (of("headers string"), {}, "expected array<struct<.*JSON text were made by headers=json"),
        (of("headers map<string,binary>"), {}, "transform.map_entries"),
        (without("value"), {}, "needs a column value"),
        (without("topic"), {}, "or the option topic"),
        (SCHEMA, {"topic": "orders"}, "leave one out"),
        (SCHEMA, {"colour": "red"}, "no option 'colour'"),
        (SCHEMA, {"compression": "brotli"}, "compression is 'brotli'"),
        (SCHEMA, {"batch_bytes": "0"}, "batch_bytes is '0'"),
        (SCHEMA, {"path": "s3://bucket/logs"}, "is no directory"),
        (SCHEMA, {"path": ""}, "needs a path"),
        (without("topic"), {"topic": "a/b"}, "not the name of a partition"),
        (SCHEMA, {"topic_id": "x" * 22}, "needs the option topic"),
        (without("topic"), {"topic": "a", "topic_id": "x"}, "22 characters"),
        (without("partition"), {"partition": "-1"}, "partition is '-1'"),
    ],
)
def test_what_cannot_be_written_is_refused_before_any_task(
    schema: t.StructType, options: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SparkError, match=message):
        make_writer({"path": str(tmp_path / "new"), **options}, schema, is_overwrite=False)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="never replaced"):
        make_writer({"path": str(tmp_path / "new")}, SCHEMA, is_overwrite=True)


def test_a_row_without_a_partition_or_with_an_impossible_one_fails_its_task(tmp_path: Path) -> None:
    for row, message in [
        ((None, 0, 1, None, b"v"), "topic is null"),
        (("..", 0, 1, None, b"v"), "not the name of a partition"),
        (("orders", -1, 1, None, b"v"), "not the name of a partition"),
    ]:
        with pytest.raises(SparkError, match=message):
            write(tmp_path / "kafka", [[row]])
    assert not (tmp_path / "kafka").exists()


@pytest.mark.spark
def test_spark_writes_logs_that_it_reads_again(everywhere: Any, tmp_path: Path) -> None:
    target = str(tmp_path / "kafka")
    rows = [row for row in rows_of(5, 300) if row[2] is not None]
    frame = everywhere.createDataFrame(rows, SCHEMA)
    frame.write.format("ottla").mode("append").option("compression", "zstd").save(target)
    read = everywhere.read.format("ottla").load(target)
    found = read.select("topic", "partition", "timestamp", "key", "value").collect()
    assert sorted(map(repr, map(tuple, found))) == sorted(map(repr, rows))
    assert ottla.audit(target).exit_code == 0
    with pytest.raises(Exception, match=r"never added to.*save.. to another directory"):
        frame.write.format("ottla").mode("append").save(target)


@pytest.mark.spark
def test_spark_writes_again_what_it_has_read(spark: Any, tmp_path: Path) -> None:
    """Headers as both schemas have them, and timestamps as Spark's Kafka source has them."""
    source = tmp_path / "orders-0"
    source.mkdir()
    records = [
        ottla.NewRecord(b"k", b"1", 1_700_000_000_001, [("h", b"\x00\xff"), ("h", None)]),
        ottla.NewRecord(None, None, 1_700_000_000_002),
    ]
    (source / f"{0:020d}.log").write_bytes(ottla.build_batch(records))
    for number, options in enumerate([{}, {"schema": "kafka", "includeHeaders": "true"}]):
        target = tmp_path / f"again-{number}"
        read = spark.read.format("ottla").options(**options).load(str(source))
        rows = read.select("topic", "partition", "timestamp", "key", "value", "headers")
        rows.write.format("ottla").mode("append").save(str(target))
        again = ottla.read_partition(target / "orders-0")
        assert [(r.timestamp, r.key, r.value, r.headers) for r in again] == [
            (r.timestamp, r.key, r.value, r.headers) for r in ottla.read_partition(source)
        ]
