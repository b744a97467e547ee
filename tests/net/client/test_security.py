"""Clients that speak TLS and log in, with our broker, and what they say where that fails."""

from __future__ import annotations

import ssl
import threading
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

import pytest
from ottla.client import Admin
from ottla.client.errors import AuthenticationError, InvalidConfigurationError, KafkaTimeoutError
from ottla.testing import Broker
from support.certificates import Authority
from support.scripted_server import WITHIN_S, ScriptedServer, until_closed

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

USERS = {"ann": "secret"}
FAST = {"request_timeout_ms": 5000, "default_api_timeout_ms": 10_000}


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    """TLS and users."""
    with Broker(topics={"orders": 1}, users=USERS, tls=True) as broker:
        yield broker


@pytest.fixture(scope="module")
def encrypted() -> Iterator[Broker]:
    """TLS, and nobody has to log in."""
    with Broker(topics={"orders": 1}, tls=True) as broker:
        yield broker


@pytest.fixture(scope="module")
def plain() -> Iterator[Broker]:
    with Broker(topics={"orders": 1}) as broker:
        yield broker


def authority_of(broker: Broker) -> str:
    found: str = broker.client_config()["ssl.ca.location"]
    return found


def login(broker: Broker, mechanism: str, password: str = USERS["ann"]) -> Any:
    return {
        "bootstrap_servers": broker.bootstrap_servers,
        "security_protocol": "SASL_SSL",
        "ssl_ca_location": authority_of(broker),
        "sasl_mechanism": mechanism,
        "sasl_username": "ann",
        "sasl_password": password,
    }


def topics_of(**options: Any) -> list[str]:
    with Admin(**{**FAST, **options}) as admin:
        return sorted(one for one in admin.list_topics())


def refusal(**options: Any) -> str:
    with pytest.raises(AuthenticationError) as raised:
        topics_of(**options)
    return str(raised.value)


def test_a_client_of_an_encrypted_listener_checks_its_certificate(encrypted: Broker) -> None:
    servers = encrypted.bootstrap_servers
    found = topics_of(
        bootstrap_servers=servers,
        security_protocol="SSL",
        ssl_ca_location=authority_of(encrypted),
    )
    assert found == ["orders"]
    said = refusal(bootstrap_servers=servers, security_protocol="SSL")
    assert f"the certificate of {servers} is not accepted" in said
    assert "set ssl_ca_location to the certificate of the authority" in said


def test_a_certificate_of_another_host_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate = authority.issue("broker", IPv4Address("192.0.2.7"))

    def serve(connection: socket.socket) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        with context.wrap_socket(connection, server_side=True) as secured:
            until_closed(secured)

    with ScriptedServer(serve) as server:
        said = refusal(
            bootstrap_servers=server.address,
            security_protocol="SSL",
            ssl_ca_location=str(authority.file),
        )
        assert server.all_closed.wait(WITHIN_S)
    assert "connect to it by a name that the certificate has" in said
    assert "ssl_endpoint_identification_algorithm" in said


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_logs_in(guarded: Broker, mechanism: str) -> None:
    assert topics_of(**login(guarded, mechanism)) == ["orders"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_is_said_at_once_and_logged(
    guarded: Broker, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    said = refusal(**login(guarded, mechanism, "wrong"))
    assert f"user ann is refused by {mechanism}" in said
    assert "check sasl_username and sasl_password" in said
    assert "wrong" not in said
    logged = [one for one in caplog.records if one.name == "ottla.client"]
    assert [(one.levelname, one.getMessage()) for one in logged] == [("WARNING", said)]


def in_vain(**options: Any) -> str:
    with pytest.raises(KafkaTimeoutError) as raised:
        topics_of(**{"request_timeout_ms": 500, "default_api_timeout_ms": 1000, **options})
    return str(raised.value)


def test_tls_to_a_listener_without_it_is_said(plain: Broker) -> None:
    said = in_vain(bootstrap_servers=plain.bootstrap_servers, security_protocol="SSL")
    assert "broke off the TLS handshake" in said
    assert "a listener that speaks no TLS does so, where security_protocol is SSL" in said


def test_plain_text_to_a_listener_with_tls_is_said(encrypted: Broker) -> None:
    said = in_vain(bootstrap_servers=encrypted.bootstrap_servers)
    assert "security_protocol PLAINTEXT is not what it speaks" in said


def test_no_login_where_one_is_expected_is_said(guarded: Broker) -> None:
    said = in_vain(
        bootstrap_servers=guarded.bootstrap_servers,
        security_protocol="SSL",
        ssl_ca_location=authority_of(guarded),
    )
    assert "perhaps it expects a login, where security_protocol is SSL" in said


def test_a_broker_that_answers_a_greeting_of_tls_in_plain_text_is_named() -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(1)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        until_closed(connection)

    with ScriptedServer(serve) as server:
        said = refusal(bootstrap_servers=server.address, security_protocol="SSL")
    assert f"{server.address} speaks no TLS" in said
    assert "set it to PLAINTEXT" in said


def test_authorities_that_cannot_be_read_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigurationError, match=r"missing\.pem"):
        Admin(
            bootstrap_servers="127.0.0.1:1",
            security_protocol="SSL",
            ssl_ca_location=str(tmp_path / "missing.pem"),
        )


def test_no_thread_is_left_of_a_client_whose_login_is_refused(guarded: Broker) -> None:
    before = set(threading.enumerate())
    refusal(**login(guarded, "PLAIN", "wrong"))
    assert set(threading.enumerate()) <= before
