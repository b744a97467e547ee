"""Settings of one listener, and what they are of: users, mechanisms, names of certificates."""

import pytest
from ottla.broker.configs.broker import BrokerConfig
from ottla.broker.configs.listeners import Endpoint, NamedListener, named_listeners
from ottla.broker.configs.setting import InvalidConfigError
from ottla.broker.connection import CloseConnectionError
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from support.wire_client import Peer, WireClient, new_broker

DEFAULT = Endpoint("PLAINTEXT", "127.0.0.1", 9092)


def listeners(**texts: str) -> list[NamedListener]:
    settings = {name.replace("_", "."): text for name, text in texts.items()}
    return named_listeners(BrokerConfig(settings), DEFAULT)


def test_without_listeners_there_is_the_default_one_which_may_be_advertised_elsewhere() -> None:
    assert listeners() == [NamedListener(DEFAULT, "PLAINTEXT", None)]
    (found,) = listeners(advertised_listeners="PLAINTEXT://broker.ci:19092")
    assert found.advertised == ("broker.ci", 19092)


def test_listeners_have_a_place_a_protocol_and_what_is_advertised() -> None:
    assert listeners(
        listeners="INSIDE://:9092, outside://[::1]:9093",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:SASL_SSL",
        advertised_listeners="OUTSIDE://kafka.example:443",
    ) == [
        NamedListener(Endpoint("INSIDE", "", 9092), "PLAINTEXT", None),
        NamedListener(Endpoint("OUTSIDE", "::1", 9093), "SASL_SSL", ("kafka.example", 443)),
    ]


def test_the_server_properties_that_come_with_kafka_are_understood() -> None:
    config = BrokerConfig(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "inter.broker.listener.name": "PLAINTEXT",
            "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
            "num.network.threads": "3",
            "log.dirs": "/var/lib/kafka",
        }
    )
    assert named_listeners(config, DEFAULT) == [
        NamedListener(Endpoint("PLAINTEXT", "", 9092), "PLAINTEXT", ("localhost", 9092))
    ]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"listeners": "localhost:9092"}, "It is not NAME://host:port"),
        ({"listeners": "PLAINTEXT://localhost"}, "It is not NAME://host:port"),
        ({"listeners": "PLAINTEXT://localhost:x"}, "'x' is no port"),
        ({"listeners": "PLAINTEXT://localhost:٣"}, "is no port"),
        ({"listeners": "PLAINTEXT://localhost:65536"}, "A port is from 0 to 65535"),
        ({"listeners": "PLAINTEXT://::1:9092"}, "in brackets"),
        ({"listeners": "A://:1"}, "listener.security.protocol.map has no protocol for it: A:SSL"),
        ({"listeners": "SSL://:1,ssl://:2"}, "must have a different name"),
        ({"listeners": "SSL://:1,PLAINTEXT://:1"}, "It has the port of the listener SSL"),
        ({"listener_security_protocol_map": "A:TLS"}, "A protocol is one of PLAINTEXT, SSL"),
        ({"listener_security_protocol_map": "A"}, "It is not NAME:PROTOCOL"),
        ({"advertised_listeners": "A://b:1"}, "not among the listeners, which are PLAINTEXT"),
        ({"advertised_listeners": "PLAINTEXT://0.0.0.0:1"}, "the name of this host"),
        (
            {"listeners": "SSL://:1", "controller_listener_names": "SSL"},
            "All of them are of a controller",
        ),
    ],
)
def test_listeners_that_kafka_would_refuse_are_refused(texts: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        listeners(**texts)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("listener.name.a.ssl.keystore.locatio", "did you mean listener.name.a.ssl.keystore.loca"),
        ("listener.name.a.num.partitions", "num.partitions is for all listeners"),
        ("listener.name.a.gssapi.sasl.jaas.config", "of the mechanism GSSAPI; there are PLAIN"),
        ("listener.name.a", "Unknown configuration listener.name.a"),
        ("ssl.key.passwort", "did you mean ssl.key.password?"),
    ],
)
def test_names_that_are_no_settings_of_a_listener_are_refused(name: str, said: str) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        BrokerConfig({name: "1"})
    assert said in str(caught.value)


def test_a_setting_of_one_listener_counts_before_that_of_all() -> None:
    config = BrokerConfig(
        {"ssl.client.auth": "requested", "listener.name.outside.ssl.client.auth": "required"}
    )
    for one in (config, config.with_texts({"num.partitions": "2"})):
        assert one.of_listener("OUTSIDE").text("ssl.client.auth") == "required"
        assert one.of_listener("INSIDE").text("ssl.client.auth") == "requested"
        assert one.text("ssl.client.auth") == "requested"


LOGIN = 'M required user_{0}="{1}";'


def logs_in(broker: object, listener: str, user: str, password: str) -> object:
    assert isinstance(broker, type(new_broker()))
    client = WireClient(broker, peer=Peer("127.0.0.1", listener, "SASL_PLAINTEXT"))
    error = client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code
    if error:
        return error
    token = f"\0{user}\0{password}".encode()
    return client.ask(SaslAuthenticateRequest(auth_bytes=token), 2).error_code


def test_users_of_a_listener_are_no_users_of_another_one() -> None:
    broker = new_broker(
        {
            "sasl.jaas.config": LOGIN.format("all", "1"),
            "listener.name.inside.plain.sasl.jaas.config": LOGIN.format("ann", "2"),
            "listener.name.tight.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        }
    )
    assert logs_in(broker, "INSIDE", "ann", "2") == 0
    assert logs_in(broker, "INSIDE", "all", "1") == 58
    assert logs_in(broker, "OUTSIDE", "ann", "2") == 58
    assert logs_in(broker, "OUTSIDE", "all", "1") == 0
    assert logs_in(broker, "TIGHT", "all", "1") == 33


def test_a_login_configuration_of_scram_names_users_of_scram_and_none_of_plain() -> None:
    broker = new_broker(
        {"listener.name.inside.scram-sha-256.sasl.jaas.config": LOGIN.format("ann", "secret")}
    )
    assert logs_in(broker, "INSIDE", "ann", "secret") == 58
    assert broker.credentials.scram_users() == ["ann"]
    assert set(broker.credentials.of_listener("INSIDE").scram_of("ann")) == {1}


RULES = r"RULE:^CN=(\w+),OU=(.*)\/.*$/$1@$2/L, RULE:^CN=admin$/root/,RULE:^UID=(.)$/$1$2/U,DEFAULT"


@pytest.mark.parametrize(
    ("subject", "principal"),
    [
        ("CN=Ann,OU=Sales/EU", "User:ann@sales"),
        ("CN=admin", "User:root"),
        ("UID=a", "User:A$2"),
        ("CN=else", "User:CN=else"),
    ],
)
def test_the_first_rule_that_is_for_a_certificate_names_its_user(
    subject: str, principal: str
) -> None:
    broker = new_broker({"listener.name.tls.ssl.principal.mapping.rules": RULES})
    connected = broker.connect(Peer("127.0.0.1", "TLS", "SSL", subject))
    assert connected.principal == principal
    assert broker.connect(Peer("127.0.0.1", "OTHER", "SSL", subject)).principal == f"User:{subject}"


def test_a_certificate_that_no_rule_is_for_has_no_connection() -> None:
    broker = new_broker({"ssl.principal.mapping.rules": "RULE:CN=(a)/$1/"})
    with pytest.raises(CloseConnectionError, match="no rule of ssl"):
        broker.connect(Peer("127.0.0.1", "TLS", "SSL", "CN=b"))
    assert not broker.connections


@pytest.mark.parametrize("text", ["RULE:a/b", "RULE:a/b/X", "RULE:(/b/", "a", "DEFAULT,x"])
def test_rules_that_cannot_be_read_are_a_fault_of_the_settings(text: str) -> None:
    with pytest.raises(InvalidConfigError, match="configuration ssl"):
        new_broker({"ssl.principal.mapping.rules": text})
