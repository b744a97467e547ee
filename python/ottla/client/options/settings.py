"""The settings of clients: typed, checked, and not to be changed.

The attributes are the declarations of the options: name, type, default, bounds and purpose. Names
and defaults are those of Kafka's own client, version 4; what is Ottla's own says so. What a class
has, its keyword arguments are, and an error names the option, what was given and what is expected.

    >>> ProducerSettings(bootstrap_servers="kafka:9092", linger_ms=20).linger_ms
    20
"""

from __future__ import annotations

from typing import Any

from ottla.client.errors import InvalidConfigurationError
from ottla.client.network.api_versions import check_software
from ottla.client.options.base import Settings
from ottla.client.options.option import (
    MAX_INT,
    MAX_LONG,
    Acks,
    Addresses,
    Choice,
    ChoiceOrFunction,
    Flag,
    Function,
    Integer,
    OffsetReset,
    Option,
    OptionalInteger,
    OptionalName,
    OptionalText,
    Strategies,
    Text,
)
from ottla.records.version import __version__

__all__ = ["AdminSettings", "CommonSettings", "ConsumerSettings", "ProducerSettings"]

_MAX_IN_FLIGHT_OF_IDEMPOTENCE = 5
"""A leader remembers so many batches of a producer."""

MECHANISMS = {
    "PLAIN": ("sasl_username", "sasl_password"),
    "SCRAM-SHA-256": ("sasl_username", "sasl_password"),
    "SCRAM-SHA-512": ("sasl_username", "sasl_password"),
    "OAUTHBEARER": ("sasl_oauth_token",),
}
"""How to log in, and what each way needs."""

_MECHANISMS_TEXT = f"sasl_mechanism {', '.join(MECHANISMS)}"


class CommonSettings(Settings):
    """What every client has."""

    bootstrap_servers = Addresses(
        (), "Some brokers of the cluster; they tell the others.", is_required=True
    )
    client_id = Text("", "A name that brokers have in their logs and quotas.")
    client_software_name = Text(
        "ottla", "The software that brokers are told (KIP-511); Ottla's own."
    )
    client_software_version = Text(
        __version__, "Its version that brokers are told (KIP-511); Ottla's own."
    )
    request_timeout_ms = Integer(30_000, "How long a broker has to answer a request.")
    retry_backoff_ms = Integer(
        100, "How long to wait before a request is repeated for the first time.", high=MAX_LONG
    )
    retry_backoff_max_ms = Integer(
        1_000, "The longest time to wait before a request is repeated.", high=MAX_LONG
    )
    reconnect_backoff_ms = Integer(
        50, "How long to wait before a broker is connected to again.", high=MAX_LONG
    )
    reconnect_backoff_max_ms = Integer(
        1_000, "The longest time to wait before a broker is connected to again.", high=MAX_LONG
    )
    socket_connection_setup_timeout_ms = Integer(
        10_000, "How long a connection may take the first time.", high=MAX_LONG
    )
    socket_connection_setup_timeout_max_ms = Integer(
        30_000, "How long a connection may take after many attempts.", high=MAX_LONG
    )
    connections_max_idle_ms = Integer(
        540_000,
        "When a connection that nobody uses is closed; -1 for never.",
        low=-1,
        high=MAX_LONG,
    )
    max_in_flight_requests_per_connection = Integer(
        100, "How many requests may wait for an answer of one broker.", low=1
    )
    receive_message_max_bytes = Integer(
        100_000_000, "The largest answer that is taken, as librdkafka has it.", low=1_000
    )
    metadata_max_age_ms = Integer(
        300_000, "When topics and leaders are looked up again without a reason.", high=MAX_LONG
    )
    security_protocol = Choice(
        "PLAINTEXT",
        "Whether connections are encrypted, and whether there is a login.",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    ssl_ca_location = OptionalText(
        None, "A PEM file, or a directory, of authorities; the system's where it is not given."
    )
    ssl_ca_pem = OptionalText(None, "The authorities themselves, as PEM.")
    ssl_certificate_location = OptionalText(
        None, "A PEM file of the client's certificate, and of the chain above it."
    )
    ssl_certificate_pem = OptionalText(None, "The client's certificate itself, as PEM.")
    ssl_key_location = OptionalText(
        None, "A PEM file of the client's private key; not needed where the certificate's has it."
    )
    ssl_key_pem = OptionalText(None, "The client's private key itself, as PEM.", is_secret=True)
    ssl_key_password = OptionalText(None, "What the private key is encrypted with.", is_secret=True)
    ssl_endpoint_identification_algorithm = Choice(
        "https",
        'Whether a certificate must be of the host that was asked for; "" for no.',
        choices=("https", ""),
    )
    ssl_context = Option[Any](None, "An `ssl.SSLContext` to use as it is; Ottla's own.")
    sasl_mechanism = OptionalText(
        None, "How to log in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER."
    )
    sasl_username = OptionalText(None, "Who logs in, by PLAIN and SCRAM.")
    sasl_password = OptionalText(None, "The user's password.", is_secret=True)
    sasl_oauth_token = Function(
        None, "Returns a token of OAUTHBEARER, before each login; Ottla's own."
    )

    def check(self) -> None:  # noqa: D102 - as the base says
        check_software("client_software_name", self.client_software_name)
        check_software("client_software_version", self.client_software_version)
        _check_order(self, "retry_backoff_ms", "retry_backoff_max_ms")
        _check_order(self, "reconnect_backoff_ms", "reconnect_backoff_max_ms")
        _check_login(self)
        _check_tls(self)


class ProducerSettings(CommonSettings):
    """What a producer has."""

    allow_auto_create_topics = True

    acks = Acks(-1, "Which replicas have a batch before it counts: all in sync, the leader, none.")
    batch_size = Integer(16_384, "How many bytes of records are sent together at most, if small.")
    linger_ms = Integer(5, "How long to wait for more records of a batch.", high=MAX_LONG)
    buffer_memory = Integer(
        33_554_432, "How many bytes of records may wait; then `send` does.", high=MAX_LONG
    )
    max_block_ms = Integer(
        60_000, "How long `send`, and the calls of a transaction, wait.", high=MAX_LONG
    )
    delivery_timeout_ms = Integer(120_000, "When a record that is not delivered fails.")
    retries = Integer(MAX_INT, "How often a batch is sent again, in the time of its delivery.")
    max_in_flight_requests_per_connection = Integer(
        5, "How many requests may wait for an answer of one broker.", low=1
    )
    max_request_size = Integer(1_048_576, "The largest request, and so the largest record.")
    enable_idempotence = Flag(
        "Whether each record is in the log once, in order, though requests are repeated. Without "
        "being given it is off where `acks` is not all or `retries` is 0.",
        default=True,
    )
    compression_type = Choice(
        "none", "The codec of batches.", choices=("none", "gzip", "snappy", "lz4", "zstd")
    )
    compression_level = OptionalInteger(None, "The codec's level; its own default if not given.")
    partitioner = ChoiceOrFunction(
        "default",
        "How a record without a partition gets one: by its key, as Kafka's client does, or without "
        "a key by batches (KIP-794); or in turn; or what a function of topic, key, value and count "
        "of partitions returns.",
        choices=("default", "round_robin"),
    )
    partitioner_ignore_keys = Flag(
        "Whether records with a key go where those without go.",
        default=False,
    )
    partitioner_adaptive_partitioning_enable = Flag(
        "Whether brokers that are fast get more of the records without a key.",
        default=True,
    )
    partitioner_availability_timeout_ms = Integer(
        0,
        "When a broker that takes no batch gets no more records without a key; 0 for never.",
        high=MAX_LONG,
    )
    transactional_id = OptionalName(None, "Makes transactions; one running producer has it.")
    transaction_timeout_ms = Integer(60_000, "When the coordinator aborts a transaction.", low=1)
    transactional_error_policy = Choice(
        "kip691",
        "Which errors are fatal: those of KIP-691, or as Kafka's own client has it; Ottla's own.",
        choices=("kip691", "kafka"),
    )
    drop_invalid_records = Flag(
        "Whether records that a leader refuses fail alone, and the rest of their batch is sent "
        "again (KIP-467); Ottla's own.",
        default=True,
    )
    transaction_drop_invalid_records = Flag(
        "The same in a transaction, which then commits without them; Ottla's own.",
        default=False,
    )
    recover_unknown_producer = Flag(
        "Whether to go on where a leader has lost records that it acknowledged; Ottla's own.",
        default=False,
    )
    fatal_on_out_of_order = Flag(
        "Whether to end where a leader misses records that it acknowledged, instead of failing "
        "those that are under way and going on; Ottla's own.",
        default=False,
    )
    on_data_loss = Function(
        None,
        "Is told the partition, the last offset acknowledged and the start of the log where a "
        "leader may have lost records, which is also logged; Ottla's own.",
    )
    key_serializer = Function(None, "Makes bytes of a key.")
    value_serializer = Function(None, "Makes bytes of a value.")

    def check(self) -> None:  # noqa: D102 - as the base says
        super().check()
        _check_idempotence(self)
        _check_delivery_time(self)
        _check_compression_level(self)


class ConsumerSettings(CommonSettings):
    """What a consumer has."""

    group_id = OptionalName(None, "The group that shares partitions and commits offsets.")
    group_instance_id = OptionalName(None, "Makes a static member, who may be away for a while.")
    group_protocol = Choice(
        "classic",
        "Who assigns partitions: a member, or the broker (KIP-848).",
        choices=("classic", "consumer"),
    )
    group_remote_assignor = OptionalName(None, "The broker's assignor, of protocol consumer.")
    session_timeout_ms = Integer(45_000, "When a silent member is removed, of protocol classic.")
    heartbeat_interval_ms = Integer(3_000, "How often a member is heard, of protocol classic.")
    max_poll_interval_ms = Integer(
        300_000, "How long a member may take between two polls before it leaves.", low=1
    )
    partition_assignment_strategy = Strategies(
        ("range", "cooperative-sticky"),
        "How a member assigns partitions, of protocol classic.",
        choices=("range", "roundrobin", "sticky", "cooperative-sticky"),
    )
    auto_offset_reset = OffsetReset(
        "latest", "Where to begin without a committed offset, or where that is gone."
    )
    enable_auto_commit = Flag(
        "Whether offsets are committed in between; not without a group.",
        default=True,
    )
    auto_commit_interval_ms = Integer(5_000, "How often.")
    isolation_level = Choice(
        "read_uncommitted",
        "Whether records of open and aborted transactions are read.",
        choices=("read_uncommitted", "read_committed"),
    )
    fetch_min_bytes = Integer(1, "How many bytes a broker waits for.")
    fetch_max_bytes = Integer(52_428_800, "How many bytes a broker answers with at most.")
    max_partition_fetch_bytes = Integer(1_048_576, "How many of one partition.")
    fetch_max_wait_ms = Integer(500, "How long a broker waits for `fetch_min_bytes`.")
    max_poll_records = Integer(500, "How many records `poll` returns at most.", low=1)
    check_crcs = Flag(
        "Whether checksums of batches are verified.",
        default=True,
    )
    client_rack = OptionalName(
        None, "Where the consumer is, to read from a replica nearby (KIP-392)."
    )
    default_api_timeout_ms = Integer(60_000, "How long a call waits that says nothing else.")
    allow_auto_create_topics = Flag(
        "Whether a broker may create a topic that is asked for.",
        default=True,
    )
    exclude_internal_topics = Flag(
        "Whether a pattern leaves out Kafka's own topics.",
        default=True,
    )
    key_deserializer = Function(None, "Makes a key of bytes.")
    value_deserializer = Function(None, "Makes a value of bytes.")

    def check(self) -> None:  # noqa: D102 - as the base says
        super().check()
        _check_group(self)


class AdminSettings(CommonSettings):
    """What an admin client has."""

    allow_auto_create_topics = False

    connections_max_idle_ms = Integer(
        300_000,
        "When a connection that nobody uses is closed; -1 for never.",
        low=-1,
        high=MAX_LONG,
    )
    default_api_timeout_ms = Integer(60_000, "How long a call waits that says nothing else.")
    retries = Integer(MAX_INT, "How often a request is repeated, in the time of its call.")

    def check(self) -> None:  # noqa: D102 - as the base says
        super().check()
        if self.default_api_timeout_ms < self.request_timeout_ms:
            if "default_api_timeout_ms" in self.given:
                raise _conflict(
                    self,
                    "default_api_timeout_ms",
                    "less than request_timeout_ms",
                    f"{self.request_timeout_ms} or more",
                )
            self.adjust("default_api_timeout_ms", self.request_timeout_ms)


def _conflict(
    settings: Settings, name: str, wrong: str, expected: str
) -> InvalidConfigurationError:
    value = settings.shown(name)
    return InvalidConfigurationError(f"{name} is {value}, {wrong}; expected {expected}")


def _check_order(settings: Settings, low: str, high: str) -> None:
    """Has the upper bound of a back-off follow the lower one, unless both were given."""
    least, most = getattr(settings, low), getattr(settings, high)
    if least <= most:
        return
    if low in settings.given and high in settings.given:
        raise _conflict(settings, low, f"more than {high}", f"{most} or less")
    settings.adjust(
        low if high in settings.given else high, most if high in settings.given else least
    )


def _check_login(settings: CommonSettings) -> None:
    protocol = settings.security_protocol
    if not protocol.startswith("SASL"):
        for name in sorted(settings.given):
            if name.startswith("sasl_"):
                wrong = f"and security_protocol {protocol}, which has no login"
                raise _conflict(
                    settings, name, wrong, "security_protocol SASL_PLAINTEXT or SASL_SSL"
                )
        return
    mechanism = settings.sasl_mechanism
    if mechanism is None:
        raise _conflict(
            settings, "security_protocol", "and sasl_mechanism is not given", _MECHANISMS_TEXT
        )
    if mechanism not in MECHANISMS:
        raise InvalidConfigurationError(
            f"sasl_mechanism is {mechanism}; expected {_MECHANISMS_TEXT}"
        )
    needed = MECHANISMS[mechanism]
    for name in needed:
        if getattr(settings, name) is None:
            raise _conflict(
                settings, "sasl_mechanism", f"and {name} is not given", f"{name} with it"
            )


def _check_tls(settings: CommonSettings) -> None:
    given = {name for name in settings.given if name.startswith("ssl_") and getattr(settings, name)}
    # A file for every cluster says so in plain ones, too.
    given.discard("ssl_endpoint_identification_algorithm")
    if given and not settings.security_protocol.endswith("SSL"):
        wrong = f"and security_protocol {settings.security_protocol}, which does not encrypt"
        raise _conflict(settings, min(given), wrong, "security_protocol SSL or SASL_SSL")
    if settings.ssl_context is not None and len(given) > 1:
        other = min(given - {"ssl_context"})
        raise _conflict(settings, other, "and ssl_context is given, too", "one of both")
    for what in ("ssl_ca", "ssl_certificate", "ssl_key"):
        if {f"{what}_location", f"{what}_pem"} <= given:
            raise _conflict(settings, f"{what}_location", f"and {what}_pem is given, too", "one")
    if given & {"ssl_key_location", "ssl_key_pem"} and not (
        given & {"ssl_certificate_location", "ssl_certificate_pem"}
    ):
        name = min(given & {"ssl_key_location", "ssl_key_pem"})
        raise _conflict(settings, name, "and there is no certificate", "ssl_certificate_location")


def _check_idempotence(settings: ProducerSettings) -> None:
    """Has idempotence as Kafka's own client has it: on, unless another option rules it out."""
    is_wanted = "enable_idempotence" in settings.given or settings.transactional_id is not None
    if not settings.enable_idempotence:
        if settings.transactional_id is not None:
            raise _conflict(
                settings, "transactional_id", "and enable_idempotence False", "enable_idempotence"
            )
        return
    for name, is_sound, expected in (
        ("acks", settings.acks == -1, 'acks="all", or enable_idempotence=False'),
        ("retries", settings.retries > 0, "1 or more, or enable_idempotence=False"),
    ):
        if not is_sound:
            if is_wanted:
                raise _conflict(settings, name, "which does not go with idempotence", expected)
            settings.adjust("enable_idempotence", value=False)
            return
    if settings.max_in_flight_requests_per_connection > _MAX_IN_FLIGHT_OF_IDEMPOTENCE:
        raise _conflict(
            settings,
            "max_in_flight_requests_per_connection",
            "more than the batches of a producer that leaders remember",
            f"{_MAX_IN_FLIGHT_OF_IDEMPOTENCE} or less, or enable_idempotence=False",
        )


def _check_delivery_time(settings: ProducerSettings) -> None:
    least = min(settings.linger_ms + settings.request_timeout_ms, MAX_INT)
    if settings.delivery_timeout_ms >= least:
        return
    if "delivery_timeout_ms" in settings.given:
        raise _conflict(
            settings,
            "delivery_timeout_ms",
            "less than linger_ms and request_timeout_ms together",
            f"{least} or more",
        )
    settings.adjust("delivery_timeout_ms", least)


def _check_compression_level(settings: ProducerSettings) -> None:
    level, codec = settings.compression_level, settings.compression_type
    if level is None:
        return
    if codec in {"none", "snappy"}:
        raise _conflict(
            settings,
            "compression_level",
            f"and compression_type {codec}, which has no levels",
            "compression_type gzip, lz4 or zstd",
        )
    # The engine has the bounds, and is asked where somebody has a wish.
    from ottla.records.config import TopicConfig  # noqa: PLC0415

    named: dict[str, Any] = {f"compression_{codec}_level": level}
    try:
        TopicConfig(**named)
    except ValueError as error:
        raise InvalidConfigurationError(f"compression_level: {error}") from None


def _check_group(settings: ConsumerSettings) -> None:
    if settings.group_id is None:
        for name in ("enable_auto_commit", "group_instance_id", "group_remote_assignor"):
            if name in settings.given and getattr(settings, name):
                raise _conflict(settings, name, "and there is no group", "group_id with it")
        settings.adjust("enable_auto_commit", value=False)
    if settings.group_protocol == "consumer":
        broker_decides = (
            "heartbeat_interval_ms",
            "session_timeout_ms",
            "partition_assignment_strategy",
        )
        for name in broker_decides:
            if name in settings.given:
                raise _conflict(
                    settings,
                    name,
                    "and group_protocol consumer, of which the broker decides it",
                    "group_protocol classic, or none",
                )
        return
    if settings.group_remote_assignor is not None:
        raise _conflict(
            settings,
            "group_remote_assignor",
            "and group_protocol classic, which has none",
            "group_protocol consumer",
        )
    if settings.heartbeat_interval_ms >= settings.session_timeout_ms:
        raise _conflict(
            settings,
            "heartbeat_interval_ms",
            "no less than session_timeout_ms",
            f"less than {settings.session_timeout_ms}, a third of it at best",
        )
