"""Fields that only Ottla's own clients know: tagged, so that all others pass over them."""

import struct

from ottla import NewRecord, TopicConfig, build_batch
from support.plane_frames import HEADER, NOW_MS, Plane, batch, fetch_frame, values

RECORD_CODE = 14670
PARTITION_EPOCH = 12321
EXPECTED_PARTITION_EPOCH = 12323
INVALID_PARTITION_EPOCH = 12320


def uvarint(value: int) -> bytes:
    return bytes([value & 0x7F | 0x80, value >> 7]) if value > 0x7F else bytes([value])


def tag(number: int, value: bytes) -> bytes:
    """Return a section of one tagged field."""
    return b"\1" + uvarint(number) + uvarint(len(value)) + value


def test_a_record_whose_error_is_not_the_partitions_says_so_from_version_9_on() -> None:
    """Record 0 has no key, record 1 is too old: the partition's code is that of timestamps."""
    config = TopicConfig(cleanup_policy="compact", message_timestamp_before_max_ms=1000)
    records = [
        NewRecord(value=b"a", timestamp=NOW_MS),
        NewRecord(key=b"k", timestamp=NOW_MS - 1001),
    ]
    for version in (8, 9):
        plane = Plane()
        plane.open(settings=config)
        produced = plane.produced({("t", 0): build_batch(records)}, version=version)
        assert produced.answer is not None
        answer = b"".join(produced.answer)
        own_code = tag(RECORD_CODE, struct.pack(">h", 87))
        assert answer.count(own_code) == (version == 9)
        # The other record has the partition's code: its section is empty.
        assert answer.count(uvarint(RECORD_CODE)) == (version == 9)
        found = plane.append(build_batch(records), version=version)
        assert found.error_code == 32
        assert [error.batch_index for error in found.record_errors] == [0, 1]


def test_a_partition_epoch_is_told_where_there_is_one() -> None:
    """KIP-232: the layout of Fetch 12, byte for byte."""
    plane = Plane()
    handle = plane.open()
    records = batch(b"a")
    plane.append(records)
    stored = plane.engine.read(handle, 0, 1000)
    for epoch in (-1, 5):
        plane.engine.configure(handle, partition_epoch=epoch)
        answer = plane.fetched({("t", 0): 0}, must_answer=True).answer
        assert answer is not None
        tags = b"\0" if epoch < 0 else tag(PARTITION_EPOCH, struct.pack(">i", epoch))
        assert b"".join(answer) == (
            # No throttling, no error, no session; one topic, one partition without error.
            struct.pack(">ihi", 0, 0, 0) + b"\2\2t\2" + struct.pack(">ih", 0, 0)
            # High watermark, last stable offset, log start; no aborted, no preferred replica.
            + struct.pack(">qqq", 1, 1, 0) + b"\0" + struct.pack(">i", -1)
            + uvarint(len(stored) + 1) + stored + tags
            # The topic's section and the answer's.
            + b"\0\0"
        )  # fmt: skip


def test_a_client_that_expects_another_partition_epoch_is_told_so() -> None:
    plane = Plane()
    plane.open(partition_epoch=5)
    plane.append(batch(b"a"))
    frame = fetch_frame(12, {("t", 0): 0})
    # The sections of partition, topic; no topic forgotten, no rack; the section of the request.
    end = b"\0\0\1\1\0"
    assert frame.endswith(end)
    for expected, code in ((5, 0), (4, INVALID_PARTITION_EPOCH), (6, INVALID_PARTITION_EPOCH)):
        asked = tag(EXPECTED_PARTITION_EPOCH, struct.pack(">i", expected))
        tagged = frame[: -len(end)] + asked + end[1:]
        answer = plane.engine.fetch(tagged, len(HEADER), 12, now_ms=NOW_MS, must_answer=True).answer
        assert answer is not None
        found = struct.unpack_from(">h", answer[0], 4 + 2 + 4 + 4 + 4)
        assert found == (code,)
    assert values(plane.read().records) == [b"a"]
