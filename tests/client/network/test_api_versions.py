"""A connection begins by agreeing on versions, without loops (KIP-511)."""

from typing import Any

from ottla.client.errors import InvalidRequestError, UnsupportedVersionError, error_of
from ottla.client.network.exchange import ANY_NODE
from ottla.client.options.settings import ProducerSettings
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from support.scripted_cluster import ScriptedCluster


class Asked:
    """A request for any node, and what became of it."""

    request = ListGroupsRequest
    versions = None
    timeout_ms = None
    has_answer = True

    def __init__(self) -> None:
        self.outcome: Any = None

    def message(self, _version: int) -> ListGroupsRequest:
        return ListGroupsRequest()

    def answered(self, response: Any, _version: int, _now_ms: int) -> None:
        self.outcome = response

    def failed(self, error: Exception, _now_ms: int) -> None:
        self.outcome = error


def asked_of(cluster: ScriptedCluster) -> Any:
    """What a request of a new client comes to."""
    cluster.on("ListGroups", lambda *_: ListGroupsResponse())
    asked: Any = Asked()
    cluster.network.send(ANY_NODE, asked, cluster.now_ms)
    cluster.run(lambda: asked.outcome is not None)
    return asked.outcome


def refusing_above(cluster: ScriptedCluster, highest: int, listed: int | None) -> list[int]:
    """Has versions above one refused as brokers do, in version 0; returns those that were asked."""
    asked: list[int] = []

    def answer(request: Any, version: int) -> Any:
        asked.append(version)
        if version <= highest:
            return cluster.api_versions(request, version)
        keys = b""
        count = 0
        if listed is not None:
            count, keys = 1, (18).to_bytes(2, "big") + bytes(2) + listed.to_bytes(2, "big")
        body = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big") + count.to_bytes(4, "big") + keys
        return framed_for(cluster, body)

    cluster.on("ApiVersions", answer)
    return asked


def framed_for(cluster: ScriptedCluster, body: bytes) -> bytes:
    """The frame of an answer to the request that is answered now."""
    correlation_id = len([1 for _, api, _, _ in cluster.requests if api == "ApiVersions"]) - 1
    return (len(body) + 4).to_bytes(4, "big") + correlation_id.to_bytes(4, "big") + body


def test_the_highest_version_that_a_broker_lists_is_tried_next() -> None:
    cluster = ScriptedCluster()
    versions = refusing_above(cluster, 2, listed=2)
    assert asked_of(cluster) == ListGroupsResponse()
    assert versions == [4, 2]


def test_a_broker_that_lists_nothing_is_asked_in_version_0() -> None:
    cluster = ScriptedCluster()
    versions = refusing_above(cluster, 0, listed=None)
    assert asked_of(cluster) == ListGroupsResponse()
    assert versions == [4, 0]


def test_a_broker_that_refuses_every_version_is_not_asked_in_a_loop() -> None:
    cluster = ScriptedCluster()
    versions = refusing_above(cluster, -1, listed=None)
    assert isinstance(asked_of(cluster), UnsupportedVersionError)
    assert versions == [4, 0]


def test_a_client_that_is_told_invalid_request_gives_up_its_connection_and_says_so() -> None:
    cluster = ScriptedCluster()
    code = ErrorCode.INVALID_REQUEST
    cluster.on("ApiVersions", lambda *_: ApiVersionsResponse(error_code=code))
    outcome = asked_of(cluster)
    assert isinstance(outcome, InvalidRequestError)
    assert not outcome.retriable
    assert len(cluster.asked("ApiVersions")) == 1


def test_a_client_says_its_own_name_and_version() -> None:
    own = ProducerSettings(bootstrap_servers="a:1")
    cluster = ScriptedCluster(
        client_software_name=own.client_software_name, client_software_version="7.1"
    )
    asked_of(cluster)
    (request,) = cluster.asked("ApiVersions")
    assert (request.client_software_name, request.client_software_version) == ("ottla", "7.1")


def test_an_invalid_request_is_a_class_of_its_own() -> None:
    assert type(error_of(ErrorCode.INVALID_REQUEST)) is InvalidRequestError
