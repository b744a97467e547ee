"""Logins of a client: mechanisms by the letter of their specifications, and what brokers say."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.client.errors import AuthenticationError, NetworkError
from ottla.client.network.exchange import ANY_NODE
from ottla.client.network.sasl.mechanisms import OAuthBearer, Plain, Scram
from ottla.protocol.framing import framed
from ottla.protocol.messages.list_groups import ListGroupsResponse
from ottla.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from ottla.protocol.messages.sasl_handshake import SaslHandshakeResponse
from support.asking import Asked
from support.scripted_cluster import CUT, Later, ScriptedCluster

# The example of RFC 7677, 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def scram(user: str = "user") -> Scram:
    return Scram("SCRAM-SHA-256", user, "pencil", NONCE)


def test_scram_speaks_as_the_example_of_its_specification() -> None:
    login = scram()
    assert login.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert login.respond(SERVER_FIRST) == CLIENT_FINAL
    assert login.respond(SERVER_FINAL) is None


def test_scram_escapes_a_name_with_commas_and_equals_signs() -> None:
    assert scram("a,b=c").first().startswith(b"n,,n=a=2Cb=3Dc,r=")


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (b"", "found 1"),
        (b"\xff", "cannot be read"),
        (b"r=other,s=W22Z,i=4096", "does not begin with the client's"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22Z,i=4096", "does not begin with the client's"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=4095", "4095 iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=2000000000", "2000000000 iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=many", "cannot be read"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=!!,i=4096", "cannot be read"),
        (b"s=W22Z,r=rOprNGfwEbeRWgbNEkqOx,i=4096", "expected the attribute r"),
    ],
)
def test_scram_refuses_a_first_message_that_no_honest_broker_sends(first: bytes, said: str) -> None:
    with pytest.raises(AuthenticationError, match=said):
        scram().respond(first)


@pytest.mark.parametrize(
    ("final", "said"),
    [
        (b"v=AAAA", "could not prove"),
        (b"v=", "could not prove"),
        (b"", "cannot be read"),
        (b"e=other-error", "refuses the login: other-error"),
    ],
)
def test_scram_refuses_a_broker_that_cannot_prove_itself(final: bytes, said: str) -> None:
    login = scram()
    login.respond(SERVER_FIRST)
    with pytest.raises(AuthenticationError, match=said):
        login.respond(final)


def test_plain_and_oauthbearer_say_all_in_their_first_token() -> None:
    assert Plain("ann", "s3").first() == b"\0ann\0s3"
    login = OAuthBearer("abc")
    assert login.first() == b"n,,\x01auth=Bearer abc\x01\x01"
    assert login.respond(b"") is None
    assert login.respond(b'{"status":"invalid_token"}') == b"\x01"


BEARER = "abc"

PLAIN = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "ann",
    "sasl_password": "secret",
}
OAUTH = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}


class Guarded:
    """A cluster that logs clients in."""

    def __init__(self, **options: Any) -> None:
        self.cluster = ScriptedCluster(**{**PLAIN, **options})
        self.tokens: list[bytes] = []
        self.cluster.on("SaslHandshake", lambda _request, _version: SaslHandshakeResponse())
        self.cluster.on("SaslAuthenticate", self.authenticate)
        self.cluster.on("ListGroups", lambda _r, _v: Later(9_900, ListGroupsResponse()))
        self.answer = SaslAuthenticateResponse()

    def authenticate(self, request: SaslAuthenticateRequest, _version: int) -> object:
        self.tokens.append(request.auth_bytes)
        return self.answer

    def ask(self) -> Asked:
        asked = Asked(10_000)
        self.cluster.network.send(ANY_NODE, asked, self.cluster.now_ms)
        return asked

    def failure(self) -> BaseException | None:
        asked = self.ask()
        self.cluster.run(lambda: asked.pending.is_done)
        return asked.pending.error

    def apis(self) -> list[str]:
        return [api for _, api, _, _ in self.cluster.requests]


LOGIN = ["ApiVersions", "SaslHandshake", "SaslAuthenticate"]


def test_a_login_comes_before_the_first_request() -> None:
    guarded = Guarded()
    guarded.ask()
    guarded.cluster.run(max_ms=100)
    assert guarded.apis() == [*LOGIN, "ListGroups"]
    assert guarded.tokens == [b"\0ann\0secret"]


def test_wrong_credentials_fail_a_request_at_once_and_are_not_tried_in_a_loop() -> None:
    guarded = Guarded()
    guarded.answer = SaslAuthenticateResponse(error_code=58, error_message="no such user")
    error = guarded.failure()
    assert isinstance(error, AuthenticationError)
    assert str(error) == (
        "boot:9092: user ann is refused by PLAIN: no such user; check sasl_username and "
        "sasl_password"
    )
    assert isinstance(guarded.failure(), AuthenticationError)
    assert guarded.apis() == LOGIN
    guarded.cluster.run(max_ms=60_000)
    assert len(guarded.tokens) <= 2
    guarded.answer = SaslAuthenticateResponse()
    guarded.ask()
    guarded.cluster.run(lambda: "ListGroups" in guarded.apis())


def test_metadata_says_why_it_cannot_be_looked_up() -> None:
    guarded = Guarded(topics={"orders": 1})
    guarded.answer = SaslAuthenticateResponse(error_code=58)
    metadata = guarded.cluster.network.metadata
    told: list[object] = []
    metadata.on_change(lambda: told.append(metadata.failure))
    metadata.add_topics(frozenset({"orders"}))
    guarded.cluster.run(max_ms=60_000)
    assert isinstance(metadata.failure, AuthenticationError)
    assert told == [metadata.failure]
    guarded.answer = SaslAuthenticateResponse()
    metadata.request_update()
    guarded.cluster.run(lambda: metadata.update_count)
    assert metadata.failure is None


@pytest.mark.parametrize(
    ("handshake", "said"),
    [
        (SaslHandshakeResponse(error_code=33, mechanisms=["GSSAPI", "X"]), "it takes GSSAPI, X"),
        (SaslHandshakeResponse(error_code=34), "takes no login: security_protocol SASL_PLAINTEXT"),
    ],
)
def test_a_listener_without_the_mechanism_is_named(
    handshake: SaslHandshakeResponse, said: str
) -> None:
    guarded = Guarded()
    guarded.cluster.on("SaslHandshake", lambda _request, _version: handshake)
    error = guarded.failure()
    assert isinstance(error, AuthenticationError)
    assert said in str(error)


def test_a_broker_that_hangs_up_during_the_login_is_tried_again_and_then_told_of() -> None:
    guarded = Guarded()
    guarded.cluster.on("SaslHandshake", lambda _request, _version: CUT)
    error = guarded.failure()
    assert isinstance(error, NetworkError)
    assert "boot:9092 closed the connection; brokers before Kafka 1.0 refuse a login so" in str(
        error
    )
    assert guarded.apis().count("SaslHandshake") > 1


def test_brokers_before_1_0_take_the_token_as_it_is() -> None:
    guarded = Guarded(versions={"SaslHandshake": range(1)})
    cluster = guarded.cluster
    bare: list[bytes] = []

    def answer(frame: bytes) -> list[bytes]:
        bare.append(frame)
        return framed([b""])

    cluster.on_bare_frame = answer
    guarded.ask()
    cluster.run(lambda: "ListGroups" in guarded.apis())
    assert bare == [b"\0ann\0secret"]
    assert guarded.apis() == ["ApiVersions", "SaslHandshake", "ListGroups"]


def test_a_client_logs_in_again_before_its_session_ends() -> None:
    guarded = Guarded()
    cluster = guarded.cluster
    guarded.answer = SaslAuthenticateResponse(session_lifetime_ms=10_000)
    asked = guarded.ask()
    cluster.run(lambda: len(guarded.tokens) == 1)
    begin = cluster.now_ms
    cluster.run(lambda: guarded.apis().count("SaslHandshake") == 2)
    assert 8500 <= cluster.now_ms - begin <= 9510
    cluster.run(lambda: asked.pending.is_done)
    assert asked.pending.error is None
    # On the same connection, behind a request that is under way.
    cluster.run(lambda: len(guarded.tokens) == 2)
    assert guarded.apis() == [*LOGIN, "ListGroups", *LOGIN[1:]]


def test_a_login_again_that_is_refused_ends_the_connection_with_why() -> None:
    guarded = Guarded()
    guarded.answer = SaslAuthenticateResponse(session_lifetime_ms=1000)
    guarded.cluster.on("ListGroups", lambda _r, _v: ListGroupsResponse())
    assert guarded.failure() is None
    guarded.answer = SaslAuthenticateResponse(error_code=58)
    guarded.cluster.run(lambda: len(guarded.tokens) == 2)
    guarded.cluster.run(max_ms=5)
    assert isinstance(guarded.failure(), AuthenticationError)


def test_a_token_is_asked_of_the_shell() -> None:
    guarded = Guarded(**OAUTH)
    guarded.cluster.token = BEARER
    guarded.ask()
    guarded.cluster.run(lambda: "ListGroups" in guarded.apis())
    assert guarded.tokens == [b"n,,\x01auth=Bearer abc\x01\x01"]


def test_a_token_that_the_broker_calls_wrong_is_refused() -> None:
    guarded = Guarded(**OAUTH)
    guarded.cluster.token = BEARER
    answers = [
        SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}'),
        SaslAuthenticateResponse(error_code=58, error_message="expired"),
    ]

    def authenticate(request: SaslAuthenticateRequest, _version: int) -> SaslAuthenticateResponse:
        guarded.tokens.append(request.auth_bytes)
        return answers.pop(0)

    guarded.cluster.on("SaslAuthenticate", authenticate)
    error = guarded.failure()
    assert isinstance(error, AuthenticationError)
    assert "the token is refused by OAUTHBEARER: expired; check sasl_oauth_token" in str(error)
    assert guarded.tokens[1] == b"\x01"


def test_a_token_that_does_not_come_is_a_failure_in_its_time() -> None:
    guarded = Guarded(**OAUTH, request_timeout_ms=3000)
    asked = guarded.ask()
    guarded.cluster.run(lambda: asked.pending.is_done)
    assert isinstance(asked.pending.error, NetworkError)
    assert "sasl_oauth_token returned no token" in str(asked.pending.error)
