"""A log that Apache Kafka compacts, and its copy that Ottla compacts. Needs Java and Maven."""

import shutil
import time
from pathlib import Path
from random import Random
from typing import Any

import ottla
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from ottla._engine import DataPlane, TopicSettings
from ottla.logs.checkpoints import read_offsets
from ottla.logs.names import CLEANER_OFFSETS
from ottla.testing import Broker
from support import compacted
from support.compacted import HOUR_MS, Settings
from support.kafka_interop import RELEASES, WITHIN_S, findings, kafka_on

pytestmark = pytest.mark.slow

# Timestamps roll segments, and are past on any clock.
BEGINS_MS = 1_700_000_000_000
SEGMENT_MS = 1000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# Nothing is written to it before it has segments of magic 0 and 1.
OLD = "old-formats"

TOPICS: dict[str, tuple[Settings, dict[str, str]]] = {
    "as-produced": (Settings(), {}),
    "short-tombstones": (Settings(delete_retention_ms=1), {"compression.type": "zstd"}),
    "appended-now": (
        Settings(),
        {"message.timestamp.type": "LogAppendTime", "compression.type": "gzip"},
    ),
    "all-indexed": (Settings(index_interval_bytes=0), {}),
    OLD: (Settings(delete_retention_ms=HOUR_MS, index_interval_bytes=0), {}),
}


def create(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    topics = []
    for name, (settings, configs) in TOPICS.items():
        texts = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "segment.bytes": str(settings.segment_bytes),
            "index.interval.bytes": str(settings.index_interval_bytes),
            "segment.ms": str(SEGMENT_MS),
            "delete.retention.ms": str(settings.delete_retention_ms),
            "message.timestamp.after.max.ms": str(1 << 62),
        }
        topics.append(NewTopic(name, 1, config=texts | configs))
    for done in admin.create_topics(topics).values():
        done.result(WITHIN_S)


class Writer:
    """Clients of all kinds."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_ms = BEGINS_MS

    def write(self, servers: str, turn: int) -> None:
        plain = [
            Producer({"bootstrap.servers": servers, "compression.type": codec, "linger.ms": 50})
            for codec in CODECS
        ]
        idempotent = Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 50}
        )
        transactional = [
            Producer(
                {
                    "bootstrap.servers": servers,
                    "transactional.id": f"{number}",
                    "compression.type": CODECS[number],
                    "linger.ms": 50,
                }
            )
            for number in range(2)
        ]
        for each in transactional:
            each.init_transactions(WITHIN_S)
        opened: set[int] = set()
        names = [name for name in TOPICS if turn or name != OLD]
        for step in range(70):
            name = self.random.choice(names)
            kind = self.random.randrange(10)
            self.now_ms += self.random.choice([0, 0, 100, SEGMENT_MS + 1])
            if kind < 5:
                self._batch(plain[kind], name, f"{turn}.{step}")
            elif kind == 5:
                self._batch(idempotent, name, f"{turn}.{step}")
            else:
                number = kind % 2
                if number not in opened:
                    transactional[number].begin_transaction()
                    opened.add(number)
                self._batch(transactional[number], name, f"{turn}.{step}")
                if self.random.random() < 0.5:
                    opened.remove(number)
                    self._end(transactional[number])
        for number in opened:
            self._end(transactional[number])
        for name in names:
            # The active segment has nothing that was not there before.
            self.now_ms += SEGMENT_MS + 1
            time.sleep((SEGMENT_MS + 1) / 1000 if name == "appended-now" else 0)
            self._send(plain[0], name, [(b"last", b"%d" % turn)])

    def _batch(self, producer: Producer, name: str, text: str) -> None:
        records: list[tuple[bytes, bytes | None]] = []
        for number in range(self.random.randrange(1, 6)):
            key = b"key-%d" % self.random.randrange(12) if number else b""
            size = self.random.choice([0, 5, 30, 30_000, 300_000])
            value = text.encode() + self.random.randbytes(size)
            records.append((key, value if self.random.random() < 0.7 else None))
        self._send(producer, name, records)

    def _send(
        self, producer: Producer, name: str, records: list[tuple[bytes, bytes | None]]
    ) -> None:
        refused: list[Any] = []

        def done(error: Any, _message: Any) -> None:
            refused.extend([error] if error else [])

        for key, value in records:
            self.now_ms += self.random.randrange(2)
            headers: list[tuple[str, bytes | None]] = [("h", b"1"), ("none", None)]
            producer.produce(
                name,
                value,
                key,
                partition=0,
                timestamp=self.now_ms,
                headers=headers[: self.random.randrange(3)],
                on_delivery=done,
            )
        assert producer.flush(WITHIN_S) == 0
        assert refused == []

    def _end(self, producer: Producer) -> None:
        if self.random.random() < 0.5:
            producer.commit_transaction(WITHIN_S)
        else:
            producer.abort_transaction(WITHIN_S)


def values_in(servers: str, name: str) -> dict[bytes, bytes]:
    """What a reader of committed records has at the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(name, 0, 0)])
    found: dict[bytes, bytes | None] = {}
    while True:
        (message,) = consumer.consume(1, timeout=WITHIN_S)
        if message.error() is not None:
            break
        if message.key() is not None:
            found[message.key()] = message.value()
    consumer.close()
    return {key: value for key, value in found.items() if value is not None}


def wait_until_cleaned(logs: Path, ends: dict[str, int]) -> None:
    ends_at = time.monotonic() + 2 * WITHIN_S
    while time.monotonic() < ends_at:
        found = read_offsets(bytes(logs), CLEANER_OFFSETS)
        if all(found.get((name, 0), -1) >= end for name, end in ends.items()):
            return
        time.sleep(0.1)
    pytest.fail(f"Kafka has compacted up to {found}, expected {ends}")


def check_compaction(before: Path, kafka: Path, ours: Path) -> None:
    """Compacts `before` as Kafka has, and holds the one to the other."""
    cleaned_to = read_offsets(bytes(before), CLEANER_OFFSETS)
    starts = read_offsets(bytes(before), b"log-start-offset-checkpoint")
    ends: dict[tuple[str, int], int] = {}
    for name, (settings, _) in TOPICS.items():
        directory = f"{name}-0"
        horizons = compacted.horizons_in(kafka / directory)
        new = horizons - compacted.horizons_in(before / directory)
        now_ms = int(time.time() * 1000)
        if new:
            (now_ms,) = {at_ms - settings.delete_retention_ms for _, at_ms in new}
        shutil.copytree(before / directory, ours / directory)
        end = compacted.compact(
            ours / directory,
            settings,
            now_ms=now_ms,
            cleaned_to=cleaned_to.get((name, 0)),
            log_start_offset=starts.get((name, 0), 0),
        )
        assert end is not None
        ends[name, 0] = end
        found = compacted.batches_in(ours / directory)
        expected = compacted.batches_in(kafka / directory)
        assert found.keys() == expected.keys(), name
        for segment in expected:
            for mine, theirs in zip(found[segment], expected[segment], strict=False):
                # Kafka 4 writes what is left of old formats as magic 2, 3.9 as it was.
                is_written_anew = mine["magic"] < theirs["magic"]
                fields = ("last_offset", "records") if is_written_anew else theirs
                for field in fields:
                    assert mine[field] == theirs[field], (name, segment, mine["last_offset"])
            assert len(found[segment]) == len(expected[segment]), (name, segment)
        if settings.index_interval_bytes == 0:
            indexed = [compacted.indexed_in(each / directory) for each in (ours, kafka)]
            assert indexed[0] == indexed[1], name
        assert compacted.modified_in(ours / directory) == compacted.modified_in(kafka / directory)
        assert compacted.aborted_in(ours / directory) == compacted.aborted_in(kafka / directory)
        names = [compacted.snapshots_in(each / directory) for each in (ours, kafka)]
        assert names[0] == names[1], name
    checkpoint = read_offsets(bytes(kafka), CLEANER_OFFSETS)
    assert ends == {log: offset for log, offset in checkpoint.items() if log in ends}


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_left_is_what_kafka_leaves(tmp_path: Path, release: str) -> None:
    logs = tmp_path / "logs"
    writer = Writer(seed=15)
    known: dict[str, dict[bytes, bytes]] = {name: {} for name in TOPICS}
    for turn in range(3):
        with kafka_on(
            tmp_path, release, is_formatted=turn > 0, log_cleaner_enable="false"
        ) as servers:
            if turn == 0:
                create(servers)
            # What Ottla has compacted Kafka reads, and goes on with.
            assert {name: values_in(servers, name) for name in TOPICS} == known
            writer.write(servers, turn)
            known = {name: values_in(servers, name) for name in TOPICS}
        if turn == 0:
            known[OLD] = compacted.write_old_formats(logs / f"{OLD}-0", modified_ms=BEGINS_MS)
        before = tmp_path / f"before-{turn}"
        shutil.copytree(logs, before)
        ends = {name: max((before / f"{name}-0").glob("*.log")).stem for name in TOPICS}
        with kafka_on(tmp_path, release, log_cleaner_backoff_ms="100"):
            wait_until_cleaned(logs, {name: int(end) for name, end in ends.items()})
        ours = tmp_path / f"ours-{turn}"
        check_compaction(before, logs, ours)
        for name in TOPICS:
            shutil.rmtree(logs / f"{name}-0")
            shutil.copytree(ours / f"{name}-0", logs / f"{name}-0")
        assert findings(tmp_path) == []


def states_of_a_crash(directory: Path) -> list[dict[str, bytes]]:
    """The files of a log of three keys behind each step of a compaction."""
    options = [("cleanup_policy", "compact"), ("segment_bytes", str(1 << 20))]
    plane = DataPlane()
    handle = plane.open(
        "t", bytes(16), 0, now_ms=BEGINS_MS, settings=TopicSettings(options), directory=directory
    )
    for number in range(9):
        row = ottla.NewRecord(
            key=b"%d" % (number % 3), value=b"%d" % number * 300_000, timestamp=BEGINS_MS
        )
        assert plane.append(handle, ottla.build_batch([row]), now_ms=BEGINS_MS).accepted
    job = plane.compact_job(handle, now_ms=BEGINS_MS, is_forced=True)
    assert job is not None
    job.run()
    plane.flush(handle)
    found = {path.name: path.read_bytes() for path in directory.iterdir()}
    cleaned = {name: data for name, data in found.items() if name.endswith(".cleaned")}
    old = {name: data for name, data in found.items() if name not in cleaned}
    return compacted.states_of_a_swap(old, cleaned)


@pytest.mark.parametrize("release", RELEASES)
def test_kafka_starts_on_what_a_crash_leaves_of_a_compaction(tmp_path: Path, release: str) -> None:
    logs = tmp_path / "logs"
    states = states_of_a_crash(tmp_path / "t-0")
    topics = {f"state-{number}": 1 for number in range(len(states))}
    with Broker(data=logs, topics=topics, kafka_version=release):
        pass
    for name, state in zip(topics, states, strict=True):
        for path in (logs / f"{name}-0").iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        for file, data in state.items():
            (logs / f"{name}-0" / file).write_bytes(data)
    (logs / ".kafka_cleanshutdown").unlink()
    newest = {b"%d" % key: b"%d" % (key + 6) * 300_000 for key in range(3)}
    with kafka_on(tmp_path, release) as servers:
        for name in topics:
            assert values_in(servers, name) == newest, name
    for name in topics:
        left = {path.name for path in (logs / f"{name}-0").iterdir()}
        assert [file for file in left if file.endswith((".cleaned", ".swap"))] == []
