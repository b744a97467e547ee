"""What an application is told that gets no records, though nothing is an error yet."""

from __future__ import annotations

import pytest
from ottla.client import Consumer, IllegalArgumentError, KafkaTimeoutError
from ottla.client.partitions import TopicPartition
from support.scripted_logs import ScriptedLogs

MISSING = TopicPartition("missing", 0)


def complaints(logs: ScriptedLogs, partition: TopicPartition, polls: int = 100) -> list[str]:
    core = logs.consumer()
    core.assign([partition], logs.now_ms)
    found = []
    for _ in range(polls):
        taken = logs.poll(core, max_ms=500)
        said = core.complaint(logs.now_ms, is_served=bool(taken))
        if said is not None:
            found.append(said)
    return found


def test_a_topic_that_does_not_exist_is_named_every_half_minute() -> None:
    found = complaints(ScriptedLogs(topics={}), MISSING)
    assert len(found) == 2
    assert found[0] == "the brokers answer UNKNOWN_TOPIC_OR_PARTITION for the topic 'missing'"


def test_a_partition_that_does_not_exist_is_named_with_those_that_do() -> None:
    found = complaints(ScriptedLogs(topics={"orders": 2}), TopicPartition("orders", 5))
    assert found[0] == "the topic 'orders' has 2 partitions, numbered from 0, and no 5"


def test_brokers_that_cannot_be_reached_are_told_with_the_reason() -> None:
    logs = ScriptedLogs(topics={"orders": 1})
    logs.cluster.down = {1}
    found = complaints(logs, TopicPartition("orders", 0))
    assert found[0].startswith("no broker has answered yet")
    assert "refused" in found[0]


def test_a_consumer_that_is_served_or_has_read_everything_hears_nothing() -> None:
    logs = ScriptedLogs(topics={"orders": 1})
    logs.append("orders", 0, [b"1"])
    assert complaints(logs, TopicPartition("orders", 0), polls=10) == []


def test_a_call_whose_time_is_over_says_what_stands_in_the_way() -> None:
    logs = ScriptedLogs(topics={})
    core = logs.consumer()
    core.assign([MISSING], logs.now_ms)
    pending = core.position(MISSING)
    logs.cluster.run(max_ms=1000)
    error = core.time_out(pending)
    assert isinstance(error, KafkaTimeoutError)
    assert "UNKNOWN_TOPIC_OR_PARTITION for the topic 'missing'" in str(error)


def test_what_stands_in_the_way_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with Consumer(bootstrap_servers="127.0.0.1:1") as consumer:
        consumer.assign([MISSING])
        consumer.poll(2_100)
    assert {one.name for one in caplog.records} == {"ottla.client"}
    why, what_follows = caplog.messages
    assert why.startswith("cannot connect to 127.0.0.1:1: ")
    assert what_follows.startswith("no records are read: no broker has answered yet")


@pytest.mark.parametrize("given", [[("orders", 0)], "orders", ("orders",), ("orders", "0"), (0, 0)])
def test_what_is_no_partition_is_refused_with_what_is_expected(given: object) -> None:
    with (
        Consumer(bootstrap_servers="127.0.0.1:1", group_id="g") as consumer,
        pytest.raises(IllegalArgumentError, match="expected a pair"),
    ):
        consumer.committed(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("partition", "reason"),
    [
        (MISSING, "UNKNOWN_TOPIC_OR_PARTITION for the topic 'missing'"),
        (
            TopicPartition("orders", 5),
            "the topic 'orders' has 2 partitions, numbered from 0, and no 5",
        ),
    ],
)
def test_a_lookup_of_a_partition_that_does_not_exist_names_it(
    partition: TopicPartition, reason: str
) -> None:
    logs = ScriptedLogs(topics={"orders": 2})
    core = logs.consumer()
    pending = core.queries.end_offsets([TopicPartition("orders", 0), partition])
    logs.cluster.run(max_ms=1000)
    error = core.time_out(pending)
    assert isinstance(error, KafkaTimeoutError)
    assert "end_offsets() was not answered in time, since " in str(error)
    assert reason in str(error)
