"""Committed offsets and transactional ids: decoded as Kafka does, and held against the logs."""

import gzip
import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ottla
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import TIMESTAMP, segment, write_log_directory, write_partition

OFFSETS = "__consumer_offsets"
TRANSACTIONS = "__transaction_state"
SHARED_LOGS = (
    *(f"kafka/{name}" for name in ("kafka-4.1", "kafka-3.9", "kafka-2.8", "kafka-0.10")),
    "demo/broker",
)


def text(value: str | None) -> bytes:
    if value is None:
        return struct.pack(">h", -1)
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded


def offset_key(group: str, topic: str, partition: int, *, version: int = 1) -> bytes:
    return struct.pack(">h", version) + text(group) + text(topic) + struct.pack(">i", partition)


def offset_value(offset: int, *, version: int = 3) -> bytes:
    """Versions 0 to 4, each as it is on the wire."""
    parts = [struct.pack(">hq", version, offset)]
    if version >= 3:
        parts.append(struct.pack(">i", 7))
    parts.append(b"\x05note" if version >= 4 else text("note"))
    parts.append(struct.pack(">q", TIMESTAMP))
    if version == 1:
        parts.append(struct.pack(">q", TIMESTAMP + 1))
    if version >= 4:
        # One tagged field of a later release.
        parts.append(b"\x01\x09\x02\xff\xff")
    return b"".join(parts)


def id_key(name: str) -> bytes:
    return struct.pack(">h", 0) + text(name)


def id_value(
    producer_id: int, epoch: int, status: int, partitions: dict[str, list[int]] | None
) -> bytes:
    """Version 0."""
    parts = [struct.pack(">hqhib", 0, producer_id, epoch, 60_000, status)]
    if partitions is None:
        parts.append(struct.pack(">i", -1))
    else:
        parts.append(struct.pack(">i", len(partitions)))
        for topic, ids in partitions.items():
            parts.append(text(topic) + struct.pack(f">i{len(ids)}i", len(ids), *ids))
    parts.append(struct.pack(">qq", TIMESTAMP + 5, TIMESTAMP))
    return b"".join(parts)


def batch(*records: tuple[bytes, bytes | None], at: int = 0, producer: int = -1) -> bytes:
    return ottla.build_batch(
        [ottla.NewRecord(key, value, TIMESTAMP) for key, value in records],
        base_offset=at,
        partition_leader_epoch=0,
        producer_id=producer,
        producer_epoch=-1 if producer < 0 else 0,
        base_sequence=-1 if producer < 0 else 0,
        is_transactional=producer >= 0,
    )


def marker(kind: Any, *, at: int, producer: int) -> bytes:
    return ottla.build_control_batch(
        kind,
        producer_id=producer,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp=TIMESTAMP,
        base_offset=at,
        partition_leader_epoch=0,
    )


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """A log directory with the topic orders, whose partition 0 holds offsets 0 to 23."""
    return write_log_directory(tmp_path / "kafka", ["orders-0"])


def groups(broker: Path, data: bytes) -> list[tuple[str, int, int | None]]:
    write_partition(broker / f"{OFFSETS}-0", {0: data})
    return [(row["group"], row["offset"], row["lag"]) for row in ottla.audit(broker).groups]


def findings(broker: Path, prefix: str) -> list[tuple[str, str, int | None]]:
    return [
        (found["name"], found["severity"], found["first_offset"])
        for found in ottla.audit(broker).findings
        if found["name"].startswith(prefix)
    ]


@pytest.mark.parametrize("version", range(5))
def test_a_committed_offset_of_every_version_is_decoded(version: int) -> None:
    key = offset_key("g", "orders", 3, version=min(version, 1))
    value = offset_value(42, version=version)
    expected: dict[str, Any] = {"offset": 42, "metadata": "note", "commit_timestamp": TIMESTAMP}
    if version >= 3:
        expected["leader_epoch"] = 7
    if version == 1:
        expected["expire_timestamp"] = TIMESTAMP + 1
    assert ottla.decode_record(OFFSETS, key, value) == {
        "type": "offset-commit",
        "key": {"group": "g", "topic": "orders", "partition": 3},
        "version": version,
        "value": expected,
    }


def test_a_later_type_or_version_is_said_to_be_unknown() -> None:
    def fault(key: bytes, value: bytes) -> str:
        return str((ottla.decode_record(OFFSETS, key, value) or {})["fault"])

    good = offset_key("g", "t", 0)
    assert fault(b"\x00\x63" + good[2:], b"") == "the record type 99 is not known"
    assert fault(good, b"\x00\x05") == "version 5 is not known, only 0 to 4"
    assert fault(good, offset_value(1)[:-1]) == "the bytes end inside a field"
    assert fault(good[:-1], b"") == "the bytes end inside a field"
    assert fault(good, b"\x00\x00" + bytes(8) + text(None) + bytes(8)).startswith("a length is")


def test_a_record_of_another_topic_is_not_decoded() -> None:
    assert ottla.decode_record("orders", b"key", b"value") is None


@given(st.sampled_from([OFFSETS, TRANSACTIONS]), st.binary(max_size=80), st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(topic: str, key: bytes, value: bytes) -> None:
    numbered = key[:1].ljust(1, b"\0")
    for whole in (key, b"\x00" + bytes([numbered[0] % 26]) + key[1:]):
        decoded = ottla.decode_record(topic, whole, value)
        assert decoded is not None
        assert ("fault" in decoded) != ("type" in decoded)


def test_of_each_key_the_last_value_counts_and_a_tombstone_deletes(broker: Path) -> None:
    a, b, c = (offset_key(group, "orders", 0) for group in "abc")
    data = batch((a, offset_value(3)), (b, offset_value(4)), (c, offset_value(5)))
    data += batch((a, offset_value(20)), (c, None), at=3)
    assert groups(broker, data) == [("a", 20, 4), ("b", 4, 20)]


def test_offsets_of_a_transaction_count_when_it_commits(broker: Path) -> None:
    names = "abcd"
    a, b, c, d = (offset_key(group, "orders", 0) for group in names)
    data = batch((a, offset_value(1)), producer=1)
    data += batch((b, offset_value(2)), at=1, producer=2)
    data += batch((c, offset_value(3)), at=2, producer=3)
    data += marker("commit", at=3, producer=1) + marker("abort", at=4, producer=2)
    data += batch((d, offset_value(4)), at=5)
    assert groups(broker, data) == [("a", 1, 23), ("d", 4, 20)]


def test_a_committed_offset_beyond_the_end_or_before_the_start_is_found(broker: Path) -> None:
    (broker / "log-start-offset-checkpoint").write_text("0\n1\norders 0 6\n")
    committed = {"at-end": 24, "at-start": 6, "beyond": 25, "before": 5, "elsewhere": 99}
    data = batch(
        *(
            (offset_key(group, "gone" if group == "elsewhere" else "orders", 0), offset_value(at))
            for group, at in committed.items()
        )
    )
    assert len(groups(broker, data)) == 5
    assert findings(broker, "commit-") == [
        ("commit-below-start", "info", 5),
        ("commit-beyond-end", "warning", 25),
    ]


def test_a_committed_offset_inside_damage_is_found_with_the_way_out(broker: Path) -> None:
    path = broker / "orders-0" / "00000000000000000000.log"
    data = bytearray(segment(4))
    data[len(data) // 2 - 1] ^= 1
    path.write_bytes(data)
    groups(broker, batch((offset_key("stuck", "orders", 0), offset_value(4))))
    (found,) = [f for f in ottla.audit(broker).findings if f["name"].startswith("commit-")]
    assert (found["name"], found["next_good_offset"]) == ("commit-in-damage", 6)
    assert (found["topic"], found["partition"]) == ("orders", 0)
    assert found["message"] == (
        "group stuck has committed offset 4 of orders-0, but offsets 3 to 5 cannot be read"
    )


def test_groups_of_one_cluster_read_no_logs_of_another(broker: Path, tmp_path: Path) -> None:
    groups(broker, batch((offset_key("g", "orders", 0), offset_value(24))))
    other = write_log_directory(tmp_path / "other", ["orders-0"])
    properties = "version=1\ncluster.id=xxxxxxxxxxxxxxxxxxxxxx\nnode.id=1\n"
    (other / "meta.properties").write_text(properties)
    for path in (other / "orders-0").glob("00000000000000000012.*"):
        path.unlink()
    write_partition(
        other / f"{OFFSETS}-0", {0: batch((offset_key("g", "orders", 0), offset_value(24)))}
    )
    result = ottla.audit([broker, other])
    assert [row["lag"] for row in result.groups] == [0, 0]
    (found,) = [f for f in result.findings if f["name"].startswith("commit-")]
    assert found["file"] == "other/orders-0"


def test_of_replicas_the_one_that_ends_last_counts(broker: Path, tmp_path: Path) -> None:
    key = offset_key("g", "orders", 0)
    old, new = batch((key, offset_value(1))), batch((key, offset_value(2)), at=1)
    groups(broker, old)
    follower = write_log_directory(tmp_path / "follower", ["orders-0"])
    properties = (broker / "meta.properties").read_text().replace("node.id=1", "node.id=2")
    (follower / "meta.properties").write_text(properties)
    write_partition(follower / f"{OFFSETS}-0", {0: old + new})
    result = ottla.audit([broker, follower])
    assert [(row["group"], row["offset"]) for row in result.groups] == [("g", 2)]


def test_records_that_cannot_be_decoded_are_counted(broker: Path) -> None:
    key = offset_key("g", "orders", 0)
    data = batch((key, offset_value(1)), (key, b"\x00\x63"), (b"\x00\x63", b""))
    assert groups(broker, data) == [("g", 1, 23)]
    (found,) = [f for f in ottla.audit(broker).findings if f["name"] == "undecoded-record"]
    assert found["message"].startswith(
        "2 records cannot be decoded, the first at offset 1: version 99"
    )
    assert found["severity"] == "info"


@pytest.mark.parametrize(
    ("value", "state"),
    [
        (id_value(9, 0, 1, {"orders": [1, 0]}), "open"),
        (id_value(9, 0, 3, {"orders": [0]}), "open"),
        (id_value(9, 1, 3, {"orders": [0]}), "open"),
        (id_value(9, 0, 1, {"orders": [1]}), "hanging"),
        (id_value(9, 1, 1, {"orders": [0]}), "hanging"),
        (id_value(9, 0, 4, {}), "hanging"),
        (id_value(9, 0, 0, None), "hanging"),
        (id_value(8, 0, 1, {"orders": [0]}), None),
    ],
)
def test_an_open_transaction_is_judged_by_what_its_coordinator_knows(
    value: bytes, state: str | None, broker: Path
) -> None:
    data = segment(4) + batch((b"k", b"v"), at=12, producer=9)
    write_partition(broker / "payments-0", {0: b""})
    for path in (broker / "orders-0").glob("00000000000000000012.*"):
        path.unlink()
    (broker / "orders-0" / "00000000000000000000.log").write_bytes(data)
    write_partition(broker / f"{TRANSACTIONS}-0", {0: batch((id_key("shop"), value))})
    result = ottla.audit(broker)
    (transaction,) = result.transactions
    (found,) = [f for f in result.findings if f["name"] == "open-transaction"]
    if state is None:
        assert transaction["state"] == "open"
        assert transaction["transactional_id"] is None
        return
    assert transaction["state"] == state
    assert transaction["transactional_id"] == "shop"
    assert "shop" in found["message"]
    assert found["severity"] == ("warning" if state == "hanging" else "info")
    assert any(" abort " in line for line in found["commands"]) == (state == "hanging")
    if state == "hanging":
        assert " find-hanging " in found["commands"][0]
    else:
        remark, force = found["commands"][1:]
        assert remark.startswith("# Kafka 4.1 and later")
        assert force.endswith("forceTerminateTransaction --transactionalId shop")


def dumped(path: Path) -> Iterator[tuple[int, dict[str, Any], Any]]:
    """Offset, key and value of each record as Kafka's own tool decodes it."""
    line = re.compile(r"offset: (\d+) .*?key: (\{.*\}) payload: (.*)$")
    with gzip.open(path, "rt") as lines:
        for match in filter(None, map(line.search, lines)):
            offset, key, value = match.groups()
            yield int(offset), json.loads(key), None if value == "<DELETE>" else json.loads(value)


def snake(value: Any) -> Any:
    """Names as here, without the fields that are null and those that are the clients' own.

    Kafka's tool looks into subscription and assignment, too, as consumers write them.
    """
    if isinstance(value, list):
        return [snake(item) for item in value]
    if not isinstance(value, dict):
        return value
    names = ((re.sub("([A-Z])", r"_\1", name).lower(), item) for name, item in value.items())
    return {
        name: snake(item)
        for name, item in names
        if item is not None and name not in ("subscription", "assignment")
    }


@pytest.mark.shared
@pytest.mark.parametrize("log", SHARED_LOGS)
def test_every_record_is_decoded_as_kafka_decodes_it(log: str, shared: Path) -> None:
    corpus, _, name = log.partition("/")
    truth = shared / "corpus" / corpus / "truth" / name
    seen = 0
    for path in sorted(truth.glob("__[ct][or]*.decoded.txt.gz")):
        partition = path.name.removesuffix(".decoded.txt.gz")
        topic = partition.rpartition("-")[0]
        if topic not in (OFFSETS, TRANSACTIONS):
            continue
        expected = {offset: (key, value) for offset, key, value in dumped(path)}
        for record in ottla.read_partition(shared / "corpus" / corpus / name / partition):
            key, value = expected.pop(record.offset)
            found = ottla.decode_record(topic, record.key, record.value)
            assert found is not None
            assert found["key"] == {
                {"group_id": "group"}.get(name, name): item
                for name, item in snake(key["data"]).items()
            }
            if value is None:
                assert found["version"] is None
            else:
                assert str(found["version"]) == value["version"]
                assert snake(found["value"]) == snake(value["data"])
            seen += 1
        assert expected == {}
    assert seen > 20


@pytest.mark.shared
@pytest.mark.parametrize("log", ["kafka/kafka-4.1", "kafka/kafka-3.9", "demo/broker"])
def test_groups_and_transactional_ids_are_those_the_broker_tells(log: str, shared: Path) -> None:
    corpus, _, name = log.partition("/")
    truth = shared / "corpus" / corpus / "truth" / name
    result = ottla.audit(shared / "corpus" / corpus / name, topics=["__*"])
    committed: dict[str, dict[str, Any]] = {}
    for row in result.groups:
        place = f"{row['topic']}-{row['partition']}"
        told = {"offset": row["offset"], "metadata": row["metadata"]}
        committed.setdefault(row["group"], {})[place] = told
    assert committed == json.loads((truth / "groups.json").read_text())
    listed = json.loads((truth / "transactions.json").read_text())["listTransactions"]
    assert {one["transactional_id"] for one in result.transactional_ids} == set(listed)
    for one in result.transactional_ids:
        known = listed[one["transactional_id"]]
        assert (one["producer_id"], one["producer_epoch"], one["state"], one["partitions"]) == (
            known["producerId"],
            known["producerEpoch"],
            known["state"],
            sorted(known["partitions"]),
        )
        assert (one["timeout_ms"], one["start_ms"]) == (known["timeoutMs"], known["startTimeMs"])


@pytest.mark.shared
@pytest.mark.parametrize("name", ["kafka-4.1", "kafka-3.9"])
def test_the_hanging_transactions_are_those_kafkas_own_tool_finds(name: str, shared: Path) -> None:
    truth = shared / "corpus" / "kafka" / "truth" / name
    found_by_kafka = set()
    for path in truth.glob("find-hanging-*.txt"):
        for line in path.read_text().splitlines()[1:]:
            topic, partition, _, _, _, start_offset, *_ = line.split()
            found_by_kafka.add((topic, int(partition), int(start_offset)))
    result = ottla.audit(shared / "corpus" / "kafka" / name)
    hanging = {
        (row["topic"], row["partition"], row["first_offset"])
        for row in result.transactions
        if row["state"] == "hanging"
    }
    assert hanging == found_by_kafka
