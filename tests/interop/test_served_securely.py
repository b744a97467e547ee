"""Real clients at the listeners of `ottla serve`: certificates and users are of settings alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from kafka import KafkaConsumer, KafkaProducer
from support.certificates import Authority
from support.served import Served, served

PATIENCE_S = 30.0
MODULE = "org.apache.kafka.common.security"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@contextmanager
def broker_of(folder: Path, authority: Authority, protocol: str, *lines: str) -> Iterator[Served]:
    certificate = authority.issue("broker", IPv4Address("127.0.0.1"))
    file = folder / "server.properties"
    settings = (
        f"listeners={protocol}://127.0.0.1:0",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={certificate}",
        *lines,
    )
    file.write_text("\n".join(settings))
    with served("--config", file, "--topic", "orders", "--metrics", "0", port=False) as broker:
        yield broker
        status, complaints = broker.end()
        assert (status, complaints) == (0, "")


def sent_by_librdkafka(options: dict[str, Any]) -> Any:
    """The error of a record, `None` once it is stored."""
    told: list[Any] = []
    client = confluent_kafka.Producer({**options, "log_level": 0})
    client.produce("orders", b"x", on_delivery=lambda error, _: told.append(error))
    assert client.flush(PATIENCE_S) == 0
    return told[0]


@pytest.mark.parametrize(("mechanism", "user"), [("PLAIN", "ann"), ("SCRAM-SHA-512", "bob")])
def test_a_user_of_the_settings_sends_and_reads_behind_tls(
    tmp_path: Path, authority: Authority, mechanism: str, user: str
) -> None:
    with broker_of(
        tmp_path,
        authority,
        "SASL_SSL",
        f"listener.name.sasl_ssl.plain.sasl.jaas.config={MODULE}.plain.PlainLoginModule \\",
        '  required user_ann="secret of ann";',
        f"listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={MODULE}.scram.ScramLoginModule \\",
        '  required user_bob="secret of bob";',
    ) as broker:
        options = {
            "bootstrap.servers": broker.ready["bootstrap.servers"],
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(authority.file),
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": f"secret of {user}",
        }
        assert sent_by_librdkafka(options) is None
        consumer = KafkaConsumer(
            "orders",
            bootstrap_servers=options["bootstrap.servers"],
            security_protocol="SASL_SSL",
            ssl_cafile=str(authority.file),
            sasl_mechanism=mechanism,
            sasl_plain_username=user,
            sasl_plain_password=f"secret of {user}",
            auto_offset_reset="earliest",
            consumer_timeout_ms=PATIENCE_S * 1000,
        )
        assert next(consumer).value == b"x"
        consumer.close()
        page = broker.page("/metrics")[1]
        assert "kafka_server_brokertopicmetrics_messagesin_total 1\n" in page
        assert 'kafka_network_requestmetrics_errors_total{error="NONE",request="SaslAuth' in page


def test_a_client_with_a_certificate_is_known_by_it_and_its_software_is_told(
    tmp_path: Path, authority: Authority
) -> None:
    own = authority.issue("orders")
    with broker_of(
        tmp_path,
        authority,
        "SSL",
        "ssl.client.auth=required",
        f"ssl.truststore.location={authority.file}",
        "ssl.principal.mapping.rules=RULE:^CN=(.*?),.*$/$1/",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found=false",
        "super.users=User:orders",
    ) as broker:
        options = {
            "bootstrap.servers": broker.ready["bootstrap.servers"],
            "security.protocol": "SSL",
            "ssl.ca.location": str(authority.file),
            "ssl.certificate.location": str(own),
            "ssl.key.location": str(own),
        }
        assert sent_by_librdkafka(options) is None
        producer = KafkaProducer(
            bootstrap_servers=options["bootstrap.servers"],
            security_protocol="SSL",
            ssl_cafile=str(authority.file),
            ssl_certfile=str(own),
            ssl_keyfile=str(own),
        )
        assert producer.send("orders", b"y").get(PATIENCE_S).offset == 1
        page = broker.page("/metrics")[1]
        assert 'connections{clientSoftwareName="kafka-python",clientSoftwareVersion="' in page
        producer.close()
