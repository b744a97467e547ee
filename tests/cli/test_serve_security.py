"""Listeners, certificates and users of a served broker, by Kafka's own settings."""

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from ottla.net.serving import advertised_host
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from support.certificates import Authority
from support.served import Served, SocketClient, address_of, client_of, json_lines, served

HOST = IPv4Address("127.0.0.1")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> Path:
    return authority.issue("broker", HOST)


@contextmanager
def secured(
    tmp_path: Path, *lines: str, options: tuple[str, ...] = (), said: str = ""
) -> Iterator[Served]:
    """A broker of a server.properties, and what it says of its clients as a regular expression."""
    file = tmp_path / "server.properties"
    file.write_text("\n".join(lines))
    with served("--config", file, *options, port=False) as broker:
        yield broker
        status, complaints = broker.end()
        assert status == 0
        assert re.fullmatch(said, complaints), complaints


@contextmanager
def tls_client(
    authority: Authority, address: tuple[str, int], own: Path | None = None
) -> Iterator[SocketClient]:
    context = ssl.create_default_context(cafile=authority.file)
    if own is not None:
        context.load_cert_chain(own)
    with client_of(address) as client:
        client.socket = context.wrap_socket(client.socket, server_hostname="127.0.0.1")
        with client.socket:
            yield client


def log_in(client: SocketClient, user: str, password: str) -> object:
    if client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code:
        return "no such mechanism"
    token = f"\0{user}\0{password}".encode()
    return client.ask(SaslAuthenticateRequest(auth_bytes=token), 2).error_code


def test_users_log_in_behind_tls_on_one_listener_and_anybody_on_another(
    tmp_path: Path, authority: Authority, certificate: Path
) -> None:
    with secured(
        tmp_path,
        "listeners=PLAINTEXT://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OUTSIDE:SASL_SSL",
        "listener.name.outside.ssl.keystore.type=PEM",
        f"listener.name.outside.ssl.keystore.location={certificate}",
        "listener.name.outside.sasl.enabled.mechanisms=PLAIN",
        "listener.name.outside.plain.sasl.jaas.config=\\",
        '  org.apache.kafka.common.security.plain.PlainLoginModule required user_ann="hers";',
        said="ottla: .* login by PLAIN failed: .*\n",
    ) as broker:
        with client_of(broker.address) as anybody:
            assert anybody.ask(MetadataRequest(topics=None), 9).topics == []
        outside = address_of(broker.ready["OUTSIDE"])
        with tls_client(authority, outside) as client:
            assert log_in(client, "ann", "hers") == 0
            (node,) = client.ask(MetadataRequest(topics=None), 9).brokers
            assert (node.host, node.port) == outside
        with tls_client(authority, outside) as client:
            assert log_in(client, "ann", "his") == 58


def test_a_failed_login_is_answered_ended_and_a_line_without_what_was_sent(tmp_path: Path) -> None:
    wrong = "Authentication failed: Invalid username or password"
    with secured(
        tmp_path,
        "listeners=SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms=PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config=\\",
        '  org.apache.kafka.common.security.plain.PlainLoginModule required user_ann="hers";',
        said=rf"(ottla: 127.0.0.1:\d+: login by PLAIN failed: {wrong}( \(\d+ more .*\))?\n)+",
    ) as broker:
        for _ in range(20):
            with client_of(broker.address) as client:
                assert log_in(client, "a stranger", "s3cret") == 58
                assert client.socket.recv(1) == b""
        with client_of(broker.address) as client:
            assert log_in(client, "ann", "hers") == 0
            assert client.ask(MetadataRequest(topics=None), 9).topics == []


def test_a_mechanism_that_is_not_enabled_is_told_with_those_that_are(tmp_path: Path) -> None:
    with (
        secured(
            tmp_path,
            "listeners=SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512",
            said="ottla: .*: it asks for a mechanism other than SCRAM-SHA-256, SCRAM-SHA-512\n",
        ) as broker,
        client_of(broker.address) as client,
    ):
        assert log_in(client, "ann", "hers") == "no such mechanism"
        assert client.socket.recv(1) == b""


def test_a_certificate_of_a_client_names_its_user_by_rules(
    tmp_path: Path, authority: Authority, certificate: Path
) -> None:
    log = tmp_path / "requests.log"
    with (
        secured(
            tmp_path,
            "listeners=SSL://127.0.0.1:0",
            f"ssl.keystore.location={certificate}",
            f"ssl.truststore.location={authority.file}",
            "ssl.client.auth=required",
            "ssl.principal.mapping.rules=RULE:^CN=(.*?),O=.*$/$1/U,DEFAULT",
            options=("--request-log", "json", "--request-log-file", str(log)),
        ) as broker,
        tls_client(authority, broker.address, authority.issue("orders")) as client,
    ):
        assert client.ask(MetadataRequest(topics=None), 9).topics == []
    assert [line["principal"] for line in json_lines(log)] == ["User:ORDERS"]


def test_certificates_and_authorities_may_stand_in_the_settings(
    tmp_path: Path, authority: Authority, certificate: Path
) -> None:
    chain, begin, key = certificate.read_text().partition("-----BEGIN PRIVATE KEY")

    def one_line(text: str) -> str:
        return text.strip().replace("\n", "\\n")

    with secured(
        tmp_path,
        "listeners=SSL://127.0.0.1:0",
        f"ssl.keystore.certificate.chain={one_line(chain)}",
        f"ssl.keystore.key={one_line(begin + key)}",
        f"ssl.truststore.certificates={one_line(authority.file.read_text())}",
        "ssl.client.auth=requested",
        "ssl.enabled.protocols=TLSv1.3",
    ) as broker:
        for own in (None, authority.issue("orders")):
            with tls_client(authority, broker.address, own) as client:
                assert client.ask(MetadataRequest(topics=None), 9).topics == []
                assert isinstance(client.socket, ssl.SSLSocket)
                assert client.socket.version() == "TLSv1.3"


def test_clients_are_told_what_is_advertised_for_their_listener(tmp_path: Path) -> None:
    with secured(
        tmp_path,
        "listeners=INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "advertised.listeners=OUTSIDE://kafka.example:443,CONTROLLER://localhost:9",
        "controller.listener.names=CONTROLLER",
        "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        options=("--metrics", "0"),
    ) as broker:
        assert broker.ready["OUTSIDE"] == "kafka.example:443"
        assert "CONTROLLER" not in broker.ready
        with client_of(broker.address) as client:
            (node,) = client.ask(DescribeClusterRequest(), 0).brokers
            assert (node.host, node.port) == broker.address


def test_who_listens_everywhere_tells_clients_a_name_that_is_one() -> None:
    assert advertised_host("") == advertised_host("0.0.0.0") == "localhost"  # noqa: S104 - a name
    assert advertised_host("127.0.0.1") == "127.0.0.1"
