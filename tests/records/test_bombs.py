"""Input that asks for far more than it is: refused at once, and without the memory it asks for."""

import gzip
import struct
import zlib
from collections.abc import Callable
from functools import cache
from operator import length_hint
from pathlib import Path

import cramjam
import lz4.block
import lz4.frame
import ottla
import pytest
import zstandard
from ottla import InvalidRecordError, LimitExceededError, RecordBatchError
from records.crafting import (
    CODECS,
    XERIAL_HEADER,
    batch,
    compressed_batch,
    entry,
    message,
    raw_snappy,
    record,
    varint,
    xxh32,
)
from records.refusals import ACTS, MIB, PIECE, Task, refusal_of

# The bounds for a small payload: 16 MiB whatever its size.
BOUND = 16 * MIB
LARGE = 128 * MIB


@cache
def gzip_zeros(size: int) -> bytes:
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [compressor.compress(bytes(MIB)) for _ in range(size // MIB)]
    return b"".join(parts) + compressor.flush()


@cache
def snappy_zeros(size: int) -> bytes:
    chunk = raw_snappy(bytes(MIB))
    return XERIAL_HEADER + (struct.pack(">i", len(chunk)) + chunk) * (size // MIB)


@cache
def lz4_zeros(size: int) -> bytes:
    descriptor = b"\x60\x70"
    block: bytes = lz4.block.compress(bytes(4 * MIB), store_size=False)
    blocks = (struct.pack("<I", len(block)) + block) * (size // (4 * MIB))
    checksum = bytes([xxh32(descriptor) >> 8 & 0xFF])
    return b"\x04\x22\x4d\x18" + descriptor + checksum + blocks + bytes(4)


@cache
def zstd_zeros(size: int) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=20)
    frame: bytes = zstandard.ZstdCompressor(compression_params=parameters).compress(bytes(size))
    return frame


@cache
def zstd_zeros_of_unknown_size(size: int) -> bytes:
    stream = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    frame: bytes = stream.compress(bytes(size)) + stream.flush()
    return frame


# Payloads that inflate to so many zeros.
ZEROS: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "gzip": ("gzip", gzip_zeros),
    "snappy": ("snappy", snappy_zeros),
    "lz4": ("lz4", lz4_zeros),
    "zstd": ("zstd", zstd_zeros),
    "zstd of unknown size": ("zstd", zstd_zeros_of_unknown_size),
}

# Another library than the engine's own writes what that library inflates again.
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "snappy": lambda data: bytes(cramjam.snappy.compress_raw(data)),
    "lz4": lz4.frame.compress,
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
}


@cache
def ordinary_bytes(codec: str) -> bytes:
    lines = (
        b'{"id":%d,"user":"u%d","amount":%d}\n' % (n * 7919, n * n % 1_000_003, n % 977)
        for n in range(PIECE // 30)
    )
    return COMPRESS[codec](b"".join(lines)[:PIECE])


def file_of(directory: Path, name: str, data: bytes) -> str:
    path = directory / name
    path.write_bytes(data)
    return str(path)


@pytest.mark.measures
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("name", ZEROS)
def test_a_bomb_takes_the_time_and_memory_of_an_honest_payload_as_large_as_the_bound(
    name: str, act: str, tmp_path: Path
) -> None:
    codec, zeros = ZEROS[name]
    number = CODECS.index(codec)
    data = batch(zeros(LARGE), count=1000, codec=number)
    bound = max(BOUND, min(1100 * len(data), 64 * MIB))
    assert bound < LARGE
    task = Task(
        act,
        [file_of(tmp_path, "bomb", data)],
        honest=file_of(tmp_path, "honest", batch(zeros(bound), count=1000, codec=number)),
        ordinary=(codec, file_of(tmp_path, "ordinary", ordinary_bytes(codec)), bound // PIECE),
    )
    found = refusal_of(task, at_most=1.5)
    assert found.kinds == ("decompressed-too-large",)
    assert found.taken < 2 * bound
    # Not a byte beyond the bound, and no slower than any library is on ordinary data.
    assert found.to_honest < 1.5
    assert found.to_ordinary is not None
    assert found.to_ordinary < 1.5


@pytest.mark.parametrize("name", ["gzip", "snappy", "lz4"])
def test_a_bomb_in_a_wrapper_is_refused_too(name: str) -> None:
    codec, zeros = ZEROS[name]
    body = message(1, key=None, value=zeros(LARGE), attributes=CODECS.index(codec))
    for ask in (ottla.check_batches, ottla.read_columns, lambda data: list(ottla.read(data))):
        with pytest.raises(LimitExceededError) as caught:
            ask(entry(0, body))
        assert (caught.value.kind, caught.value.error_code) == ("decompressed-too-large", 87)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_an_honest_payload_of_many_repeats_is_no_bomb(codec: str) -> None:
    data = compressed_batch(record(value=bytes(10 * MIB)), codec)
    assert ottla.check_batches(data) == 1
    assert ottla.read_columns(data).value_length.tolist() == [10 * MIB]


# Sizes and counts that lie. Were one believed, the answer would be a MemoryError or a long wait.

HUGE = 2**31 - 1


def declares_long_block() -> bytes:
    return XERIAL_HEADER + struct.pack(">i", 8) + b"\xff\xff\xff\xff\x0f" + bytes(3)


LIES: dict[str, bytes] = {
    "a count": batch(record(), count=HUGE, last_offset_delta=HUGE - 1),
    "a count of a compressed batch": batch(
        zstandard.ZstdCompressor().compress(record()),
        count=HUGE,
        last_offset_delta=HUGE - 1,
        codec=4,
    ),
    "a count without a payload": batch(b"", count=HUGE, last_offset_delta=HUGE - 1),
    "a record length": batch(varint(HUGE) + bytes(20)),
    "a key length": batch(varint(8) + b"\0\0\0" + varint(HUGE)),
    "a value length": batch(varint(9) + b"\0\0\0" + varint(-1) + varint(HUGE)),
    "a header count": batch(record(header_count=HUGE)),
    "a header count that fits the bytes": batch(record(header_count=1000, spare=b"\xff" * 1000)),
    "a header key length": batch(
        varint(11) + b"\0\0\0" + varint(-1) + varint(-1) + varint(1) + varint(HUGE)
    ),
    "a legacy key length": entry(0, b"\0\0\0\0\0\0" + struct.pack(">ii", HUGE, -1)),
    "an inner size": entry(
        0,
        message(
            1,
            key=None,
            value=gzip.compress(struct.pack(">qi", 0, HUGE) + bytes(50)),
            attributes=1,
        ),
    ),
    "a snappy block's length": batch(declares_long_block(), codec=2),
    "a raw snappy block's length": batch(b"\xff\xff\xff\xff\x0f" + bytes(9), codec=2),
    "a zstd frame's content size": batch(
        b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 60) + bytes(3), codec=4
    ),
    "an lz4 frame's content size": batch(
        b"\x04\x22\x4d\x18\x68\x40" + struct.pack("<Q", 1 << 60) + bytes(5), codec=3
    ),
}


def test_a_count_that_lies_reserves_no_memory() -> None:
    (found,) = ottla.read_batches(LIES["a count"])
    assert length_hint(found.records()) <= len(LIES["a count"])


@pytest.mark.measures
@pytest.mark.parametrize("act", ACTS)
def test_no_size_or_count_that_lies_costs_time_or_memory(act: str, tmp_path: Path) -> None:
    task = Task(
        act,
        [file_of(tmp_path, name, data) for name, data in LIES.items()],
        honest=file_of(tmp_path, "honest", batch(gzip_zeros(BOUND), count=1, codec=1)),
    )
    found = refusal_of(task, at_most=0.1)
    assert [name for name, kind in zip(LIES, found.kinds, strict=True) if kind is None] == []
    assert found.taken < 4 * MIB
    # Of inflating the 16 MiB that are always allowed.
    assert found.to_honest < 0.1


@pytest.mark.parametrize("name", LIES)
def test_a_size_or_count_that_lies_is_an_error_everywhere(name: str) -> None:
    for ask in (ottla.check_batches, ottla.read_columns, lambda data: list(ottla.read(data))):
        with pytest.raises(RecordBatchError):
            ask(LIES[name])


def test_a_size_field_that_lies_is_a_cut_batch_whose_bytes_are_not_waited_for() -> None:
    data = struct.pack(">qiib", 0, HUGE - 12, 0, 2) + bytes(100)
    assert list(ottla.read_batches(data)) == []
    assert len(ottla.read_columns(data)) == 0
    with pytest.raises(ottla.TruncatedBatchError):
        ottla.check_batches(data)


def test_a_record_of_a_million_headers_is_read_and_one_more_is_refused() -> None:
    limit = 1 << 20
    header = varint(0) + varint(-1)

    def with_headers(count: int) -> bytes:
        body = b"\0\0\0" + varint(-1) * 2 + varint(count) + header * count
        return batch(varint(len(body)) + body)

    (read,) = ottla.read(with_headers(limit))
    assert len(read.raw_headers) == limit
    with pytest.raises(LimitExceededError, match="1048577 headers, expected at most 1048576"):
        list(ottla.read(with_headers(limit + 1)))
    with pytest.raises(InvalidRecordError):
        list(ottla.read(batch(record(header_count=limit))))
