"""What is used of PySpark beyond its documentation: named in one file, and it works."""

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ottla.spark
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from ottla.spark.work import private
from ottla.spark.work.arrow import apply_in_arrow, frame_of_arrow, rows_of
from pyspark.sql import Column

SPARK = Path(ottla.spark.__file__).parent
DOCUMENTED = (
    "pyspark",
    "pyspark.errors",
    "pyspark.sql",
    "pyspark.sql.datasource",
    "pyspark.sql.functions",
    "pyspark.sql.streaming",
    "pyspark.sql.streaming.datasource",
    "pyspark.sql.types",
    "pyspark.sql.udtf",
)


def private_names(source: str) -> Iterator[str]:
    """Yield undocumented modules that are imported, and the names of Java's side of PySpark."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyspark."):
            if node.module not in DOCUMENTED:
                yield str(node.module)
        elif isinstance(node, ast.Import):
            yield from (
                name.name
                for name in node.names
                if name.name.startswith("pyspark.") and name.name not in DOCUMENTED
            )
        elif isinstance(node, ast.Attribute) and is_of_java(node):
            yield node.attr


def is_of_java(node: ast.Attribute) -> bool:
    is_own = isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr.startswith(("_j", "_sc", "_ensure")) and not is_own


def test_private_pyspark_is_named_in_one_file() -> None:
    found = {
        path.relative_to(SPARK).as_posix(): names
        for path in SPARK.rglob("*.py")
        if (names := set(private_names(path.read_text())))
    }
    assert list(found) == ["work/private.py"]
    assert {"_jsc", "_jvm", "_jdf", "_ensure_initialized"} <= found["work/private.py"]


@pytest.mark.spark
def test_a_session_is_classic_or_not(everywhere: Any) -> None:
    is_remote = not hasattr(everywhere, "_jsparkSession")
    assert private.is_connect(everywhere) is is_remote
    assert private.is_connect(everywhere.range(1)) is is_remote
    column = everywhere.range(1).id
    # PySpark 3.5 has a class of columns for Connect alone.
    assert isinstance(column, Column) or private.is_connect(column)


@pytest.mark.spark
def test_the_drivers_java_is_told(spark: Any) -> None:
    assert re.match(r"(1\.8|1[17]|2\d)\b", private.java_of(spark.sparkContext))
    assert not private.is_context_stopped(spark.sparkContext)


@pytest.mark.spark
def test_logging_is_turned_off_only_where_a_jvm_runs(spark: Any) -> None:
    log4j = spark.sparkContext._jvm.org.apache.logging.log4j
    before = log4j.LogManager.getRootLogger().getLevel()
    private.silence_jvm()
    assert str(log4j.LogManager.getRootLogger().getLevel()) == "OFF"
    log4j.core.config.Configurator.setRootLevel(before)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("settings", "is_remote"),
    [({}, False), ({"spark.master": "local"}, False), ({"spark.remote": "sc://host"}, True)],
)
def test_the_kind_of_a_session_to_come_is_known(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], is_remote: bool
) -> None:
    for name in ("SPARK_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_MODE_ENABLED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("SPARK_CONNECT_MODE", raising=False)
    assert private.is_for_connect(settings) is is_remote
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    assert private.is_for_connect(settings)


@pytest.mark.spark
def test_a_channel_leads_to_the_endpoint_of_an_address() -> None:
    endpoint, channel = private.endpoint_of_connect("sc://somewhere:15003/;token=secret")
    channel.close()
    assert endpoint == "somewhere:15003"


@pytest.mark.spark
def test_batches_are_mapped_without_pandas(spark: Any) -> None:
    def double(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pc.multiply(batch.column(0), 2)], names=["id"])

    frame = spark.range(0, 6, 1, 3)
    mapped = private.map_in_arrow_without_pandas(frame, double, "id bigint")
    assert [row.id for row in mapped.collect()] == [0, 2, 4, 6, 8, 10]
    assert mapped.collect() == frame.mapInArrow(double, "id bigint").collect()


@contextmanager
def small_batches(spark: Any) -> Iterator[None]:
    """Have rows reach workers seven at a time."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(name, "7")
    try:
        yield
    finally:
        spark.conf.unset(name)


@pytest.mark.spark
def test_every_group_is_given_to_a_function_once(everywhere: Any) -> None:
    def count(table: Any) -> Any:
        keys = set(table.column("key").to_pylist())
        return pa.table(
            {
                "keys": pa.array([len(keys)], pa.int64()),
                "rows": [table.num_rows],
                "key": pa.array(keys, pa.int64()),
            }
        )

    frame = everywhere.range(0, 1_000, 1, 5).selectExpr("id", "nullif(id % 17, 16) as key")
    columns = "keys bigint, rows bigint, key bigint"
    with small_batches(everywhere):
        found = list(rows_of(apply_in_arrow(frame, "key", count, columns)))
    expected: dict[int | None, int] = {key: len(range(key, 1_000, 17)) for key in range(16)}
    assert {row["key"]: row["rows"] for row in found} == expected | {None: 58}
    assert [row["keys"] for row in found] == [1] * 17


@pytest.mark.spark
def test_a_table_comes_back_as_it_went(everywhere: Any) -> None:
    table = pa.table(
        {
            "id": pa.array([1, None, 3], pa.int64()),
            "value": pa.array([b"a", None, b"\x00\xff"], pa.binary()),
            "name": pa.array(["x", "", None], pa.string()),
        }
    )
    columns = "id bigint, value binary, name string"
    assert list(rows_of(frame_of_arrow(everywhere, table, columns))) == table.to_pylist()
    assert list(rows_of(frame_of_arrow(everywhere, table.slice(0, 0), columns))) == []
