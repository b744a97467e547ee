"""Directories of tables whose own log says which Parquet files and rows count: they are refused."""

from pathlib import Path
from typing import Any

import ottla
import ottla.spark
import pytest
from ottla.spark.captured.parquet import split_parquet, validate_parquet

LOGS = {
    "Delta": "_delta_log/00000000000000000000.json",
    "Iceberg": "metadata/00000-5f0c3b1a.metadata.json",
    "Hudi": ".hoodie/hoodie.properties",
}


@pytest.mark.spark
@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize(
    "path", ["", "/", "/day=1", "/day=1/part-0.parquet", "/day=*", "/*.parquet"]
)
def test_a_path_in_a_table_is_refused_with_the_way_to_read_it(
    tmp_path: Path, kind: str, path: str
) -> None:
    log = tmp_path / "captures" / LOGS[kind]
    log.parent.mkdir(parents=True)
    log.write_text("{}")
    table = f"{tmp_path}/captures"
    for function, instead in ((validate_parquet, "validate"), (split_parquet, "split")):
        with pytest.raises(ottla.SparkError) as raised:
            # Before anything is asked of a session.
            function(no_session(), f"{table}{path}", now_ms=0)
        assert str(raised.value) == (
            f"{table}{path} is in the {kind} table {table}, whose Parquet files also hold rows that"
            f" were deleted or replaced: read the table, captures ="
            f" spark.read.format('{kind.lower()}').load('{table}'), and use"
            f" ottla.spark.{instead}(captures, …)"
        )


@pytest.mark.spark
@pytest.mark.parametrize(
    "log", ["_delta_log", "metadata/notes.json", "metadata.json", "_delta_log.d/0.json"]
)
def test_what_looks_like_a_table_is_none(spark: Any, tmp_path: Path, log: str) -> None:
    # A table above a directory that is no partition of it does not own its files.
    above = tmp_path / LOGS["Delta"]
    above.parent.mkdir()
    above.write_text("{}")
    (tmp_path / "captures" / log).mkdir(parents=True)
    with pytest.raises(ottla.SparkError, match=r"UNABLE_TO_INFER_SCHEMA"):
        validate_parquet(spark, f"{tmp_path}/captures", now_ms=0)


def no_session() -> Any:
    return None
