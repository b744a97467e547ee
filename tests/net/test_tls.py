"""TLS: the same connection with certificates, and peers that have none or the wrong ones."""

import socket
import ssl
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from ottla.errors import ListenError
from ottla.net.limits import Limits
from ottla.net.server import Server
from ottla.net.settings import ListenerSettings, TlsSettings
from support.certificates import Authority
from support.fake_broker import Client, FakeBroker, connect, lines_with, serving, wait_for

HOST = IPv4Address("127.0.0.1")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> Path:
    return authority.issue("broker", HOST)


@pytest.fixture
def server(certificate: Path) -> Iterator[Server[FakeBroker]]:
    with serving(secured(TlsSettings(certificate))) as running:
        yield running


def secured(tls: TlsSettings) -> ListenerSettings:
    return ListenerSettings(name="SECURED", security_protocol="SSL", tls=tls)


def connect_with(
    server: Server[FakeBroker], authority: Authority, certificate: Path | None = None
) -> Client:
    context = ssl.create_default_context(cafile=authority.file)
    if certificate is not None:
        context.load_cert_chain(certificate)
    client = connect(server)
    client.socket = context.wrap_socket(client.socket, server_hostname="127.0.0.1")
    return client


def test_requests_and_answers_of_any_size_go_both_ways(
    server: Server[FakeBroker], authority: Authority
) -> None:
    with connect_with(server, authority) as client:
        for size in (0, 1, 16_384, 16_385, 3_000_000):
            frame = b"echo" + bytes(size)
            assert client.ask(frame) == frame
        client.send(*[b"one"] * 100)
        assert [client.receive() for _ in range(100)] == [b"one"] * 100
        (peer,) = server.run(lambda broker: [each.peer for each in broker.connections])
        assert (peer.listener, peer.security_protocol, peer.subject) == ("SECURED", "SSL", "")
    wait_for(server, lambda broker: not broker.connections)


def test_a_handshake_in_single_bytes_is_one_too(
    server: Server[FakeBroker], authority: Authority
) -> None:
    context = ssl.create_default_context(cafile=authority.file)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    stream = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with connect(server) as client:
        while True:
            try:
                stream.do_handshake()
                break
            except ssl.SSLWantReadError:
                for byte in outgoing.read():
                    client.socket.sendall(bytes([byte]))
                incoming.write(client.socket.recv(1 << 16))
        stream.write(b"\0\0\0\x04echo")
        for byte in outgoing.read():
            client.socket.sendall(bytes([byte]))
        answer = b""
        while len(answer) < 8:
            try:
                answer += stream.read(100)
            except ssl.SSLWantReadError:
                incoming.write(client.socket.recv(1 << 16))
        assert answer == b"\0\0\0\x04echo"


def test_the_broker_is_told_whose_certificate_it_is(
    certificate: Path, authority: Authority
) -> None:
    tls = TlsSettings(certificate, authorities=authority.file, client_auth="required")
    orders = authority.issue("orders")
    with serving(secured(tls)) as server, connect_with(server, authority, orders) as client:
        assert client.ask(b"echo") == b"echo"
        (peer,) = server.run(lambda broker: [each.peer for each in broker.connections])
        assert peer.subject == "CN=orders,O=Shop\\, Ltd"


@pytest.mark.parametrize("kind", ["none", "of another authority"])
def test_a_peer_without_a_certificate_that_counts_is_not_let_in(
    certificate: Path, authority: Authority, tmp_path: Path, kind: str
) -> None:
    log: list[str] = []
    tls = TlsSettings(certificate, authorities=authority.file, client_auth="required")
    own = None if kind == "none" else Authority(tmp_path).issue("orders")
    with serving(secured(tls), log=log) as server:
        # The newest TLS tells a client only when it reads.
        refused = pytest.raises((ssl.SSLError, ConnectionError, EOFError))
        with refused, connect_with(server, authority, own) as client:
            client.ask(b"echo")
        wait_for(server, lambda _: server.connection_count == 0)
        assert server.run(lambda broker: broker.gone) == []
    assert lines_with(log, "TLS: ")


def test_a_peer_that_speaks_no_tls_is_closed_and_the_broker_knows_nothing_of_it(
    certificate: Path,
) -> None:
    log: list[str] = []
    with serving(secured(TlsSettings(certificate)), log=log) as server, connect(server) as client:
        client.send(b"echo")
        client.socket.settimeout(30)
        while client.socket.recv(100):
            # An alert, perhaps.
            pass
        wait_for(server, lambda _: server.connection_count == 0)
        assert server.run(lambda broker: (broker.connections, broker.gone)) == ([], [])
    assert lines_with(log, "TLS: WRONG_VERSION_NUMBER: the client speaks no TLS")


def test_a_handshake_that_does_not_end_is_ended(certificate: Path) -> None:
    log: list[str] = []
    limits = Limits(max_early_ms=50)
    listener = secured(TlsSettings(certificate))
    with serving(listener, limits=limits, log=log) as server, connect(server) as client:
        client.socket.sendall(b"\x16\x03\x01\x02\x00")
        assert client.is_closed()
    assert lines_with(log, "it has not said in time who it is")


def test_a_peer_that_says_it_is_at_its_end_gets_its_answers(
    server: Server[FakeBroker], authority: Authority
) -> None:
    with connect_with(server, authority) as client:
        client.send(b"one", b"two")
        assert [client.receive(), client.receive()] == [b"one", b"two"]
        assert isinstance(client.socket, ssl.SSLSocket)
        client.socket = client.socket.unwrap()
        client.socket.shutdown(socket.SHUT_WR)
    wait_for(server, lambda broker: not broker.connections)


def test_certificates_that_cannot_be_used_are_one_clear_error(
    authority: Authority, certificate: Path, tmp_path: Path
) -> None:
    def refused(tls: TlsSettings) -> str:
        with pytest.raises(ListenError) as caught:
            Server(lambda _: FakeBroker(), [secured(tls)])
        return str(caught.value)

    assert "No such file" in refused(TlsSettings(tmp_path / "none.pem"))
    empty = tmp_path / "empty.pem"
    empty.write_bytes(b"")
    assert f"cannot use {empty} for TLS" in refused(TlsSettings(empty))
    other = authority.issue("other")
    assert "key values mismatch" in refused(TlsSettings(certificate, other)).lower()
    assert "no authorities" in refused(TlsSettings(certificate, client_auth="required"))
    assert "expected one of none, requested, required" in refused(
        TlsSettings(certificate, client_auth="sometimes")
    )
