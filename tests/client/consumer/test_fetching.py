"""What is fetched, from whom, and how a fetch session says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from ottla.client.errors import ApiError, TopicAuthorizationError
from ottla.client.partitions import TopicPartition
from support.scripted_cluster import CUT
from support.scripted_logs import ScriptedLogs

if TYPE_CHECKING:
    from collections.abc import Callable

ORDERS = TopicPartition("orders", 0)


def logs_of(**arguments: object) -> ScriptedLogs:
    return ScriptedLogs(**{"topics": {"orders": 1}, **arguments})  # type: ignore[arg-type]


def once(api: str, code: int) -> Callable[[str, str, int], int | None]:
    """A fault of one answer about a partition."""
    left = [code]

    def fault(asked: str, topic: str, _partition: int) -> int | None:
        return left.pop() if left and asked == api and topic else None

    return fault


def test_records_come_in_order_and_each_once() -> None:
    logs = logs_of()
    for start in range(0, 100, 10):
        logs.append("orders", 0, [b"%d" % number for number in range(start, start + 10)])
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    assert logs.values(core) == [b"%d" % number for number in range(100)]
    assert core.lag(ORDERS) == 0


def test_a_poll_returns_at_most_so_many_records_and_keeps_the_rest() -> None:
    logs = logs_of()
    logs.append("orders", 0, [b"%d" % number for number in range(10)])
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    assert [len(logs.poll(core, limit=4)) for _ in range(3)] == [4, 4, 2]
    assert len(logs.cluster.asked("Fetch")) == 1


def test_the_position_is_behind_what_was_delivered_whatever_was_fetched() -> None:
    logs = logs_of()
    logs.append("orders", 0, [b"%d" % number for number in range(10)])
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    logs.poll(core, limit=4)
    assert logs.wait(core.position(ORDERS)).offset == 4
    logs.poll(core, limit=6)
    assert logs.wait(core.position(ORDERS)).offset == 10


def test_partitions_of_two_nodes_are_fetched_at_once() -> None:
    logs = logs_of(nodes=2, topics={"orders": 2})
    logs.append("orders", 0, [b"0"])
    logs.append("orders", 1, [b"1"])
    core = logs.consumer()
    core.assign([ORDERS, TopicPartition("orders", 1)], logs.now_ms)
    assert sorted(logs.values(core)) == [b"0", b"1"]
    nodes = {node for node, api, _, _ in logs.cluster.requests if api == "Fetch"}
    assert nodes == {1, 2}


def test_a_session_names_a_partition_again_only_when_it_has_changed() -> None:
    logs = logs_of(topics={"orders": 2})
    logs.append("orders", 0, [b"0"])
    logs.append("orders", 1, [b"1"])
    core = logs.consumer()
    core.assign([ORDERS, TopicPartition("orders", 1)], logs.now_ms)
    logs.values(core, max_ms=100)
    fetches = logs.cluster.asked("Fetch")
    assert [one.session_epoch for one in fetches[:3]] == [0, 1, 2]
    assert all(one.session_id == 1 for one in fetches[1:])
    assert sum(len(topic.partitions) for one in fetches[3:] for topic in one.topics) == 0


def test_a_partition_that_is_paused_is_forgotten_by_the_session_and_its_records_are_kept() -> None:
    logs = logs_of(topics={"orders": 2})
    logs.append("orders", 0, [b"0"])
    core = logs.consumer()
    core.assign([ORDERS, TopicPartition("orders", 1)], logs.now_ms)
    something = core.something()
    logs.cluster.run(lambda: something.is_done)
    core.pause([ORDERS])
    assert logs.poll(core, max_ms=100) == []
    forgotten = [one for one in logs.cluster.asked("Fetch") if one.forgotten_topics_data]
    assert [topic.partitions for topic in forgotten[0].forgotten_topics_data] == [[0]]
    core.pause([ORDERS], is_paused=False)
    fetched = len(logs.cluster.asked("Fetch"))
    assert [one.value for one in logs.poll(core)] == [b"0"]
    assert len(logs.cluster.asked("Fetch")) == fetched


@pytest.mark.parametrize("code", [70, 71, 106, 100, 103])
def test_a_session_that_broke_is_opened_anew_at_once(code: int) -> None:
    logs = logs_of()
    logs.append("orders", 0, [b"0"])
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    assert logs.values(core, max_ms=50) == [b"0"]
    left = [code]
    logs.faults.append(
        lambda api, topic, _: left.pop() if left and api == "Fetch" and not topic else None
    )
    logs.append("orders", 0, [b"1"])
    before = logs.now_ms
    assert [one.value for one in logs.poll(core)] == [b"1"]
    assert logs.now_ms - before < 20
    assert any(one.session_epoch == 0 for one in logs.cluster.asked("Fetch")[1:])


def test_a_broker_without_room_for_sessions_gets_full_requests() -> None:
    logs = logs_of(has_sessions=False)
    logs.append("orders", 0, [b"0"])
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    assert logs.values(core, max_ms=100) == [b"0"]
    assert {one.session_epoch for one in logs.cluster.asked("Fetch")} == {0}
    assert all(one.topics for one in logs.cluster.asked("Fetch"))


@pytest.mark.parametrize("version", range(4, 18))
def test_each_version_of_fetch_brings_the_records(version: int) -> None:
    logs = logs_of(versions={"Fetch": range(version, version + 1)})
    logs.append("orders", 0, [b"0", b"1"])
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    assert logs.values(core, max_ms=100) == [b"0", b"1"]


def test_a_topic_without_an_id_is_fetched_by_its_name() -> None:
    logs = logs_of(versions={"Metadata": range(10)})
    logs.append("orders", 0, [b"0"])
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    assert logs.values(core, max_ms=100) == [b"0"]
    assert {version for _, api, version, _ in logs.cluster.requests if api == "Fetch"} == {12}


@pytest.mark.parametrize("code", [3, 5, 6, 9, 56, 74, 75, 78, 100, 103, -1])
def test_an_error_that_passes_is_not_seen_by_the_application(code: int) -> None:
    logs = logs_of()
    logs.append("orders", 0, [b"0"])
    logs.faults.append(once("Fetch", code))
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    assert logs.values(core) == [b"0"]


def test_an_error_that_does_not_pass_is_raised_and_the_rest_goes_on() -> None:
    logs = logs_of(topics={"orders": 1, "secret": 1})
    logs.append("orders", 0, [b"0"])
    logs.faults.append(lambda api, topic, _: 29 if api == "Fetch" and topic == "secret" else None)
    core = logs.consumer()
    core.assign([TopicPartition("secret", 0), ORDERS], logs.now_ms)
    found = []
    errors: list[Exception] = []
    for _ in range(4):
        try:
            found += [one.value for one in logs.poll(core, max_ms=200)]
        except ApiError as error:
            errors.append(error)
    assert found == [b"0"]
    assert isinstance(errors[0], TopicAuthorizationError)
    assert "secret-0" in str(errors[0])


def test_records_come_from_the_replica_that_the_leader_names() -> None:
    logs = logs_of(nodes=2)
    logs.replicas[ORDERS] = 2
    logs.append("orders", 0, [b"0"])
    core = logs.consumer(client_rack="b")
    core.assign([ORDERS], logs.now_ms)
    assert logs.values(core, max_ms=100) == [b"0"]
    asked = [node for node, api, _, _ in logs.cluster.requests if api == "Fetch"]
    assert asked[0] == 1
    assert set(asked[1:]) == {2}
    assert logs.cluster.asked("Fetch")[0].rack_id == "b"


def test_a_replica_that_lags_behind_sends_the_consumer_back_to_the_leader() -> None:
    logs = logs_of(nodes=2)
    logs.replicas[ORDERS] = 2
    logs.append("orders", 0, [b"0"])
    left = [1]
    logs.faults.append(
        lambda api, topic, _: (
            left.pop() if left and api == "Fetch" and topic and logs.cluster.node_id == 2 else None
        )
    )
    core = logs.consumer(auto_offset_reset="none")
    core.assign([ORDERS], logs.now_ms)
    core.seek_to_beginning(None)
    assert logs.values(core, max_ms=100) == [b"0"]
    assert core.lag(ORDERS) == 0


def test_a_connection_that_breaks_costs_no_record() -> None:
    logs = logs_of()
    logs.append("orders", 0, [b"0"])
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    assert logs.values(core, max_ms=50) == [b"0"]
    handler = logs._fetch
    logs.cluster.on("Fetch", lambda *_: CUT)
    logs.cluster.cut(1)
    assert logs.poll(core, max_ms=300) == []
    logs.cluster.on("Fetch", handler)
    logs.append("orders", 0, [b"1"])
    assert logs.values(core) == [b"1"]


def test_no_more_is_fetched_while_as_much_as_allowed_waits() -> None:
    logs = logs_of(topics={"orders": 3})
    for number in range(3):
        for _ in range(5):
            logs.append("orders", number, [b"x" * 1000])
    core = logs.consumer(fetch_max_bytes=3000, max_partition_fetch_bytes=1200)
    core.assign([TopicPartition("orders", number) for number in range(3)], logs.now_ms)
    assert len(logs.poll(core, limit=1)) == 1
    logs.cluster.run(max_ms=50)
    fetches = len(logs.cluster.asked("Fetch"))
    logs.cluster.run(max_ms=5000)
    assert len(logs.cluster.asked("Fetch")) == fetches
    assert len(logs.values(core)) == 14


def test_a_seek_drops_what_was_fetched_before() -> None:
    logs = logs_of()
    logs.append("orders", 0, [b"%d" % number for number in range(10)])
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    assert len(logs.poll(core, limit=2)) == 2
    core.seek_to_beginning([ORDERS])
    assert logs.values(core)[:3] == [b"0", b"1", b"2"]


def test_a_leader_that_moves_is_followed() -> None:
    logs = logs_of(nodes=2)
    logs.append("orders", 0, [b"0"])
    core = logs.consumer()
    core.assign([ORDERS], logs.now_ms)
    assert logs.values(core, max_ms=50) == [b"0"]
    logs.cluster.leaders[ORDERS] = (2, 1)
    logs.logs[ORDERS].epoch = 1
    logs.append("orders", 0, [b"1"])
    assert logs.values(core) == [b"1"]
    assert logs.cluster.requests[-1][0] == 2
    asked = logs.cluster.asked("OffsetForLeaderEpoch")
    assert [topic.partitions[0].leader_epoch for one in asked for topic in one.topics] == [0]
