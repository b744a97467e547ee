"""Verdicts on a column of record sets: those of `ottla.validate`, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import ottla
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.records import validate_column
from ottla.spark.captured.columns import VERDICT_COLUMNS, arrow_types
from records.crafting import compressed_batch, record

NOW = 1_700_000_000_000
PLAIN = ottla.build_batch([ottla.NewRecord(b"k", b"1", NOW), ottla.NewRecord(None, b"2", NOW)])
SETS = (
    PLAIN,
    ottla.build_batch([ottla.NewRecord(b"k", b"v" * 300, NOW)] * 3, compression="lz4"),
    ottla.build_message_set([ottla.NewRecord(b"old", b"", 1)], magic=1),
    ottla.build_batch([ottla.NewRecord(b"far", b"", NOW * 2)] * 2),
    PLAIN[:-1] + b"\x07",
    PLAIN + PLAIN,
    PLAIN[:40],
    b"",
)
CONFIGS = (
    None,
    ottla.TopicConfig(cleanup_policy="compact"),
    ottla.TopicConfig(compression_type="gzip", message_timestamp_type="LogAppendTime"),
    ottla.TopicConfig(max_message_bytes=60),
)
CONSTANTS: dict[str, Any] = {
    "now_ms": NOW,
    "api_version": 11,
    "base_offset": 0,
    "leader_epoch": 0,
    "origin": "client",
    "transactional_id": None,
}
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "now_ms": st.sampled_from([0, NOW, -1, None]),
    "api_version": st.sampled_from([None, 2, 7, 11, 99]),
    "base_offset": st.sampled_from([0, 42, -1, None]),
    "leader_epoch": st.sampled_from([0, 7, 2**31]),
    "origin": st.sampled_from(["client", "coordinator", "replication", "broker", None]),
    "transactional_id": st.sampled_from([None, "id"]),
}
MAY_BE_NULL = ("api_version", "transactional_id")


def column_of(sets: list[bytes]) -> tuple[Any, Any]:
    ends = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    return ends, np.frombuffer(b"".join(sets) or b"\0", np.uint8)


def answer(records: bytes, config: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the row that is wanted: what one call of `ottla.validate` says."""
    row = dict.fromkeys(column.name for column in VERDICT_COLUMNS)
    row["accepted"] = False
    for name, value in options.items():
        if value is None and name not in MAY_BE_NULL:
            return row | {"error_message": f"nothing was judged: {name} is null"}
    try:
        verdict = ottla.validate(records, config, **options)
    except ValueError as error:
        return row | {"error_message": f"nothing was judged: {error}"}
    row = {name: getattr(verdict, name, None) for name in row}
    row["stored_size"] = len(verdict.stored)
    row["record_errors"] = [
        {"batch_index": error.batch_index, "message": error.message, "error": error.error}
        for error in verdict.record_errors
    ]
    return row


@given(st.data())
def test_every_row_is_what_one_call_answers(data: st.DataObject) -> None:
    sets = data.draw(st.lists(st.sampled_from(SETS), max_size=6))
    configs = data.draw(st.lists(st.sampled_from(CONFIGS), min_size=len(sets), max_size=len(sets)))
    each: dict[str, Any] = {}
    for name in data.draw(st.sets(st.sampled_from(sorted(OPTIONS)))):
        each[name] = [data.draw(OPTIONS[name]) for _ in sets]
    found = pa.record_batch(
        validate_column(*column_of(sets), configs, profile="strict", **{**CONSTANTS, **each})
    )
    for number, (records, config) in enumerate(zip(sets, configs, strict=True)):
        told = {**CONSTANTS, **{name: values[number] for name, values in each.items()}}
        assert found.slice(number, 1).to_pylist() == [answer(records, config, told)]


def test_the_release_of_kafka_decides_over_a_column_too() -> None:
    """The length of its one record is −1: older releases do not look at it while they skip it."""
    sets = column_of([compressed_batch(b"\x01" + record()[1:], "gzip")])
    for version, error in (("4.1", 0), ("4.4", 87), (None, 87)):
        found = validate_column(*sets, None, profile="kafka", kafka_version=version, **CONSTANTS)
        assert pa.record_batch(found).column("error").to_pylist() == [error]


def test_the_columns_are_those_that_spark_is_told_of() -> None:
    found = pa.record_batch(
        validate_column(*column_of([PLAIN]), None, profile="kafka", **CONSTANTS)
    ).schema
    assert found.names == [column.name for column in VERDICT_COLUMNS]
    assert found.types == arrow_types(VERDICT_COLUMNS)


def test_a_row_that_is_not_judged_says_why() -> None:
    found = validate_column(
        *column_of([PLAIN, PLAIN]),
        None,
        profile="strict",
        unjudged=[None, "it is Sunday"],
        **CONSTANTS,
    )
    rows = pa.record_batch(found).to_pylist()
    assert rows[0]["accepted"]
    assert rows[1] == dict.fromkeys(rows[1]) | {"accepted": False, "error_message": "it is Sunday"}


@pytest.mark.parametrize("ends", [[0, 9], [-1, 1], [2, 1]])
def test_sets_outside_the_data_are_refused(ends: list[int]) -> None:
    data = np.zeros(8, np.uint8)
    with pytest.raises(ValueError, match=r"a set lies at \[.*\], in data of 8 bytes"):
        validate_column(np.array(ends, np.int64), data, None, profile="strict", **CONSTANTS)


def test_a_config_of_another_kind_is_refused() -> None:
    configs: list[Any] = [{}]
    with pytest.raises(TypeError, match="config is a TopicConfig, not dict"):
        validate_column(*column_of([PLAIN]), configs, profile="strict", **CONSTANTS)
