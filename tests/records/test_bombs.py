"""Input that asks for far more than it is: refused at once, and without the memory it asks for."""

import gzip
import json
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import lz4.block
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

MIB = 1 << 20
# The bounds for a small payload: 16 MiB whatever its size.
BOUND = 16 * MIB
LARGE = 128 * MIB


@cache
def gzip_bomb() -> bytes:
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [compressor.compress(bytes(MIB)) for _ in range(LARGE // MIB)]
    return b"".join(parts) + compressor.flush()


@cache
def snappy_bomb() -> bytes:
    chunk = raw_snappy(bytes(MIB))
    return XERIAL_HEADER + (struct.pack(">i", len(chunk)) + chunk) * (LARGE // MIB)


@cache
def lz4_bomb() -> bytes:
    descriptor = b"\x60\x70"
    block: bytes = lz4.block.compress(bytes(4 * MIB), store_size=False)
    blocks = (struct.pack("<I", len(block)) + block) * (LARGE // (4 * MIB))
    checksum = bytes([xxh32(descriptor) >> 8 & 0xFF])
    return b"\x04\x22\x4d\x18" + descriptor + checksum + blocks + bytes(4)


@cache
def zstd_bomb() -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=20)
    frame: bytes = zstandard.ZstdCompressor(compression_params=parameters).compress(bytes(LARGE))
    return frame


@cache
def zstd_bomb_of_unknown_size() -> bytes:
    stream = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    frame: bytes = stream.compress(bytes(LARGE)) + stream.flush()
    return frame


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip": ("gzip", gzip_bomb),
    "snappy": ("snappy", snappy_bomb),
    "lz4": ("lz4", lz4_bomb),
    "zstd": ("zstd", zstd_bomb),
    "zstd of unknown size": ("zstd", zstd_bomb_of_unknown_size),
}

# What a user may do with data; each is run alone in a process and measured there.
_PROGRAM = """
import json, resource, sys, time
import numpy, ottla

data = b""
if sys.argv[1] == "check":
    act = lambda: ottla.check_batches(data)
elif sys.argv[1] == "records":
    act = lambda: [list(batch.records()) for batch in ottla.read_batches(data)]
elif sys.argv[1] == "numbers":
    act = lambda: ottla.read_columns(data)
else:
    act = lambda: ottla.read_columns(data, views=True)
kinds, slowest = [], 0
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[2:]:
    with open(path, "rb") as file:
        data = file.read()
    kind, fastest = None, 1e9
    for _ in range(3):
        start = time.process_time()
        try:
            act()
        except ottla.RecordBatchError as error:
            kind = error.kind
        fastest = min(fastest, time.process_time() - start)
    kinds.append(kind)
    slowest = max(slowest, fastest)
taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
unit = 1 if sys.platform == "darwin" else 1024
json.dump([kinds, slowest * 1000, taken * unit], sys.stdout)
"""


def measured(act: str, paths: list[Path]) -> tuple[list[str | None], float, int]:
    """Kinds of the faults, CPU milliseconds of the slowest at best of three, bytes taken."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, act, *map(str, paths)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=True,
    )
    kinds, milliseconds, taken = json.loads(done.stdout)
    return kinds, milliseconds, taken


@pytest.mark.parametrize("act", ["check", "records", "numbers", "views"])
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_within_50_ms_and_four_times_the_bound(
    name: str, act: str, tmp_path: Path
) -> None:
    codec, payload = BOMBS[name]
    data = batch(payload(), count=1000, codec=CODECS.index(codec))
    bound = max(BOUND, min(1100 * len(data), 64 * MIB))
    assert bound < LARGE
    path = tmp_path / "bomb"
    path.write_bytes(data)
    kinds, milliseconds, taken = measured(act, [path])
    assert kinds == ["decompressed-too-large"]
    assert milliseconds < 50
    assert taken < 4 * bound


@pytest.mark.parametrize("name", ["gzip", "snappy", "lz4"])
def test_a_bomb_in_a_wrapper_is_refused_too(name: str) -> None:
    codec, payload = BOMBS[name]
    body = message(1, key=None, value=payload(), attributes=CODECS.index(codec))
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


@pytest.mark.parametrize("act", ["check", "records", "numbers", "views"])
def test_no_size_or_count_that_lies_costs_time_or_memory(act: str, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in LIES]
    for path, data in zip(paths, LIES.values(), strict=True):
        path.write_bytes(data)
    kinds, milliseconds, taken = measured(act, paths)
    assert [name for name, kind in zip(LIES, kinds, strict=True) if kind is None] == []
    assert milliseconds < 5
    assert taken < 2 * MIB


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
