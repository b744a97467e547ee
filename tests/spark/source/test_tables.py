"""`CREATE TABLE … USING ottla`: tables of a catalog over logs."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla.audit.result.columns import NEVER_NULL, TABLES
from ottla.logs.columns import TRAIT_COLUMNS
from support.logs import write_log_directory

pytest.importorskip("pyspark", minversion="4.0")

from ottla.errors import SparkError
from ottla.spark.source.options import parse_options
from ottla.spark.source.tables import METADATA, options_for, schema_for
from pyspark.sql.types import LongType, StructField, StructType

# What Spark 4.0 to 4.3 pass for CREATE TABLE … OPTIONS (path '/logs', Topics 'orders').
OF_CATALOG = {
    "topics": "orders",
    "location": "file:/logs",
    "option.topics": "orders",
    "owner": "me",
    "path": "file:/logs",
    "provider": "ottla",
}


@contextmanager
def table(spark: Any, name: str, definition: str) -> Iterator[str]:
    spark.sql(f"CREATE TABLE {name} USING ottla {definition}")
    try:
        yield name
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_a_table_carries_the_options_it_was_created_with_and_no_property() -> None:
    schema = schema_for({**OF_CATALOG, "comment": "all of it", "a.b": "c"})
    assert isinstance(schema, StructType)
    assert schema.fieldNames() == [c.name for c in (*TABLES["records"], *TRAIT_COLUMNS)]
    again = StructType.fromJson(json.loads(schema.json()))
    assert options_for({}, again) == {"path": "/logs", "topics": "orders"}
    assert options_for({"columns": "offset"}, again)["columns"] == "offset"


def test_an_option_of_a_query_comes_before_that_of_the_table_in_any_spelling() -> None:
    schema = schema_for({**OF_CATALOG, "option.fail_on_data_loss": "true"})
    assert isinstance(schema, StructType)
    assert options_for({"failondataloss": "false"}, schema) == {
        "path": "/logs",
        "topics": "orders",
        "failondataloss": "false",
    }


@pytest.mark.parametrize("name", sorted(TABLES))
def test_columns_have_the_comments_of_the_catalogue_and_are_not_null_where_it_says(
    name: str,
) -> None:
    schema = schema_for({**OF_CATALOG, "option.table": name})
    assert isinstance(schema, StructType)
    columns = (*TABLES[name], *(TRAIT_COLUMNS if name == "records" else ()))
    for field, column in zip(schema.fields, columns, strict=True):
        assert field.metadata["comment"] == column.doc
        assert field.nullable == (column.name not in NEVER_NULL.get(name, ()))


@pytest.mark.parametrize("option", [("schema", "kafka"), ("on_damage", "quarantine")])
def test_tables_of_other_rows_promise_no_values(option: tuple[str, str]) -> None:
    schema = schema_for({**OF_CATALOG, f"option.{option[0]}": option[1]})
    assert isinstance(schema, StructType)
    assert all(field.nullable and field.metadata["comment"] for field in schema.fields)
    assert parse_options(options_for({}, schema), schema).columns == tuple(schema.fieldNames())


def test_columns_that_are_never_null_have_a_value_in_every_row(tmp_path: Path) -> None:
    write_log_directory(tmp_path / "kafka")
    for path in ("examples/data", tmp_path / "kafka"):
        result = ottla.audit(path)
        for name, columns in NEVER_NULL.items():
            for row in getattr(result, name).rows():
                values = dict(zip([c.name for c in TABLES[name]], row, strict=True))
                assert all(values[column] is not None for column in columns), (name, values)


def test_a_secret_does_not_become_part_of_a_catalog() -> None:
    options = {**OF_CATALOG, "option.storage.region": "eu", "option.storage.secret_key": "hunter2"}
    with pytest.raises(SparkError, match=r"the catalog would show storage\.secret_key") as caught:
        schema_for(options)
    assert "hunter2" not in str(caught.value)


def test_a_table_with_a_list_of_columns_has_lost_its_options_and_says_so() -> None:
    schema = StructType([StructField("offset", LongType())])
    with pytest.raises(SparkError, match="leave the list out"):
        options_for({}, schema)
    assert METADATA not in str(schema.json())


@pytest.mark.spark
def test_a_table_returns_the_rows_of_its_logs(everywhere: Any, tmp_path: Path) -> None:
    # Here other catalogs are configured, too; Spark loads one when it is named.
    everywhere.conf.set("spark.sql.catalog.other", "org.example.NoSuchCatalog")
    directory = write_log_directory(tmp_path / "kafka logs")
    expected = ottla.audit(directory).summary.records
    with table(everywhere, "by_location", f"LOCATION '{directory}'") as name:
        assert everywhere.table(name).count() == expected
        described = {row[0]: row[2] for row in everywhere.sql(f"DESCRIBE {name}").collect()}
        assert described["offset"] == next(c.doc for c in TABLES["records"] if c.name == "offset")
    options = f"OPTIONS (path '{directory}', topics 'orders', columns 'offset, value')"
    with table(everywhere, "by_options", options) as name:
        found = everywhere.table(f"spark_catalog.default.{name}")
        assert found.columns == ["offset", "value"]
        assert 0 < found.count() < expected
    # Dropping a table leaves its logs.
    assert ottla.audit(directory).summary.records == expected


@pytest.mark.spark
def test_a_table_is_made_by_the_functions_of_the_catalog_too(spark: Any) -> None:
    made = spark.catalog.createTable(
        "made", path=str(Path("examples/data").resolve()), source="ottla"
    )
    try:
        assert made.count() == spark.read.format("ottla").load("examples/data").count()
    finally:
        spark.sql("DROP TABLE made")


@pytest.mark.spark
def test_a_table_whose_location_is_gone_says_which(spark: Any, tmp_path: Path) -> None:
    directory = write_log_directory(tmp_path / "kafka")
    with table(spark, "gone", f"LOCATION '{directory}'") as name:
        shutil.rmtree(directory)
        with pytest.raises(Exception, match=str(directory)) as caught:
            spark.table(name).count()
        assert "ottla.errors.SparkError" in str(caught.value)
    with pytest.raises(Exception, match="needs a path"):
        spark.sql("CREATE TABLE nowhere USING ottla")
