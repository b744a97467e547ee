"""The log of requests: every one of them, in Kafka's forms, and nothing that nobody should read."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from ottla.broker.broker import Broker
from ottla.broker.loggable import MAX_STRUCTS, MAX_TEXT, loggable
from ottla.broker.request_log import JSON, TEXT, RequestLog
from ottla.broker.storage import Storage
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from ottla.records import NewRecord, build_batch
from support.wire_client import Peer, WireClient, new_broker


class Home:
    """A broker with a log, and a clock that a test moves."""

    def __init__(self, form: str = JSON, **config: str) -> None:
        self.lines: list[str] = []
        self.now_us = 5_000_000
        self.broker = new_broker({name.replace("_", "."): text for name, text in config.items()})
        self.broker.request_log = RequestLog(
            form, elapsed_us=lambda: self.now_us, write=self.lines.append
        )

    def client(self, client_id: str = "test", protocol: str = "PLAINTEXT") -> WireClient:
        client = WireClient(self.broker, client_id, Peer("127.0.0.1", protocol, protocol))
        client.connection.connection_id = "127.0.0.1:9092-127.0.0.1:5000-1"
        return client

    def last(self) -> Any:
        assert "\n" not in self.lines[-1]
        return json.loads(self.lines[-1])


def produce(acks: int = -1) -> ProduceRequest:
    batch = build_batch([NewRecord(b"key", b"what nobody shall read", timestamp=1)])
    data = TopicProduceData(
        name="orders", partition_data=[PartitionProduceData(index=0, records=batch)]
    )
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[data])


def test_a_line_of_json_has_the_fields_of_kafkas() -> None:
    home = Home()
    client = home.client()
    request = ApiVersionsRequest(client_software_name="kgo", client_software_version="1.2")
    client.ask(request, 3)
    line = home.last()
    answered = line.pop("response")
    assert (answered["errorCode"], answered["apiKeys"][0]["apiKey"]) == (0, 0)
    assert line == {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": 18,
            "requestApiVersion": 3,
            "correlationId": 1,
            "clientId": "test",
            "requestApiKeyName": "API_VERSIONS",
        },
        "request": {"clientSoftwareName": "kgo", "clientSoftwareVersion": "1.2"},
        "connection": "127.0.0.1:9092-127.0.0.1:5000-1",
        "totalTimeMs": 0.0,
        "requestQueueTimeMs": 0.0,
        "localTimeMs": 0.0,
        "remoteTimeMs": 0.0,
        "throttleTimeMs": 0,
        "responseQueueTimeMs": 0.0,
        "sendTimeMs": 0.0,
        "securityProtocol": "PLAINTEXT",
        "principal": "User:ANONYMOUS",
        "listener": "PLAINTEXT",
        "clientInformation": {"softwareName": "kgo", "softwareVersion": "1.2"},
    }


def test_a_line_of_text_is_kafkas_and_ends_with_what_the_client_says_it_is() -> None:
    home = Home(TEXT)
    client = home.client()
    request = ApiVersionsRequest(
        client_software_name="apache-kafka-java", client_software_version="2.4.0"
    )
    client.ask(request, 3)
    client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="a")]), 4)
    assert home.lines[-1].startswith(
        "Completed request:RequestHeader(apiKey=METADATA, apiVersion=4, clientId=test, "
        "correlationId=2) -- {topics=[{name=a}],allowAutoTopicCreation=true},response:{"
    )
    assert home.lines[-1].endswith(
        " from connection 127.0.0.1:9092-127.0.0.1:5000-1;totalTime:0.0,requestQueueTime:0.0,"
        "localTime:0.0,remoteTime:0.0,throttleTime:0,responseQueueTime:0.0,sendTime:0.0,"
        "securityProtocol:PLAINTEXT,principal:User:ANONYMOUS,listener:PLAINTEXT,"
        "clientInformation:ClientInformation(softwareName=apache-kafka-java, softwareVersion=2.4.0)"
    )


def test_contents_of_records_are_not_in_it_whether_they_are_produced_or_fetched() -> None:
    home = Home()
    client = home.client()
    client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 4)
    client.ask(produce(), 9)
    size = len(produce().topic_data[0].partition_data[0].records or b"")
    partition = home.last()["request"]["topicData"][0]["partitionData"][0]
    assert partition == {"index": 0, "recordsSizeInBytes": size}
    wanted = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="orders", partitions=[wanted])
    client.ask(FetchRequest(min_bytes=1, max_bytes=1 << 20, topics=[topic]), 11)
    answered = home.last()["response"]["responses"][0]["partitions"][0]
    assert answered["recordsSizeInBytes"] == size
    assert "nobody" not in "".join(home.lines)


def test_a_request_without_an_answer_has_a_line() -> None:
    home = Home()
    client = home.client()
    client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 4)
    client.send(produce(acks=0), 9)
    line = home.last()
    assert (line["requestHeader"]["requestApiKeyName"], line["response"]) == ("PRODUCE", None)


def test_a_version_that_is_not_served_has_a_line() -> None:
    home = Home()
    client = home.client()
    header = b"\0\x12\0\x63\0\0\0\7\0\4test\0"
    client.broker.handle(client.connection, header, client.now_ms, lambda _: None)
    line = home.last()
    assert line["response"]["errorCode"] == 35
    assert line["requestHeader"]["clientId"] == "test"


def test_times_are_those_of_the_broker_and_of_what_a_request_waited_for() -> None:
    home = Home()
    client = home.client()
    client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 4)
    wanted = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="orders", partitions=[wanted])
    fetch = FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=1 << 20, topics=[topic])
    pending = client.send(fetch, 11)
    assert pending.frames == []
    home.now_us += 12_345
    client.advance(100)
    assert pending.is_answered
    line = home.last()
    times = [line[name] for name in ("totalTimeMs", "localTimeMs", "remoteTimeMs")]
    assert times == [12.345, 0.0, 12.345]


class SlowDisk(Storage):
    """Has every answer wait until a test lets it leave."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker.plane)
        self.held: list[Callable[[bool], None]] = []

    def must_hold(self, _api_key: int) -> bool:
        return True

    def hold(self, release: Callable[[bool], None]) -> None:
        self.held.append(release)


@pytest.mark.parametrize("may_leave", [True, False])
def test_what_an_answer_waits_for_the_disk_is_told_when_it_leaves(may_leave: bool) -> None:
    home = Home()
    client = home.client()
    client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 4)
    home.broker.storage = disk = SlowDisk(home.broker)
    pending = client.send(produce(), 9)
    assert (pending.frames, len(home.lines)) == ([], 1)
    home.now_us += 7_000
    disk.held.pop()(may_leave)
    assert [frame is not None for frame in pending.frames] == [may_leave]
    line = home.last()
    names = ("totalTimeMs", "localTimeMs", "remoteTimeMs", "responseQueueTimeMs")
    assert [line[name] for name in names] == [7.0, 0.0, 0.0, 7.0]
    assert (line["response"] is not None) == may_leave


@pytest.mark.parametrize("form", [TEXT, JSON])
def test_secrets_are_in_no_line(form: str) -> None:
    word = "open sesame"
    home = Home(form, sasl_jaas_config=f'M required user_ann="{word}";')
    client = home.client(protocol="SASL_PLAINTEXT")
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    client.ask(SaslAuthenticateRequest(auth_bytes=f"\0ann\0{word}".encode()), 2)
    upsertion = ScramCredentialUpsertion(
        name="bob", mechanism=1, iterations=4096, salt=b"salt of bob", salted_password=b"sesame"
    )
    client.ask(AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0)
    configs = [
        AlterableConfig(name="ssl.key.password", config_operation=0, value=word),
        AlterableConfig(name="ssl.no.such.password", config_operation=0, value=word),
        AlterableConfig(name="num.partitions", config_operation=0, value="17"),
    ]
    resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=configs)
    client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    text = "\n".join(home.lines)
    assert len(home.lines) == 4
    assert "sesame" not in text
    assert "salt of" not in text
    assert text.count("[hidden]") == 2
    assert "17" in home.lines[-1]


@pytest.mark.parametrize("form", [TEXT, JSON])
def test_no_terminal_obeys_what_a_client_is_called_and_a_line_is_one_line(form: str) -> None:
    home = Home(form)
    client = home.client(client_id="a\n\x1b[2J\u202eb\x9b")
    client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="\x1b]0;x\x07\r\n")]), 4)
    (line,) = home.lines
    assert line.isprintable()


def test_what_is_too_much_is_counted_and_left_out() -> None:
    topics = [CreatableTopic(name="x" * (MAX_TEXT + 1)) for _ in range(MAX_STRUCTS + 7)]
    shown = loggable(CreateTopicsRequest(topics=topics), 7)["topics"]
    assert len(shown) == MAX_STRUCTS + 1
    assert shown[-1] == "7 more"
    assert shown[0]["name"].endswith("x… and 1 more characters")
    nested = [FetchTopic(topic="a", partitions=[FetchPartition()] * 400) for _ in range(2)]
    first, second = loggable(FetchRequest(topics=nested), 11)["topics"]
    assert len(first["partitions"]) == 400
    assert second["partitions"][-1] == "302 more"


def test_a_broker_without_a_log_remembers_no_request() -> None:
    broker = new_broker()
    client = WireClient(broker)
    client.ask(MetadataRequest(topics=[]), 4)
    assert broker.request_log is None
