"""A broker in a test's hand: its topics, its clock, its faults, what it holds."""

import asyncio
import inspect
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ottla
import pytest
from confluent_kafka.admin import AdminClient
from ottla.broker.features import level_of
from ottla.testing import Broker
from ottla.testing.arguments import FaultArguments, WaitArguments


def test_topics_are_created_configured_and_deleted() -> None:
    with Broker(topics={"orders": 3}) as broker:
        broker.create_topic("compacted", 2, cleanup_policy="compact", retention_ms=5)
        assert broker.topics == {"orders": 3, "compacted": 2}
        broker.delete_topic("orders")
        assert broker.topics == {"compacted": 2}
        with pytest.raises(ottla.KafkaError, match="already exists") as raised:
            broker.create_topic("compacted")
        assert (raised.value.error_code, raised.value.error) == (36, "TOPIC_ALREADY_EXISTS")
        for work in (broker.delete_topic, broker.records, broker.columns):
            with pytest.raises(ottla.KafkaError, match="no topic orders"):
                work("orders")


def test_a_topic_that_cannot_be_leaves_no_broker_behind() -> None:
    broker = Broker(topics={"no good": 1})
    with pytest.raises(ottla.KafkaError, match="invalid"):
        broker.start()
    broker.stop()


@pytest.mark.parametrize("name", ["listeners", "advertised.listeners"])
def test_settings_of_listeners_are_refused_where_they_would_have_no_effect(name: str) -> None:
    with pytest.raises(ValueError, match="use host, port, users and tls"):
        Broker(config={name: "PLAINTEXT://127.0.0.1:9092"})


def test_a_setting_without_effect_is_told_to_the_log() -> None:
    lines: list[str] = []
    with Broker(config={"num.io.threads": 8, "num.partitions": 3}, log=lines.append):
        assert lines == ["num.io.threads has no effect here"]


def test_one_name_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises(TypeError, match=r"not 'orders': \['orders'\]"):
        Broker(topics="orders")


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"host": ""}, ValueError, "host is empty; 127.0.0.1 is this machine"),
        ({"data": ""}, ValueError, "data is empty; give a directory"),
        ({"kafka_version": 4.1}, TypeError, "kafka_version is a text such as '4.1', not 4.1"),
    ],
)
def test_an_argument_that_says_nothing_is_refused(
    arguments: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        Broker(**arguments)


@pytest.mark.parametrize("process", [False, True])
@pytest.mark.parametrize(
    ("host", "told"),
    [("::1", "[::1]:"), ("0.0.0.0", "localhost:")],  # noqa: S104 - what clients make of it
)
def test_clients_are_given_an_address_that_they_can_connect_to(
    host: str, told: str, process: bool
) -> None:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, 0), family=family).close()
    except OSError:
        pytest.skip(f"this machine has no {host}")
    with Broker(topics=["orders"], host=host, process=process) as broker:
        assert broker.bootstrap_servers.startswith(told)
        client = AdminClient({**broker.client_config(), "log_level": 0})
        assert "orders" in client.list_topics(timeout=10).topics


def test_a_frozen_clock_moves_by_advance_alone() -> None:
    with Broker(frozen_at_ms=1_700_000_000_000) as broker:
        assert broker.clock.now_ms == 1_700_000_000_000
        broker.clock.advance(seconds=45)
        assert broker.clock.now_ms == 1_700_000_045_000
        with pytest.raises(ValueError, match="cannot go back"):
            broker.clock.advance(seconds=-1)


@pytest.mark.parametrize("process", [False, True])
def test_a_topic_that_is_not_compacted_is_no_topic_to_compact(process: bool) -> None:
    with Broker(topics=["orders"], process=process) as broker:
        with pytest.raises(ValueError, match="orders is not compacted: its"):
            broker.compact("orders")
        broker.compact()


def test_retention_is_over_when_advance_returns() -> None:
    with Broker(frozen_at_ms=1_700_000_000_000) as broker:
        broker.create_topic("orders", 1, retention_ms=60_000)
        record = ottla.NewRecord(value=b"old", timestamp=1_700_000_000_000)
        batch = ottla.build_batch([record])
        handle = broker.run(lambda core: core.image.topics["orders"].partitions[0].handle)
        now_ms = broker.clock.now_ms
        verdict = broker.run(lambda core: core.plane.append(handle, batch, now_ms=now_ms))
        assert verdict.accepted
        assert [each.value for each in broker.records("orders")] == [b"old"]
        broker.clock.advance(seconds=61)
        assert broker.records("orders") == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"api": "Nothing"}, "no API that this broker serves$"),
        ({"api": "Prodce"}, "no API that this broker serves; did you mean Produce\\?"),
        ({"api": "Metadata", "error": "NO_SUCH"}, "no error of Kafka's protocol$"),
        ({"api": "Metadata", "error": "not_leader"}, "did you mean NOT_LEADER_OR_FOLLOWER\\?"),
        ({"api": "Metadata", "group": "g"}, "name no group"),
        ({"api": "DescribeCluster", "topic": "t"}, "limited to nothing"),
        ({"partition": -1}, "partition is -1, expected a number from 0 on"),
        ({"topic": b"orders"}, "topic is b'orders', expected a text"),
        ({"client": 5}, "client is 5, expected a text"),
    ],
)
def test_a_fault_that_could_never_strike_is_an_error(arguments: dict[str, Any], said: str) -> None:
    with Broker() as broker, pytest.raises(ValueError, match=said):
        broker.fail(**arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"observe": True, "error": 6}, "observe=True changes nothing"),
        ({"observe": True, "disconnect": True}, "observe=True changes nothing"),
        ({"observe": True, "delay": 1}, "observe=True changes nothing"),
        ({"error": 6, "disconnect": True}, "leave out one of them"),
        ({"error": 6, "topic": "orders", "delay": 2}, "comes without delay: set that as a fault"),
        ({"error": 6, "topic": "orders", "corrupt": True}, "comes without corrupt"),
    ],
)
def test_a_fault_of_which_a_part_would_never_strike_is_an_error(
    arguments: dict[str, Any], said: str
) -> None:
    with Broker(topics=["orders"]) as broker:
        with pytest.raises(ValueError, match=said):
            broker.fail("Produce", **arguments)
        fault = broker.fail("Produce", error=6, topic="orders")
        with pytest.raises(ValueError, match="pause one without an error"):
            fault.pause()


def test_a_wait_for_a_fault_ends_with_its_hits_or_in_an_error() -> None:
    with Broker() as broker:
        fault = broker.fail("Metadata", observe=True)
        with pytest.raises(TimeoutError, match="has struck 0 times"):
            fault.wait(timeout_s=0.01)
        fault.wait(0)


def test_a_fault_that_did_not_strike_as_expected_says_which_it_is(tmp_path: Path) -> None:
    with Broker(topics=["orders"], data=tmp_path) as broker:
        fault = broker.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", partition=0, times=2)
        assert repr(fault) == (
            "<FaultHandle api='Produce', error='NOT_LEADER_OR_FOLLOWER', partition=0, times=2>"
        )
        assert repr(broker.fail()) == "<FaultHandle of everything>"
        assert repr(broker.fail_disk("full")) == "<FaultHandle kind='full'>"


def test_a_condition_is_waited_for() -> None:
    with Broker(topics=["orders"]) as broker:
        broker.until(lambda core: "orders" in core.image.topics)
        with pytest.raises(TimeoutError):
            broker.until(lambda core: "none" in core.image.topics, timeout_s=0.05)


def test_it_is_there_in_a_coroutine_as_well() -> None:
    async def work() -> None:
        async with Broker(topics=["orders"]) as broker:
            assert broker.topics == {"orders": 1}

    asyncio.run(work())


@pytest.mark.parametrize(
    ("kafka_version", "highest", "level"), [("2.4", 8, 0), ("3.9.1", 11, 0), (None, 13, 2)]
)
def test_a_release_is_imitated_by_the_versions_that_it_served_and_the_features_that_it_had(
    kafka_version: str | None, highest: int, level: int
) -> None:
    with Broker(kafka_version=kafka_version) as broker:
        assert broker.run(lambda core: core.apis[0].max_version) == highest
        features = broker.run(lambda core: core.features)
        assert level_of(features, "transaction.version") == level


def test_a_release_before_4_takes_timestamps_of_any_future_unless_it_is_told_otherwise() -> None:
    setting = "log.message.timestamp.after.max.ms"

    def limit(kafka_version: str | None, **config: object) -> str:
        with Broker(kafka_version=kafka_version, config=config) as broker:
            return broker.run(lambda core: core.config.text(setting))

    assert limit("3.9.1") == str(2**63 - 1)
    assert limit("4.0.0") == limit(None) == "3600000"
    assert limit("3.9.1", **{setting: 7}) == "7"


@pytest.mark.parametrize(
    ("handed_on", "method", "besides"),
    [
        (WaitArguments, Broker.wait_for, {"self", "timeout_s"}),
        (FaultArguments, Broker.fail, {"self", "api"}),
    ],
)
def test_what_hands_arguments_on_has_the_types_of_what_takes_them(
    handed_on: type, method: Callable[..., object], besides: set[str]
) -> None:
    taken = inspect.get_annotations(method)
    known = {name: str(each) for name, each in taken.items() if name not in {*besides, "return"}}
    declared = inspect.get_annotations(handed_on)
    assert {name: each.__forward_arg__ for name, each in declared.items()} == known
    assert set(inspect.signature(method).parameters) == {*known, *besides}
