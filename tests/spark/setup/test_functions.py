"""`ottla.spark.register`: the functions of SQL."""

from pathlib import Path
from typing import Any

import ottla
import ottla.spark
import pytest
from support.logs import write_log_directory
from support.producing import captured_sets

pytest.importorskip("pyspark", minversion="4.0")

from ottla.spark.captured.options import JudgeContext
from ottla.spark.setup.functions import reader, validator


def test_the_table_function_reads_the_rows_of_a_path(tmp_path: Path) -> None:
    directory = str(write_log_directory(tmp_path / "kafka"))
    rows = list(reader(None)(directory, columns="offset, value", topics="orders"))
    table = ottla.audit(directory, topics=["orders"]).records.to_arrow()
    assert rows == list(zip(table["offset"].to_pylist(), table["value"].to_pylist(), strict=True))


def test_the_function_answers_as_validate() -> None:
    validate = validator(JudgeContext("records", None, {}, {}, "topic", "strict"))
    for one in captured_sets(1):
        expected = ottla.validate(one.records, now_ms=one.now_ms, base_offset=5)
        found = validate(one.records, one.now_ms, base_offset=5)
        assert found[:4] == (
            expected.accepted, expected.error, expected.error_name, expected.error_message,
        )  # fmt: skip
    assert validate(None, 0)[:2] == (False, None)


@pytest.mark.spark
def test_the_functions_work_in_sql(everywhere: Any, tmp_path: Path) -> None:
    directory = str(write_log_directory(tmp_path / "kafka"))
    assert ottla.spark.register(everywhere) == ("ottla_records", "ottla_validate")
    count = everywhere.sql(
        "SELECT count(*) FROM ottla_records(:path)", {"path": directory}
    ).first()[0]
    assert count == ottla.audit(directory).summary.records
    found = everywhere.sql(
        "SELECT * FROM ottla_records(:path, columns => 'offset')", {"path": directory}
    )
    assert found.columns == ["offset"]
    sets = [(bytearray(one.records), one.now_ms) for one in captured_sets(1)]
    everywhere.createDataFrame(sets, "records binary, now bigint").createOrReplaceTempView("sets")
    judged = everywhere.sql(
        "SELECT v.* FROM (SELECT ottla_validate(records, now, api_version => 9) AS v FROM sets)"
    )
    expected = [ottla.validate(bytes(r), now_ms=n, api_version=9).error for r, n in sets]
    assert [row.error for row in judged.collect()] == expected
