"""Settings of groups: the broker's, which may change, and those of a single group."""

from typing import Any

import pytest
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest
from support.coordinator_calls import Said, call, send
from support.wire_client import WireClient, new_broker

GROUP = 32
SET, DELETE = 0, 1
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


@pytest.fixture
def client() -> WireClient:
    client = WireClient(new_broker())
    client.broker.topics.create("orders", 1, {}, client.now_ms)
    return client


def alter(
    client: WireClient,
    resource_type: int,
    name: str,
    configs: dict[str, str],
    *,
    operation: int = SET,
    validate_only: bool = False,
) -> tuple[int, str | None]:
    resource = AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=operation, value=value)
            for key, value in configs.items()
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    [answer] = client.ask(request, 1).responses
    return answer.error_code, answer.error_message


def described(client: WireClient, group: str = "g") -> dict[str, tuple[str, int]]:
    resource = DescribeConfigsResource(resource_type=GROUP, resource_name=group)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    [answer] = client.ask(request, 4).results
    assert answer.error_code == 0
    return {each.name: (each.value, each.config_source) for each in answer.configs}


def beat(client: WireClient, epoch: int = 0) -> Any:
    me = Said(client.broker.image.topics["orders"].topic_id, generation=epoch)
    return send(client, "consumer_group_heartbeat", 1, me).answer()


def test_a_coordinator_goes_by_settings_that_have_changed(client: WireClient) -> None:
    assert beat(client).heartbeat_interval_ms == 5_000
    started = client.broker.config
    interval = {"group.consumer.heartbeat.interval.ms": "2000"}
    client.broker.config = started.with_texts(interval)
    assert beat(client, 1).heartbeat_interval_ms == 2_000
    client.broker.config = started
    assert beat(client, 1).heartbeat_interval_ms == 5_000
    me = Said(client.broker.image.topics["orders"].topic_id, group="classic")
    client.broker.config = started.with_texts({"group.min.session.timeout.ms": "11000"})
    assert call(client, "join_group", 3, me) == ErrorCode.INVALID_SESSION_TIMEOUT


def test_a_group_has_settings_of_its_own_before_there_is_such_a_group(client: WireClient) -> None:
    own = {SESSION: "50000", HEARTBEAT: "6000"}
    assert alter(client, GROUP, "g", own) == (0, None)
    assert described(client) == {SESSION: ("50000", 8), HEARTBEAT: ("6000", 8)}
    assert described(client, "other") == {SESSION: ("45000", 5), HEARTBEAT: ("5000", 5)}
    assert beat(client).heartbeat_interval_ms == 6_000
    listed = client.ask(ListConfigResourcesRequest(resource_types=[GROUP]), 1).config_resources
    assert [each.resource_name for each in listed] == ["g"]
    client.advance(49_999)
    assert beat(client, 1).error_code == 0
    client.advance(50_000)
    assert beat(client, 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert alter(client, GROUP, "g", own, operation=DELETE) == (0, None)
    assert described(client) == {SESSION: ("45000", 5), HEARTBEAT: ("5000", 5)}
    assert client.ask(ListConfigResourcesRequest(resource_types=[GROUP]), 1).config_resources == []


@pytest.mark.parametrize("keys", [None, []])
def test_null_and_nothing_ask_for_all_settings(client: WireClient, keys: list[str] | None) -> None:
    resource = DescribeConfigsResource(
        resource_type=GROUP, resource_name="g", configuration_keys=keys
    )
    [answer] = client.ask(DescribeConfigsRequest(resources=[resource]), 4).results
    assert {each.name for each in answer.configs} == {SESSION, HEARTBEAT}


def test_a_group_falls_back_to_what_is_set_for_the_broker() -> None:
    client = WireClient(new_broker({"group.consumer.session.timeout.ms": "46000"}))
    assert described(client)[SESSION] == ("46000", 4)


@pytest.mark.parametrize(
    ("configs", "why"),
    [
        ({SESSION: "44999"}, f"{SESSION} must be greater than or equal to"),
        ({SESSION: "60001"}, f"{SESSION} must be less than or equal to"),
        ({HEARTBEAT: "4999"}, f"{HEARTBEAT} must be greater than or equal"),
        ({HEARTBEAT: "15001"}, f"{HEARTBEAT} must be less than or equal to"),
        ({HEARTBEAT: "soon"}, HEARTBEAT),
        ({"share.session.timeout.ms": "45000"}, "Unknown group config name: share.session"),
    ],
)
def test_a_group_is_kept_within_the_bounds_of_the_broker(
    client: WireClient, configs: dict[str, str], why: str
) -> None:
    error, message = alter(client, GROUP, "g", configs)
    assert error == ErrorCode.INVALID_CONFIG
    assert why in (message or "")
    assert client.broker.group_settings == {}


def test_settings_are_of_some_group(client: WireClient) -> None:
    error, _ = alter(client, GROUP, "", {SESSION: "50000"})
    assert error == ErrorCode.INVALID_REQUEST


def test_settings_of_a_group_can_be_tried(client: WireClient) -> None:
    tried = alter(client, GROUP, "g", {SESSION: "50000"}, validate_only=True)
    assert tried == (0, None)
    assert client.broker.group_settings == {}


def test_settings_of_made_up_groups_are_bounded(
    client: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.broker.configs.group.MAX_GROUPS_WITH_SETTINGS", 1)
    assert alter(client, GROUP, "a", {SESSION: "50000"})[0] == 0
    error, message = alter(client, GROUP, "b", {SESSION: "50000"})
    assert (error, message) == (
        ErrorCode.POLICY_VIOLATION,
        "1 groups have settings of their own already",
    )
    assert alter(client, GROUP, "a", {SESSION: "51000"})[0] == 0


def test_whoever_may_do_nothing_to_a_group_sees_none_of_its_settings() -> None:
    config = {
        "authorizer.class.name": "StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
    }
    client = WireClient(new_broker(config))
    denied = ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert alter(client, GROUP, "g", {SESSION: "50000"})[0] == denied
    resource = DescribeConfigsResource(resource_type=GROUP, resource_name="g")
    [answer] = client.ask(DescribeConfigsRequest(resources=[resource]), 4).results
    assert answer.error_code == denied
