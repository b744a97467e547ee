"""Kafka's own clients in Java: what they send is stored, and what is stored they receive."""

from collections.abc import Iterator

import pytest
from ottla.testing import Broker
from support.java_session import JavaSession, client_jars
from support.maven import MissingError
from support.programs import leave_out

pytestmark = pytest.mark.slow

# The newest release, and the last one before Kafka 4.
NEWEST, OLDER = "4.4.0", "3.9.1"


@pytest.fixture(scope="module", params=[NEWEST, OLDER])
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def java(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaSession]:
    names = ("Clients", "Patterns") if release == NEWEST else ("Clients",)
    try:
        session = JavaSession(client_jars(release), tmp_path_factory.mktemp("classes"), *names)
    except MissingError as error:
        leave_out(str(error))
    yield session
    session.close()


def lines(java: JavaSession, broker: Broker, scenario: str, given: str = "") -> list[str]:
    """What a scenario of `Clients.java` prints."""
    ran = java.run("Clients", scenario, broker.bootstrap_servers, given)
    assert ran.status == 0, ran.errors
    return ran.output.splitlines()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_codec_arrive_with_keys_headers_and_timestamps(
    java: JavaSession, broker: Broker, codec: str
) -> None:
    assert lines(java, broker, "codec", codec) == []
    stored = broker.records("orders", 0)
    assert [record.value for record in stored] == [b"value %d " % n * 20 for n in range(100)]
    assert {record.key for record in stored} == {b"key"}
    assert stored[3].timestamp == 1_700_000_000_003
    (name,) = {entry.software_name for entry in broker.requests}
    assert name == "apache-kafka-java"


def test_an_idempotent_producer_that_is_cut_off_stores_each_record_once(
    java: JavaSession, broker: Broker
) -> None:
    cut = broker.fail("Produce", disconnect=True, after=True, times=1)
    assert lines(java, broker, "idempotent") == ["0", "1"]
    assert cut.hits == 1
    assert [record.value for record in broker.records("orders", 0)] == [b"0", b"1"]


def test_committed_readers_get_what_was_committed_and_the_others_all(
    java: JavaSession, broker: Broker
) -> None:
    assert lines(java, broker, "transactions") == [
        "read_committed [a, c]",
        "read_uncommitted [a, b, c]",
    ]


def test_a_second_producer_of_a_transactional_id_fences_the_first(
    java: JavaSession, broker: Broker
) -> None:
    assert lines(java, broker, "fenced") == ["ProducerFencedException"]


def test_offsets_are_committed_with_a_transaction_or_not_at_all(
    java: JavaSession, broker: Broker
) -> None:
    assert lines(java, broker, "offsets-in-transactions") == ["2", "2"]


def test_offsets_are_found_by_time_and_at_both_ends(java: JavaSession, broker: Broker) -> None:
    assert lines(java, broker, "times") == ["0", "3", "none", "0", "5"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_of_a_group_share_the_partitions_and_go_on_behind_each_other(
    java: JavaSession, broker: Broker, protocol: str
) -> None:
    found = lines(java, broker, "group", protocol)
    assert found == ["shared", "taken back", "[later0, later1, later2]"]
    assert broker.groups["team"].type == protocol


# In the words of the client, which are the same in both releases.
SIBLING = (
    "KafkaException: Failed to append record because it was part of a batch which had one "
    "more more invalid records"
)


@pytest.mark.parametrize("culprits", ["1", "03", "0123"])
def test_each_refused_record_is_told_in_its_own_words_and_its_siblings_in_others(
    java: JavaSession, broker: Broker, culprits: str
) -> None:
    broker.create_topic("compacted", cleanup_policy="compact")
    own = "InvalidRecordException: record {}: no key, but the topic is compacted"
    assert lines(java, broker, "refused", culprits) == [
        own.format(index) if str(index) in culprits else SIBLING for index in range(4)
    ]
    assert broker.records("compacted") == []


# The client sends them from Kafka 4.0 on.
SENDS_EXPRESSIONS = pytest.mark.parametrize("release", [NEWEST], indirect=True, scope="module")


def test_a_record_that_is_too_large_for_its_topic_is_told_and_the_others_are_stored(
    java: JavaSession, broker: Broker
) -> None:
    broker.create_topic("small", max_message_bytes=1000)
    told = lines(java, broker, "too-large")
    assert told == [
        "0",
        "RecordTooLargeException: batch of 2071 bytes, expected at most 1000 (max.message.bytes)",
        "1",
    ]


@SENDS_EXPRESSIONS
@pytest.mark.parametrize(
    ("expression", "topics"), [("ord.*", "[orders]"), ("(orders|prices)", "[orders, prices]")]
)
def test_topics_are_found_by_a_regular_expression_that_the_broker_evaluates(
    java: JavaSession, broker: Broker, expression: str, topics: str
) -> None:
    broker.create_topic("prices")
    ran = java.run("Patterns", broker.bootstrap_servers, expression)
    assert ran.output == f"{topics}\n", ran.errors


@SENDS_EXPRESSIONS
def test_a_regular_expression_that_is_none_is_refused(java: JavaSession, broker: Broker) -> None:
    ran = java.run("Patterns", broker.bootstrap_servers, "ord[")
    assert "ord[" in ran.output, ran.errors
