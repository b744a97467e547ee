"""Payloads whose streams pause, end early or hold blocks of nothing (`record-batch.md` §7.1)."""

import gzip
import struct
import zlib
from typing import Any

import lz4.block
import ottla
import pytest
import zstandard
from ottla import InvalidRecordError, UnsupportedCompressionError
from records.crafting import (
    CODECS,
    XERIAL_HEADER,
    batch,
    entry,
    message,
    raw_snappy,
    record,
    wrapped,
)

NOW = 1_500_000_000_000
NOTHING = b""


def lz4_frame(*blocks: bytes, is_ended: bool = True) -> bytes:
    """A frame with each text in a block of its own."""
    frame = b"\x04\x22\x4d\x18\x60\x40\x82"
    for text in blocks:
        block = lz4.block.compress(text, store_size=False)
        frame += struct.pack("<I", len(block)) + block
    return frame + b"\0\0\0\0" if is_ended else frame


def snappy_stream(*blocks: bytes) -> bytes:
    """A stream with each text in a block of its own."""
    sized = (struct.pack(">i", len(raw_snappy(text))) + raw_snappy(text) for text in blocks)
    return XERIAL_HEADER + b"".join(sized)


def gzip_members(*texts: bytes) -> bytes:
    """One member after the other."""
    return b"".join(map(gzip.compress, texts))


def zstd_frame(*blocks: bytes, window: int = 0) -> bytes:
    """A frame with each text in a raw block of its own, nothing in a compressed one."""
    frame = b"\x28\xb5\x2f\xfd\0" + bytes([window << 3])
    for at, text in enumerate(blocks):
        kind = 0 if text else 2
        header = len(text) << 3 | kind << 1 | (at + 1 == len(blocks))
        frame += struct.pack("<I", header)[:3] + text
    return frame


STREAMS = {"gzip": gzip_members, "snappy": snappy_stream, "lz4": lz4_frame, "zstd": zstd_frame}
ONE, TWO = record(0, value=b"one"), record(1, value=b"two")


def compressed(codec: str, payload: bytes, count: int = 2) -> bytes:
    return batch(payload, count=count, codec=CODECS.index(codec), max_timestamp=NOW)


def code_of(data: bytes, profile: str, **config: Any) -> int:
    settings = ottla.TopicConfig(**config)
    return int(ottla.validate(data, settings, now_ms=NOW, profile=profile).error)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "zstd"])
def test_a_block_of_nothing_between_records_is_read_over(codec: str) -> None:
    data = compressed(codec, STREAMS[codec](NOTHING, ONE, NOTHING, NOTHING, TWO, NOTHING))
    assert [r.value for r in ottla.read(data)] == [b"one", b"two"]
    ottla.check_batches(data, level="full")
    for profile in ("kafka", "strict"):
        # librdkafka stops at an empty gzip member and at a zstd block of nothing.
        stops_clients = profile == "strict" and codec != "snappy"
        assert code_of(data, profile) == (87 if stops_clients else 0)
        assert code_of(data, profile, compression_type="uncompressed") == 0


@pytest.mark.parametrize(
    "blocks",
    [(NOTHING, ONE, TWO), (ONE, NOTHING, TWO), (ONE[:3], NOTHING, ONE[3:], TWO)],
    ids=["before all", "between two", "inside one"],
)
def test_an_lz4_block_of_nothing_ends_the_stream_for_reading_checking_and_deciding(
    blocks: tuple[bytes, ...],
) -> None:
    data = compressed("lz4", lz4_frame(*blocks))
    with pytest.raises(InvalidRecordError):
        list(ottla.read(data))
    with pytest.raises(InvalidRecordError):
        ottla.check_batches(data, level="decode")
    assert code_of(data, "strict") == 87
    assert code_of(data, "kafka", compression_type="gzip") == 87


def test_what_follows_an_lz4_block_of_nothing_behind_the_last_record_is_not_read() -> None:
    data = compressed("lz4", lz4_frame(ONE, TWO, NOTHING, b"more", is_ended=False) + b"\xff" * 9)
    assert [r.value for r in ottla.read(data)] == [b"one", b"two"]
    assert [code_of(data, profile) for profile in ("kafka", "strict")] == [0, 0]


def test_an_lz4_block_of_nothing_is_passed_inside_a_record_of_2_kib() -> None:
    large = record(0, value=b"x" * 5000)
    for cut, is_read in ((10, True), (len(large) - 2048, True), (len(large) - 2047, False)):
        data = compressed("lz4", lz4_frame(large[:cut], NOTHING, large[cut:]), count=1)
        if is_read:
            assert [r.value for r in ottla.read(data)] == [b"x" * 5000]
        else:
            with pytest.raises(InvalidRecordError):
                list(ottla.read(data))


@pytest.mark.parametrize(("value", "code"), [(b"a" * 40, 0), (b"a" * 5000, 87)])
def test_a_leader_skips_an_lz4_block_of_nothing_that_stops_consumers(
    value: bytes, code: int
) -> None:
    # Of a block larger than the buffer it skips what is not buffered, and then reads what is.
    whole = record(0, value=value)
    cut = len(whole) - len(value)
    data = compressed("lz4", lz4_frame(whole[:cut], NOTHING, whole[cut:]), count=1)
    assert code_of(data, "kafka") == code
    assert code_of(data, "kafka", compression_type="gzip") == (87 if len(value) < 2048 else 0)
    assert code_of(data, "strict") == (87 if len(value) < 2048 else 0)


def test_a_zstd_block_of_compressed_size_0_is_refused_in_a_frame_of_known_size() -> None:
    with_size = b"\x28\xb5\x2f\xfd\x20" + bytes([len(ONE + TWO)])
    blocks = zstd_frame(ONE, NOTHING, TWO)[6:]
    with pytest.raises(UnsupportedCompressionError):
        list(ottla.read(compressed("zstd", with_size + blocks)))
    assert list(ottla.read(compressed("zstd", zstd_frame(ONE, NOTHING, TWO))))


def test_a_zstd_block_of_compressed_size_0_is_read_in_windows_up_to_128_mib() -> None:
    for window in (0, 13, 14, 17):
        data = compressed("zstd", zstd_frame(ONE, NOTHING, TWO, window=window))
        assert [r.value for r in ottla.read(data)] == [b"one", b"two"]
    with pytest.raises(UnsupportedCompressionError):
        list(ottla.read(compressed("zstd", zstd_frame(ONE, NOTHING, TWO, window=18))))


EMPTIED = {
    "gzip": (gzip.compress(b"")[:10], b"no gzip at all"),
    "snappy": (XERIAL_HEADER + b"\xff\xff\xff\xff", b"no snappy"),
    "lz4": (lz4_frame(is_ended=False) + b"\xff\xff", b"no lz4 frame"),
}


@pytest.mark.parametrize("codec", EMPTIED)
def test_an_emptied_batch_is_opened_and_not_read(codec: str) -> None:
    opened, unopened = (
        batch(payload, count=0, last_offset_delta=3, codec=CODECS.index(codec))
        for payload in EMPTIED[codec]
    )
    assert list(ottla.read(opened)) == []
    ottla.check_batches(opened, level="decode")
    with pytest.raises(UnsupportedCompressionError):
        list(ottla.read(unopened))


@pytest.mark.parametrize("magic", [0, 1])
def test_an_lz4_block_of_nothing_ends_a_message_set(magic: int) -> None:
    entries = [entry(at, message(magic, value=b"%d" % at, timestamp=NOW)) for at in range(3)]
    frame = lz4_frame(entries[0], entries[1], NOTHING, entries[2])
    data = wrapped(magic, "lz4", frame, offset=1)
    assert [r.value for r in ottla.read(data)] == [b"0", b"1"]
    verdict = ottla.validate(data, now_ms=NOW, api_version=None, profile="kafka")
    assert (verdict.error, verdict.last_offset - verdict.base_offset) == (0, 1)


def test_gzip_looks_for_a_member_in_few_bytes_only_if_it_has_not_read_them() -> None:
    # A whole header that no member follows, in the 18 bytes that end the payload.
    header = gzip.compress(b"")[:10]
    assert list(ottla.read(compressed("gzip", gzip.compress(ONE + TWO) + header)))
    # Stored blocks make the payload as long as it takes for the stream to read anew behind them.
    deflate = zlib.compressobj(0, zlib.DEFLATED, 31)
    first = record(0, value=b"x" * (8 << 10))
    member = deflate.compress(first + TWO) + deflate.flush()
    for spare in range(-8, 9):
        padding = 10 + 8192 - len(member) - spare
        value = b"x" * ((8 << 10) + padding)
        deflate = zlib.compressobj(0, zlib.DEFLATED, 31)
        exact = deflate.compress(record(0, value=value) + TWO) + deflate.flush()
        data = compressed("gzip", exact + header)
        is_sought = len(exact) + len(header) > 10 + 8192
        if is_sought:
            with pytest.raises(UnsupportedCompressionError):
                list(ottla.read(data))
        else:
            assert len(list(ottla.read(data))) == 2


def test_zstd_as_others_write_it_is_read_as_before() -> None:
    data = compressed("zstd", zstandard.ZstdCompressor().compress(ONE + TWO))
    assert [r.value for r in ottla.read(data)] == [b"one", b"two"]
