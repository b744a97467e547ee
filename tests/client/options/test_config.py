"""Configurations of Java's client and of librdkafka mean the same here, or are refused."""

from typing import Any

import pytest
from ottla.client.errors import InvalidConfigurationError
from ottla.client.options.config import IgnoredOptionWarning, settings_from_config
from ottla.client.options.elsewhere import IGNORED, REFUSED, RENAMED
from ottla.client.options.settings import AdminSettings, ConsumerSettings, ProducerSettings

HERE = {"bootstrap.servers": "localhost:9092"}
CLIENTS = (ProducerSettings, ConsumerSettings, AdminSettings)
JAAS = "org.apache.kafka.common.security.{} required username='alice' password=\" a;b\";"


def producer(config: dict[str, Any]) -> ProducerSettings:
    return settings_from_config(ProducerSettings, HERE | config)


def consumer(config: dict[str, Any]) -> ConsumerSettings:
    return settings_from_config(ConsumerSettings, HERE | config)


@pytest.mark.parametrize(
    ("config", "name", "expected"),
    [
        ({"linger.ms": "20"}, "linger_ms", 20),
        ({"queue.buffering.max.ms": 20}, "linger_ms", 20),
        ({"acks": "all"}, "acks", -1),
        ({"queue.buffering.max.kbytes": "1024"}, "buffer_memory", 1_048_576),
        ({"request.required.acks": "1"}, "acks", 1),
        ({"message.timeout.ms": "60000"}, "delivery_timeout_ms", 60_000),
        ({"enable.idempotence": " True "}, "enable_idempotence", True),
        ({"transactional.id": "t"}, "transactional_id", "t"),
        ({"compression.codec": "lz4"}, "compression_type", "lz4"),
        ({"compression.type": "zstd", "compression.level": "5"}, "compression_level", 5),
        ({"compression.type": "zstd", "compression.level": "-1"}, "compression_level", None),
        ({"compression.type": "zstd", "compression.zstd.level": "7"}, "compression_level", 7),
        ({"compression.type": "gzip", "compression.gzip.level": "-1"}, "compression_level", None),
        ({"partitioner": "murmur2_random"}, "partitioner", "default"),
        (
            {"partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner"},
            "partitioner",
            "round_robin",
        ),
        ({"key.serializer": "org.apache.kafka.X.ByteArraySerializer"}, "key_serializer", None),
        ({"value.serializer": str.encode}, "value_serializer", str.encode),
        ({"security.protocol": "ssl", "ssl.ca.location": "ca.pem"}, "ssl_ca_location", "ca.pem"),
        (
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": "ca.pem",
                "ssl.truststore.password": "",
            },
            "ssl_ca_location",
            "ca.pem",
        ),
        (
            {
                "security.protocol": "SSL",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": "me.pem",
            },
            "ssl_certificate_location",
            "me.pem",
        ),
        (
            {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "none"},
            "ssl_endpoint_identification_algorithm",
            "",
        ),
        ({"enable.ssl.certificate.verification": "true"}, "ssl_context", None),
        ({"enable.gapless.guarantee": "false"}, "acks", -1),
        ({"linger.ms": "20", "queue.buffering.max.ms": 20}, "linger_ms", 20),
    ],
)
def test_an_option_of_elsewhere_is_the_same_here(
    config: dict[str, Any], name: str, expected: object
) -> None:
    assert getattr(producer(config), name) == expected


@pytest.mark.parametrize(
    ("config", "name", "expected"),
    [
        ({"auto.offset.reset": "smallest"}, "auto_offset_reset", "earliest"),
        ({"auto.offset.reset": "end"}, "auto_offset_reset", "latest"),
        ({"auto.offset.reset": "error"}, "auto_offset_reset", "none"),
        ({"fetch.wait.max.ms": "100"}, "fetch_max_wait_ms", 100),
        (
            {
                "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor, "
                "cooperative-sticky"
            },
            "partition_assignment_strategy",
            ("range", "cooperative-sticky"),
        ),
        ({"group.id": "g", "group.protocol": "CONSUMER"}, "group_protocol", "consumer"),
        ({"enable.auto.offset.store": "true"}, "check_crcs", True),
    ],
)
def test_an_option_of_a_consumer_of_elsewhere_is_the_same_here(
    config: dict[str, Any], name: str, expected: object
) -> None:
    assert getattr(consumer(config), name) == expected


@pytest.mark.parametrize("module", ["plain.PlainLoginModule", "scram.ScramLoginModule"])
def test_a_login_of_java_gives_user_and_password(module: str) -> None:
    settings = producer(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN" if "Plain" in module else "SCRAM-SHA-512",
            "sasl.jaas.config": JAAS.format(module).replace("'", '"'),
        }
    )
    assert (settings.sasl_username, settings.sasl_password) == ("alice", " a;b")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"queue.buffering.max.kbytes": "1 MB"}, "kbytes is '1 MB'; expected an integer"),
        ({"linger": "5"}, "linger is no option; did you mean linger.ms?"),
        ({"linger_ms": "5"}, "linger_ms is no option; did you mean linger.ms?"),
        ({"qqqqqq": "5"}, "qqqqqq is no option"),
        ({"linger.ms": "soon"}, "linger.ms is 'soon'; expected an integer of 0 or more"),
        ({"enable.idempotence": "yes"}, "enable.idempotence is 'yes'; expected True or False"),
        ({"partitioner": "fnv1a"}, "partitioner is 'fnv1a'; expected one of default, round_robin"),
        (
            {"linger.ms": 5, "queue.buffering.max.ms": 6},
            "queue.buffering.max.ms and linger.ms are the same option, and differ",
        ),
        (
            {"batch.num.messages": "100"},
            "batch.num.messages cannot be kept: a batch is bounded by its bytes: use batch.size",
        ),
        (
            {"ssl.truststore.location": "/etc/trust.jks", "security.protocol": "SSL"},
            "is a key store of Java (JKS), which cannot be read; write its certificates as PEM",
        ),
        (
            {"ssl.keystore.location": "/etc/me.p12", "ssl.keystore.type": "PKCS12"},
            "ssl.keystore.location is a key store of Java (PKCS12)",
        ),
        ({"enable.ssl.certificate.verification": "false"}, "give an ssl.SSLContext"),
        ({"key.serializer": "org.x.StringSerializer"}, "such as str.encode"),
        ({"partitioner.class": "com.example.Mine"}, "give a function, as partitioner"),
        ({"sasl.jaas.config": "com.sun.Krb5LoginModule required a=b;"}, "Krb5LoginModule"),
        ({"sasl.jaas.config": "Plain"}, "sasl.jaas.config: a login configuration is one module"),
        ({"oauth_cb": print}, "give a function that returns a token, as sasl.oauth.token"),
        ({"enable.auto.offset.store": False}, "commit what you are done with"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_what_to_do(
    config: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidConfigurationError) as refused:
        producer(config)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"statistics.interval.ms": "1000"}, "statistics.interval.ms has no effect: metrics are"),
        ({"debug": "all"}, "debug has no effect: Python's `logging` decides"),
        ({"group.id": "g"}, "group.id has no effect: it is an option of consumers"),
        (
            {"compression.type": "zstd", "compression.gzip.level": "9"},
            "compression.gzip.level has no effect: compression.type is zstd",
        ),
    ],
)
def test_what_has_no_meaning_is_left_out_with_a_warning(
    config: dict[str, Any], message: str
) -> None:
    with pytest.warns(IgnoredOptionWarning) as warned:
        producer(config)
    assert [str(one.message).startswith(message) for one in warned] == [True]
    assert warned[0].filename == __file__


@pytest.mark.parametrize("client", CLIENTS)
def test_every_option_is_known_by_its_dotted_name(client: Any) -> None:
    for option in client.options.values():
        if not option.is_required and option.default is not None:
            config = HERE | {option.dotted: option.default}
            if client is ConsumerSettings:
                config["group.id"] = "g"
            settings_from_config(client, config)


def test_no_name_has_two_meanings() -> None:
    own = {option.dotted for client in CLIENTS for option in client.options.values()}
    tables = [own, set(RENAMED), set(REFUSED), set(IGNORED)]
    assert sum(map(len, tables)) == len(set.union(*tables))
    assert set(RENAMED.values()) <= {name for client in CLIENTS for name in client.options}


@pytest.mark.parametrize("config", ["bootstrap.servers=a:1", [("bootstrap.servers", "a:1")], None])
def test_a_configuration_is_a_dict(config: Any) -> None:
    with pytest.raises(InvalidConfigurationError, match="expected a dict of dotted names"):
        settings_from_config(ProducerSettings, config)
