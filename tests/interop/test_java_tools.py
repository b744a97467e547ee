"""Kafka's own command-line tools: what they do is done, and what they ask is answered."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from ottla.testing import Broker
from support.java_session import JavaSession, Ran, tool_jars
from support.maven import MissingError
from support.programs import leave_out

pytestmark = pytest.mark.slow

# The newest release whose tools are all in Maven's repository, and the last one before Kafka 4.
NEWEST, OLDER = "4.3.1", "3.9.1"
# Before they were written in Java.
IN_SCALA = {
    "AclCommand": "kafka.admin.AclCommand",
    "BrokerApiVersionsCommand": "kafka.admin.BrokerApiVersionsCommand",
    "ConsoleProducer": "kafka.tools.ConsoleProducer",
}
RULES = {
    "authorizer.class.name": "StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
}


class Tools:
    """The tools of a release, by the names of their classes."""

    def __init__(self, release: str, session: JavaSession) -> None:
        self.is_newest = release == NEWEST
        self._session = session

    def run(self, name: str, *arguments: str, stdin: str = "") -> Ran:
        if not name.startswith("kafka."):
            name = f"org.apache.kafka.tools.{name}"
        if not self.is_newest:
            name = IN_SCALA.get(name.rpartition(".")[2], name)
        return self._session.run(name, *arguments, stdin=stdin)

    def done(self, broker: Broker, name: str, *arguments: str, stdin: str = "") -> str:
        """What a tool that knows `--bootstrap-server` prints when it succeeds."""
        servers = ("--bootstrap-server", broker.bootstrap_servers)
        ran = self.run(name, *servers, *arguments, stdin=stdin)
        assert ran.status == 0, ran.output + ran.errors
        return ran.output

    def refused(self, broker: Broker, name: str, *arguments: str) -> str:
        """What it prints when it fails."""
        ran = self.run(name, "--bootstrap-server", broker.bootstrap_servers, *arguments)
        assert ran.status == 1
        return ran.output + ran.errors


@pytest.fixture(scope="module", params=[NEWEST, OLDER])
def tools(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tools]:
    release = str(request.param)
    classes = tmp_path_factory.mktemp("classes")
    try:
        session = JavaSession(tool_jars(release), classes, start="Tools")
    except MissingError as error:
        leave_out(str(error))
    yield Tools(release, session)
    session.close()


def produce(tools: Tools, broker: Broker, *lines: str) -> None:
    """Sends records with a header and a key: `h:1|k=v`."""
    properties = {"parse.key": "true", "key.separator": "=", "parse.headers": "true"}
    properties["headers.delimiter"] = "|"
    given = [word for pair in properties.items() for word in ("--property", "=".join(pair))]
    text = "".join(f"{line}\n" for line in lines)
    tools.done(broker, "ConsoleProducer", "--topic", "orders", *given, stdin=text)


def consume(tools: Tools, broker: Broker, count: int, *more: str) -> list[str]:
    properties = ("print.key", "print.headers")
    given = [word for name in properties for word in ("--property", f"{name}=true")]
    asked = ("--topic", "orders", "--from-beginning", "--group", "team", *given, *more)
    bounds = ("--max-messages", str(count), "--timeout-ms", "60000")
    printed = tools.done(broker, "consumer.ConsoleConsumer", *asked, *bounds)
    return [line for line in printed.splitlines() if "deprecated" not in line]


def used_partition(broker: Broker) -> int:
    """The one partition that has records: a batch without keys of its own goes to one."""
    (found,) = [number for number in range(3) if broker.records("orders", number)]
    return found


def rows(text: str) -> list[list[str]]:
    """The words of each line that is not empty."""
    return [line.split() for line in text.splitlines() if line.split()]


def test_topics_are_created_described_grown_and_deleted(tools: Tools, broker: Broker) -> None:
    new = ("--topic", "new")
    config = ("--config", "retention.ms=1000")
    tools.done(broker, "TopicCommand", "--create", *new, "--partitions", "2", *config)
    assert tools.done(broker, "TopicCommand", "--list").split() == ["new", "orders"]
    tools.done(broker, "TopicCommand", "--alter", *new, "--partitions", "4")
    described = tools.done(broker, "TopicCommand", "--describe", *new)
    assert "PartitionCount: 4\tReplicationFactor: 1\tConfigs: retention.ms=1000" in described
    assert described.count("Leader: 1\tReplicas: 1\tIsr: 1") == 4
    again = tools.refused(broker, "TopicCommand", "--create", *new)
    assert "Topic 'new' already exists." in again
    tools.done(broker, "TopicCommand", "--delete", *new)
    assert broker.topics == {"orders": 3}


def test_the_console_sends_records_and_a_group_reads_them(tools: Tools, broker: Broker) -> None:
    produce(tools, broker, "h:1|k=a", "h:2|k=b")
    assert [record.value for record in broker.records("orders")] == [b"a", b"b"]
    assert consume(tools, broker, 2) == ["h:1\tk\ta", "h:2\tk\tb"]
    produce(tools, broker, "h:3|k=c")
    by_consumer = ("--consumer-property", "group.protocol=consumer")
    assert consume(tools, broker, 1, *by_consumer) == ["h:3\tk\tc"]
    assert broker.groups["team"].type == "consumer"


def test_groups_are_described_moved_and_deleted(tools: Tools, broker: Broker) -> None:
    produce(tools, broker, "h:1|k=a", "h:2|k=b")
    consume(tools, broker, 2)
    group = "consumer.group.ConsumerGroupCommand"
    assert tools.done(broker, group, "--list").split() == ["team"]
    of_team = ("--group", "team")
    (lag,) = [
        row[3:6]
        for row in rows(tools.done(broker, group, "--describe", *of_team))
        if row[1:2] == ["orders"] and row[3] != "0"
    ]
    assert lag == ["2", "2", "0"]
    state = rows(tools.done(broker, group, "--describe", *of_team, "--state"))
    assert state[-1][-2:] == ["Empty", "0"]
    back = ("--reset-offsets", "--topic", "orders", "--to-earliest", "--execute")
    tools.done(broker, group, *of_team, *back)
    assert {each.offset for each in broker.groups["team"].offsets} == {0}
    tools.done(broker, group, *of_team, "--delete-offsets", "--topic", "orders")
    assert broker.groups["team"].offsets == ()
    tools.done(broker, group, *of_team, "--delete")
    assert "team" not in broker.groups


def test_offsets_are_told_by_time(tools: Tools, broker: Broker) -> None:
    produce(tools, broker, "h:1|k=a", "h:2|k=b")
    partition = used_partition(broker)
    found = {}
    for time in ("latest", "earliest", "max-timestamp", "1"):
        asked = ("--topic-partitions", f"orders:{partition}", "--time", time)
        found[time] = tools.done(broker, "GetOffsetShell", *asked).strip()
    assert found["latest"] == f"orders:{partition}:2"
    assert found["earliest"] == found["1"] == f"orders:{partition}:0"
    newest = max(broker.records("orders"), key=lambda record: record.timestamp)
    assert found["max-timestamp"] in {
        f"orders:{partition}:{newest.offset}",
        f"orders:{partition}:0",
    }


def test_settings_quotas_and_users_are_altered_and_described(tools: Tools, broker: Broker) -> None:
    config = "kafka.admin.ConfigCommand"
    cases = [
        ("topics", "orders", "retention.ms=60000", "retention.ms=60000"),
        ("clients", "billing", "producer_byte_rate=1000", "producer_byte_rate=1000.0"),
        ("users", "alice", "SCRAM-SHA-256=[password=secret]", "SCRAM-SHA-256=iterations=4096"),
        ("brokers", "1", "log.retention.ms=5000", "log.retention.ms=5000"),
    ]
    for kind, name, given, told in cases:
        entity = ("--entity-type", kind, "--entity-name", name)
        tools.done(broker, config, "--alter", *entity, "--add-config", given)
        assert told in tools.done(broker, config, "--describe", *entity), kind
    topic = ("--entity-type", "topics", "--entity-name", "orders")
    tools.done(broker, config, "--alter", *topic, "--delete-config", "retention.ms")
    assert "retention.ms" not in tools.done(broker, config, "--describe", *topic)
    wrong = tools.refused(broker, config, "--alter", *topic, "--add-config", "retention.ms=soon")
    assert "retention.ms" in wrong


def test_rules_are_added_listed_and_removed(tools: Tools) -> None:
    with Broker(topics=["orders"], config=RULES) as broker:
        rule = ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders")
        tools.done(broker, "AclCommand", "--add", *rule)
        listed = tools.done(broker, "AclCommand", "--list")
        assert "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)" in listed
        tools.done(broker, "AclCommand", "--remove", "--force", *rule)
        assert "alice" not in tools.done(broker, "AclCommand", "--list")


def test_records_are_deleted_and_the_directory_is_described(
    tools: Tools, broker: Broker, tmp_path: Path
) -> None:
    produce(tools, broker, "h:1|k=a", "h:2|k=b")
    partition = used_partition(broker)
    given = tmp_path / "offsets.json"
    wanted = {"topic": "orders", "partition": partition, "offset": 1}
    given.write_text(json.dumps({"partitions": [wanted], "version": 1}))
    told = tools.done(broker, "DeleteRecordsCommand", "--offset-json-file", str(given))
    assert f"partition: orders-{partition}\tlow_watermark: 1" in told
    earliest = ("--topic-partitions", f"orders:{partition}", "--time", "earliest")
    assert tools.done(broker, "GetOffsetShell", *earliest) == f"orders:{partition}:1\n"
    told = tools.done(broker, "LogDirsCommand", "--describe", "--topic-list", "orders")
    (directory,) = json.loads(told.splitlines()[-1])["brokers"][0]["logDirs"]
    sizes = {each["partition"]: each["size"] for each in directory["partitions"]}
    assert sizes.keys() == {"orders-0", "orders-1", "orders-2"}
    assert [name for name, size in sizes.items() if size] == [f"orders-{partition}"]


def test_the_cluster_tells_who_it_is(tools: Tools, broker: Broker) -> None:
    servers = broker.bootstrap_servers
    features = tools.done(broker, "FeatureCommand", "describe")
    for feature, level in (("group.version", 1), ("transaction.version", 2)):
        assert re.search(rf"Feature: {feature}\s.*FinalizedVersionLevel: {level}\b", features)
    status = tools.done(broker, "MetadataQuorumCommand", "describe", "--status")
    assert re.search(r"LeaderId: +1\n", status)
    assert servers in status
    (_, leader) = rows(tools.done(broker, "MetadataQuorumCommand", "describe", "--replication"))
    assert (leader[0], leader[-1]) == ("1", "Leader")
    (cluster,) = re.findall(r"ClusterId: +(\S+)", status)
    told = tools.run("ClusterTool", "cluster-id", "--bootstrap-server", servers)
    assert told.output == f"Cluster ID: {cluster}\n"
    apis = tools.done(broker, "BrokerApiVersionsCommand")
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: \d+\]", apis)
    assert "GetTelemetrySubscriptions(71): UNSUPPORTED" in apis


def test_transactions_are_copied_listed_and_described(tools: Tools, broker: Broker) -> None:
    broker.create_topic("copies", 3)
    produce(tools, broker, *[f"h:{n}|k={n}" for n in range(20)])
    partition = used_partition(broker)
    options = {
        "--broker-list": broker.bootstrap_servers,
        "--input-topic": "orders",
        "--input-partition": str(partition),
        "--output-topic": "copies",
        "--transactional-id": "copier",
        "--consumer-group": "copiers",
        "--transaction-size": "5",
        "--max-messages": "20",
    }
    given = [word for pair in options.items() for word in pair]
    copied = tools.run("TransactionalMessageCopier", *given)
    assert copied.status == 0, copied.errors
    assert json.loads(copied.output.splitlines()[-1])["consumed"] == 20
    assert len(broker.records("copies")) == 20
    (committed,) = broker.groups["copiers"].offsets
    assert committed.offset == 20
    (_, listed) = rows(tools.done(broker, "TransactionsCommand", "list"))
    assert (listed[0], listed[-1]) == ("copier", "CompleteCommit")
    told = tools.done(broker, "TransactionsCommand", "describe", "--transactional-id", "copier")
    assert "CompleteCommit" in told
    of_copies = ("--topic", "copies", "--partition", str(partition))
    producers = rows(tools.done(broker, "TransactionsCommand", "describe-producers", *of_copies))
    assert [row[-1] for row in producers[1:]] == ["None"]
    hanging = rows(tools.done(broker, "TransactionsCommand", "find-hanging", "--broker-id", "1"))
    assert len(hanging) == 1


def test_measurements_run_to_their_end(tools: Tools, broker: Broker) -> None:
    servers = broker.bootstrap_servers
    load = ("--topic", "orders", "--num-records", "500", "--record-size", "100")
    reached = ("--throughput", "-1", "--producer-props", f"bootstrap.servers={servers}")
    assert "500 records sent" in tools.run("ProducerPerformance", *load, *reached).output
    in_transactions = ("--transactional-id", "load", "--transaction-duration-ms", "20")
    told = tools.run("ProducerPerformance", *load, *reached, *in_transactions).output
    assert "500 records sent" in told
    assert len(broker.records("orders")) == 1000
    count = "--num-records" if tools.is_newest else "--messages"
    reading = ("--topic", "orders", count, "1000", "--timeout", "60000")
    measured = tools.done(broker, "ConsumerPerformance", *reading).splitlines()[-1].split(", ")
    assert measured[4] == "1000"
    there_and_back = [servers, "orders", "10", "all", "50"]
    if tools.is_newest:
        names = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size")
        named = zip(names, there_and_back, strict=True)
        there_and_back = [word for name, value in named for word in (f"--{name}", value)]
    assert "Percentiles" in tools.run("EndToEndLatency", *there_and_back).output


def test_a_verifiable_producer_gets_every_record_stored(tools: Tools, broker: Broker) -> None:
    wanted = ("--topic", "orders", "--max-messages", "50", "--acks", "-1")
    tools.done(broker, "VerifiableProducer", *wanted)
    broker.wait_for(topic="orders", records=50)
    assert {record.value for record in broker.records("orders")} == {b"%d" % n for n in range(50)}


def test_the_one_replica_is_elected_and_needs_no_move(
    tools: Tools, broker: Broker, tmp_path: Path
) -> None:
    election = ("--election-type", "preferred", "--topic", "orders", "--partition", "0")
    told = tools.done(broker, "LeaderElectionCommand", *election)
    assert "Valid replica already elected for partitions orders-0" in told
    move = tmp_path / "move.json"
    move.write_text(json.dumps({"topics": [{"topic": "orders"}], "version": 1}))
    plan = ("--generate", "--topics-to-move-json-file", str(move), "--broker-list", "1")
    assert '"replicas":[1]' in tools.done(broker, "reassign.ReassignPartitionsCommand", *plan)
    moving = tools.done(broker, "reassign.ReassignPartitionsCommand", "--list")
    assert moving == "No partition reassignments found.\n"


def test_what_is_not_there_is_refused_and_not_pretended(
    tools: Tools, broker: Broker, tmp_path: Path
) -> None:
    metrics = ("--alter", "--name", "all", "--metrics", "org.apache", "--interval", "1000")
    assert "Unknown resource type 16" in tools.refused(broker, "ClientMetricsCommand", *metrics)
    nobody = tmp_path / "client.properties"
    nobody.write_text("")
    tokens = ("--describe", "--command-config", str(nobody))
    refused = tools.refused(broker, "DelegationTokenCommand", *tokens)
    assert "does not support DESCRIBE_DELEGATION_TOKEN" in refused
