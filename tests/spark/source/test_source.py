"""`spark.read.format("ottla")`: the tables of the audit, read in tasks."""

import json
import pickle
import random
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla.audit.result.columns import TABLES
from support import stores
from support.logs import batches, segment, segment_name, write_log_directory, write_partition
from support.stores import Store

from benches.data import encode_batch

pytest.importorskip("pyspark", minversion="4.0")

from ottla.errors import DamageWarning, SparkError
from ottla.spark.source.options import parse_options, schema_of
from ottla.spark.source.reader import TableReader
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

SMALL = str(64 << 10)
EVERY_TABLE = sorted(TABLES)
# Of a damaged log, `records` has what consumers get; see test_consumer.py.
TABLES_OF_DAMAGE = [name for name in EVERY_TABLE if name != "records"]


def rows_of(reader: TableReader) -> tuple[list[dict[str, Any]], int]:
    """Rows and tasks of a reader, each task in a process of its own as far as pickling goes."""
    partitions = reader.partitions()
    found: list[dict[str, Any]] = []
    for partition in partitions:
        sent = pickle.loads(pickle.dumps(partition))  # noqa: S301 - our own bytes
        for batch in reader.read(sent):
            found += batch.to_pylist()
    return found, len(partitions)


def as_embedded(options: dict[str, str]) -> dict[str, str]:
    """The options with those under which the table `records` is that of the audit."""
    if options.get("table", "records") != "records":
        return options
    names = ",".join(column.name for column in TABLES["records"])
    return {"headers": "json", "columns": names, **options}


def read(path: Path, **options: str) -> list[dict[str, Any]]:
    request = parse_options(as_embedded({"path": str(path), **options}))
    return rows_of(TableReader(request))[0]


def embedded(path: Any, table: str, **arguments: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        getattr(ottla.audit(path, **arguments), table).to_arrow().to_pylist()
    )
    return rows


def damaged_directory(root: Path) -> Path:
    """Logs with a bit flipped, a gap, a segment missing, a cut tail and a file of another kind."""
    directory = write_log_directory(root / "kafka")
    path = directory / "orders-1" / segment_name(12)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    path = directory / "payments-0" / segment_name(12)
    path.write_bytes(path.read_bytes()[:-5])
    write_partition(directory / "refunds-0", {0: segment(2), 30: segment(3, base_offset=30)})
    (directory / "refunds-0" / segment_name(60)).write_bytes(b"no log" * 100)
    (directory / "refunds-0" / segment_name(6, "log.swap")).write_bytes(segment(1, base_offset=6))
    return directory


@pytest.mark.parametrize("table", TABLES_OF_DAMAGE)
@pytest.mark.parametrize("task_bytes", [SMALL, str(1 << 30)])
def test_every_table_equals_the_embedded_one_however_it_is_cut(
    table: str, task_bytes: str, tmp_path: Path
) -> None:
    directory = damaged_directory(tmp_path)
    found = read(directory, table=table, partition_bytes=task_bytes)
    assert found == embedded(directory, table)


@pytest.mark.parametrize("table", EVERY_TABLE)
def test_every_table_of_the_demo_equals_the_embedded_one(table: str, demo: Path) -> None:
    assert read(demo, table=table, partition_bytes=SMALL) == embedded(demo, table)


def test_level_and_topics_are_those_of_the_audit(demo: Path) -> None:
    for table in ("findings", "metrics", "batches", "transactions"):
        found = read(demo, table=table, topics="orders, re*", level="crc")
        assert found == embedded(demo, table, topics=["orders", "re*"], level="crc")
        assert {row["topic"] for row in found} <= {"orders", "refunds"}


def test_several_paths_are_one_table(tmp_path: Path) -> None:
    paths = [str(write_log_directory(tmp_path / name)) for name in ("a", "b")]
    options = {"paths": json.dumps(paths)}
    reader = TableReader(parse_options(as_embedded(options)))
    assert rows_of(reader)[0] == embedded(paths, "records")


def large_log(root: Path, *, index: bool = True) -> tuple[Path, int]:
    """A segment of 600 kB with the index a broker writes, an entry every 4 KiB."""
    directory = write_partition(root / "orders-0", {0: b""})
    data, entries = b"", b""
    last_entry = 0
    for batch in batches(400, records=5, value_size=250):
        if len(data) - last_entry > 4096:
            offset = 5 * (len(data) // len(batch)) + 4
            entries += offset.to_bytes(4, "big") + len(data).to_bytes(4, "big")
            last_entry = len(data)
        data += batch
    (directory / segment_name(0)).write_bytes(data)
    if index:
        (directory / segment_name(0, "index")).write_bytes(entries)
    return directory, len(data)


def test_a_large_segment_is_cut_where_its_index_knows_a_batch(tmp_path: Path) -> None:
    directory, _ = large_log(tmp_path)
    options = {"path": str(directory), "partition_bytes": SMALL}
    found, tasks = rows_of(TableReader(parse_options(as_embedded(options))))
    assert found == embedded(directory, "records")
    assert tasks >= 6


@pytest.mark.parametrize("seed", range(12))
def test_damage_in_a_segment_that_is_cut_changes_no_row(seed: int, tmp_path: Path) -> None:
    directory, size = large_log(tmp_path)
    path = directory / segment_name(0)
    data = bytearray(path.read_bytes())
    rng = random.Random(seed)
    for _ in range(rng.randrange(1, 6)):
        at, length = rng.randrange(size), rng.choice((1, 12, 61, 3000, 90_000))
        rows = len(data[at : at + length])
        data[at : at + length] = rng.choice((bytes(rows), rng.randbytes(rows)))
    if rng.random() < 0.3:
        del data[rng.randrange(size) :]
    path.write_bytes(data)
    batches_read = read(directory, table="batches", partition_bytes=SMALL)
    assert batches_read == embedded(directory, "batches")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        found = read(directory, partition_bytes=SMALL, on_damage="skip")
        expected = [(r.offset, r.value) for r in ottla.read_partition(directory)]
    assert [(row["offset"], row["value"]) for row in found] == expected


def test_an_index_that_lies_cuts_nothing(tmp_path: Path) -> None:
    directory, size = large_log(tmp_path, index=False)
    rng = random.Random(3)
    lies = sorted(rng.randrange(size) for _ in range(200))
    entries = b"".join(
        number.to_bytes(4, "big") + at.to_bytes(4, "big") for number, at in enumerate(lies)
    )
    (directory / segment_name(0, "index")).write_bytes(entries)
    options = {"path": str(directory), "partition_bytes": SMALL}
    found, tasks = rows_of(TableReader(parse_options(as_embedded(options))))
    assert found == embedded(directory, "records")
    assert tasks == 1


def test_an_index_that_points_into_a_value_full_of_batches_is_told(tmp_path: Path) -> None:
    inner = segment(400, value_size=100)
    outer = encode_batch([(1, b"", inner, ())])
    directory = write_partition(
        tmp_path / "orders-0", {0: outer + segment(3, base_offset=1), 10: b""}
    )
    step = len(segment(1, value_size=100))
    start = outer.index(inner)
    entries = b"".join(
        (3 * n + 2).to_bytes(4, "big") + (start + n * step).to_bytes(4, "big")
        for n in range(0, 400, 20)
    )
    (directory / segment_name(0, "index")).write_bytes(entries)
    options = {"path": str(directory), "partition_bytes": SMALL}
    with pytest.raises(SparkError, match=r"the offset index points to byte .*, which is inside"):
        rows_of(TableReader(parse_options(as_embedded(options))))
    assert read(directory) == embedded(directory, "records")


def test_small_files_share_a_task(tmp_path: Path) -> None:
    names = [f"orders-{number}" for number in range(40)]
    directory = write_log_directory(tmp_path / "kafka", names)
    _, tasks = rows_of(TableReader(parse_options({"path": str(directory)})))
    assert tasks == 1
    _, tasks = rows_of(
        TableReader(parse_options({"path": str(directory), "partition_bytes": SMALL}))
    )
    assert tasks == 80


def test_columns_are_those_asked_for_in_that_order(demo: Path) -> None:
    options = {"path": str(demo), "columns": "value, offset"}
    assert schema_of(options) == "`value` binary, `offset` bigint"
    found = read(demo, columns="value, offset")
    assert found == [{n: row[n] for n in ("value", "offset")} for row in embedded(demo, "records")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"table": "recrods"},
            "table is 'recrods', not one of files, batches, records, events, findings",
        ),
        ({"tabel": "files"}, "no option 'tabel' (did you mean table?), only table, schema"),
        ({"columns": "offset,key,velocity"}, "records has no column 'velocity', only file, topic"),
        ({"columns": "offset,offset"}, "column 'offset' is selected 2 times"),
        ({"level": "deep"}, "level is 'deep', not one of crc, decode, full"),
        (
            {"partition_bytes": "64MB"},
            "'64MB', must be a number of at least 65536",
        ),
        ({"fail_on_data_loss": "perhaps"}, "fail_on_data_loss is 'perhaps', must be true or false"),
    ],
)
def test_an_option_that_is_wrong_is_told_with_those_that_are_right(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(SparkError, match=re.escape(message)):
        parse_options({"path": "x", **options})


def test_a_read_without_a_path_is_refused() -> None:
    with pytest.raises(SparkError, match="needs a path"):
        parse_options({})


def test_a_path_that_is_not_there_is_an_error_and_in_findings_a_finding(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    for table in ("records", "files", "metrics"):
        with pytest.raises(SparkError, match="nowhere: no such file or directory"):
            read(nowhere, table=table)
    assert [row["name"] for row in read(nowhere, table="findings")] == ["unreadable"]


def test_a_pattern_that_matches_nothing_is_an_error(demo: Path) -> None:
    with pytest.raises(SparkError, match="no topic matches 'ordres'"):
        read(demo, topics="ordres")


def test_a_file_that_vanishes_after_it_was_listed_stops_the_task_unless_told_otherwise(
    tmp_path: Path,
) -> None:
    directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    for fail, expected in (("true", None), ("false", 12)):
        request = parse_options({"path": str(directory), "fail_on_data_loss": fail})
        reader = TableReader(request)
        partitions = reader.partitions()
        path = directory / "orders-0" / segment_name(0)
        data = path.read_bytes()
        path.unlink()
        if expected is None:
            with pytest.raises(SparkError, match=r"orders-0/0{20}.log: no such file or directory"):
                list(reader.read(partitions[0]))
        else:
            assert sum(b.num_rows for p in partitions for b in reader.read(p)) == expected
        path.write_bytes(data)


@pytest.fixture(scope="module")
def s3() -> Iterator[Store]:
    """Return an S3 server."""
    if reason := stores.missing():
        pytest.skip(reason)
    with stores.s3_server() as url:
        yield Store(url)


def test_objects_of_a_store_are_read_with_its_options(s3: Store, demo: Path) -> None:
    uri = s3.upload(demo / "orders-0", f"{s3.bucket()}/logs/orders-0")
    options = {
        "paths": json.dumps([uri]),
        **{f"storage.{name}": value for name, value in s3.options.items()},
    }
    for table in ("records", "batches", "files", "metrics", "findings"):
        reader = TableReader(parse_options(as_embedded({**options, "table": table})))
        rows = ottla.audit(uri, storage_options=s3.options)
        found, _ = rows_of(reader)
        assert found == getattr(rows, table).to_arrow().to_pylist()
        assert found or table == "findings"


# In Spark itself.


@pytest.mark.spark
@pytest.mark.parametrize("table", ["records", "batches", "files", "findings", "metrics"])
def test_a_table_in_spark_is_the_embedded_one(table: str, spark: SparkSession, demo: Path) -> None:
    options = as_embedded({"table": table, "partition_bytes": str(1 << 20)})
    frame = spark.read.format("ottla").options(**options)
    assert frame.load(str(demo)).toArrow().equals(getattr(ottla.audit(demo), table).to_arrow())


@pytest.mark.spark
def test_it_is_read_wherever_spark_runs(everywhere: SparkSession, demo: Path) -> None:
    for table in ("records", "gaps", "findings"):
        options = as_embedded({"table": table})
        frame = everywhere.read.format("ottla").options(**options).load(str(demo))
        assert frame.toArrow().to_pylist() == embedded(demo, table)


@pytest.mark.spark
def test_a_schema_chooses_columns_too(spark: SparkSession, demo: Path) -> None:
    reader = spark.read.format("ottla").schema("offset bigint, topic string")
    rows = reader.load(str(demo)).collect()
    assert [tuple(r) for r in rows] == [
        (r["offset"], r["topic"]) for r in embedded(demo, "records")
    ]
    with pytest.raises(Exception, match="column offset of records is bigint, not string"):
        spark.read.format("ottla").schema("offset string").load(str(demo)).collect()


@pytest.mark.spark
@pytest.mark.parametrize("is_on", [True, False])
def test_a_filter_of_one_query_is_none_of_the_next(
    is_on: bool, spark: SparkSession, demo: Path
) -> None:
    name = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(name, str(is_on).lower())
    try:
        options = as_embedded({"partition_bytes": str(1 << 20)})
        frame = spark.read.format("ottla").options(**options).load(str(demo))
        some = frame.where((f.col("topic") == "orders") & (f.col("offset").between(20, 29)))
        rows = embedded(demo, "records")
        orders = [row for row in rows if row["topic"] == "orders"]
        assert some.toArrow().to_pylist() == [r for r in orders if 20 <= r["offset"] <= 29]
        assert frame.count() == len(rows)
    finally:
        spark.conf.unset(name)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "recrods"}, "table is 'recrods', not one of files"),
        ({"path": "/nowhere/logs"}, "/nowhere/logs: no such file or directory"),
    ],
)
def test_what_is_wrong_is_said_in_the_error_of_spark(
    options: dict[str, str], message: str, spark: SparkSession, demo: Path
) -> None:
    reader = spark.read.format("ottla").options(**{"path": str(demo), **options})
    with pytest.raises(AnalysisException, match=re.escape(message)):
        reader.load().count()
