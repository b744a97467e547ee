"""The options of the data source, in every spelling."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.logs import write_log_directory

pytest.importorskip("pyspark", minversion="4.0")

from ottla.errors import SparkError
from ottla.spark.source.names import OPTIONS
from ottla.spark.source.options import check_inputs, parse_options, request_for
from pyspark.sql.types import StructType

ORDERS = {"orders": {"0": 23, "1": -2}}


def partitions_of(path: Path, **options: str) -> list[tuple[str | None, int | None]]:
    request = parse_options({"path": str(path), **options})
    plan = request.plan()
    check_inputs(request, plan)
    return [(partition.topic, partition.partition) for partition in plan.partitions]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log directory of four partitions."""
    names = ["orders-0", "orders-1", "payments-0", "orders.dead-0"]
    return write_log_directory(tmp_path_factory.mktemp("logs") / "kafka", names)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"fail_on_data_loss": "false"}, {"failOnDataLoss": "false"}),
        ({"max_bytes_per_trigger": "9"}, {"maxBytesPerTrigger": "9"}),
        ({"starting_offsets": json.dumps(ORDERS)}, {"startingOffsets": json.dumps(ORDERS)}),
        ({"ending_timestamp": "7"}, {"endingTimestamp": "7"}),
        ({"isolation_level": "read_committed"}, {"kafka.isolation.level": "read_committed"}),
        ({"isolation_level": "READ_COMMITTED"}, {"isolationLevel": "read_committed"}),
        ({"on_damage": "skip"}, {"onDamage": "skip"}),
        ({"subscribe_pattern": "or.*"}, {"subscribePattern": "or.*"}),
        ({"topics": "orders,payments"}, {"subscribe": "orders, payments"}),
    ],
)
def test_an_option_may_be_spelled_as_ours_or_as_sparks(
    ours: dict[str, str], theirs: dict[str, str]
) -> None:
    def asked(options: dict[str, str]) -> dict[str, Any]:
        request = parse_options({"path": "x", **options})
        named = {name: getattr(request, name) for name in request.__slots__}
        # These keep the name that was typed, for errors.
        for name in ("starting", "ending"):
            choice = named[name]
            named[name] = [getattr(choice, slot) for slot in choice.__slots__ if slot != "option"]
        return named

    assert asked(ours) == asked(theirs)
    # Spark passes names in lower case.
    assert asked(theirs) == asked({name.lower(): value for name, value in theirs.items()})
    assert asked(ours) != asked({})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("failOnDataLoss", "fail_on_data_loss"),
        ("kafka.isolation.level", "isolation_level"),
        ("isolationLevel", "kafka.isolation.level"),
        ("startingOffsets", "starting_offsets"),
    ],
)
def test_an_option_given_in_two_spellings_is_an_error_with_both_of_them(
    first: str, second: str
) -> None:
    for names in ((first, second), (first.lower(), second)):
        with pytest.raises(SparkError) as caught:
            parse_options({"path": "x", names[0]: "true", names[1]: "false"})
        assert f"is given twice: {first}='true' and {second}='false'" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOfsets": "earliest"}, "'startingOfsets' (did you mean starting_offsets?), only"),
        ({"onDammage": "skip"}, "'onDammage' (did you mean on_damage?), only table, schema"),
        ({"maxoffsetspertrigger": "9"}, "'maxOffsetsPerTrigger': max_bytes_per_trigger limits"),
        (
            {"kafka.bootstrap.servers": "a:1"},
            "options of a consumer are accepted with schema=kafka",
        ),
        ({"on_damage": "ignore"}, "on_damage is 'ignore', not one of fail, skip, quarantine"),
        ({"onDamage": "ignore"}, "onDamage is 'ignore'"),
        ({"startingOffsets": "first"}, "startingOffsets is 'first', must be JSON such as"),
        ({"startingOffsets": "[]"}, "startingOffsets is '[]', must be JSON such as"),
        ({"startingOffsets": "{}"}, "startingOffsets is '{}', must be JSON such as"),
        ({"startingOffsets": '{"a": {"0": -3}}'}, "has -3 for a-0, must be a number from -2"),
        ({"startingOffsets": '{"a": {"0": true}}'}, "has True for a-0"),
        ({"startingOffsets": '{"a": {"x": 1}}'}, "has a partition 'x' of 'a'"),
        ({"startingOffsets": '{"a": {"0": 1, "0": 2}}'}, "startingOffsets has '0' twice"),
        ({"startingOffsets": '{"a": 1}'}, "has 1 for topic 'a'"),
        ({"startingOffsets": ""}, "startingOffsets is '', must be JSON"),
        ({"startingOffsets": "[" * 100_000}, "must be JSON such as"),
        ({"endingOffsets": "earliest"}, "endingOffsets is 'earliest', must be latest or JSON"),
        ({"endingOffsets": '{"a": {"0": -2}}'}, "endingOffsets has -2, which is earliest"),
        ({"startingTimestamp": "now"}, "startingTimestamp is 'now', must be a number of ms"),
        ({"startingTimestamp": "٣"}, "startingTimestamp is '٣', must be a number"),
        ({"assign": '{"a": 0}'}, "assign has 0 for topic 'a', must be JSON such as"),
        ({"assign": "a-0"}, "assign is 'a-0', must be JSON such as"),
        ({"subscribePattern": "("}, "subscribePattern is '(', no regular expression"),
        ({"subscribe": "a", "assign": '{"a": [0]}'}, "subscribe and assign are given: only one"),
        ({"schema": "spark"}, "schema is 'spark', not one of ottla, kafka"),
        ({"schema": "kafka", "table": "batches"}, "schema=kafka is of the table records"),
        ({"includeHeaders": "true"}, "includeHeaders is of schema=kafka, not of"),
        ({"onDamage": "skip", "table": "gaps"}, "onDamage is of the tables batches and records"),
        ({"isolation_level": "read_committed", "table": "batches"}, "is of the table records"),
    ],
)
def test_what_is_wrong_is_told_as_it_was_typed(options: dict[str, str], message: str) -> None:
    with pytest.raises(SparkError, match=re.escape(message)):
        parse_options({"path": "x", **options})


@pytest.mark.parametrize("on_damage", ["fail", "quarantine"])
def test_a_list_of_no_columns_is_refused_and_is_not_all_of_them(on_damage: str) -> None:
    options = {"path": "x", "on_damage": on_damage}
    for columns in ("", " , "):
        with pytest.raises(SparkError, match="no column is named: leave columns out for all"):
            parse_options(options | {"columns": columns})
    with pytest.raises(SparkError, match="no column is named"):
        parse_options(options, StructType([]))
    assert len(parse_options(options).columns) > 5


@pytest.mark.parametrize("typed", ["topics", "subscribe"])
def test_a_list_of_no_topics_is_refused_and_is_not_all_of_them(typed: str) -> None:
    for topics in ("", " , "):
        with pytest.raises(SparkError, match=f"{typed} names no topic: leave it out for all"):
            parse_options({"path": "x", typed: topics})
    with pytest.raises(SparkError, match="topics names no topic: leave it out for all topics"):
        request_for(("x",), "records", topics=())
    assert parse_options({"path": "x"}).topics == ()
    assert request_for(("x",), "records").topics == ()


def test_options_of_consumers_are_accepted_where_a_job_for_kafka_gives_them() -> None:
    options = {
        "kafka.bootstrap.servers": "broker:9092",
        "kafka.security.protocol": "SASL_SSL",
        "minPartitions": "8",
        "groupidprefix": "x",
    }
    assert parse_options({"path": "x", "schema": "kafka", **options}).layout == "kafka"


def test_topics_are_selected_by_name_pattern_or_partition(logs: Path) -> None:
    assert partitions_of(logs, subscribe="orders") == [("orders", 0), ("orders", 1)]
    assert partitions_of(logs, subscribePattern="orders.*") == [
        ("orders", 0),
        ("orders", 1),
        ("orders.dead", 0),
    ]
    assert partitions_of(logs, subscribePattern="orders") == [("orders", 0), ("orders", 1)]
    assert partitions_of(logs, assign='{"orders": [1], "payments": [0]}') == [
        ("orders", 1),
        ("payments", 0),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "orders,ordres"}, "no topic matches 'ordres'"),
        ({"subscribePattern": "dead"}, "no topic matches 'dead'"),
        ({"assign": '{"orders": [1, 2]}'}, "there is no partition 2 of topic 'orders'"),
    ],
)
def test_a_selection_that_matches_nothing_is_an_error(
    options: dict[str, str], message: str, logs: Path
) -> None:
    with pytest.raises(SparkError, match=message):
        partitions_of(logs, **options)


def test_paths_may_have_wildcards(logs: Path) -> None:
    assert partitions_of(logs / "orders-*") == [("orders", 0), ("orders", 1)]
    assert partitions_of(logs / "orders-[1-9]") == [("orders", 1)]
    assert partitions_of(logs.parent / "*" / "{orders,payments}-0") == [
        ("orders", 0),
        ("payments", 0),
    ]
    with pytest.raises(SparkError, match=r"no path matches '.*refunds-\*'"):
        partitions_of(logs / "refunds-*")


def test_a_path_that_exists_under_a_name_with_wildcards_is_that_path(tmp_path: Path) -> None:
    for name in ("copy[1]", "copy1"):
        write_log_directory(tmp_path / name, [f"{name[:4]}-0"])
    assert len(partitions_of(tmp_path / "copy[1]")) == 1
    assert len(partitions_of(tmp_path / "copy*")) == 2


def test_every_option_is_on_the_page() -> None:
    page = Path("docs/spark/source.md").read_text()
    missing = [name for name in OPTIONS if not name.startswith("path") and f"`{name}`" not in page]
    assert missing == []
