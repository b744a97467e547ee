"""What a test sees of groups, transactions, producers and logs, and what it can wait for."""

import asyncio
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import ottla
import pytest
from ottla.testing import Broker

PATIENCE_S = 30.0


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 2}) as running:
        yield running


def transactional(broker: Broker) -> Any:
    client = confluent_kafka.Producer(broker.client_config(transactional_id="payments"))
    client.init_transactions(PATIENCE_S)
    client.begin_transaction()
    client.produce("orders", b"1", partition=1)
    assert client.flush(PATIENCE_S) == 0
    return client


def consumer(broker: Broker, protocol: str = "classic") -> Any:
    client = confluent_kafka.Consumer(
        broker.client_config(
            group_id="readers", auto_offset_reset="earliest", group_protocol=protocol
        )
    )
    client.subscribe(["orders"])
    return client


def received(client: Any) -> Any:
    for _ in range(int(PATIENCE_S * 10)):
        message = client.poll(0.1)
        if message is not None and message.error() is None:
            return message
    raise AssertionError


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"group": "g", "state": "stable"}, "no state of a group; did you mean Stable?"),
        ({"group": "g", "state": "CompleteCommit"}, "no state of a group"),
        ({"transactional_id": "t", "state": "Ongoin"}, "did you mean Ongoing?"),
        ({"transactional_id": "t", "state": "Stable"}, "there are Empty, Ongoing, PrepareCommit"),
    ],
)
def test_a_state_that_nothing_can_have_is_not_waited_for(
    broker: Broker, wanted: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        broker.wait_for(**wanted)


def test_a_transaction_is_seen_from_its_beginning_to_its_end(broker: Broker) -> None:
    assert broker.transactions == {}
    client = transactional(broker)
    seen = broker.transactions["payments"]
    assert (seen.state, seen.partitions) == ("Ongoing", (("orders", 1),))
    (producer,) = broker.producers("orders", 1)
    assert producer.producer_id == seen.producer_id
    assert producer.current_txn_start_offset == 0
    client.commit_transaction(PATIENCE_S)
    broker.wait_for(transactional_id="payments", state="CompleteCommit")
    assert broker.producers("orders", 1)[0].current_txn_start_offset is None
    assert broker.producers("orders", 0) == ()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_seen_with_members_assignment_and_offsets(broker: Broker, protocol: str) -> None:
    confluent = confluent_kafka.Producer(broker.client_config())
    confluent.produce("orders", b"1", partition=1)
    confluent.flush(PATIENCE_S)
    client = consumer(broker, protocol)
    client.commit(received(client), asynchronous=False)
    broker.wait_for(group="readers", state="Stable", members=1)
    group = broker.groups["readers"]
    assert (group.type, group.state) == (protocol, "Stable")
    (member,) = group.members
    assert (member.client_id, member.assignment) == ("rdkafka", (("orders", 0), ("orders", 1)))
    (committed,) = group.offsets
    assert (committed.topic, committed.partition, committed.offset) == ("orders", 1, 1)
    with pytest.raises(ottla.KafkaError, match="readers cannot be deleted"):
        broker.delete_group("readers")
    client.close()
    broker.wait_for(group="readers", state="Empty", members=0)
    broker.delete_group("readers")
    assert broker.groups == {}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_sessions_of_a_group_end_at_once_and_the_clock_stays(broker: Broker, protocol: str) -> None:
    client = consumer(broker, protocol)
    client.poll(0)
    broker.wait_for(group="readers", state="Stable", members=1)
    (before,) = broker.groups["readers"].members
    with broker.fail("JoinGroup") as join, broker.fail("ConsumerGroupHeartbeat") as heartbeat:
        join.pause()
        heartbeat.pause()
        broker.clock.freeze()
        now_ms = broker.clock.now_ms
        broker.expire(group="readers")
        broker.wait_for(group="readers", members=0)
        assert broker.clock.now_ms == now_ms
        broker.clock.resume()
    assert before.member_id
    with pytest.raises(ottla.KafkaError, match="no group writers; groups are readers"):
        broker.expire(group="writers")
    client.close()


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (
            {"group": "readers", "state": "Stable", "members": 2},
            "was to be Stable with 2 members within 0.02 s: there is no group readers",
        ),
        (
            {"transactional_id": "payments", "state": "Ongoing"},
            "was to be Ongoing within 0.02 s: there is no transactional id payments",
        ),
        ({"topic": "orders", "records": 1}, "was to have 1 record within 0.02 s: it has 0 records"),
        ({"topic": "none", "records": 1}, "there is no topic none"),
        ({"topic": "orders", "partition": 2, "records": 1}, "it has no partition 2"),
    ],
)
def test_a_wait_in_vain_tells_what_there_is_instead(
    broker: Broker, wanted: dict[str, Any], said: str
) -> None:
    with pytest.raises(TimeoutError) as raised:
        broker.wait_for(timeout_s=0.02, **wanted)
    assert said in str(raised.value)


def test_one_partition_is_told_as_one(broker: Broker) -> None:
    broker.create_topic("prices")
    with pytest.raises(TimeoutError, match=r"it has no partition 1, but 1 partition$"):
        broker.wait_for(topic="prices", partition=1, records=1, timeout_s=0)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({}, "one of"),
        ({"group": "a", "topic": "b"}, "one of"),
        ({"group": "a", "records": 3}, "of a group is its state and members"),
        ({"topic": "a", "state": "Stable"}, "of a topic is its partition and records"),
        ({"transactional_id": "a", "members": 1}, "of a transactional_id is its state"),
    ],
)
def test_what_cannot_be_waited_for_is_an_error(
    broker: Broker, wanted: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        broker.wait_for(**wanted)


def test_records_are_counted_without_markers_and_in_each_partition(broker: Broker) -> None:
    client = transactional(broker)
    client.commit_transaction(PATIENCE_S)
    broker.wait_for(topic="orders", records=1)
    broker.wait_for(topic="orders", partition=1, records=1)
    with pytest.raises(TimeoutError, match="it has 0 records"):
        broker.wait_for(topic="orders", partition=0, records=1, timeout_s=0.01)
    with pytest.raises(TimeoutError, match=r"it has 1 record$"):
        broker.wait_for(topic="orders", records=2, timeout_s=0.01)


def test_coroutines_wait_on_one_thread_while_others_go_on() -> None:
    async def work() -> list[str]:
        told: list[str] = []
        async with Broker(topics=["orders"]) as broker:
            fault = broker.fail("Metadata", observe=True)

            async def wait() -> None:
                await asyncio.gather(
                    broker.wait_for_async(topic="late", records=0),
                    fault.wait_async(0),
                    broker.until_async(lambda core: "late" in core.image.topics),
                )
                told.append("there")

            waiting = asyncio.ensure_future(wait())
            await asyncio.sleep(0)
            told.append("created")
            broker.create_topic("late")
            await waiting
            assert await broker.run_async(lambda core: "late" in core.image.topics)
            with pytest.raises(TimeoutError, match="struck 0 times"):
                await fault.wait_async(1, timeout_s=0.01)
            with pytest.raises(TimeoutError, match="there is no topic never"):
                await broker.wait_for_async(topic="never", records=1, timeout_s=0.01)
        return told

    assert asyncio.run(work()) == ["created", "there"]


def test_whoever_waits_is_told_that_the_broker_has_stopped() -> None:
    broker = Broker().start()
    told: list[BaseException] = []

    def wait() -> None:
        try:
            broker.wait_for(topic="never", records=1, timeout_s=PATIENCE_S)
        except ottla.OttlaError as error:
            told.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    broker.until(lambda _: bool(broker._desk.server._hub.watches._watches))
    broker.stop()
    waiting.join(PATIENCE_S)
    assert ["stopped" in str(error) for error in told] == [True]


def test_an_audit_of_what_clients_have_done_finds_nothing(broker: Broker) -> None:
    assert broker.audit().summary.verdict == "SOUND"
    client = transactional(broker)
    client.abort_transaction(PATIENCE_S)
    audited = broker.audit()
    assert (list(audited.findings), audited.summary.verdict) == ([], "SOUND")
    assert {row["topic"] for row in audited.batches} >= {"orders", "__transaction_state"}
    assert [row["state"] for row in audited.transactions] == ["aborted"]


@pytest.mark.parametrize("process", [False, True])
def test_logs_in_a_directory_are_audited_where_they_are(tmp_path: Path, process: bool) -> None:
    with Broker(topics=["orders"], data=tmp_path / "data", process=process) as broker:
        client = confluent_kafka.Producer(broker.client_config())
        client.produce("orders", b"1")
        assert client.flush(PATIENCE_S) == 0
        audited = broker.audit()
        assert audited.paths == (str(tmp_path / "data"),)
        assert (audited.summary.verdict, audited.summary.findings["error"]) == ("SOUND", 0)
        assert "orders" in {row["topic"] for row in audited.batches}


def test_a_fault_that_was_removed_still_tells_what_it_has_struck(broker: Broker) -> None:
    with broker.fail("ApiVersions", observe=True) as fault:
        client = confluent_kafka.Producer(broker.client_config())
        assert client.list_topics(timeout=PATIENCE_S).topics.keys() == {"orders"}
        fault.wait()
    assert fault.hits >= 1


def test_records_that_were_deleted_do_not_count(broker: Broker) -> None:
    producer = confluent_kafka.Producer(broker.client_config(linger_ms=0, batch_num_messages=1))
    for value in (b"1", b"2", b"3"):
        producer.produce("orders", value, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    wanted = broker._desk.call("wait_for", topic="orders", records=3)
    assert wanted.look() == ""
    broker.run(lambda core: core.plane.delete_records(handle_of(core), 2))
    assert wanted.look() == "it has 1 record"


def handle_of(core: Any) -> int:
    handle: int = core.image.topics["orders"].partitions[0].handle
    return handle


@pytest.mark.parametrize("process", [False, True])
def test_records_of_a_batch_that_were_deleted_are_not_shown(process: bool) -> None:
    values = [b"0", b"1", b"2", b"3", b"4"]
    with Broker(topics=["orders"], process=process) as broker:
        producer = confluent_kafka.Producer(broker.client_config(linger_ms=500))
        for batch in (values[:4], values[4:]):
            for value in batch:
                producer.produce("orders", value, b"k", headers=[("h", b"v")], timestamp=17)
            assert producer.flush(PATIENCE_S) == 0
        whole = broker.records("orders")
        assert [record.value for record in whole] == values
        admin = confluent_kafka.admin.AdminClient(broker.client_config())
        place = confluent_kafka.TopicPartition("orders", 0, 3)
        for deleted in admin.delete_records([place]).values():
            deleted.result(PATIENCE_S)
        found = broker.records("orders")
        assert [(record.offset, record.value) for record in found] == [(3, b"3"), (4, b"4")]
        columns = broker.columns("orders")
        assert columns.offset.tolist() == [3, 4]
        assert columns.timestamp.tolist() == [17, 17]
        assert columns.value_length.tolist() == [1, 1]
        with pytest.raises(TimeoutError, match="it has 2 records"):
            broker.wait_for(topic="orders", records=3, timeout_s=0.1)
        place.offset = -1
        for deleted in admin.delete_records([place]).values():
            deleted.result(PATIENCE_S)
        assert (broker.records("orders"), len(broker.columns("orders"))) == ([], 0)
