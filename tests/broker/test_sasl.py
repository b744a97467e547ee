"""SASL: PLAIN and SCRAM, what comes before and after, and what nobody can do without a password."""

import base64
import hashlib
import hmac

import pytest
from ottla.broker.connection import CloseConnectionError
from ottla.broker.sasl.credentials import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    Credentials,
    ScramCredential,
    salted_password,
)
from ottla.broker.sasl.session import MAX_TOKEN_BYTES, SaslSession, SaslSettings, TokenAnswer
from ottla.protocol.api_key import ApiKey
from ottla.protocol.error_code import ErrorCode

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
SALT = bytes(range(16))


@pytest.fixture(scope="module")
def credentials() -> Credentials:
    found = Credentials({"bob": "b"})
    found.add_user("alice", "secret", random_bytes=SALT)
    return found


def session(credentials: Credentials, *, max_reauth_ms: int = 0) -> SaslSession:
    mechanisms = ("PLAIN", *HASHES)
    return SaslSession(
        SaslSettings(credentials, mechanisms, lambda count: b"\7" * count, max_reauth_ms)
    )


def plain(credentials: Credentials, token: bytes) -> tuple[SaslSession, TokenAnswer]:
    client = session(credentials)
    assert client.handshake("PLAIN", 1)[0] == ErrorCode.NONE
    return client, client.authenticate(token, 0)


class ScramClient:
    """The client of RFC 5802, written from its text."""

    def __init__(self, mechanism: str, user: str, password: str) -> None:
        self.hash = HASHES[mechanism]
        self.password = password
        self.bare = f"n={user},r=client"
        self.header = "n,,"
        self.server_signature = b""

    def first(self) -> bytes:
        return (self.header + self.bare).encode()

    def final(self, server_first: bytes) -> bytes:
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        salt, iterations = base64.b64decode(fields["s"]), int(fields["i"])
        salted = hashlib.pbkdf2_hmac(self.hash, self.password.encode(), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", self.hash)
        stored = hashlib.new(self.hash, client_key).digest()
        unproved = f"c={base64.b64encode(self.header.encode()).decode()},r={fields['r']}"
        signed = f"{self.bare},{server_first.decode()},{unproved}".encode()
        signature = hmac.digest(stored, signed, self.hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", self.hash)
        self.server_signature = hmac.digest(server_key, signed, self.hash)
        return f"{unproved},p={base64.b64encode(proof).decode()}".encode()


def scram(
    credentials: Credentials, client: ScramClient, mechanism: str
) -> tuple[SaslSession, TokenAnswer]:
    server = session(credentials)
    server.handshake(mechanism, 1)
    answer = server.authenticate(client.first(), 0)
    if answer.error_code == ErrorCode.NONE:
        answer = server.authenticate(client.final(answer.token), 0)
    return server, answer


def test_plain_lets_in_who_knows_the_password(credentials: Credentials) -> None:
    client, answer = plain(credentials, b"\0alice\0secret")
    assert answer == (ErrorCode.NONE, None, b"", 0)
    assert (client.principal, client.state) == ("User:alice", "COMPLETE")


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"\0alice\0wrong!", "Invalid username or password"),
        (b"\0nobody\0secret", "Invalid username or password"),
        (b"\0\0secret", "username not specified"),
        (b"\0alice\0", "password not specified"),
        (b"bob\0alice\0secret", "authorization id that is different"),
        (b"alice\0secret", "expected 3 tokens, got 2"),
        (b"", "expected 3 tokens, got 1"),
        (b"\0\xff\0\xff", "not UTF-8"),
    ],
)
def test_plain_refuses_everybody_else(credentials: Credentials, token: bytes, text: str) -> None:
    client, answer = plain(credentials, token)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert text in (answer.error_message or "")
    assert (client.principal, bool(client.refusal)) == (None, True)


@pytest.mark.parametrize("mechanism", HASHES)
def test_scram_lets_in_who_knows_the_password_and_proves_that_the_server_does(
    credentials: Credentials, mechanism: str
) -> None:
    client = ScramClient(mechanism, "alice", "secret")
    server, answer = scram(credentials, client, mechanism)
    assert server.principal == "User:alice"
    assert answer.token == b"v=" + base64.b64encode(client.server_signature)


@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", "secret")])
def test_scram_refuses_a_wrong_password_as_it_does_a_wrong_user(
    credentials: Credentials, mechanism: str, user: str, password: str
) -> None:
    server, answer = scram(credentials, ScramClient(mechanism, user, password), mechanism)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "Authentication failed during authentication due to invalid credentials "
        f"with SASL mechanism {mechanism}"
    )
    assert server.refusal


def test_scram_agrees_with_the_example_of_its_standard() -> None:
    # RFC 7677, section 3: user "user", password "pencil".
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = salted_password(SCRAM_SHA_256, "pencil", salt, 4096)
    users = Credentials()
    credential = ScramCredential.of(SCRAM_SHA_256, salt, 4096, salted)
    users.set_scram("user", SCRAM_SHA_256, credential)
    signed = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    signature = hmac.digest(credential.server_key, signed, "sha256")
    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_comma_in_a_name_is_escaped() -> None:
    users = Credentials()
    users.add_user("a,b=c", "secret", random_bytes=SALT)
    client = ScramClient("SCRAM-SHA-512", "a=2Cb=3Dc", "secret")
    server, _ = scram(users, client, "SCRAM-SHA-512")
    assert server.principal == "User:a,b=c"


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n",
        b"n,,",
        b"n,,n=alice",
        b"n,,n=,r=nonce",
        b"n,,n=alice,r=",
        b"n,,r=nonce,n=alice",
        b"y,,n=alice,r=nonce",
        b"p=tls-unique,,n=alice,r=nonce",
        b"n,a=bob,n=alice,r=nonce",
        b"n,,n=al=ice,r=nonce",
        b"n,,m=ext,n=alice,r=nonce",
        b"\xff,,n=alice,r=nonce",
    ],
)
def test_a_first_message_that_is_none_is_refused(credentials: Credentials, first: bytes) -> None:
    server = session(credentials)
    server.handshake("SCRAM-SHA-256", 1)
    answer = server.authenticate(first, 0)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize(
    "change",
    [
        lambda final: final.replace(b"c=biws", b"c=eSws"),
        lambda final: final.replace(b"r=client", b"r=other"),
        lambda final: final.replace(b",p=", b",q="),
        lambda final: final + b"!",
        lambda final: final[:-8] + b"AAAAAAA=",
        lambda final: final.split(b",p=")[0] + b",p=",
        lambda final: final.split(b",p=")[0] + b",p=AAAA",
        lambda _final: b"\xff",
    ],
)
def test_a_final_message_that_was_changed_is_refused(
    credentials: Credentials, change: object
) -> None:
    assert callable(change)
    client = ScramClient("SCRAM-SHA-256", "alice", "secret")
    server = session(credentials)
    server.handshake("SCRAM-SHA-256", 1)
    final = client.final(server.authenticate(client.first(), 0).token)
    answer = server.authenticate(change(final), 0)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert server.principal is None


def test_a_mechanism_that_is_not_enabled_ends_the_connection(credentials: Credentials) -> None:
    server = session(credentials)
    error, enabled = server.handshake("GSSAPI", 1)
    assert error == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert enabled == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert server.refusal


def test_before_the_handshake_only_versions_can_be_asked_for(credentials: Credentials) -> None:
    server = session(credentials)
    server.check(ApiKey.API_VERSIONS, 20, 0)
    server.check(ApiKey.SASL_HANDSHAKE, 20, 0)
    for key in (ApiKey.METADATA, ApiKey.SASL_AUTHENTICATE):
        with pytest.raises(CloseConnectionError):
            server.check(key, 20, 0)


def test_after_the_handshake_only_tokens_can_be_sent(credentials: Credentials) -> None:
    server = session(credentials)
    server.handshake("PLAIN", 1)
    server.check(ApiKey.SASL_AUTHENTICATE, 20, 0)
    for key in (ApiKey.METADATA, ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE):
        with pytest.raises(CloseConnectionError):
            server.check(key, 20, 0)


def test_nobody_sends_much_before_they_are_known(credentials: Credentials) -> None:
    server = session(credentials)
    server.check(ApiKey.API_VERSIONS, MAX_TOKEN_BYTES, 0)
    with pytest.raises(CloseConnectionError):
        server.check(ApiKey.API_VERSIONS, MAX_TOKEN_BYTES + 1, 0)
    client, _ = plain(credentials, b"\0alice\0secret")
    client.check(ApiKey.PRODUCE, MAX_TOKEN_BYTES + 1, 0)


def test_after_a_failure_nothing_is_taken(credentials: Credentials) -> None:
    client, _ = plain(credentials, b"\0alice\0wrong")
    with pytest.raises(CloseConnectionError):
        client.check(ApiKey.SASL_AUTHENTICATE, 20, 0)
    assert client.authenticate(b"\0alice\0secret", 0).error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_a_token_without_handshake_is_out_of_place(credentials: Credentials) -> None:
    answer = session(credentials).authenticate(b"\0alice\0secret", 0)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_a_handshake_of_version_zero_is_followed_by_bare_tokens(credentials: Credentials) -> None:
    server = session(credentials)
    server.handshake("PLAIN", 0)
    assert server.takes_bare_token
    assert server.take_bare_token(b"\0alice\0secret", 0) == b""
    assert server.principal == "User:alice"
    assert not server.takes_bare_token


def test_a_bare_token_that_is_refused_ends_the_connection(credentials: Credentials) -> None:
    server = session(credentials)
    server.handshake("PLAIN", 0)
    with pytest.raises(CloseConnectionError, match="Invalid username or password"):
        server.take_bare_token(b"\0alice\0wrong", 0)


def test_a_session_that_has_expired_takes_nothing_but_an_authentication(
    credentials: Credentials,
) -> None:
    server = session(credentials, max_reauth_ms=1000)
    server.handshake("PLAIN", 1)
    assert server.authenticate(b"\0alice\0secret", 500).session_lifetime_ms == 1000
    server.check(ApiKey.METADATA, 20, 1499)
    server.check(ApiKey.SASL_HANDSHAKE, 20, 1500)
    with pytest.raises(CloseConnectionError):
        server.check(ApiKey.METADATA, 20, 1500)
    server.handshake("PLAIN", 1)
    server.authenticate(b"\0alice\0secret", 1600)
    server.check(ApiKey.METADATA, 20, 2599)


def test_whoever_authenticates_again_stays_who_they_are(credentials: Credentials) -> None:
    server, _ = plain(credentials, b"\0alice\0secret")
    server.handshake("PLAIN", 1)
    answer = server.authenticate(b"\0bob\0b", 0)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "Cannot change principals" in (answer.error_message or "")
    assert server.refusal


def test_whoever_authenticates_again_keeps_the_mechanism(credentials: Credentials) -> None:
    server, _ = plain(credentials, b"\0alice\0secret")
    assert server.handshake("SCRAM-SHA-256", 1)[0] == ErrorCode.UNSUPPORTED_SASL_MECHANISM


@pytest.mark.parametrize(
    ("user", "mechanism", "iterations", "error"),
    [
        ("carol", SCRAM_SHA_256, 4096, ErrorCode.NONE),
        ("carol", SCRAM_SHA_512, 16384, ErrorCode.NONE),
        ("", SCRAM_SHA_256, 4096, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ("carol", SCRAM_SHA_256, 4095, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ("carol", SCRAM_SHA_256, 16385, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ("carol", 0, 4096, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ("carol", 3, 4096, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_a_credential_has_a_user_a_mechanism_and_bounded_work(
    user: str, mechanism: int, iterations: int, error: int
) -> None:
    assert Credentials().check_new(user, mechanism, iterations)[0] == error


def test_a_credential_that_was_deleted_lets_nobody_in() -> None:
    users = Credentials()
    users.add_user("carol", "secret", random_bytes=SALT)
    assert users.delete_scram("carol", SCRAM_SHA_256)
    assert not users.delete_scram("carol", SCRAM_SHA_256)
    client = ScramClient("SCRAM-SHA-256", "carol", "secret")
    _, answer = scram(users, client, "SCRAM-SHA-256")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert users.scram_users() == ["carol"]
    users.delete_scram("carol", SCRAM_SHA_512)
    assert users.scram_users() == []
