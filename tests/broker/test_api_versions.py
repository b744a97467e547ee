"""ApiVersions as KIP-511 and KIP-1242 have it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.broker.api import APIS
from ottla.broker.connection import CloseConnectionError
from ottla.broker.handlers.api_versions import is_valid_name
from ottla.broker.releases import apis_of, features_of
from ottla.protocol.codec import decode, encode
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.header import request_header
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from support.coordinator_calls import Said, call
from support.wire_client import CLUSTER_ID, NOW_MS, Peer, WireClient, new_broker


@pytest.fixture
def client() -> WireClient:
    return WireClient(new_broker())


def request(name: str = "my-client", version: str = "1.0", **more: Any) -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version, **more)


@pytest.mark.parametrize("version", range(6))
def test_every_row_of_the_table_is_advertised(client: WireClient, version: int) -> None:
    answer = client.ask(request() if version >= 3 else ApiVersionsRequest(), version)
    assert {(k.api_key, k.min_version, k.max_version) for k in answer.api_keys} == {
        (api.key, api.advertised_min_version, api.max_version) for api in APIS.values()
    }
    assert answer.error_code == 0


@pytest.mark.parametrize("version", range(6))
def test_nobody_is_throttled_and_version_1_and_later_say_so(
    client: WireClient, version: int
) -> None:
    asked = request() if version >= 3 else ApiVersionsRequest()
    frames: list[bytes] = []
    frame = b"".join((request_header(18, version, 1, "c"), *encode(type(asked), version)(asked)))
    client.broker.handle(
        client.connection, frame, NOW_MS, lambda parts: frames.append(b"".join(parts or ()))
    )
    answer, _ = decode(ApiVersionsResponse, version)(frames[0], 4)
    assert answer.throttle_time_ms == 0
    # An error code, the keys of 6 bytes each behind their count, and nothing else.
    if version == 0:
        assert len(frames[0]) == 4 + 2 + 4 + 6 * len(APIS)
    elif version < 3:
        assert len(frames[0]) == 4 + 2 + 4 + 6 * len(APIS) + 4


def test_produce_is_advertised_from_0_for_old_librdkafka_and_closes_the_connection_below_3(
    client: WireClient,
) -> None:
    answer = client.ask(request(), 4)
    assert (0, 0, 13) in {(k.api_key, k.min_version, k.max_version) for k in answer.api_keys}
    frame = request_header(0, 2, 1, "old") + bytes(16)
    with pytest.raises(CloseConnectionError, match="version 2 of Produce"):
        client.broker.handle(client.connection, frame, NOW_MS, lambda _: None)


def test_features_whose_least_level_is_0_are_told_from_version_4_on(client: WireClient) -> None:
    for version, names in ((3, set()), (4, {"group.version", "transaction.version"})):
        answer = client.ask(request(), version)
        assert {feature.name for feature in answer.supported_features} == names
        levels = {f.name: f.max_version_level for f in answer.finalized_features}
        assert levels == {"group.version": 1, "transaction.version": 2}


def test_name_and_version_are_kept_for_the_connection_and_the_last_ones_count(
    client: WireClient,
) -> None:
    connection = client.connection
    assert (connection.software_name, connection.software_version) == ("unknown", "unknown")
    client.ask(request("librdkafka", "2.16.0"), 3)
    client.ask(request("confluent-kafka-python", "2.16.1-rdkafka-2.16.0"), 4)
    assert connection.software_name == "confluent-kafka-python"
    assert connection.software_version == "2.16.1-rdkafka-2.16.0"
    client.ask(ApiVersionsRequest(), 2)
    assert connection.software_name == "unknown"


@pytest.mark.parametrize(
    ("name", "version"), [("", "1"), ("a", ""), ("-a", "1"), ("a.", "1"), ("a b", "1"), ("a", "é")]
)
def test_a_name_that_is_not_allowed_is_an_invalid_request_and_nothing_is_kept(
    client: WireClient, name: str, version: str
) -> None:
    client.ask(request("good", "1"), 3)
    answer = client.ask(request(name, version), 3)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.api_keys == []
    assert client.connection.software_name == "good"


@pytest.mark.parametrize("security_protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_software_is_told_and_refused_before_authentication_as_after_it(
    security_protocol: str,
) -> None:
    client = WireClient(new_broker(), peer=Peer(security_protocol=security_protocol))
    refused = client.ask(request("-a"), 3)
    assert (refused.error_code, refused.api_keys) == (ErrorCode.INVALID_REQUEST, [])
    assert client.connection.software_name == "unknown"
    # The refusal ends nothing: another request may follow.
    answer = client.ask(request("kgo", "1.2"), 3)
    assert {key.api_key for key in answer.api_keys} == set(APIS)
    assert (client.connection.software_name, client.connection.software_version) == ("kgo", "1.2")
    frames: list[bytes] = []
    client.broker.handle(
        client.connection,
        request_header(18, 99, 7, "future"),
        NOW_MS,
        lambda parts: frames.append(b"".join(parts or ())),
    )
    newer, _ = decode(ApiVersionsResponse, 0)(frames[0], 4)
    assert newer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(k.api_key, k.min_version, k.max_version) for k in newer.api_keys] == [(18, 0, 5)]


@given(st.text(max_size=6))
def test_names_are_those_that_kips_pattern_matches(text: str) -> None:
    """Letters and digits at both ends, with dots and dashes between them."""
    inner, plain = set("-."), "abcdefghijklmnopqrstuvwxyz"
    allowed = set(plain + plain.upper() + "0123456789")
    expected = bool(text) and text[0] in allowed and text[-1] in allowed
    assert is_valid_name(text) == (expected and set(text) <= allowed | inner)


def test_a_version_that_is_not_served_is_answered_in_version_0_with_one_range(
    client: WireClient,
) -> None:
    frames: list[bytes] = []
    frame = request_header(18, 99, 7, "future") + b"\xff\xff what nobody can read"
    waits = client.broker.handle(
        client.connection, frame, NOW_MS, lambda parts: frames.append(b"".join(parts or ()))
    )
    assert not waits
    (answered,) = frames
    assert answered[:4] == (7).to_bytes(4, "big")
    answer, position = decode(ApiVersionsResponse, 0)(answered, 4)
    assert position == len(answered)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(k.api_key, k.min_version, k.max_version) for k in answer.api_keys] == [(18, 0, 5)]


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "error"),
    [
        (None, -1, 0),
        (CLUSTER_ID, 1, 0),
        (CLUSTER_ID, 2, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("another", 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        (None, 1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_who_meant_another_broker_is_told_to_start_again(
    client: WireClient, cluster_id: str | None, node_id: int, error: int
) -> None:
    answer = client.ask(request(cluster_id=cluster_id, node_id=node_id), 5)
    assert answer.error_code == error


@pytest.mark.parametrize("frame", [b"", b"\0\x12", bytes(7), request_header(99, 0, 1, "x")])
def test_what_is_no_request_closes_the_connection(client: WireClient, frame: bytes) -> None:
    with pytest.raises(CloseConnectionError):
        client.broker.handle(client.connection, frame, NOW_MS, lambda _: None)


def test_a_release_before_4_has_no_features_and_so_no_consumer_groups_by_default() -> None:
    """A client that reads transaction.version 2 leaves out AddPartitionsToTxn (KIP-890)."""
    served: dict[tuple[int, int], Any] = {}
    for line in ((3, 9), (4, 0), (4, 4)):
        broker = new_broker(apis=apis_of(line), features=features_of(line))
        client = WireClient(broker)
        answer = client.ask(request(), 4)
        served[line] = (
            [each.name for each in answer.supported_features],
            {each.name: each.max_version_level for each in answer.finalized_features},
            broker.transactions.settings.transaction_version,
            call(client, "consumer_group_heartbeat", 0, Said(bytes(16))),
        )
    both = {"group.version": 1, "transaction.version": 2}
    assert served == {
        (3, 9): ([], {}, 0, ErrorCode.UNSUPPORTED_VERSION),
        (4, 0): ([*both], both, 2, 0),
        (4, 4): ([*both], both, 2, 0),
    }
