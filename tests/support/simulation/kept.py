"""Topics that lose records by right: one is compacted, of the other what is old or deleted goes.

Who writes to them notes what was acknowledged, and until where records were deleted. The last
value of each key is to be left of the one, and everything behind the log start of the other.
"""

from dataclasses import dataclass, field

import ottla
from ottla.broker.broker import Broker
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from support.simulation.clients import Model, Steps, idempotent_producer, until
from support.simulation.history import History, Sent
from support.simulation.world import Client

COMPACTED, DELETED = "states", "events"
SMALL = {"segment.ms": "1000"}
CONFIGS = {
    COMPACTED: {
        **SMALL,
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "3000",
    },
    DELETED: {**SMALL, "retention.ms": "20000"},
}
OFTEN = {"log.cleaner.backoff.ms": "2000", "log.retention.check.interval.ms": "5000"}
"""How often a broker looks for what is to go."""

_BATCHES, _PAUSE_MS = 10, 2500


def keyed_producer(model: Model, name: str) -> Client:
    """Writes values of few keys, and now and then that a key has none."""
    return idempotent_producer(model, name, _BATCHES, topic=COMPACTED, most_pause_ms=_PAUSE_MS)


def deleting_producer(model: Model, name: str) -> Client:
    """Writes records, and deletes some of those that are acknowledged."""
    return idempotent_producer(
        model, name, _BATCHES, topic=DELETED, most_pause_ms=_PAUSE_MS, then=_delete
    )


def _delete(model: Model, sent: Sent) -> Steps:
    if model.random.random() < 1 / 2:
        return
    offset = sent.base_offset + model.random.randrange(len(sent.values) + 1)
    place = DeleteRecordsPartition(partition_index=sent.partition, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=sent.topic, partitions=[place])], timeout_ms=1000
    )
    error, answer = yield from until(
        request, 2, lambda answer: answer.topics[0].partitions[0].error_code
    )
    if error == ErrorCode.NONE:
        low_watermark = answer.topics[0].partitions[0].low_watermark
        model.history.deleted_to = max(model.history.deleted_to, offset, low_watermark)
    elif not (error == ErrorCode.OFFSET_OUT_OF_RANGE and model.history.has_lost):
        model.history.faults.append(f"error {error} for deleting {sent.topic} up to {offset}")


@dataclass
class Kept:
    """What a partition has: where it begins, and its records by offset."""

    log_start_offset: int
    records: dict[int, tuple[bytes | None, bytes | None]] = field(default_factory=dict)


def kept_of(broker: Broker, topic: str) -> Kept:
    """What the partition of a topic has."""
    partition = broker.image.partition(topic, 0)
    assert partition is not None
    offset, _, _, end_offset = broker.plane.offsets(partition.handle)
    kept = Kept(offset)
    while offset < end_offset:
        data = bytes(broker.plane.read(partition.handle, offset, 1 << 30))
        if not data:
            break
        for batch in ottla.read_batches(data):
            for record in batch.records():
                if record.offset >= kept.log_start_offset:
                    assert record.offset not in kept.records, f"{record.offset} is there twice"
                    kept.records[record.offset] = record.key, record.value
            offset = batch.last_offset + 1
    return kept


def starts_of(broker: Broker) -> dict[str, int]:
    """Where the logs of these topics begin."""
    starts = {}
    for topic in CONFIGS:
        partition = broker.image.partition(topic, 0)
        assert partition is not None
        starts[topic] = broker.plane.offsets(partition.handle)[0]
    return starts


def check_starts(before: dict[str, int], after: dict[str, int]) -> None:
    """No log begins earlier than it did."""
    for topic, start in before.items():
        assert after[topic] >= start, f"{topic} begins at {after[topic]}, and began at {start}"


def check_kept(history: History, broker: Broker) -> None:
    """Nothing is gone that is to be left, and nothing has come back."""
    kept = {topic: kept_of(broker, topic) for topic in CONFIGS}
    for topic, found in kept.items():
        sent = [each for each in history.sent if each.topic == topic]
        _check_places(topic, found, sent)
    deleted = kept[DELETED]
    assert deleted.log_start_offset >= history.deleted_to, (
        f"{DELETED} begins at {deleted.log_start_offset}, and is deleted up to {history.deleted_to}"
    )
    _check_last_values(kept[COMPACTED], [e for e in history.sent if e.topic == COMPACTED])


def _check_places(topic: str, kept: Kept, sent: list[Sent]) -> None:
    """What is there is where it was acknowledged, and of what was deleted nothing else is gone."""
    values = {value: offset for offset, (_, value) in kept.records.items() if value is not None}
    for each in sent:
        for number, (key, value) in enumerate(each.records):
            offset = each.base_offset + number
            if each.outcome == "refused":
                assert value not in values, f"{value!r} was refused, and {topic} has it"
            elif each.outcome == "done":
                found = kept.records.get(offset)
                may_be_gone = topic == COMPACTED or offset < kept.log_start_offset
                assert found == (key, value) or (found is None and may_be_gone), (
                    f"{topic} has {found} at {offset}, where {value!r} was acknowledged"
                )
                if value is not None:
                    assert values.get(value, offset) == offset, f"{value!r} is elsewhere: {each}"


def _check_last_values(kept: Kept, sent: list[Sent]) -> None:
    last: dict[bytes | None, tuple[int, bytes | None]] = {}
    for offset, (key, value) in sorted(kept.records.items()):
        last[key] = offset, value
    acknowledged: dict[bytes | None, int] = {}
    later: dict[bytes | None, set[bytes | None]] = {}
    for each in sent:
        for number, (key, value) in enumerate(each.records):
            if each.outcome == "done":
                acknowledged[key] = each.base_offset + number
                later[key] = {value}
            elif each.outcome in {"unknown", "lost"}:
                later.setdefault(key, {None}).add(value)
    for key, offset in acknowledged.items():
        found, value = last.get(key, (offset, None))
        assert found >= offset, f"{key!r} has {value!r} at {found}, and was given more at {offset}"
        assert value in later[key], f"{key!r} has {value!r} instead of one of {later[key]}"
