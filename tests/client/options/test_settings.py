"""Options are checked when they are given, and errors name them, the value and what may be."""

import pickle
import subprocess
import sys
from typing import Any

import pytest
from ottla.client.errors import InvalidConfigurationError
from ottla.client.options.option import duration_ms
from ottla.client.options.settings import (
    AdminSettings,
    CommonSettings,
    ConsumerSettings,
    ProducerSettings,
)

CLIENTS = [ProducerSettings, ConsumerSettings, AdminSettings]
HERE = {"bootstrap_servers": "localhost:9092"}


def producer(**options: Any) -> ProducerSettings:
    return ProducerSettings(**HERE, **options)


def consumer(**options: Any) -> ConsumerSettings:
    return ConsumerSettings(**HERE, **options)


@pytest.mark.parametrize("client", CLIENTS)
def test_every_default_is_a_value_that_the_option_may_have(client: type[CommonSettings]) -> None:
    settings = client(**HERE)
    for name, option in client.options.items():
        if not option.is_required:
            assert option.convert(option.default, name) == option.default
    assert settings.given == {"bootstrap_servers"}
    assert settings.bootstrap_servers == ("localhost:9092",)


def test_defaults_are_those_of_kafkas_own_client() -> None:
    settings = producer()
    assert (settings.acks, settings.linger_ms, settings.batch_size) == (-1, 5, 16_384)
    assert (settings.retries, settings.delivery_timeout_ms) == (2**31 - 1, 120_000)
    assert settings.enable_idempotence
    assert AdminSettings(**HERE).connections_max_idle_ms == 300_000
    assert consumer().partition_assignment_strategy == ("range", "cooperative-sticky")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"linger": 5}, "linger is no option of this client; did you mean linger_ms?"),
        ({"linger_ms": "5"}, "linger_ms is '5'; expected an integer of 0 or more"),
        ({"linger_ms": -1}, "linger_ms is -1; expected an integer of 0 or more"),
        ({"linger_ms": True}, "linger_ms is True; expected an integer of 0 or more"),
        ({"linger_ms": None}, "linger_ms is None; expected an integer of 0 or more"),
        ({"retries": 2**31}, "retries is 2147483648; expected an integer of 0 or more"),
        ({"acks": 2}, 'acks is 2; expected "all" or -1, 0, or 1'),
        ({"enable_idempotence": 1}, "enable_idempotence is 1; expected True or False"),
        (
            {"compression_type": "brotli"},
            "compression_type is 'brotli'; expected one of none, gzip, snappy, lz4, zstd",
        ),
        (
            {"partitioner": "random"},
            "expected one of default, round_robin, or something that can be called",
        ),
        (
            {"client_software_name": "my client"},
            "letter or digit at both ends (KIP-511)",
        ),
        (
            {"sasl_password": 7, "security_protocol": "SASL_SSL"},
            "sasl_password is not shown; expected a str that is not empty",
        ),
    ],
)
def test_a_wrong_option_is_refused_with_what_it_may_be(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidConfigurationError) as refused:
        producer(**options)
    assert str(refused.value).endswith(message)
    assert next(iter(options)) in str(refused.value)


NO_ADDRESSES: list[Any] = [
    *("", "localhost", "localhost:", "localhost:0", "localhost:65536", ":9092", "::1:9092"),
    *("a:1 b:2", "a:1,b", ["a:1", 2], 5, []),
]


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_an_address_without_a_host_or_a_port_is_refused(address: Any) -> None:
    with pytest.raises(InvalidConfigurationError, match=r"bootstrap_servers .*expected"):
        AdminSettings(bootstrap_servers=address)


def test_addresses_are_a_text_or_a_list() -> None:
    several = ("a:1", "[::1]:9092")
    assert AdminSettings(bootstrap_servers="a:1, [::1]:9092").bootstrap_servers == several
    assert AdminSettings(bootstrap_servers=list(several)).bootstrap_servers == several
    with pytest.raises(InvalidConfigurationError, match="bootstrap_servers is not given"):
        AdminSettings()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"enable_idempotence": True, "acks": 1}, "acks is 1, .*idempotence; expected acks"),
        ({"transactional_id": "t", "acks": 1}, "acks is 1, .*idempotence"),
        ({"transactional_id": "t", "retries": 0}, "retries is 0, .*idempotence"),
        (
            {"transactional_id": "t", "enable_idempotence": False},
            "transactional_id is 't', and enable_idempotence False",
        ),
        ({"max_in_flight_requests_per_connection": 6}, "is 6, .*expected 5 or less"),
        (
            {"delivery_timeout_ms": 30_000},
            "delivery_timeout_ms is 30000, .*expected 30005 or more",
        ),
        ({"compression_level": 3}, "compression_level is 3, and compression_type none"),
        ({"compression_type": "zstd", "compression_level": 23}, "-131072 to 22"),
        ({"retry_backoff_ms": 5, "retry_backoff_max_ms": 4}, "expected 4 or less"),
    ],
)
def test_options_of_a_producer_that_contradict_each_other_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidConfigurationError, match=message):
        producer(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"enable_auto_commit": True}, "enable_auto_commit is True, and there is no group"),
        ({"group_id": ""}, "group_id is ''; expected a str of 1 to 32767 bytes"),
        (
            {"group_id": "g", "group_protocol": "consumer", "session_timeout_ms": 9_000},
            "session_timeout_ms is 9000, and group_protocol consumer, of which the broker decides",
        ),
        ({"group_id": "g", "group_remote_assignor": "uniform"}, "group_protocol classic"),
        (
            {"group_id": "g", "heartbeat_interval_ms": 45_000},
            "heartbeat_interval_ms is 45000, no less than session_timeout_ms",
        ),
        ({"auto_offset_reset": "by_duration:1h"}, "by_duration:PT1H30M"),
    ],
)
def test_options_of_a_consumer_that_contradict_each_other_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidConfigurationError, match=message):
        consumer(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"security_protocol": "SASL_SSL"}, "sasl_mechanism is not given"),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"},
            "sasl_mechanism is GSSAPI; expected sasl_mechanism PLAIN, SCRAM-SHA-256",
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "u"},
            "sasl_mechanism is 'PLAIN', and sasl_password is not given",
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"},
            "sasl_oauth_token is not given",
        ),
        (
            {"sasl_password": "secret"},
            "sasl_password is not shown, and security_protocol PLAINTEXT",
        ),
        ({"ssl_ca_location": "ca.pem"}, "which does not encrypt; expected security_protocol SSL"),
        (
            {"security_protocol": "SSL", "ssl_ca_location": "ca.pem", "ssl_ca_pem": "---"},
            "ssl_ca_pem is given, too",
        ),
        ({"security_protocol": "SSL", "ssl_key_location": "key.pem"}, "there is no certificate"),
        (
            {"security_protocol": "SSL", "ssl_ca_location": "ca.pem", "ssl_context": object()},
            "ssl_context is given, too",
        ),
    ],
)
def test_a_login_or_encryption_that_cannot_be_is_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidConfigurationError, match=message) as refused:
        producer(**options)
    assert "secret" not in str(refused.value)


def test_what_follows_from_other_options_is_adjusted_where_it_was_not_given() -> None:
    assert not producer(acks=1).enable_idempotence
    assert not producer(retries=0).enable_idempotence
    assert producer(request_timeout_ms=200_000).delivery_timeout_ms == 200_005
    assert producer(retry_backoff_ms=2_000).retry_backoff_max_ms == 2_000
    assert producer(reconnect_backoff_max_ms=10).reconnect_backoff_ms == 10
    assert not consumer().enable_auto_commit
    assert consumer(group_id="g").enable_auto_commit
    assert AdminSettings(**HERE, request_timeout_ms=90_000).default_api_timeout_ms == 90_000


class Mine:
    name = "mine"

    def assign(self, *_: object) -> None:
        """As if."""


def test_an_assignor_of_ones_own_stands_beside_those_of_kafka() -> None:
    mine = Mine()
    assert consumer(
        partition_assignment_strategy=[mine, "range"]
    ).partition_assignment_strategy == (
        mine,
        "range",
    )
    with pytest.raises(InvalidConfigurationError, match="or of the application's assignors"):
        consumer(partition_assignment_strategy=[object()])


def test_choices_are_found_in_upper_and_lower_case() -> None:
    assert producer(compression_type="ZSTD").compression_type == "zstd"
    assert consumer(auto_offset_reset="Earliest").auto_offset_reset == "earliest"


def test_settings_cannot_be_changed_and_can_be_pickled() -> None:
    settings = producer(linger_ms=20)
    with pytest.raises(AttributeError, match="make others with another linger_ms"):
        settings.linger_ms = 5
    assert pickle.loads(pickle.dumps(settings)).linger_ms == 20  # noqa: S301


def test_settings_show_what_was_given_without_secrets() -> None:
    settings = producer(
        security_protocol="SASL_SSL",
        sasl_mechanism="PLAIN",
        sasl_username="alice",
        sasl_password="secret",  # noqa: S106
    )
    assert "sasl_username='alice'" in repr(settings)
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT1H30M", 5_400_000),
        ("P1D", 86_400_000),
        ("pt0.25s", 250),
        ("P", None),
        ("PT", None),
        ("1h", None),
        ("P1DT", None),
        ("PT1H\n", None),
    ],
)
def test_durations_are_those_of_iso_8601(text: str, expected: int | None) -> None:
    assert duration_ms(text) == expected


def test_settings_load_neither_difflib_nor_the_rules_of_topics() -> None:
    script = (
        "import sys, ottla.client.options.settings as s;"
        "s.ProducerSettings(bootstrap_servers='a:1');"
        "print({'difflib', 'ssl', 'asyncio'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
