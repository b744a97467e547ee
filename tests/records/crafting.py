"""Batches of every magic, made byte by byte so that one thing in them can be wrong.

Nothing here uses the engine. What covers the bytes is always right unless a caller asks otherwise:
a batch made or edited here breaks the rule it was made for and no other.
"""

import struct
import zlib
from collections.abc import Sequence

import cramjam
import lz4.frame
import zstandard
from crc32c import crc32c

from benches.data import encode_varint

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COMPRESSED = CODECS[1:]
TIMESTAMP = 1_500_000_000_000

LOG_APPEND_TIME = 8
TRANSACTIONAL = 16
CONTROL = 32
DELETE_HORIZON = 64

HEADER_SIZE = 61
XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)

Headers = Sequence[tuple[bytes, bytes | None]]


def varint(value: int, *, width: int | None = None) -> bytes:
    """Zigzag varint; `width` bytes long where it may be longer than needed."""
    encoded = encode_varint(value)
    if width is None:
        return encoded
    padding = width - len(encoded)
    if padding <= 0:
        return encoded
    return encoded[:-1] + bytes([encoded[-1] | 0x80]) + b"\x80" * (padding - 1) + b"\0"


def sized(content: bytes | None, *, null: int = -1) -> bytes:
    """A varint length and the bytes; null is any negative length."""
    return varint(null) if content is None else varint(len(content)) + content


def record(
    offset_delta: int = 0,
    *,
    timestamp_delta: int = 0,
    key: bytes | None = None,
    value: bytes | None = b"v",
    headers: Headers = (),
    attributes: int = 0,
    header_count: int | None = None,
    spare: bytes = b"",
    longer: int = 0,
) -> bytes:
    """A record of magic 2; `longer` is added to the length it declares, `spare` to its bytes."""
    body = b"".join(
        (
            bytes([attributes]),
            varint(timestamp_delta),
            varint(offset_delta),
            sized(key),
            sized(value),
            varint(len(headers) if header_count is None else header_count),
            *(sized(name) + sized(content) for name, content in headers),
            spare,
        )
    )
    return varint(len(body) + longer) + body


def records(count: int) -> bytes:
    """Records one after the other, each a millisecond later and with its own value."""
    return b"".join(
        record(index, timestamp_delta=index, key=b"k", value=b"value %d" % index)
        for index in range(count)
    )


def batch(
    payload: bytes,
    *,
    count: int = 1,
    last_offset_delta: int | None = None,
    base_offset: int = 0,
    codec: int = 0,
    attributes: int = 0,
    base_timestamp: int = TIMESTAMP,
    max_timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    partition_leader_epoch: int = 3,
) -> bytes:
    """A batch of magic 2 around a records section, which is taken as it is."""
    covered = (
        struct.pack(
            ">Hiqqqhii",
            attributes | codec,
            count - 1 if last_offset_delta is None else last_offset_delta,
            base_timestamp,
            base_timestamp + max(count, 0) if max_timestamp is None else max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
        + payload
    )
    head = struct.pack(">qiib", base_offset, 9 + len(covered), partition_leader_epoch, 2)
    return head + struct.pack(">I", crc32c(covered)) + covered


def compressed_batch(payload: bytes, codec: str, *, count: int = 1, attributes: int = 0) -> bytes:
    """The same, the records section compressed."""
    return batch(
        compress(codec, payload), count=count, codec=CODECS.index(codec), attributes=attributes
    )


def resealed(data: bytes) -> bytes:
    """One batch of any magic with the checksum that its bytes have now."""
    if data[16] >= 2:
        return data[:17] + struct.pack(">I", crc32c(data[21:])) + data[21:]
    return data[:12] + struct.pack(">I", zlib.crc32(data[16:])) + data[16:]


def patched(data: bytes, position: int, content: bytes) -> bytes:
    """One batch with other bytes at a position, its checksum made right again."""
    return resealed(data[:position] + content + data[position + len(content) :])


def message(
    magic: int,
    *,
    key: bytes | None = b"k",
    value: bytes | None = b"value",
    attributes: int = 0,
    timestamp: int = TIMESTAMP,
    spare: bytes = b"",
) -> bytes:
    """A record of magic 0 or 1 from its checksum on."""
    covered = bytes([magic, attributes])
    if magic:
        covered += struct.pack(">q", timestamp)
    for part in (key, value):
        covered += struct.pack(">i", -1 if part is None else len(part)) + (part or b"")
    covered += spare
    return struct.pack(">I", zlib.crc32(covered)) + covered


def entry(offset: int, body: bytes) -> bytes:
    """A record of magic 0 or 1 with its offset and size before it."""
    return struct.pack(">qi", offset, len(body)) + body


def wrapper(
    magic: int,
    codec: str,
    entries: bytes,
    *,
    offset: int,
    attributes: int = 0,
    timestamp: int = TIMESTAMP,
    key: bytes | None = None,
) -> bytes:
    """A compressed message set of magic 0 or 1."""
    payload = compress(codec, entries, magic=magic)
    return wrapped(
        magic,
        codec,
        payload,
        offset=offset,
        attributes=attributes,
        timestamp=timestamp,
        key=key,
    )


def wrapped(
    magic: int,
    codec: str,
    payload: bytes,
    *,
    offset: int,
    attributes: int = 0,
    timestamp: int = TIMESTAMP,
    key: bytes | None = None,
) -> bytes:
    """A wrapper of magic 0 or 1 around a payload, which is taken as it is."""
    body = message(
        magic,
        key=key,
        value=payload,
        attributes=CODECS.index(codec) | attributes,
        timestamp=timestamp,
    )
    return entry(offset, body)


def compress(codec: str, data: bytes, *, magic: int = 2) -> bytes:
    """Compress as Kafka frames it; other libraries than the engine's do the work."""
    if codec == "gzip":
        compressor = zlib.compressobj(6, zlib.DEFLATED, 31)
        return compressor.compress(data) + compressor.flush()
    if codec == "snappy":
        return xerial(data)
    if codec == "lz4":
        frame: bytes = lz4.frame.compress(data, store_size=False, block_linked=False)
        return with_old_lz4_checksum(frame) if magic == 0 else frame
    if codec == "zstd":
        zstd: bytes = zstandard.ZstdCompressor().compress(data)
        return zstd
    return data


def raw_snappy(data: bytes) -> bytes:
    """One snappy block without a frame around it."""
    return bytes(cramjam.snappy.compress_raw(data))


def xerial(data: bytes, *, block_size: int = 32 * 1024) -> bytes:
    """Snappy blocks in the frame of Java's SnappyOutputStream."""
    parts = [XERIAL_HEADER]
    for position in range(0, len(data), block_size):
        block = raw_snappy(data[position : position + block_size])
        parts.append(struct.pack(">i", len(block)) + block)
    return b"".join(parts)


def with_old_lz4_checksum(frame: bytes) -> bytes:
    """A frame whose header checksum also covers the frame's magic, as magic 0 has it (KAFKA-3160).

    The frame has no content size: its header is 7 bytes long.
    """
    return frame[:6] + bytes([xxh32(frame[:6]) >> 8 & 0xFF]) + frame[7:]


_PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)


def xxh32(data: bytes) -> int:
    """xxHash, 32 bits, seed 0, of fewer than 16 bytes: all that a frame header has."""
    assert len(data) < 16
    mask = 0xFFFF_FFFF

    def rotated(value: int, by: int) -> int:
        return (value << by | value >> (32 - by)) & mask

    value = (_PRIMES[4] + len(data)) & mask
    words = len(data) // 4 * 4
    for position in range(0, words, 4):
        word = int.from_bytes(data[position : position + 4], "little")
        value = rotated((value + word * _PRIMES[2]) & mask, 17) * _PRIMES[3] & mask
    for byte in data[words:]:
        value = rotated((value + byte * _PRIMES[4]) & mask, 11) * _PRIMES[0] & mask
    value = (value ^ value >> 15) * _PRIMES[1] & mask
    value = (value ^ value >> 13) * _PRIMES[2] & mask
    return value ^ value >> 16
