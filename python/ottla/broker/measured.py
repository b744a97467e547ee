"""Everything that a broker can tell in numbers, at one moment.

A row of `_PLANE`, or a function of `_PARTS`, is a subject; to meter something else, add one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.meters import COUNTER, GAUGE, MAX_SAMPLES, Family, Sample
from ottla.broker.storage import STORAGE
from ottla.protocol.error_code import name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ottla.broker.broker import Broker
    from ottla.broker.groups.coordinator import GroupCoordinator

__all__ = ["MAX_SOFTWARE", "measured"]

MAX_SOFTWARE: Final = 100
"""Names and versions of client software that are told apart, as Kafka's own bound (KIP-511)."""

_TOPICS: Final = "kafka_server_brokertopicmetrics_"
_TOPICS_OF_TEXT: Final = "kafka_server_brokertopicstats_"
"""The group that the text of KIP-467 has its meters in; Kafka shipped them in the other."""

_PLANE: Final = {
    "MessagesInPerSec": "Records of accepted record sets.",
    "BytesInPerSec": "Bytes of accepted record sets, as they were received.",
    "BytesRejectedPerSec": "Bytes of record sets refused for their size.",
    "TotalProduceRequestsPerSec": "Attempts to append to a partition.",
    "FailedProduceRequestsPerSec": "Those of them that were refused.",
    "ProduceMessageConversionsPerSec": "Records that were written anew.",
    "NoKeyCompactedTopicRecordsPerSec": "Records without a key for a compacted topic (KIP-467).",
    "InvalidMagicNumberRecordsPerSec": "Records of a wrong magic number (KIP-467).",
    "InvalidMessageCrcRecordsPerSec": "Batches and records of a wrong checksum (KIP-467).",
    "InvalidOffsetOrSequenceRecordsPerSec": "Batches of impossible offsets or sequences.",
    "NonIncreasingOffsetRecordsPerSec": "Batches of impossible offsets (KIP-467).",
}
"""Meters of the data plane, by Kafka's names."""

_INVALID_RECORDS: Final = (
    "NoKeyCompactedTopicRecordsPerSec",
    "InvalidMagicNumberRecordsPerSec",
    "InvalidMessageCrcRecordsPerSec",
    "InvalidOffsetOrSequenceRecordsPerSec",
    "NonIncreasingOffsetRecordsPerSec",
)
"""Those of them that count refused records by reason: in both groups."""

NO_NETWORK_PROCESSOR: Final = "0"
"""Kafka has several, each with its own numbers; here is one thread."""


def measured(broker: Broker) -> Iterator[Family]:
    """Yields all families of a broker."""
    for part in _PARTS:
        yield from part(broker)


def _plane(broker: Broker) -> Iterator[Family]:
    counted = broker.plane.metrics()
    for name, text in _PLANE.items():
        exported = f"{name.removesuffix('PerSec').lower()}_total"
        sample = Sample((), counted[name])
        yield Family(f"{_TOPICS}{exported}", COUNTER, text, [sample])
        if name in _INVALID_RECORDS:
            yield Family(f"{_TOPICS_OF_TEXT}{exported}", COUNTER, text, [sample])


def _requests(broker: Broker) -> Iterator[Family]:
    titles = {api.name: api.title for api in broker.apis.values()}
    yield Family(
        "kafka_network_requestmetrics_requests_total",
        COUNTER,
        "Requests that were answered, by API and version.",
        [
            Sample((("request", titles[name]), ("version", str(version))), count)
            for (name, version), count in sorted(broker.meters.requests().items())
        ],
    )
    yield Family(
        "kafka_network_requestmetrics_errors_total",
        COUNTER,
        "Answers by API and by each error in them.",
        [
            Sample((("error", name_of(error)), ("request", titles[name])), count)
            for (name, error), count in sorted(broker.meters.errors().items())
        ],
    )


def _clients(broker: Broker) -> Iterator[Family]:
    """Open connections, and by which software (KIP-511)."""
    by_listener: dict[str, int] = {}
    by_software: dict[tuple[str, str, str], int] = {}
    left_out = 0
    # In the order in which they came: who is told stays so while others come and go.
    for connection in broker.connections:
        listener = connection.listener
        by_listener[listener] = by_listener.get(listener, 0) + 1
        key = (connection.software_name, connection.software_version, listener)
        if key in by_software:
            by_software[key] += 1
        elif len(by_software) < MAX_SOFTWARE:
            by_software[key] = 1
        else:
            left_out += 1
    yield Family(
        "kafka_server_socket_server_metrics_connection_count",
        GAUGE,
        "Open connections.",
        [
            Sample((("listener", name), ("networkProcessor", NO_NETWORK_PROCESSOR)), count)
            for name, count in by_listener.items()
        ],
    )
    yield Family(
        "kafka_server_socket_server_metrics_connections",
        GAUGE,
        "Open connections by what the clients say they are (KIP-511).",
        [
            Sample(
                (
                    ("clientSoftwareName", name),
                    ("clientSoftwareVersion", version),
                    ("listener", listener),
                    ("networkProcessor", NO_NETWORK_PROCESSOR),
                ),
                count,
            )
            for (name, version, listener), count in by_software.items()
        ],
    )
    yield Family(
        "ottla_connections_of_other_software",
        GAUGE,
        f"Open connections of software beyond the first {MAX_SOFTWARE} that are told apart.",
        [Sample((), left_out)],
    )


def _logs(broker: Broker) -> Iterator[Family]:
    topics = broker.image.topics.values()
    partitions = sum(len(topic.partitions) for topic in topics)
    offline = int(STORAGE in broker.wrong)
    numbers = (
        (
            "kafka_log_logmanager_offlinelogdirectorycount",
            "Log directories that cannot be used any more.",
            offline,
        ),
        ("kafka_server_kafkaserver_brokerstate", "The broker's state: 3 is running.", 3),
        ("kafka_controller_kafkacontroller_globaltopiccount", "Topics.", len(topics)),
        ("kafka_controller_kafkacontroller_globalpartitioncount", "Partitions.", partitions),
        ("kafka_server_replicamanager_partitioncount", "Partitions of this broker.", partitions),
        ("ottla_stored_bytes", "Bytes of all logs.", broker.plane.stored_bytes),
        ("ottla_requests_waiting", "Requests and timers that wait.", len(broker.waiting)),
    )
    for name, text, value in numbers:
        yield Family(name, GAUGE, text, [Sample((), value)])
    ends, starts, sizes, segments = [], [], [], []
    left = MAX_SAMPLES
    for topic in topics:
        for partition in topic.partitions[:left]:
            place = (("partition", str(partition.partition_index)), ("topic", topic.name))
            start, end = _range(broker, partition.handle)
            files = broker.plane.segments(partition.handle)
            starts.append(Sample(place, start))
            ends.append(Sample(place, end))
            sizes.append(Sample(place, sum(size for _, size in files)))
            segments.append(Sample(place, len(files)))
        left = max(0, left - len(topic.partitions))
        if not left:
            break
    for name, text, samples in (
        ("logstartoffset", "The first offset of a log.", starts),
        ("logendoffset", "The offset that the next record of a log gets.", ends),
        ("size", "Bytes of a log.", sizes),
        ("numlogsegments", "Segments of a log.", segments),
    ):
        yield Family(f"kafka_log_log_{name}", GAUGE, text, samples)
    yield Family(
        "ottla_partitions_left_out",
        GAUGE,
        f"Partitions beyond the first {MAX_SAMPLES}, of which no log is told.",
        [Sample((), partitions - len(ends))],
    )


def _range(broker: Broker, handle: int) -> tuple[int, int]:
    """Returns the log start offset and the log end offset of a partition."""
    offsets = broker.plane.offsets(handle)
    return offsets[0], offsets[3]


def _groups(broker: Broker) -> Iterator[Family]:
    # Groups are loaded at the first request about one: to ask for numbers is none.
    groups: GroupCoordinator | None = broker.__dict__.get("groups")
    of_groups = () if groups is None else sorted(groups.store.groups)
    offsets = 0 if groups is None else len(groups.store.offsets)
    name = "kafka_coordinator_group_groupmetadatamanager_num"
    yield Family(f"{name}groups", GAUGE, "Groups.", [Sample((), len(of_groups))])
    yield Family(f"{name}offsets", GAUGE, "Committed offsets.", [Sample((), offsets)])
    committed: list[Sample] = []
    lags: list[Sample] = []
    left_out = 0
    for group, topic, index, offset in () if groups is None else _committed(groups):
        partition = broker.image.partition(topic, index)
        if partition is None:
            continue
        if len(committed) == MAX_SAMPLES:
            left_out += 1
            continue
        place = (("consumergroup", group), ("partition", str(index)), ("topic", topic))
        committed.append(Sample(place, offset))
        end = _range(broker, partition.handle)[1]
        lags.append(Sample(place, max(0, end - offset)))
    # Kafka has no such meters: these are the names that its exporters gave them.
    text = "The offset that a group has committed."
    yield Family("kafka_consumergroup_current_offset", GAUGE, text, committed)
    text = "Offsets between what a group has committed and the end of the log."
    yield Family("kafka_consumergroup_lag", GAUGE, text, lags)
    text = f"Committed offsets beyond the first {MAX_SAMPLES}, which are not told."
    yield Family("ottla_committed_offsets_left_out", GAUGE, text, [Sample((), left_out)])


def _committed(groups: GroupCoordinator) -> Iterator[tuple[str, str, int, int]]:
    offsets = groups.store.offsets
    for group in sorted(offsets.groups()):
        for topic, index, committed in offsets.of_group(group):
            yield group, topic, index, committed.offset


_PARTS: Final[tuple[Callable[[Broker], Iterator[Family]], ...]] = (
    _plane,
    _requests,
    _clients,
    _logs,
    _groups,
)
