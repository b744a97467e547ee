"""Kafka record batches of magic 2, written in plain Python from the format's description.

Nothing here uses the engine: what it reads in a benchmark or a property was never written by it.
The same shape and size always give the same bytes.
"""

import random
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import cramjam
import lz4.frame
import numpy as np
import numpy.typing as npt
import zstandard
from crc32c import crc32c

MIB = 1 << 20
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
CODECS: tuple[Compression, ...] = get_args(Compression)

Header = tuple[str, bytes | None]
# Timestamp, key, value, headers.
PlainRecord = tuple[int, bytes | None, bytes | None, tuple[Header, ...]]

_HEADER_SIZE = 61
_FIRST_TIMESTAMP = 1_700_000_000_000
# Java's SnappyOutputStream writes blocks of this size.
_XERIAL_BLOCK_SIZE = 32 * 1024


def encode_varint(value: int) -> bytes:
    """Return a signed integer as the zigzag varint that Protocol Buffers define."""
    rest = (value << 1) ^ (value >> 63)
    rest &= 0xFFFF_FFFF_FFFF_FFFF
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


_SMALL_VARINTS = tuple(encode_varint(value) for value in range(1 << 14))


def _varint(value: int) -> bytes:
    return _SMALL_VARINTS[value] if 0 <= value < 1 << 14 else encode_varint(value)


def _sized(content: bytes | None) -> bytes:
    return b"\x01" if content is None else _varint(len(content)) + content


def encode_record(record: PlainRecord, offset_delta: int, base_timestamp: int) -> bytes:
    """Return one record as it stands in a batch, its length first."""
    timestamp, key, value, headers = record
    parts = [b"\0", _varint(timestamp - base_timestamp), _varint(offset_delta)]
    parts += [_sized(key), _sized(value), _varint(len(headers))]
    for name, content in headers:
        parts += [_sized(name.encode()), _sized(content)]
    body = b"".join(parts)
    return _varint(len(body)) + body


def _xerial(records: bytes) -> bytes:
    parts = [b"\x82SNAPPY\x00", struct.pack(">ii", 1, 1)]
    for position in range(0, len(records), _XERIAL_BLOCK_SIZE):
        block = bytes(
            cramjam.snappy.compress_raw(records[position : position + _XERIAL_BLOCK_SIZE])
        )
        parts += [struct.pack(">i", len(block)), block]
    return b"".join(parts)


def _gzip(records: bytes) -> bytes:
    compressor = zlib.compressobj(6, zlib.DEFLATED, 31)
    return compressor.compress(records) + compressor.flush()


def _lz4(records: bytes) -> bytes:
    frame: bytes = lz4.frame.compress(
        records, store_size=False, block_linked=False, block_size=lz4.frame.BLOCKSIZE_MAX64KB
    )
    return frame


def _zstd(records: bytes) -> bytes:
    frame: bytes = zstandard.ZstdCompressor(level=3).compress(records)
    return frame


_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda records: records,
    "gzip": _gzip,
    "snappy": _xerial,
    "lz4": _lz4,
    "zstd": _zstd,
}


def encode_batch(
    records: Iterable[PlainRecord],
    *,
    base_offset: int = 0,
    compression: Compression = "none",
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    partition_leader_epoch: int = 0,
) -> bytes:
    """Return one batch; `attributes` are the bits beside the codec's."""
    listed = list(records)
    base_timestamp = listed[0][0] if listed else -1
    encoded = b"".join(
        encode_record(record, index, base_timestamp) for index, record in enumerate(listed)
    )
    checked = struct.pack(
        ">hiqqqhii",
        CODECS.index(compression) | attributes,
        len(listed) - 1,
        base_timestamp,
        max((record[0] for record in listed), default=-1),
        producer_id,
        producer_epoch,
        base_sequence,
        len(listed),
    ) + _COMPRESS[compression](encoded)
    head = struct.pack(
        ">qiibI", base_offset, 9 + len(checked), partition_leader_epoch, 2, crc32c(checked)
    )
    return head + checked


@dataclass(frozen=True)
class Shape:
    """What the records of a benchmark are like; keys have 16 bytes, values jitter by a half."""

    value_size: int = 100
    records_per_batch: int = 1000
    headers: int = 0
    compression: Compression = "none"
    seed: int = 1

    def __str__(self) -> str:
        kib, rest = divmod(self.value_size, 1024)
        size = f"{self.value_size}B" if rest or not kib else f"{kib}KiB"
        name = f"{size}-x{self.records_per_batch}"
        if self.headers:
            name += f"-{self.headers}h"
        return name if self.compression == "none" else f"{name}-{self.compression}"


@dataclass(frozen=True, eq=False)
class Data:
    """Batches of one shape, with what is in them."""

    shape: Shape
    size: int
    batches: tuple[bytes, ...]
    records: int
    raw_size: int
    """Bytes of the batches before compression."""

    @property
    def log(self) -> bytes:
        """Return the batches in one run, as a segment holds them."""
        return _log(self)

    def __str__(self) -> str:
        size = f"{self.size // MIB}MiB" if self.size >= MIB else f"{self.size}B"
        return f"{self.shape}-{size}"


@lru_cache(maxsize=4)
def _log(data: Data) -> bytes:
    return b"".join(data.batches)


_WORDS = (
    *(
        "alpha",
        "beta",
        "order",
        "click",
        "view",
        "cart",
        "user",
        "session",
        "page",
        "item",
        "price",
    ),
    *("total", "status", "region", "eu-west", "us-east", "device", "mobile", "desktop"),
)


@lru_cache(maxsize=1)
def _text() -> bytes:
    """One long text of which values are slices: quick to make, as compressible as JSON is."""
    chance = random.Random(7)
    lines: list[str] = []
    size = 0
    while size < 4 * MIB:
        line = (
            f'{{"id":{chance.randrange(10**9)},"user":"u{chance.randrange(10**6)}",'
            f'"ts":{_FIRST_TIMESTAMP + len(lines) * 17},"event":"{chance.choice(_WORDS)}",'
            f'"region":"{chance.choice(_WORDS)}","amount":{chance.randrange(100_000) / 100},'
            f'"tags":["{chance.choice(_WORDS)}","{chance.choice(_WORDS)}"],'
            f'"trace":"{chance.getrandbits(64):016x}"}}'
        )
        lines.append(line)
        size += len(line)
    return "".join(lines).encode()


def plain_records(shape: Shape) -> Iterator[PlainRecord]:
    """Return records without end; timestamps grow by 0 to 29 ms, so that varints vary in length."""
    text = _text()
    chance = random.Random(shape.seed)
    draw = chance.random
    timestamp = _FIRST_TIMESTAMP
    while True:
        timestamp += int(draw() * 30)
        key = b"user-%d" % int(draw() * 1e6)
        size = int(shape.value_size * (0.5 + draw()) + 0.5)
        start = int(draw() * (len(text) - size))
        headers = tuple(
            (f"header-{index}", b"%016x" % chance.getrandbits(64)) for index in range(shape.headers)
        )
        yield timestamp, key.ljust(16, b"."), text[start : start + size], headers


@lru_cache(maxsize=16)
def generate(shape: Shape, size: int) -> Data:
    """Return whole batches of a shape until they have `size` bytes before compression."""
    source = plain_records(shape)
    batches = []
    count = raw_size = 0
    while raw_size < size:
        records = [next(source) for _ in range(shape.records_per_batch)]
        batch = encode_batch(records, base_offset=count, compression=shape.compression)
        batches.append(batch)
        count += len(records)
        if shape.compression == "none":
            raw_size += len(batch)
        else:
            raw_size += _HEADER_SIZE + sum(
                len(encode_record(record, index, records[0][0]))
                for index, record in enumerate(records)
            )
    return Data(shape, size, tuple(batches), count, raw_size)


@dataclass(frozen=True, eq=False)
class ColumnsOfBatch:
    """What a batch is built from: columns in Arrow's layout, 32-bit offsets and bytes."""

    timestamps: npt.NDArray[np.int64]
    keys: tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]
    values: tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]


def _binary(parts: list[bytes]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    offsets = np.zeros(len(parts) + 1, np.int32)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(parts), np.uint8)


@lru_cache(maxsize=4)
def records_of(shape: Shape, size: int) -> tuple[tuple[PlainRecord, ...], ...]:
    """Return the records that `generate` encodes, a tuple a batch."""
    source = plain_records(shape)
    batches = len(generate(shape, size).batches)
    return tuple(
        tuple(next(source) for _ in range(shape.records_per_batch)) for _ in range(batches)
    )


def columns_of(records: Iterable[PlainRecord]) -> ColumnsOfBatch:
    """Return the records of one batch as columns."""
    listed = list(records)
    return ColumnsOfBatch(
        np.array([record[0] for record in listed], np.int64),
        _binary([record[1] or b"" for record in listed]),
        _binary([record[2] or b"" for record in listed]),
    )


@lru_cache(maxsize=16)
def produced(data: Data) -> Data:
    """Return the same batches as one idempotent producer sends them, sequence after sequence."""
    batches = []
    sequence = 0
    for batch in data.batches:
        checked = batch[21:43] + struct.pack(">qhi", 7, 0, sequence) + batch[57:]
        batches.append(bytes(8) + batch[8:17] + struct.pack(">I", crc32c(checked)) + checked)
        sequence += int.from_bytes(batch[23:27], "big") + 1
    return Data(data.shape, data.size, tuple(batches), data.records, data.raw_size)


def renumbered(batches: Iterable[bytes], base_offset: int) -> tuple[bytes, int]:
    """Return batches as one run that starts at an offset, and the offset after it.

    The base offset stands before what the CRC covers: a broker assigns it the same way.
    """
    parts = []
    for batch in batches:
        parts += [base_offset.to_bytes(8, "big"), batch[8:]]
        base_offset += int.from_bytes(batch[23:27], "big") + 1
    return b"".join(parts), base_offset
