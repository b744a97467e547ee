"""librdkafka on a listener with SASL: who gets in, and what they may do there."""

from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from ottla.net.serving import broker_server
from ottla.net.settings import ListenerSettings

PATIENCE_S = 30.0
USERS = 'PlainLoginModule required user_admin="a" user_alice="b";'
SETTINGS = {
    "authorizer.class.name": "StandardAuthorizer",
    "super.users": "User:admin",
    "allow.everyone.if.no.acl.found": "false",
    "sasl.jaas.config": USERS,
}


@pytest.fixture
def address() -> Iterator[str]:
    listener = ListenerSettings(security_protocol="SASL_PLAINTEXT")
    server = broker_server(SETTINGS, listeners=(listener,))
    server.start()
    server.run(lambda broker: broker.topics.create("orders", 1, {}, 0))
    yield f"{server.addresses[0].host}:{server.addresses[0].port}"
    server.stop()


def options(address: str, user: str, password: str, mechanism: str = "PLAIN") -> dict[str, Any]:
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
        "log_level": 0,
    }


def delivered(address: str, user: str, password: str) -> Any:
    """The error of a record that a user sends, `None` once it is stored."""
    told: list[Any] = []
    client = confluent_kafka.Producer(options(address, user, password))
    client.produce("orders", b"x", on_delivery=lambda error, _: told.append(error))
    assert client.flush(PATIENCE_S) == 0
    return told[0] if told[0] is None else told[0].name()


def test_a_wrong_password_is_an_error_of_authentication(address: str) -> None:
    told: list[Any] = []
    client = confluent_kafka.Producer(
        {**options(address, "alice", "wrong"), "error_cb": lambda error: told.append(error.name())}
    )
    client.poll(PATIENCE_S)
    assert told[0] == "_AUTHENTICATION"


@pytest.mark.parametrize(
    ("mechanism", "number"),
    [
        ("SCRAM-SHA-256", ScramMechanism.SCRAM_SHA_256),
        ("SCRAM-SHA-512", ScramMechanism.SCRAM_SHA_512),
    ],
)
def test_a_user_whom_an_administrator_has_set_gets_in_by_scram(
    address: str, mechanism: str, number: ScramMechanism
) -> None:
    admin = AdminClient(options(address, "admin", "a"))
    wanted = UserScramCredentialUpsertion("dora", ScramCredentialInfo(number, 4096), b"sesame")
    admin.alter_user_scram_credentials([wanted])["dora"].result(PATIENCE_S)
    dora = AdminClient(options(address, "dora", "sesame", mechanism))
    assert len(dora.list_topics(timeout=PATIENCE_S).brokers) == 1


def test_a_user_writes_once_a_rule_allows_it(address: str) -> None:
    assert delivered(address, "alice", "b") == "TOPIC_AUTHORIZATION_FAILED"
    admin = AdminClient(options(address, "admin", "a"))
    rule = AclBinding(
        ResourceType.TOPIC,
        "ord",
        ResourcePatternType.PREFIXED,
        "User:alice",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )
    admin.create_acls([rule])[rule].result(PATIENCE_S)
    every = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert admin.describe_acls(every).result(PATIENCE_S) == [rule]
    assert delivered(address, "alice", "b") is None
