"""Batches and records of segments as a data frame, without an audit."""

from pathlib import Path
from typing import Any

import ottla
import ottla.spark
import pytest
from ottla.errors import SparkError
from support.frames import arrow_of

pytestmark = pytest.mark.spark


def test_records_and_batches_are_those_of_the_audit(everywhere: Any, demo: Path) -> None:
    embedded = ottla.audit(demo)
    found = arrow_of(ottla.spark.read(everywhere, demo, "batches"))
    expected = embedded.batches.to_arrow()
    assert found.schema.types == expected.schema.types
    assert found.to_pylist() == expected.to_pylist()
    rows = arrow_of(ottla.spark.read(everywhere, demo)).to_pylist()
    for row, record in zip(rows, embedded.records, strict=True):
        headers = [(header["key"], header["value"]) for header in row["headers"]]
        assert {name: row[name] for name in record} | {"headers": headers} == {
            **record,
            "headers": [tuple(header) for header in record["headers"]],
        }


def test_only_the_columns_and_topics_that_are_asked_for_are_read(spark: Any, demo: Path) -> None:
    frame = ottla.spark.read(spark, [demo], columns=["value", "offset"], topics=["orders"])
    rows = ottla.audit(demo, topics=["orders"]).records
    assert frame.columns == ["value", "offset"]
    assert [tuple(row) for row in frame.collect()] == [(r["value"], r["offset"]) for r in rows]


def test_what_is_not_there_is_said_at_once(spark: Any, demo: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="table is 'findings', not one of batches, records"):
        ottla.spark.read(spark, demo, "findings")  # type: ignore[arg-type]
    with pytest.raises(SparkError, match="records has no column 'price'"):
        ottla.spark.read(spark, demo, columns=["price"])
    with pytest.raises(
        SparkError, match="no column is named: leave columns out for all of records"
    ):
        ottla.spark.read(spark, demo, columns=[])
    with pytest.raises(SparkError, match="topics names no topic: leave it out for all topics"):
        ottla.spark.read(spark, demo, topics=[])
    with pytest.raises(SparkError, match="no such file or directory"):
        ottla.spark.read(spark, tmp_path / "nowhere")
    with pytest.raises(ValueError, match="partition_bytes is 1, must be at least 65536"):
        ottla.spark.read(spark, demo, partition_bytes=1)
