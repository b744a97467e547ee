"""Rows on the driver, however PySpark brings them there."""

from types import SimpleNamespace
from typing import Any

from ottla.spark.work.arrow import rows_of


def test_binary_values_are_bytes_where_pyspark_has_bytearrays() -> None:
    row = SimpleNamespace(asDict=lambda: {"id": 1, "data": bytearray(b"\x84\x01"), "name": None})
    frame: Any = SimpleNamespace(collect=lambda: [row])
    (found,) = rows_of(frame)
    assert found == {"id": 1, "data": b"\x84\x01", "name": None}
    assert type(found["data"]) is bytes
