"""Arguments that no request can carry: refused by name before anything is done, and no harm."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from ottla.client import (
    Admin,
    AsyncConsumer,
    AsyncProducer,
    Consumer,
    GroupMetadata,
    NewTopic,
    OffsetAndMetadata,
    Producer,
)
from ottla.client.errors import (
    IllegalArgumentError,
    IllegalStateError,
    InvalidConfigurationError,
    InvalidTopicError,
)
from ottla.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HALF_A_CHARACTER = "\ud800"
LARGE = 2**70
ORDERS = ("orders", 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 1}) as broker:
        yield broker


@pytest.fixture(scope="module")
def producer(broker: Broker) -> Iterator[Producer]:
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        yield producer


@pytest.fixture(scope="module")
def consumer(broker: Broker) -> Iterator[Consumer]:
    with Consumer(bootstrap_servers=broker.bootstrap_servers, group_id="billing") as consumer:
        yield consumer


@pytest.mark.parametrize("topic", [5, b"orders", "", HALF_A_CHARACTER, "o" * 250, None])
def test_what_is_no_name_of_a_topic_is_refused_and_the_producer_goes_on(
    producer: Producer, topic: Any
) -> None:
    calls: list[Callable[[], object]] = [
        lambda: producer.send(topic, b"v"),
        lambda: producer.produce_many(topic, [b"v"]),
        lambda: producer.partitions_for(topic),
    ]
    for call in calls:
        with pytest.raises(IllegalArgumentError, match=r"is no name of a topic; expected a str of"):
            call()
    assert producer.send("orders", b"v").result(20).topic == "orders"


def test_a_name_that_brokers_refuse_is_told_with_what_they_allow(producer: Producer) -> None:
    with pytest.raises(InvalidTopicError, match="'all orders' cannot have this name: letters, dig"):
        producer.send("all orders", b"v")


@pytest.mark.parametrize("partition", ["0", -1, 1.0])
def test_what_is_no_number_of_a_partition_is_refused(producer: Producer, partition: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: producer.send("orders", b"v", partition=partition),
        lambda: producer.produce_many("orders", [b"v"], partition=partition),
    ]
    for call in calls:
        with pytest.raises(IllegalArgumentError, match=r"partition is .*; expected a num"):
            call()


REFUSED: list[tuple[Callable[[Any], object], str]] = [
    (lambda consumer: consumer.subscribe([5]), "5 is no name of a topic"),
    (lambda consumer: consumer.subscribe([HALF_A_CHARACTER]), r"is no name of a topic"),
    (lambda consumer: consumer.partitions_for(""), "'' is no name of a topic"),
    (lambda consumer: consumer.assign([("orders", 2**31)]), "partition is 2147483648; expected"),
    (lambda consumer: consumer.assign([(HALF_A_CHARACTER, 0)]), "is no name of a topic"),
    (lambda consumer: consumer.seek(ORDERS, LARGE), "offset is 1180.*an int of 64 bits"),
    (lambda consumer: consumer.seek(ORDERS, "3"), "offset is '3'; expected an int"),
    (lambda consumer: consumer.seek_to_times({ORDERS: LARGE}), "time of orders-0 is 1180"),
    (lambda consumer: consumer.offsets_for_times({ORDERS: -1}), "time of orders-0 is -1"),
    (lambda consumer: consumer.commit({ORDERS: -5}), r"offset of \('orders', 0\) is -5; expected"),
    (lambda consumer: consumer.commit({ORDERS: LARGE}), r"offset of .* is 1180.*64 bits"),
    (lambda consumer: consumer.commit([ORDERS]), "the offsets are .*expected a dict such as"),
    (
        lambda consumer: consumer.commit({ORDERS: OffsetAndMetadata(1, "m" * 40_000)}),
        "metadata of .* and 39922 more characters; expected a str of at most 32767 bytes",
    ),
    (lambda consumer: consumer.poll(1.0), "timeout_ms is 1.0; expected an int.*for a second"),
    (lambda consumer: consumer.poll_columns(-1), "timeout_ms is -1; expected an int, 0 or more"),
]


@pytest.mark.parametrize(("call", "said"), REFUSED)
def test_what_no_request_can_carry_is_refused_and_the_consumer_goes_on(
    consumer: Consumer, call: Callable[[Consumer], object], said: str
) -> None:
    consumer.assign([ORDERS])
    with pytest.raises(IllegalArgumentError, match=said):
        call(consumer)
    assert consumer.end_offsets(ORDERS)[ORDERS] >= 0  # type: ignore[index]


def _any(value: Any) -> Any:
    """A value whose type no checker looks at."""
    return value


REFUSED_BY_ADMIN: list[tuple[Callable[[Any], object], str]] = [
    (
        lambda admin: admin.create_topics([NewTopic(_any(None))]),
        "name of a topic is None; expected a str",
    ),
    (lambda admin: admin.create_topics([NewTopic("a", LARGE)]), "partition_count of a .*32 bits"),
    (lambda admin: admin.create_topics([NewTopic("a", 1, LARGE)]), "replication_factor .*32 bits"),
    (
        lambda admin: admin.create_topics([NewTopic("a", configs=_any(["retention.ms"]))]),
        r"configs of a is \['retention.ms'\]; expected such as {'retention.ms': '86400000'}",
    ),
    (
        lambda admin: admin.create_topics([NewTopic("a", configs=_any({"retention.ms": 5}))]),
        "retention.ms of a is 5; expected a str",
    ),
    (
        lambda admin: admin.create_partitions({"orders": "6"}),
        "count of orders is '6'; expected an int",
    ),
    (lambda admin: admin.create_partitions({5: 6}), "name of a topic is 5; expected a str"),
    (lambda admin: admin.list_group_offsets(None), "group_id is None; expected a str"),
    (lambda admin: admin.delete_group_offsets(5, [ORDERS]), "group_id is 5; expected a str"),
    (
        lambda admin: admin.alter_group_offsets(b"g", {ORDERS: 1}),
        "group_id is b'g'; expected a str",
    ),
]


@pytest.mark.parametrize(("call", "said"), REFUSED_BY_ADMIN)
def test_what_no_request_can_carry_is_refused_and_the_admin_goes_on(
    broker: Broker, call: Callable[[Any], object], said: str
) -> None:
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        with pytest.raises(IllegalArgumentError, match=said):
            call(admin)
        assert "orders" in admin.list_topics()


@pytest.mark.parametrize("option", ["group_id", "client_id", "client_rack", "group_instance_id"])
def test_an_option_that_no_request_can_carry_is_refused(option: str) -> None:
    for given in (HALF_A_CHARACTER, "n" * 40_000):
        with pytest.raises(InvalidConfigurationError, match=rf"{option} is .*expected a str of"):
            Consumer(**{"bootstrap_servers": "kafka:9092", "group_id": "g", option: given})


@pytest.mark.parametrize("client", [Producer, Consumer, Admin])
def test_who_gives_options_as_a_dict_is_told_where_that_goes(client: Any) -> None:
    with pytest.raises(InvalidConfigurationError, match=r"a dict of dotted names goes to from_con"):
        client({"bootstrap.servers": "kafka:9092"})


@pytest.mark.parametrize("client", [AsyncProducer, AsyncConsumer])
def test_a_client_for_asyncio_outside_of_it_says_where_to_make_it(client: Any) -> None:
    with pytest.raises(IllegalStateError, match="no event loop runs here: make the client in a"):
        client(bootstrap_servers="kafka:9092")


def test_seconds_are_refused_on_asyncio_too(broker: Broker) -> None:
    async def main() -> None:
        async with AsyncConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
            consumer.assign([ORDERS])
            with pytest.raises(IllegalArgumentError, match=r"timeout_ms is 1\.0"):
                await consumer.poll(1.0)  # type: ignore[arg-type]

    asyncio.run(main())


def test_the_name_of_a_group_alone_is_taken_in_a_transaction_and_warned_of(broker: Broker) -> None:
    with Producer(
        bootstrap_servers=broker.bootstrap_servers, transactional_id="by-name"
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        with pytest.warns(DeprecationWarning, match=r"give it consumer.group_metadata\(\)"):
            producer.send_offsets_to_transaction({ORDERS: 1}, "billing")
        for group in (None, "", ("billing",)):
            with pytest.raises(IllegalArgumentError, match=r"expected what consumer.group_metad"):
                producer.send_offsets_to_transaction({ORDERS: 1}, group)  # type: ignore[arg-type]
        producer.send_offsets_to_transaction({ORDERS: 2}, GroupMetadata("billing"))
        producer.commit_transaction()
    with Consumer(bootstrap_servers=broker.bootstrap_servers, group_id="billing") as consumer:
        assert consumer.committed(ORDERS)[ORDERS].offset == 2  # type: ignore[index]
