"""What a broker counts: true, under Kafka's names, and never more than a bound."""

import re
import subprocess
import sys

import pytest
from ottla.broker import measured as measured_module
from ottla.broker.measured import MAX_SOFTWARE, measured
from ottla.broker.meters import COUNTER, GAUGE, Family, Sample, exposition
from ottla.broker.storage import STORAGE
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ottla.records import NewRecord, build_batch
from support.wire_client import Peer, WireClient, new_broker

Broker = type(new_broker())


def values(broker: object, name: str) -> dict[tuple[str, ...], float]:
    """The samples of a family, by the values of their labels."""
    assert isinstance(broker, Broker)
    (family,) = [each for each in measured(broker) if each.name == name]
    return {tuple(value for _, value in each.labels): each.value for each in family.samples}


def create(client: WireClient, *names: str, partitions: int = 1) -> None:
    topics = [
        CreatableTopic(name=n, num_partitions=partitions, replication_factor=1) for n in names
    ]
    answer = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)
    assert [topic.error_code for topic in answer.topics] == [0] * len(names)


def produce(client: WireClient, topic: str, count: int, index: int = 0) -> int:
    batch = build_batch([NewRecord(b"x", timestamp=client.now_ms)] * count)
    data = PartitionProduceData(index=index, records=batch)
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    answer = client.ask(request, 9)
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


def test_records_logs_requests_and_errors_are_counted_under_kafkas_names() -> None:
    broker = new_broker()
    client = WireClient(broker)
    create(client, "orders", partitions=2)
    assert [produce(client, "orders", 3), produce(client, "orders", 2)] == [0, 0]
    assert produce(client, "nothing", 1) == 3
    assert values(broker, "kafka_server_brokertopicmetrics_messagesin_total") == {(): 5}
    assert values(broker, "kafka_network_requestmetrics_requests_total") == {
        ("CreateTopics", "7"): 1,
        ("Produce", "9"): 3,
    }
    assert values(broker, "kafka_network_requestmetrics_errors_total") == {
        ("NONE", "CreateTopics"): 1,
        ("NONE", "Produce"): 2,
        ("UNKNOWN_TOPIC_OR_PARTITION", "Produce"): 1,
    }
    assert values(broker, "kafka_log_log_logendoffset") == {("0", "orders"): 5, ("1", "orders"): 0}
    assert values(broker, "kafka_log_log_size")["0", "orders"] > 100
    assert values(broker, "kafka_controller_kafkacontroller_globalpartitioncount") == {(): 2}


def test_an_error_of_one_partition_of_a_fetch_is_counted_and_remembered() -> None:
    broker = new_broker()
    client = WireClient(broker)
    create(client, "orders")
    produce(client, "orders", 3)
    for offset in (0, 9):
        asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
        topics = [FetchTopic(topic="orders", partitions=[asked])]
        client.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), 4)
    entries = [each for each in broker.journal.entries() if each.api == "Fetch"]
    assert [each.errors for each in entries] == [(), (1,)]
    counted = values(broker, "kafka_network_requestmetrics_errors_total")
    assert counted["NONE", "Fetch"] == counted["OFFSET_OUT_OF_RANGE", "Fetch"] == 1


def test_the_lag_of_a_group_is_what_it_has_not_read_yet() -> None:
    broker = new_broker()
    client = WireClient(broker)
    create(client, "orders")
    produce(client, "orders", 5)
    assert values(broker, "kafka_consumergroup_lag") == {}
    committed = OffsetCommitRequestPartition(partition_index=0, committed_offset=2)
    topics = [OffsetCommitRequestTopic(name="orders", partitions=[committed])]
    client.ask(OffsetCommitRequest(group_id="readers", topics=topics), 8)
    assert values(broker, "kafka_consumergroup_current_offset") == {("readers", "0", "orders"): 2}
    assert values(broker, "kafka_consumergroup_lag") == {("readers", "0", "orders"): 3}
    name = "kafka_coordinator_group_groupmetadatamanager_numoffsets"
    assert values(broker, name) == {(): 1}


def test_a_log_directory_that_is_offline_is_counted() -> None:
    broker = new_broker()
    name = "kafka_log_logmanager_offlinelogdirectorycount"
    assert values(broker, name) == {(): 0}
    broker.wrong[STORAGE] = "/data is offline"
    assert values(broker, name) == {(): 1}


def named(client: WireClient, name: str, version: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    client.ask(request, 3)


def test_connections_are_told_apart_by_what_clients_say_they_are_until_they_are_gone() -> None:
    broker = new_broker()
    clients = [WireClient(broker, peer=Peer(listener="OUTSIDE")) for _ in range(3)]
    named(clients[0], "librdkafka", "2.4.0")
    named(clients[1], "librdkafka", "2.4.0")
    name = "kafka_server_socket_server_metrics_connections"
    assert values(broker, name) == {
        ("librdkafka", "2.4.0", "OUTSIDE", "0"): 2,
        ("unknown", "unknown", "OUTSIDE", "0"): 1,
    }
    named(clients[0], "kgo", "1.0")
    broker.disconnect(clients[1].connection)
    assert values(broker, name) == {
        ("kgo", "1.0", "OUTSIDE", "0"): 1,
        ("unknown", "unknown", "OUTSIDE", "0"): 1,
    }


def test_the_gauge_of_connected_clients_has_kafkas_tags_in_kafkas_order() -> None:
    broker = new_broker()
    named(WireClient(broker), "kgo", "1.0")
    name = "kafka_server_socket_server_metrics_connections"
    (family,) = [each for each in measured(broker) if each.name == name]
    (sample,) = family.samples
    assert [tag for tag, _ in sample.labels] == [
        "clientSoftwareName",
        "clientSoftwareVersion",
        "listener",
        "networkProcessor",
    ]


def test_software_beyond_the_bound_is_counted_and_not_told_apart() -> None:
    broker = new_broker()
    for number in range(MAX_SOFTWARE + 5):
        named(WireClient(broker), "client", f"1.{number}")
    named(WireClient(broker), "client", "1.0")
    found = values(broker, "kafka_server_socket_server_metrics_connections")
    assert len(found) == MAX_SOFTWARE
    assert found["client", "1.0", "PLAINTEXT", "0"] == 2
    assert values(broker, "ottla_connections_of_other_software") == {(): 5}


def test_partitions_beyond_the_bound_are_counted_and_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measured_module, "MAX_SAMPLES", 5)
    broker = new_broker()
    create(WireClient(broker), "a", "b", "c", partitions=3)
    assert len(values(broker, "kafka_log_log_size")) == 5
    assert values(broker, "ottla_partitions_left_out") == {(): 4}


LINE = re.compile(
    r"# (HELP|TYPE) [a-z_0-9]+ .+|"
    r'[a-z_0-9]+(\{([A-Za-z]+="([^"\\\n]|\\["\\n])*",?)+\})? -?[0-9.e+]+'
)


def test_a_page_has_a_help_and_a_type_for_each_family_and_names_none_twice() -> None:
    broker = new_broker()
    create(WireClient(broker), "orders")
    families = list(measured(broker))
    page = exposition(families)
    assert [line for line in page.splitlines() if not LINE.fullmatch(line)] == []
    assert page.endswith("\n")
    names = [family.name for family in families]
    assert len(set(names)) == len(names)
    assert page.count("# TYPE ") == page.count("# HELP ") == len(names)
    for family in families:
        assert (family.kind == COUNTER) is family.name.endswith("_total")


def test_text_of_clients_stays_within_its_quotes_and_no_terminal_obeys_it() -> None:
    family = Family("lag", GAUGE, "Lag.", [Sample((("group", 'a"b\\c\nd\x1b[2J'),), 1)])
    line = exposition([family]).splitlines()[2]
    assert line == 'lag{group="a\\"b\\\\c\\\\x0ad\\\\x1b[2J"} 1'


def test_what_a_page_leaves_out_of_a_family_it_counts() -> None:
    samples = [Sample((("n", str(number)),), number) for number in range(12)]
    page = exposition([Family("numbers", GAUGE, "Some.", samples)], max_samples=10)
    assert page.count("\nnumbers{") == 10
    assert page.endswith('ottla_samples_left_out{name="numbers"} 2\n')


def test_a_broker_that_nobody_watches_loads_nothing_for_it() -> None:
    program = (
        "import sys; from ottla.testing import Broker; Broker().start().stop(); "
        "watching = {'json', 'ottla.text', 'ottla.broker.measured', 'ottla.broker.request_log', "
        "'ottla.broker.loggable', 'ottla.broker.principals', 'ottla.net.http', 'ottla.net.site', "
        "'ottla.net.metrics', 'ottla.net.tls', 'ssl'}; print(watching & set(sys.modules))"
    )
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "set()\n"
