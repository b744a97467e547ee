"""Captured record sets on Spark: `validate`, `validate_partition` and `split`."""

import base64
import gzip
import json
import os
from operator import attrgetter
from pathlib import Path
from typing import Any

import ottla
import ottla.spark
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import vectors

pytestmark = pytest.mark.spark

NOW_MS = 1_700_000_000_000
COMPACTED = ottla.TopicConfig(cleanup_policy="compact")
BATCH = ottla.build_batch([ottla.NewRecord(b"a", b"1"), ottla.NewRecord(None, b"2")])
DAMAGED = BATCH[:-1] + b"\x07"
ROWS = [(1, BATCH, "plain"), (2, DAMAGED, "plain"), (3, None, "plain"), (4, BATCH, "compact")]
CONFIGS = {"plain": ottla.TopicConfig(), "compact": COMPACTED}
NAMES = [column.name for column in ottla.spark.VERDICT_COLUMNS]


def captures(spark: Any) -> Any:
    return spark.createDataFrame(ROWS, "id int, records binary, topic string")


def answer(verdict: ottla.Verdict) -> dict[str, Any]:
    """Return what the columns of a verdict are to hold, attribute by attribute."""
    row = {name: getattr(verdict, name, None) for name in NAMES}
    row["stored_size"] = len(verdict.stored)
    row["record_errors"] = list(
        map(attrgetter("batch_index", "message", "error"), verdict.record_errors)
    )
    return row


def told(row: Any) -> dict[str, Any]:
    """Return the columns of a verdict in a row."""
    values = {name: row[name] for name in NAMES}
    values["record_errors"] = [tuple(error) for error in row["record_errors"]]
    return values


def test_every_row_has_the_verdict_of_a_leader(everywhere: Any) -> None:
    judged = ottla.spark.validate(captures(everywhere), now_ms=NOW_MS, config=CONFIGS)
    rows = judged.orderBy("id").collect()
    assert judged.columns == ["id", "records", "topic", *NAMES]
    for row, (number, records, topic) in zip(rows, ROWS, strict=True):
        assert (row["id"], row["records"]) == (number, records)
        if records is not None:
            wanted = ottla.validate(records, CONFIGS[topic], now_ms=NOW_MS)
            assert told(row) == answer(wanted)


def test_a_null_is_told_and_not_judged(spark: Any) -> None:
    judged = ottla.spark.validate(captures(spark), now_ms=NOW_MS).where("id = 3").first()
    assert judged["accepted"] is False
    assert judged["error_message"] == "nothing to judge: the record set is null"
    assert [judged[name] for name in NAMES if name not in ("accepted", "error_message")] == [
        None
    ] * (len(NAMES) - 2)


def test_what_differs_from_row_to_row_comes_from_columns(spark: Any) -> None:
    transactional = ottla.build_batch(
        [ottla.NewRecord(b"a", b"1")],
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    rows = [
        (1, transactional, 5, "t", 11, 7),
        (2, transactional, 5, None, 11, 7),
        (3, transactional, 5, None, None, 7),
        (4, transactional, None, "t", 11, 7),
        (5, transactional, 5, "t", 99, 7),
    ]
    df = spark.createDataFrame(
        rows, "id int, records binary, at bigint, tid string, version int, base bigint"
    )
    judged = ottla.spark.validate(
        df,
        now_ms="at",
        transactional_id=df["tid"],
        api_version="version",
        base_offset=df["base"] + 1,
    )
    assert judged.columns == [*df.columns, *NAMES]
    found = judged.orderBy("id").select("error", "base_offset", "error_message").collect()
    assert [row["error"] for row in found] == [0, 53, 0, None, None]
    assert [row["base_offset"] for row in found] == [8, -1, 8, None, None]
    assert found[3]["error_message"] == "nothing was judged: now_ms is null"
    assert found[4]["error_message"] == "nothing was judged: api_version is 99, expected 0 to 13"


def test_a_topic_without_a_configuration_is_told(spark: Any) -> None:
    judged = ottla.spark.validate(captures(spark), now_ms=NOW_MS, config={"plain": COMPACTED})
    row = judged.where("id = 4").first()
    assert row["error"] is None
    assert row["error_message"] == (
        "nothing was judged: there is no configuration for topic 'compact'"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"column": "topic"}, "column 'topic' is of type string, expected binary; unbase64 or"),
        ({"column": "record"}, "missing in the columns .* did you mean 'records'"),
        ({"now_ms": "topic"}, "now_ms 'topic' is of type string, expected tinyint or smallint"),
        ({"now_ms": "never"}, "now_ms 'never' is missing in the columns"),
        ({"now_ms": -1}, "now_ms is -1, expected 0 to"),
        ({"origin": "me"}, "origin is 'client', 'coordinator' or 'replication', not 'me'"),
        ({"profile": "lax"}, "profile is 'strict' or 'kafka'"),
        ({"kafka_version": "3.9"}, "kafka_version is '3.9', expected a line"),
        (
            {"kafka_version": "4.4", "config": ottla.TopicConfig(kafka_version="4.1")},
            "kafka_version is 4.4.0, but the TopicConfig is one of Kafka 4.1.2",
        ),
        ({"config": CONFIGS, "topic": "id"}, "topic 'id' is of type int, expected string"),
        ({"prefix": "", "rename": "error"}, "already has columns error: choose other names"),
    ],
)
def test_what_does_not_fit_is_told_before_any_job(
    spark: Any, given: dict[str, Any], message: str
) -> None:
    df = captures(spark)
    if "rename" in given:
        df = df.withColumnRenamed("topic", given.pop("rename"))
    for function in (ottla.spark.validate, ottla.spark.split):
        with pytest.raises(ValueError, match=message):
            function(df, **{"now_ms": NOW_MS, **given})


@pytest.mark.parametrize("given", [{"column": 1}, {"config": {"a": 1}}, {"config": "compact"}])
def test_what_is_of_another_kind_is_a_type_error(spark: Any, given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"column must be the name|config"):
        ottla.spark.validate(captures(spark), **{"now_ms": NOW_MS, **given})


def test_a_prefix_makes_room_for_the_columns(spark: Any) -> None:
    df = captures(spark).withColumnRenamed("topic", "error")
    judged = ottla.spark.validate(df, now_ms=NOW_MS, prefix="leader_", keep_records=False)
    assert judged.columns == ["id", "error", *(f"leader_{name}" for name in NAMES)]
    assert [row["leader_error"] for row in judged.orderBy("id").collect()] == [0, 2, None, 0]


def test_large_variable_types_of_arrow_are_taken(spark: Any) -> None:
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        judged = ottla.spark.validate(captures(spark), now_ms=NOW_MS).orderBy("id")
        assert [row["error"] for row in judged.collect()] == [0, 2, None, 0]
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")


def test_partitions_of_rows_and_of_bytes_are_judged(spark: Any) -> None:
    function = ottla.spark.validate_partition(CONFIGS, now_ms=NOW_MS)
    rows = sorted(captures(spark).rdd.mapPartitions(function).collect())
    for row, (number, records, topic) in zip(rows, ROWS, strict=True):
        assert (row["id"], row["topic"]) == (number, topic)
        if records is not None:
            assert told(row) == answer(ottla.validate(records, CONFIGS[topic], now_ms=NOW_MS))
    sets = spark.sparkContext.parallelize([BATCH, DAMAGED, None], 2)
    function = ottla.spark.validate_partition(COMPACTED, now_ms=NOW_MS)
    frame = sets.mapPartitions(function).toDF(ottla.spark.verdict_schema())
    found = frame.collect()
    assert [row["error"] for row in found] == [87, 2, None]
    assert found[0]["record_errors"][0]["batch_index"] == 1


def test_the_halves_of_a_split_complement_each_other(everywhere: Any) -> None:
    df = captures(everywhere)
    valid, quarantine = ottla.spark.split(df, now_ms=NOW_MS, config=CONFIGS)
    assert valid.columns == ["id", "topic", *(c.name for c in ottla.spark.VALID_COLUMNS)]
    names = [column.name for column in ottla.spark.QUARANTINE_COLUMNS]
    assert quarantine.columns == ["id", "topic", *names]
    good = valid.orderBy("id", "offset").select("id", "topic", "offset", "value").collect()
    assert [tuple(row) for row in good] == [
        (1, "plain", 0, b"1"),
        (1, "plain", 1, b"2"),
        (4, "compact", 0, b"1"),
    ]
    bad = quarantine.orderBy("id").select("id", "value", "reason", "record_index", "bytes")
    assert [tuple(row) for row in bad.collect()] == [
        (2, None, "CORRUPT_MESSAGE", None, DAMAGED),
        (3, None, "not-judged", None, None),
        (4, b"2", "INVALID_RECORD", 1, None),
    ]


def test_a_capture_of_any_size_is_split_in_pieces(spark: Any) -> None:
    records = [ottla.NewRecord(b"k", b"v" * 1000) for _ in range(9000)]
    batch = ottla.build_batch(records, compression="lz4")
    df = spark.createDataFrame([(1, batch), (2, batch)], "id int, records binary").coalesce(1)
    config = ottla.TopicConfig(max_message_bytes=len(batch))
    valid, quarantine = ottla.spark.split(df, config=config, now_ms=NOW_MS)
    found = valid.selectExpr("count(*)", "sum(length(value))", "max(offset)").first()
    assert tuple(found) == (18_000, 18_000_000, 8999)
    assert quarantine.count() == 0


@pytest.mark.slow
def test_a_task_that_is_tried_again_gives_the_same_rows(cluster: Any, tmp_path: Path) -> None:
    """The first try of a task dies in the middle of its rows."""
    spark = cluster
    ottla.spark.ship(spark)
    marker = str(tmp_path / "tried")
    df = spark.createDataFrame([(n, BATCH) for n in range(400)], "id int, records binary")
    wanted = ottla.spark.validate(df, now_ms=NOW_MS).orderBy("id").collect()

    def dies_once(batches: Any) -> Any:
        for number, batch in enumerate(batches):
            yield batch
            if number == 0 and not Path(marker).exists():
                Path(marker).touch()
                os._exit(1)

    shaky = df.mapInArrow(dies_once, df.schema)
    found = ottla.spark.validate(shaky, now_ms=NOW_MS).orderBy("id").collect()
    assert Path(marker).exists()
    assert found == wanted


def test_a_cut_parquet_file_is_one_sentence_of_a_job(spark: Any, tmp_path: Path) -> None:
    for name in ("a", "b"):
        pq.write_table(pa.table({"records": [BATCH]}), tmp_path / f"{name}.parquet")
    cut = tmp_path / "b.parquet"
    cut.write_bytes(cut.read_bytes()[:-20])
    df = spark.read.schema("records binary").parquet(str(tmp_path))
    judged = ottla.spark.validate(df, now_ms=NOW_MS)
    with (
        pytest.raises(ottla.SparkError, match=r"^judging captures failed: .*b\.parquet"),
        ottla.spark.job("judging captures", spark),
    ):
        judged.collect()


def case_configs(cases: list[dict[str, Any]]) -> dict[str, ottla.TopicConfig]:
    """Return the configurations of the cases, by their text."""
    configs = {}
    for case in cases:
        topic = vectors.topic_of(case.get("cfg", {}))
        configs[json.dumps(topic, sort_keys=True)] = ottla.TopicConfig(**topic)
    return configs


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["spark", "connect"])
def test_the_vectors_of_kafka_have_its_answers_on_spark(
    sessions: Any, shared: Path, tmp_path: Path, kind: str
) -> None:
    """Each case is a row of a Parquet file, with its context in columns."""
    with gzip.open(shared / "vectors" / "decide.jsonl.gz", "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    columns: dict[str, list[Any]] = {"number": list(range(len(cases)))}
    columns["records"] = [base64.b64decode(case["in"]) for case in cases]
    told_of = [vectors.circumstances_of(case.get("cfg", {})) for case in cases]
    for name in ("now_ms", "api_version", "base_offset", "leader_epoch", "origin"):
        columns[name] = [context[name] for context in told_of]
    columns["tid"] = [context["transactional_id"] for context in told_of]
    columns["topic"] = [
        json.dumps(vectors.topic_of(case.get("cfg", {})), sort_keys=True) for case in cases
    ]
    pq.write_table(pa.table(columns), tmp_path / "decide.parquet", row_group_size=4000)

    spark = sessions.get(kind)
    if kind != "spark":
        ottla.spark.ship(spark)
    df = spark.read.parquet(str(tmp_path / "decide.parquet"))
    judged = ottla.spark.validate(
        df,
        now_ms="now_ms",
        api_version="api_version",
        base_offset="base_offset",
        leader_epoch="leader_epoch",
        origin=df["origin"],
        transactional_id=df["tid"],
        config=case_configs(cases),
        profile="kafka",
        prefix="_",
        keep_records=False,
    )
    rows = judged.orderBy("number").collect()
    assert len(rows) == len(cases) == 20_000
    for row, case in zip(rows, cases, strict=True):
        verdict = vectors.verdict_of(base64.b64decode(case["in"]), case.get("cfg", {}))
        found = {name: row[f"_{name}"] for name in NAMES}
        found["record_errors"] = [tuple(error) for error in found["record_errors"]]
        assert found == answer(verdict)
        assert row["_error"] == case["out"]["code"]
        blamed = [error["batch_index"] for error in row["_record_errors"]]
        assert blamed == case["out"].get("record_errors", [])
