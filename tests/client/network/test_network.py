"""The network of a client: which node a request goes to, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from ottla.client.errors import (
    CorrelationIdMismatchError,
    IllegalStateError,
    InvalidConfigurationError,
    NetworkError,
    UnsupportedVersionError,
)
from ottla.client.network.api_versions import check_software
from ottla.client.network.exchange import ANY_NODE, Exchange
from ottla.client.network.network import ClientNetwork
from ottla.client.network.warned import Warned
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.list_groups import ListGroupsRequest
from support.scripted_cluster import CUT, SILENCE, ScriptedCluster, settings

if TYPE_CHECKING:
    from ottla.protocol.wire import Message


class Asked(Exchange):
    """A request and its outcome."""

    request: type[Message] = HeartbeatRequest

    def __init__(self, group: str = "g", timeout_ms: int | None = None) -> None:
        self.group = group
        self.timeout_ms = timeout_ms
        self.answers: list[Any] = []
        self.errors: list[Exception] = []
        self.at_ms = 0
        self.version = -1

    def message(self, version: int) -> Message:
        self.version = version
        return HeartbeatRequest(group_id=self.group, member_id="m")

    def answered(self, response: Any, version: int, now_ms: int) -> None:
        assert version == self.version
        self.answers.append(response)
        self.at_ms = now_ms

    def failed(self, error: Exception, now_ms: int) -> None:
        self.errors.append(error)
        self.at_ms = now_ms

    @property
    def is_done(self) -> bool:
        return bool(self.answers or self.errors)


def cluster_with(**options: Any) -> ScriptedCluster:
    cluster = ScriptedCluster(**options)
    cluster.on("Heartbeat", lambda _request, _version: HeartbeatResponse())
    return cluster


def ask(cluster: ScriptedCluster, node_id: int | None = ANY_NODE, **options: Any) -> Asked:
    asked = Asked(**options)
    cluster.network.send(node_id, asked, cluster.now_ms)
    assert not asked.is_done
    cluster.run(lambda: asked.is_done)
    assert len(asked.answers) + len(asked.errors) == 1
    return asked


def known(cluster: ScriptedCluster, *topics: str) -> None:
    cluster.network.metadata.add_topics(frozenset(topics or ("orders",)))
    cluster.run(lambda: cluster.network.metadata.update_count)


class AskedVersions(Asked):
    """As an admin client asks for features."""

    request = ApiVersionsRequest

    def message(self, version: int) -> Message:
        self.version = version
        return ApiVersionsRequest(client_software_name="a", client_software_version="1")


def test_versions_that_are_asked_for_again_are_read_without_tags_in_their_header() -> None:
    cluster = cluster_with()
    asked = AskedVersions()
    cluster.network.send(ANY_NODE, asked, cluster.now_ms)
    cluster.run(lambda: asked.is_done)
    assert asked.errors == []
    assert asked.version >= 3


def test_a_request_for_any_node_is_answered_by_one_of_the_bootstrap_servers() -> None:
    cluster = cluster_with()
    asked = ask(cluster)
    assert asked.answers == [HeartbeatResponse()]
    assert [api for _, api, _, _ in cluster.requests] == ["ApiVersions", "Heartbeat"]
    versions = cluster.asked("ApiVersions")[0]
    assert (versions.client_software_name, versions.client_software_version) == ("ottla", "1.0")


def test_a_request_for_a_node_goes_to_that_node() -> None:
    cluster = cluster_with(nodes=3, topics={"orders": 3})
    known(cluster)
    for node_id in (1, 2, 3):
        assert ask(cluster, node_id).answers
    assert [node for node, api, _, _ in cluster.requests if api == "Heartbeat"] == [1, 2, 3]


def test_a_request_for_a_node_that_nobody_knows_fails() -> None:
    cluster = cluster_with(topics={"orders": 1})
    known(cluster)
    (error,) = ask(cluster, 77).errors
    assert isinstance(error, NetworkError)
    assert not error.is_sent
    assert "no node 77" in str(error)


def test_a_request_is_made_in_the_highest_version_that_both_have() -> None:
    cluster = cluster_with(versions={"Heartbeat": range(3)}, topics={"orders": 1})
    known(cluster)
    assert cluster.network.version_of(1, HeartbeatRequest) is None
    ask(cluster, 1)
    assert cluster.network.version_of(1, HeartbeatRequest) == 2
    assert cluster.requests[-1][2] == 2


def test_an_api_that_the_broker_does_not_serve_fails_its_caller_alone() -> None:
    cluster = cluster_with()

    class ListGroups(Asked):
        request = ListGroupsRequest

        def message(self, version: int) -> Message:
            raise AssertionError(version)

    asked = ListGroups()
    cluster.network.send(ANY_NODE, asked, cluster.now_ms)
    cluster.run(lambda: asked.is_done)
    (error,) = asked.errors
    assert isinstance(error, UnsupportedVersionError)
    assert "does not serve ListGroups" in str(error)
    assert ask(cluster).answers


def test_answers_come_in_the_order_of_requests_with_several_in_flight() -> None:
    cluster = cluster_with(topics={"orders": 1})
    known(cluster)
    done: list[str] = []

    class Ordered(Asked):
        def answered(self, response: Any, version: int, now_ms: int) -> None:
            super().answered(response, version, now_ms)
            done.append(self.group)

    for index in range(20):
        cluster.network.send(1, Ordered(group=str(index)), cluster.now_ms)
    cluster.run(lambda: len(done) == 20)
    assert done == [str(index) for index in range(20)]


def test_no_more_requests_are_in_flight_than_the_setting_allows() -> None:
    cluster = cluster_with(topics={"orders": 1}, max_in_flight_requests_per_connection=2)
    known(cluster)
    ask(cluster, 1)
    cluster.on("Heartbeat", lambda _request, _version: SILENCE)
    before = len(cluster.asked("Heartbeat"))
    for _ in range(5):
        cluster.network.send(1, Asked(), cluster.now_ms)
    assert not cluster.network.may_send(1, cluster.now_ms)
    cluster.run(max_ms=1000)
    assert len(cluster.asked("Heartbeat")) - before == 2


def test_a_connection_that_breaks_fails_what_was_sent_and_says_so() -> None:
    cluster = cluster_with(topics={"orders": 1})
    known(cluster)
    cluster.on("Heartbeat", lambda _request, _version: CUT)
    (error,) = ask(cluster, 1).errors
    assert isinstance(error, NetworkError)
    assert error.is_sent
    assert "node-1:9092 closed the connection" in str(error)


def test_a_node_that_refuses_connections_fails_what_waits_for_it() -> None:
    cluster = cluster_with(nodes=2, topics={"orders": 1})
    known(cluster)
    cluster.down.add(2)
    (error,) = ask(cluster, 2).errors
    assert isinstance(error, NetworkError)
    assert not error.is_sent
    assert str(error) == "cannot connect to node-2:9092: refused"


def test_a_node_is_connected_to_again_after_a_back_off_that_grows() -> None:
    cluster = cluster_with(nodes=2, topics={"orders": 1})
    known(cluster)
    cluster.down.add(2)
    waits = []
    for _ in range(8):
        begin = cluster.now_ms
        ask(cluster, 2)
        waits.append(cluster.now_ms - begin)
        assert not cluster.network.may_send(2, cluster.now_ms)
    assert waits[0] <= 2
    assert 40 <= waits[1] <= 70
    assert 80 <= waits[2] <= 130
    assert max(waits) <= 1210
    cluster.down.clear()
    assert ask(cluster, 2).answers


def test_a_request_without_an_answer_fails_in_its_time_and_takes_the_connection_with_it() -> None:
    cluster = cluster_with(topics={"orders": 1})
    known(cluster)
    ask(cluster, 1)
    cluster.on("Heartbeat", lambda _request, _version: SILENCE)
    begin = cluster.now_ms
    first, second = Asked(timeout_ms=5000), Asked(timeout_ms=9000)
    for one in (first, second):
        cluster.network.send(1, one, begin)
    cluster.run(lambda: first.is_done)
    assert cluster.now_ms - begin == 5000
    assert "did not answer within 5000 ms (Heartbeat)" in str(first.errors[0])
    assert isinstance(second.errors[0], NetworkError)
    assert second.errors[0].is_sent


def test_a_request_that_cannot_be_sent_fails_in_its_time_and_says_why() -> None:
    cluster = cluster_with()
    cluster.down.add(1)
    begin = cluster.now_ms
    asked = ask(cluster, timeout_ms=3000)
    assert cluster.now_ms - begin == 3000
    (error,) = asked.errors
    assert isinstance(error, NetworkError)
    assert not error.is_sent
    assert str(error) == (
        "Heartbeat could not be sent within 3000 ms: cannot connect to boot:9092: refused"
    )


def test_an_answer_to_another_request_fails_who_waits_and_ends_the_connection() -> None:
    cluster = cluster_with(topics={"orders": 1})
    known(cluster)
    cluster.on("Heartbeat", lambda _request, _version: bytes([0, 0, 0, 4, 0, 0, 0, 99]))
    asked, other = Asked(), Asked()
    for one in (asked, other):
        cluster.network.send(1, one, cluster.now_ms)
    cluster.run(lambda: other.is_done)
    (error,) = asked.errors
    assert isinstance(error, CorrelationIdMismatchError)
    assert (error.request_id, error.response_id) == (1, 99)
    assert isinstance(other.errors[0], NetworkError)
    cluster.on("Heartbeat", lambda _request, _version: HeartbeatResponse())
    assert ask(cluster, 1).answers


def test_a_client_that_is_closed_fails_what_is_open_and_what_comes() -> None:
    cluster = cluster_with(topics={"orders": 1})
    known(cluster)
    cluster.on("Heartbeat", lambda _request, _version: SILENCE)
    asked = Asked()
    cluster.network.send(1, asked, cluster.now_ms)
    cluster.run(max_ms=100)
    cluster.network.close(cluster.now_ms)
    assert isinstance(asked.errors[0], NetworkError)
    assert str(asked.errors[0]) == "the client was closed"
    (error,) = ask(cluster, 1).errors
    assert isinstance(error, IllegalStateError)


@pytest.mark.parametrize("name", ["", "-a", "a-", "a b", "ä", "a_b", "."])
def test_a_software_name_that_brokers_refuse_is_refused(name: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=r"client_software_name .* \(KIP-511\)"):
        check_software("client_software_name", name)


@pytest.mark.parametrize("name", ["a", "0", "ottla", "a.b-c", "1.0"])
def test_a_software_name_that_brokers_take_is_taken(name: str) -> None:
    check_software("client_software_name", name)


@pytest.mark.parametrize("address", ["", "host", "host:", ":9092", "host:0", "host:70000", "::1:2"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InvalidConfigurationError, match="expected host:port"):
        ClientNetwork(settings(bootstrap_servers=(address,)), random=lambda: 0.5)


def test_while_a_node_is_connected_to_nothing_is_done_about_the_others() -> None:
    cluster = cluster_with(latency_ms=100)
    cluster.network.metadata.request_update()
    cluster.run(lambda: cluster.network.metadata.nodes)
    first = Asked()
    cluster.network.send(ANY_NODE, first, cluster.now_ms)
    cluster.run(lambda: first.is_done)
    cluster.cut(1)
    second = Asked()
    cluster.network.send(ANY_NODE, second, cluster.now_ms)
    # Behind the back-off, one of the node and its first address is connected to.
    cluster.run(lambda: second.is_done, 2000)
    assert second.answers


def test_a_node_that_cannot_be_reached_is_warned_of_once_in_ten_seconds() -> None:
    cluster = cluster_with(request_timeout_ms=25_000)
    cluster.down.update({-1, 0, 1, 2, 3})
    cluster.network.send(ANY_NODE, Asked(), cluster.now_ms)
    cluster.run(max_ms=24_900)
    texts = cluster.network.warned.texts
    assert len(texts) == 3
    assert all("cannot connect to boot:9092" in text for text in texts)


def test_a_warning_that_was_left_out_is_counted_in_the_next() -> None:
    warned = Warned()
    for now_ms in (0, 1, 9_999, 10_000, 10_001):
        warned.add("cause", f"at {now_ms}", now_ms)
    assert [*warned.texts] == ["at 0", "at 10000 (and 2 times since it was last said)"]
