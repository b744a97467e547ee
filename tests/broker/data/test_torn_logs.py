"""What a start makes of a log from which a power cut has taken a part."""

from pathlib import Path
from typing import Any

import ottla
from ottla.broker.broker import Broker
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from support.kept_broker import kept_broker
from support.wire_client import NOW_MS, WireClient


def write_segments(path: Path, configs: dict[str, str], count: int) -> None:
    """Has a broker write a batch a segment, and be killed."""
    with kept_broker(path, is_killed=True) as broker:
        broker.topics.create("orders", 1, {"segment.ms": "1000", **configs}, NOW_MS)
        for number in range(count):
            produce(broker, b"%d" % number, NOW_MS + 5000 * number)


def produce(broker: Broker, value: bytes, timestamp: int) -> None:
    records = [ottla.NewRecord(b"key", value, timestamp=timestamp)] * 2
    data = PartitionProduceData(index=0, records=ottla.build_batch(records))
    request = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name="orders", partition_data=[data])],
    )
    answer: Any = WireClient(broker).ask(request, 9).responses[0].partition_responses[0]
    assert answer.error_code == 0


def offsets(broker: Broker) -> tuple[int, int]:
    start, _, _, end = broker.plane.offsets(broker.image.topics["orders"].partitions[0].handle)
    return start, end


def test_deleted_records_do_not_come_back_when_the_broker_is_killed(tmp_path: Path) -> None:
    with kept_broker(tmp_path / "data", is_killed=True) as broker:
        broker.topics.create("orders", 1, {}, NOW_MS)
        produce(broker, b"first", NOW_MS)
        produce(broker, b"second", NOW_MS)
        partition = DeleteRecordsPartition(partition_index=0, offset=2)
        topic = DeleteRecordsTopic(name="orders", partitions=[partition])
        WireClient(broker).ask(DeleteRecordsRequest(topics=[topic], timeout_ms=1000), 2)
        assert offsets(broker) == (2, 4)
    with kept_broker(tmp_path / "data") as broker:
        assert offsets(broker) == (2, 4)


def test_what_is_behind_batches_that_are_gone_is_cut_off(tmp_path: Path) -> None:
    write_segments(tmp_path / "data", {}, 4)
    # All of a segment that was not synced, and so no batch that is cut in two.
    (tmp_path / "data" / "orders-0" / "00000000000000000002.log").write_bytes(b"")
    with kept_broker(tmp_path / "data") as broker:
        assert offsets(broker) == (0, 2)
        produce(broker, b"new", NOW_MS)
        assert offsets(broker) == (0, 4)
        handle = broker.image.topics["orders"].partitions[0].handle
        [batch] = ottla.read_batches(broker.plane.read(handle, 2, 1 << 20))
        assert [record.value for record in batch.records()] == [b"new", b"new"]


def test_a_gap_in_a_compacted_log_is_none_that_a_crash_has_left(tmp_path: Path) -> None:
    write_segments(tmp_path / "data", {"cleanup.policy": "compact"}, 4)
    (tmp_path / "data" / "orders-0" / "00000000000000000002.log").write_bytes(b"")
    with kept_broker(tmp_path / "data") as broker:
        assert offsets(broker) == (0, 8)


def test_a_torn_index_of_aborted_transactions_is_built_anew(tmp_path: Path) -> None:
    write_segments(tmp_path / "data", {}, 2)
    index = tmp_path / "data" / "orders-0" / "00000000000000000000.txnindex"
    index.write_bytes(b"\x41" * 34)
    with kept_broker(tmp_path / "data") as broker:
        assert offsets(broker) == (0, 4)
    assert not index.exists() or index.read_bytes() == b""


def test_a_torn_index_waits_until_what_is_before_its_segment_is_recovered(tmp_path: Path) -> None:
    write_segments(tmp_path / "data", {}, 2)
    directory = tmp_path / "data" / "orders-0"
    (directory / "00000000000000000002.txnindex").write_bytes(b"\x41" * 34)
    (directory / "00000000000000000002.snapshot").unlink()
    # Zeros, as behind the end of a file that has grown and was not synced.
    first = directory / "00000000000000000000.log"
    first.write_bytes(first.read_bytes() + bytes(100))
    with kept_broker(tmp_path / "data") as broker:
        assert offsets(broker) == (0, 2)
