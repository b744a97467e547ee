"""Settings of a broker that clients change while it runs, and levels of its loggers.

What is expected of Kafka's own rules is what a broker of Kafka 4.4 has answered.
"""

from typing import Any

import ottla
import pytest
from ottla.broker.loggers import REQUESTS
from ottla.broker.request_log import TEXT, RequestLog
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.alter_configs import AlterableConfig as Replacing
from ottla.protocol.messages.alter_configs import (
    AlterConfigsRequest,
)
from ottla.protocol.messages.alter_configs import AlterConfigsResource as ReplacedResource
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from support.wire_client import WireClient, new_broker

BROKER, LOGGER = 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
INVALID_REQUEST, INVALID_CONFIG = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG
OWN, ALL, STATIC, DEFAULT = 2, 3, 4, 5
"""Where a value comes from."""


@pytest.fixture
def client() -> WireClient:
    client = WireClient(new_broker({"log.retention.ms": "7000"}))
    client.broker.topics.create("orders", 1, {}, client.now_ms)
    return client


def alter(
    client: WireClient,
    name: str,
    *changes: tuple[str, int, str | None],
    kind: int = BROKER,
    validate_only: bool = False,
) -> tuple[int, str | None]:
    configs = [AlterableConfig(name=k, config_operation=o, value=v) for k, o, v in changes]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    [answer] = client.ask(request, 1).responses
    return answer.error_code, answer.error_message


def replace(client: WireClient, name: str, kind: int = BROKER, **configs: str | None) -> Any:
    given = [Replacing(name=key.replace("_", "."), value=text) for key, text in configs.items()]
    resource = ReplacedResource(resource_type=kind, resource_name=name, configs=given)
    [answer] = client.ask(AlterConfigsRequest(resources=[resource]), 2).responses
    return answer.error_code, answer.error_message


def described(client: WireClient, name: str, kind: int = BROKER) -> Any:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    [answer] = client.ask(request, 4).results
    if answer.error_code:
        return answer.error_code, answer.error_message
    return {each.name: each for each in answer.configs}


def sources(setting: Any) -> list[tuple[str, int]]:
    return [(each.value, each.source) for each in setting.synonyms]


NOT_DYNAMIC = "Cannot update these configs dynamically"
OF_A_LISTENER = (
    "These security configs can be dynamically updated only per-listener using the listener prefix"
)
OF_ONE_BROKER = "Cannot update these configs at default cluster level, broker id must be specified"


@pytest.mark.parametrize("name", ["1", ""])
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ([("num.partitions", SET, "3")], f"{NOT_DYNAMIC}: [num.partitions]"),
        ([("log.retention.hours", SET, "5")], f"{NOT_DYNAMIC}: [log.retention.hours]"),
        ([("broker.id", SET, "1")], f"{NOT_DYNAMIC}: [broker.id]"),
        (
            [("auto.create.topics.enable", SET, "false"), ("num.partitions", SET, "3")],
            f"{NOT_DYNAMIC}: [auto.create.topics.enable, num.partitions]",
        ),
        ([("ssl.keystore.location", SET, "/a")], f"{OF_A_LISTENER}: [ssl.keystore.location]"),
        (
            [("log.retention.ms", SET, "x")],
            "Invalid value x for configuration log.retention.ms: Not a number of type LONG",
        ),
        ([("log.retention.ms", SET, None)], "Null value not supported for : log.retention.ms"),
        # What follows is our own: Kafka takes these, or reads certificates again.
        (
            [("no.such.setting", SET, "3")],
            "Unknown configuration no.such.setting",
        ),
        ([("num.io.threads", SET, "3")], "These configs have no effect here: [num.io.threads]"),
    ],
)
def test_what_cannot_change_while_the_broker_runs_is_refused(
    client: WireClient, name: str, changes: list[tuple[str, int, str | None]], why: str
) -> None:
    error, message = alter(client, name, *changes)
    assert (error, (message or "")[: len(why)]) == (INVALID_REQUEST, why)
    assert client.broker.config is client.broker.dynamic.static


@pytest.mark.parametrize(
    "setting",
    ["listeners", "sasl.enabled.mechanisms", "listener.name.plaintext.ssl.keystore.location"],
)
def test_what_brokers_differ_in_is_not_set_for_all(client: WireClient, setting: str) -> None:
    wanted = (INVALID_REQUEST, f"{OF_ONE_BROKER}: [{setting}]")
    assert alter(client, "", (setting, SET, "PLAIN")) == wanted


@pytest.mark.parametrize(
    "setting", ["listeners", "listener.name.plaintext.ssl.keystore.location", "sasl.jaas.config"]
)
def test_a_listener_is_as_the_broker_was_started(client: WireClient, setting: str) -> None:
    value = "org.a.PlainLoginModule required;" if setting == "sasl.jaas.config" else "PLAIN"
    error, message = alter(client, "1", (setting, SET, value))
    assert error == INVALID_REQUEST
    assert "they have an effect here when the broker starts" in (message or "")


def test_the_brokers_own_counts_before_that_of_all_and_both_before_the_file(
    client: WireClient,
) -> None:
    setting = "log.retention.ms"
    file = [("7000", STATIC), ("604800000", DEFAULT)]
    assert sources(described(client, "1")[setting]) == file
    assert alter(client, "", (setting, SET, "5000")) == (0, None)
    assert client.broker.config.number(setting) == 5000
    assert alter(client, "1", (setting, SET, "3000")) == (0, None)
    assert client.broker.config.number(setting) == 3000
    own = described(client, "1")[setting]
    assert (own.value, own.config_source, own.read_only) == ("3000", OWN, False)
    assert sources(own) == [("3000", OWN), ("5000", ALL), *file]
    assert {k: sources(v) for k, v in described(client, "").items()} == {setting: [("5000", ALL)]}
    assert alter(client, "1", (setting, DELETE, None)) == (0, None)
    assert client.broker.config.number(setting) == 5000
    assert alter(client, "", (setting, DELETE, None)) == (0, None)
    assert sources(described(client, "1")[setting]) == file
    assert described(client, "") == {}


def test_what_holds_until_a_restart_is_described_as_read_only(client: WireClient) -> None:
    settings = described(client, "1")
    changeable = {name for name, each in settings.items() if not each.read_only}
    assert {"log.retention.ms", "max.connections", "message.max.bytes"} <= changeable
    assert not {"num.partitions", "listeners", "broker.id", "super.users"} & changeable
    for name in sorted(changeable):
        assert alter(client, "1", (name, DELETE, None)) == (0, None), name
    password = settings["ssl.key.password"]
    assert (password.value, password.is_sensitive, password.config_type) == (None, True, 9)


def test_a_list_is_added_to_and_taken_from(client: WireClient) -> None:
    name = "log.cleanup.policy"
    assert alter(client, "1", (name, APPEND, "compact")) == (0, None)
    assert client.broker.config.text(name) == "delete,compact"
    assert alter(client, "1", (name, SUBTRACT, "delete")) == (0, None)
    assert client.broker.config.text(name) == "compact"
    assert alter(client, "1", ("log.retention.ms", APPEND, "5")) == (
        INVALID_CONFIG,
        "Config value append is not allowed for config key: log.retention.ms",
    )


def test_alter_configs_replaces_what_was_changed_of_one_resource(client: WireClient) -> None:
    assert replace(client, "", log_retention_ms="5", log_roll_ms="9") == (0, None)
    assert replace(client, "1", log_roll_ms="8") == (0, None)
    assert replace(client, "", log_retention_ms="6") == (0, None)
    assert (client.broker.dynamic.of_all(), client.broker.dynamic.own()) == (
        {"log.retention.ms": "6"},
        {"log.roll.ms": "8"},
    )
    assert replace(client, "1", num_partitions="3")[0] == INVALID_REQUEST
    assert replace(client, "1", log_roll_ms=None)[0] == INVALID_REQUEST
    assert replace(client, "1", kind=LOGGER, root="INFO") == (
        INVALID_REQUEST,
        "Unknown resource type 8",
    )


def test_a_change_can_be_tried(client: WireClient) -> None:
    change = ("log.retention.ms", SET, "1")
    assert alter(client, "1", change, validate_only=True) == (0, None)
    assert client.broker.config is client.broker.dynamic.static


def test_a_change_holds_for_topics_that_are_there_already(client: WireClient) -> None:
    batch = ottla.build_batch([ottla.NewRecord(value=b"v" * 1000, timestamp=client.now_ms)])
    data = PartitionProduceData(index=0, records=batch)
    topics = [TopicProduceData(name="orders", partition_data=[data])]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)

    def code() -> int:
        return int(client.ask(request, 9).responses[0].partition_responses[0].error_code)

    assert code() == 0
    assert alter(client, "", ("message.max.bytes", SET, "500")) == (0, None)
    assert code() == ErrorCode.MESSAGE_TOO_LARGE
    own = {"max.message.bytes": "2000"}
    client.broker.topics.configure(client.broker.image.topics["orders"], own)
    assert code() == 0
    assert alter(client, "", ("message.max.bytes", SET, "400")) == (0, None)
    assert code() == 0


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("2", "Unexpected broker id, expected 1 or empty string, but received 2"),
        ("x", "Broker id must be an integer, but it is: x"),
    ],
)
def test_settings_of_another_broker_are_not_here(client: WireClient, name: str, why: str) -> None:
    assert described(client, name) == (INVALID_REQUEST, why)
    assert alter(client, name, ("log.roll.ms", SET, "5")) == (INVALID_REQUEST, why)


def logged(client: WireClient) -> list[str]:
    """Has the broker of a client keep a log of requests; returns its lines."""
    lines: list[str] = []
    broker = client.broker
    broker.loggers.add(REQUESTS, "DEBUG")
    broker.request_log = RequestLog(
        TEXT,
        elapsed_us=lambda: 0,
        write=lines.append,
        is_on=lambda: broker.loggers.shows(REQUESTS, "DEBUG"),
    )
    return lines


def levels(client: WireClient) -> dict[str, str]:
    found = described(client, "1", LOGGER)
    assert {(each.read_only, each.config_source) for each in found.values()} == {(False, 6)}
    return {name: each.value for name, each in found.items()}


def test_the_log_of_requests_is_turned_off_and_on_by_the_level_of_its_logger(
    client: WireClient,
) -> None:
    assert levels(client) == {"root": "INFO"}
    lines = logged(client)
    assert levels(client) == {"root": "INFO", REQUESTS: "DEBUG"}
    lines.clear()
    for level, count in (("INFO", 0), ("TRACE", 1)):
        assert alter(client, "1", (REQUESTS, SET, level), kind=LOGGER) == (0, None)
        lines.clear()
        client.ask(MetadataRequest(topics=[]), 9)
        assert len(lines) == count, level
    # Without a level of its own it has that of the root.
    assert alter(client, "1", (REQUESTS, DELETE, None), kind=LOGGER) == (0, None)
    assert levels(client) == {"root": "INFO", REQUESTS: "INFO"}


def test_the_root_logger_writes_warnings_up_to_its_level(client: WireClient) -> None:
    lines: list[str] = []
    write = client.broker.loggers.warning(lines.append)
    write("a")
    assert alter(client, "1", ("root", SET, "ERROR"), kind=LOGGER) == (0, None)
    write("b")
    assert alter(client, "1", ("root", SET, "WARN"), kind=LOGGER) == (0, None)
    write("c")
    assert lines == ["a", "c"]


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (
            ("no.such.Logger", SET, "DEBUG"),
            (INVALID_CONFIG, "Logger no.such.Logger does not exist!"),
        ),
        (
            ("root", SET, "LOUD"),
            (
                INVALID_CONFIG,
                (
                    "Cannot set the log level of root to LOUD as it is not a supported log level. "
                    "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
                ),
            ),
        ),
        (
            ("root", DELETE, None),
            (INVALID_REQUEST, "Removing the log level of the root logger is not allowed"),
        ),
        (
            ("root", APPEND, "DEBUG"),
            (INVALID_REQUEST, "APPEND operation is not allowed for the BROKER_LOGGER resource"),
        ),
        (("root", SET, None), (INVALID_REQUEST, "Null value not supported for : root")),
    ],
)
def test_a_level_that_cannot_be_is_refused(
    client: WireClient, change: tuple[str, int, str | None], outcome: tuple[int, str]
) -> None:
    assert alter(client, "1", ("root", SET, "TRACE"), change, kind=LOGGER) == outcome
    assert levels(client) == {"root": "INFO"}


def test_loggers_are_those_of_one_broker(client: WireClient) -> None:
    assert described(client, "", LOGGER) == (INVALID_REQUEST, "Broker id must not be empty")
    assert described(client, "2", LOGGER)[0] == INVALID_REQUEST
    for name in ("", "2"):
        assert alter(client, name, ("root", SET, "WARN"), kind=LOGGER)[0] == INVALID_REQUEST


def test_a_kind_of_resource_that_nobody_knows_is_refused(client: WireClient) -> None:
    assert described(client, "1", 3)[0] == INVALID_REQUEST
    assert alter(client, "1", ("a", SET, "1"), kind=3) == (
        INVALID_REQUEST,
        "Unknown resource type 3",
    )
