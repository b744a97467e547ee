"""Users and TLS of a broker in a test, and what clients are told of them."""

from pathlib import Path
from typing import Any

import confluent_kafka
import kafka
import ottla
import pytest
from ottla.testing import Broker

PATIENCE_S = 30.0


def topics_seen(config: dict[str, Any]) -> set[str]:
    client = confluent_kafka.Producer({**config, "log_level": 0})
    return set(client.list_topics(timeout=PATIENCE_S).topics)


@pytest.mark.parametrize(
    ("options", "protocol"),
    [
        ({}, None),
        ({"users": {"alice": "secret"}}, "SASL_PLAINTEXT"),
        ({"tls": True}, "SSL"),
        ({"users": {"alice": "secret"}, "tls": True}, "SASL_SSL"),
    ],
)
def test_clients_connect_by_what_they_are_told(options: Any, protocol: str | None) -> None:
    with Broker(topics=["orders"], **options) as broker:
        config = broker.client_config()
        assert config.get("security.protocol") == protocol
        assert topics_seen(config) == {"orders"}
        client = kafka.KafkaProducer(**broker.client_arguments())
        assert client.partitions_for("orders") == {0}
        client.close()


def test_each_user_has_a_password_and_a_stranger_is_named() -> None:
    with Broker(users={"alice": "secret", "bob": "his"}) as broker:
        assert broker.client_config("bob")["sasl.password"] == "his"
        assert broker.client_config(group_id="g")["sasl.username"] == "alice"
        with pytest.raises(ValueError, match="no user carol: users are alice, bob"):
            broker.client_config("carol")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_gets_in_by_every_mechanism(mechanism: str) -> None:
    with Broker(topics=["orders"], users={"alice": "secret"}) as broker:
        config = {**broker.client_config("alice"), "sasl.mechanism": mechanism}
        assert topics_seen(config) == {"orders"}


def test_certificates_are_gone_with_the_broker() -> None:
    broker = Broker(tls=True).start()
    authority = Path(broker.client_config()["ssl.ca.location"])
    assert authority.exists()
    broker.stop()
    assert not authority.parent.exists()


def test_without_openssl_an_error_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ottla.MissingDependencyError, match="openssl"):
        Broker(tls=True)
