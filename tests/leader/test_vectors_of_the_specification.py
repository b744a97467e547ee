"""The numbered vectors (`produce-validation.md` §13): what Kafka 4.1 and the strict profile decide.

Unless a row says otherwise: one batch of magic 2 from a client in Produce 9, three records with
deltas 0, 1, 2, key "k" and timestamps now, now + 1, now + 2, a topic without limits, the log at
offset 1000.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ottla
import pytest
from records.crafting import (
    CODECS,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    batch,
    compress,
    entry,
    message,
    patched,
    raw_snappy,
    record,
    varint,
    wrapper,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = 1_700_000_000_000
MAX = 2**63 - 1
MIN = -(2**63)
UNLIMITED = {"message_timestamp_before_max_ms": MAX, "message_timestamp_after_max_ms": MAX}
SECOND = {"message_timestamp_before_max_ms": 1000, "message_timestamp_after_max_ms": 1000}
COMPACT = {"cleanup_policy": "compact"}
STAMPED = {"message_timestamp_type": "LogAppendTime"}
OLD = {"message_format_version": "0.10.2"}


def to(codec: str) -> dict[str, Any]:
    return {"compression_type": codec}


@dataclass(frozen=True)
class Accepted:
    """Taken with these offsets; `records` is what a consumer reads back, offset and timestamp."""

    first: int = 1000
    last: int = 1002
    rebuilt: bool = False
    offsets: Sequence[int] | None = None
    timestamps: Sequence[int] | None = None
    attributes: int | None = None
    max_timestamp: int | None = None
    magic: int = 2


@dataclass(frozen=True)
class Refused:
    """Refused with a code, and records to blame: their positions, with codes that differ."""

    code: int
    culprits: Sequence[int | tuple[int, int]] = ()
    meter: str | None = None
    marks: int = 1
    request_wide: bool = False


@dataclass(frozen=True)
class Vector:
    number: str
    says: str
    records: bytes
    kafka: Accepted | Refused
    strict: Accepted | Refused
    config: dict[str, Any] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)


VECTORS: list[Vector] = []


def vector(  # noqa: PLR0917 - the columns of a table
    number: str,
    says: str,
    records: bytes,
    kafka: Accepted | Refused,
    strict: Accepted | Refused | None = None,
    config: dict[str, Any] | None = None,
    **request: Any,
) -> None:
    VECTORS.append(Vector(number, says, records, kafka, strict or kafka, config or {}, request))


def section(
    deltas: Sequence[int] = (0, 1, 2),
    *,
    keys: Sequence[bytes | None] = (b"k",) * 9,
    times: Sequence[int] = tuple(range(9)),
) -> bytes:
    return b"".join(
        record(delta, timestamp_delta=time, key=key)
        for delta, time, key in zip(deltas, times, keys, strict=False)
    )


def sent(
    payload: bytes | None = None,
    codec: str = "none",
    *,
    count: int = 3,
    squeezed: bytes | None = None,
    max_timestamp: int | None = NOW + 2,
    base_timestamp: int = NOW,
    **header: Any,
) -> bytes:
    """A batch as a producer sends it."""
    payload = section() if payload is None else payload
    return batch(
        compress(codec, payload) if squeezed is None else squeezed,
        count=count,
        codec=CODECS.index(codec),
        max_timestamp=max_timestamp,
        base_timestamp=base_timestamp,
        **header,
    )


def old(magic: int, offset: int = 0, **fields: Any) -> bytes:
    return entry(offset, message(magic, **{"timestamp": NOW} | fields))


def old_set(magic: int, *offsets: int, **fields: Any) -> bytes:
    return b"".join(old(magic, offset, **fields) for offset in offsets)


def wrapped(magic: int, *inner: int, offset: int, codec: str = "gzip", **fields: Any) -> bytes:
    return wrapper(magic, codec, old_set(magic, *inner), offset=offset, timestamp=NOW, **fields)


RIGHT = sent()
OFFSETS = "InvalidOffsetOrSequenceRecordsPerSec"
MAGIC = "InvalidMagicNumberRecordsPerSec"
CRC = "InvalidMessageCrcRecordsPerSec"
KEYLESS = "NoKeyCompactedTopicRecordsPerSec"
ZIPPED, SNAPPED, LZ4ED, ZSTDED = (sent(codec=codec) for codec in CODECS[1:])
BLOCKS = {codec: compress(codec, section()) for codec in CODECS[1:]}
UNGATED = {"api_version": None}

vector("1", "three records", RIGHT, Accepted(max_timestamp=NOW + 2, attributes=0))
vector("2", "gzip", ZIPPED, Accepted(attributes=1))
vector("3", "gzip to uncompressed", ZIPPED, Accepted(rebuilt=True), config=to("uncompressed"))
vector("4", "none to zstd", RIGHT, Accepted(rebuilt=True, attributes=4), config=to("zstd"))
vector(
    "5",
    "deltas 0,2,1",
    sent(section((0, 2, 1))),
    Accepted(offsets=(1000, 1002, 1001)),
    Refused(87, (1, 2)),
)
vector(
    "6",
    "deltas 0,0,0",
    sent(section((0, 0, 0))),
    Accepted(offsets=(1000, 1000, 1000)),
    Refused(87, (1, 2)),
)
for codec in CODECS[1:]:
    vector(
        "7",
        f"{codec}, deltas 0,2,1",
        sent(section((0, 2, 1)), codec),
        Refused(-1),
        Refused(87, (1, 2)),
    )
vector(
    "8",
    "gzip to none, deltas 0,2,1",
    sent(section((0, 2, 1)), "gzip"),
    Accepted(rebuilt=True, offsets=(1000, 1001, 1002)),
    Refused(87, (1, 2)),
    to("uncompressed"),
)
vector(
    "8",
    "none to gzip, deltas 0,2,1",
    sent(section((0, 2, 1))),
    Accepted(rebuilt=True, offsets=(1000, 1001, 1002)),
    Refused(87, (1, 2)),
    to("gzip"),
)

BODY = record(0, key=b"k")[1:]
ENDLESS = b"\x80" * 6 + BODY
vector("9", "length varint of six bytes", sent(ENDLESS, count=1), Refused(-1), Refused(87, (0,)))
vector("10", "the same in gzip", sent(ENDLESS, "gzip", count=1), Refused(87), Refused(87, (0,)))
vector(
    "11",
    "length varint longer than needed",
    sent(varint(len(BODY), width=3) + BODY, count=1),
    Accepted(last=1000),
)
vector(
    "12",
    "surplus bits in the fifth byte of a length",
    sent(varint(len(BODY), width=5)[:4] + b"\x70" + BODY, count=1),
    Accepted(last=1000),
)
for longer in (1, -1, -1 - len(BODY)):
    lying = (
        section((0,)) + record(1, longer=longer, timestamp_delta=1)
        if longer > -2
        else (
            section((0,))
            + record(1, longer=-1 - len(record(1, timestamp_delta=1)[1:]), timestamp_delta=1)
        )
    )
    vector(
        "13", f"record length off by {longer}", sent(lying, count=2), Refused(87), Refused(87, (1,))
    )
    vector(
        "14",
        f"gzip kept, record length off by {longer}",
        sent(lying, "gzip", count=2),
        Accepted(last=1001),
        Refused(87, (1,)),
    )
vector(
    "15",
    "gzip to none, record length one too long",
    sent(section((0,)) + record(1, longer=1), "gzip", count=2),
    Refused(87),
    Refused(87, (1,)),
    to("uncompressed"),
)

for codec in ("none", "gzip"):
    flagged = sent(codec=codec, attributes=LOG_APPEND_TIME, max_timestamp=NOW)
    vector(
        "16",
        f"{codec} flagged LogAppendTime for a CreateTime topic",
        flagged,
        Accepted(
            attributes=CODECS.index(codec), max_timestamp=NOW, timestamps=(NOW, NOW + 1, NOW + 2)
        ),
        Refused(32, (0, 1, 2)),
    )
vector(
    "17",
    "flagged LogAppendTime without a time",
    sent(attributes=LOG_APPEND_TIME, max_timestamp=-1),
    Refused(32, (0, 1, 2)),
)
vector(
    "18",
    "flagged LogAppendTime for a LogAppendTime topic",
    sent(attributes=LOG_APPEND_TIME, max_timestamp=NOW),
    Refused(32, (0, 1, 2)),
    config=STAMPED,
)
for codec in CODECS:
    vector("19", f"{codec}: three records counted as two", sent(codec=codec, count=2), Refused(87))
    vector(
        "20",
        f"{codec}: three records counted as four",
        sent(codec=codec, count=4),
        Refused(87),
        Refused(87, (3,)),
    )
for codec in ("gzip", "lz4"):
    for size in (1, 12):
        vector(
            "21",
            f"{codec} payload and {size} bytes of garbage",
            sent(codec=codec, squeezed=BLOCKS[codec] + b"x" * size),
            Accepted(),
            Refused(87),
        )
vector(
    "22",
    "snappy and three bytes of garbage",
    sent(codec="snappy", squeezed=BLOCKS["snappy"] + b"xyz"),
    Accepted(),
    # Kafka's own client reads on; those in Python and librdkafka stop.
    Refused(87),
)
vector(
    "22",
    "snappy and four bytes of garbage",
    sent(codec="snappy", squeezed=BLOCKS["snappy"] + b"wxyz"),
    Refused(-1),
    Refused(87),
)
vector(
    "23",
    "zstd and one byte of garbage",
    sent(codec="zstd", squeezed=BLOCKS["zstd"] + b"x"),
    Refused(-1),
    Refused(87),
)
for codec in CODECS[1:]:
    halves = compress(codec, section((0, 1))) + compress(codec, section((2, 3), times=(2, 3)))
    vector(
        "24",
        f"two {codec} streams",
        sent(codec=codec, squeezed=halves, count=4, max_timestamp=NOW + 3),
        Refused(87) if codec == "lz4" else Accepted(last=1003),
        {"lz4": Refused(87, (2,)), "zstd": None}.get(codec, Refused(87)),
    )
    vector(
        "25",
        f"{codec} stream cut by a byte",
        sent(codec=codec, squeezed=BLOCKS[codec][:-1]),
        Refused(-1),
        Refused(87),
    )
    vector(
        "26",
        f"empty {codec} payload",
        sent(codec=codec, squeezed=b""),
        Refused(87 if codec == "zstd" else -1),
        Refused(87, (0,)) if codec == "zstd" else Refused(87),
    )
for part, at in (("CRC", -8), ("size", -4)):
    broken = bytearray(BLOCKS["gzip"])
    broken[at] ^= 1
    vector(
        "27",
        f"wrong {part} in the gzip trailer",
        sent(codec="gzip", squeezed=bytes(broken)),
        Refused(-1),
        Refused(87),
    )
for part, at, bits in (("checksum", 6, 1), ("independence", 4, 0x20), ("block size", 5, 0x70)):
    broken = bytearray(BLOCKS["lz4"])
    broken[at] ^= bits
    vector(
        "28",
        f"wrong {part} in an lz4 header",
        sent(codec="lz4", squeezed=bytes(broken)),
        Refused(-1),
        Refused(87),
    )
vector("29", "a raw snappy block", sent(codec="snappy", squeezed=raw_snappy(section())), Accepted())
vector("30", "codec 5", sent(attributes=5), Refused(-1), Refused(87))
vector(
    "30",
    "codec 5 in Produce 6",
    sent(attributes=5),
    Refused(-1, request_wide=True),
    Refused(87, request_wide=True),
    api_version=6,
)
vector("31", "unknown attribute bits", sent(attributes=0xFF80), Accepted(attributes=0xFF80))
vector(
    "32",
    "unknown attribute bits and a wrong maximum",
    sent(attributes=0xFF80, max_timestamp=NOW + 9),
    Accepted(attributes=0),
)
vector(
    "33",
    "a delete horizon from a client",
    sent(attributes=DELETE_HORIZON),
    Accepted(attributes=DELETE_HORIZON),
)
EARLY = sent(section((0,), times=(0,)), count=1, base_timestamp=-5, max_timestamp=-5)
vector(
    "34",
    "timestamp -5 without limits",
    EARLY,
    Accepted(last=1000, max_timestamp=-1),
    config=UNLIMITED,
)
vector("35", "timestamp -5 with limits", EARLY, Refused(32, (0,)), config=SECOND)
vector(
    "36",
    "timestamp -5, none to gzip",
    EARLY,
    Refused(-1),
    Refused(87, (0,)),
    UNLIMITED | to("gzip"),
)
FIRST = sent(section((0,)), count=1, base_timestamp=MIN, max_timestamp=MIN)
vector("37", "the first timestamp of 64 bits", FIRST, Refused(32, (0,)))
vector(
    "38",
    "the last timestamp of 64 bits",
    sent(section((0,)), count=1, base_timestamp=MAX, max_timestamp=MAX),
    Accepted(last=1000, max_timestamp=MAX),
    config=UNLIMITED,
)
vector("39", "count 0, last delta 0", sent(count=0, last_offset_delta=0), Refused(87, (), OFFSETS))
vector("40", "count 0, last delta -1", sent(count=0), Refused(87, (), OFFSETS))
vector("41", "count 3, last delta 5", sent(last_offset_delta=5), Refused(87, (), OFFSETS))
vector(
    "42",
    "count 0 from a coordinator",
    sent(b"", count=0, last_offset_delta=0),
    Accepted(last=999),
    origin="coordinator",
    **UNGATED,
)
MARKER = ottla.build_control_batch(
    "commit", producer_id=5, producer_epoch=0, coordinator_epoch=7, timestamp=NOW
)
vector(
    "43", "a control batch from a client", MARKER, Refused(87, (), OFFSETS), transactional_id="t"
)
vector(
    "44",
    "a commit marker for a gzip topic",
    MARKER,
    Accepted(last=1000, attributes=CONTROL | TRANSACTIONAL),
    config=to("gzip"),
    origin="coordinator",
    **UNGATED,
)
UNNUMBERED = sent(producer_id=5, producer_epoch=0, base_sequence=-1)
vector("45", "a producer without sequence", UNNUMBERED, Refused(87, (), OFFSETS))
vector("45", "the same from a coordinator", UNNUMBERED, Accepted(), origin="coordinator", **UNGATED)
vector("46", "producer id -5", sent(producer_id=-5, base_sequence=-2), Accepted())
vector("47", "two batches", RIGHT + RIGHT, Refused(87))
vector("47", "two batches without a gate", RIGHT + RIGHT, Refused(87), **UNGATED)
vector("48", "a second batch that is cut", RIGHT + RIGHT[:-1], Accepted())
vector("48", "eleven more bytes", RIGHT + b"x" * 11, Accepted())
vector("49", "twelve zeros more", RIGHT + bytes(12), Refused(2))
vector(
    "50", "seventeen bytes more, magic 9", RIGHT + struct.pack(">qiib", 0, 100, 0, 9), Refused(2)
)
vector(
    "51",
    "compacted, records 0 and 2 without key",
    sent(section(keys=(None, b"k", None))),
    Refused(87, (0, 2), KEYLESS, 2),
    config=COMPACT,
)
vector(
    "52",
    "compacted, keys and timestamps wrong",
    sent(section(keys=(None, b"k", None), times=(0, -5000, -5000))),
    Refused(32, ((0, 87), 1, (2, 87)), KEYLESS, 2),
    config=COMPACT | SECOND,
)
vector("53", "compacted, empty keys", sent(section(keys=(b"",) * 3)), Accepted(), config=COMPACT)
for codec in ("none", "gzip"):
    vector(
        "54",
        f"{codec} for a LogAppendTime topic",
        sent(codec=codec),
        Accepted(attributes=CODECS.index(codec) | LOG_APPEND_TIME, timestamps=(NOW,) * 3),
        config=STAMPED,
    )
vector(
    "55", "header maximum too high", sent(max_timestamp=NOW + 99), Accepted(max_timestamp=NOW + 2)
)
vector("56", "base offset 5", sent(base_offset=5), Refused(87))
vector(
    "57", "wrong checksum", RIGHT[:17] + bytes([RIGHT[17] ^ 1]) + RIGHT[18:], Refused(2, (), CRC)
)


def shortened(total: int) -> bytes:
    return RIGHT[:8] + struct.pack(">i", total - 12) + RIGHT[12:total]


for total in (26, 40):
    vector(
        "58",
        f"a batch of {total} bytes",
        shortened(total),
        Refused(-1, request_wide=True),
        Refused(87, request_wide=True),
    )
vector("58", "a batch of 55 bytes", shortened(55), Refused(2, (), CRC))
for size in (13, -1):
    vector(
        "59",
        f"size field {size}",
        RIGHT[:8] + struct.pack(">i", size) + RIGHT[12:],
        Refused(2, request_wide=True),
    )
for magic in (3, -1):
    vector(
        "59",
        f"magic {magic}",
        RIGHT[:16] + struct.pack(">b", magic) + RIGHT[17:],
        Refused(2, request_wide=True),
    )
vector(
    "60",
    "the largest size field",
    RIGHT[:8] + struct.pack(">i", 2**31 - 1) + RIGHT[12:],
    Refused(-1, request_wide=True),
    Refused(87, request_wide=True),
)
vector("61", "no whole batch", RIGHT[:-1], Refused(87))
vector("61", "no whole batch without a gate", RIGHT[:-1], Accepted(-1, -1), **UNGATED)
vector("62", "zstd in Produce 6", ZSTDED, Refused(76), api_version=6)
vector("62", "zstd in Produce 7", ZSTDED, Accepted(), api_version=7)
vector("63", "a record of magic 1", old(1), Accepted(last=1000, rebuilt=True), api_version=2)
vector(
    "64",
    "records of magic 1 at offset 7 both",
    old_set(1, 7, 7),
    Accepted(last=1001, rebuilt=True),
    api_version=2,
)
vector(
    "65",
    "two records of magic 0",
    old_set(0, 0, 1),
    Accepted(last=1001, rebuilt=True, timestamps=(-1, -1)),
    api_version=0,
)
vector("66", "magic 1, then 0", old(1) + old(0), Refused(87, (), MAGIC), api_version=2)
vector("67", "magic 1, then 2", old(1) + RIGHT, Refused(87, (), MAGIC), api_version=2)
vector("67", "magic 2, then 1", RIGHT + old(1), Refused(87), api_version=2)
WRAPPED = wrapped(1, 0, 1, 2, offset=2)
vector(
    "68", "a gzip wrapper of magic 1", WRAPPED, Accepted(rebuilt=True, attributes=1), api_version=2
)
for offset in (2, 0):
    vector(
        "69",
        f"to magic 1: wrapper offset {offset}",
        wrapped(1, 0, 1, 2, offset=offset),
        Accepted(magic=1),
        config=OLD,
        **UNGATED,
    )
vector(
    "70",
    "to magic 1: wrapper offset 10",
    wrapped(1, 0, 1, 2, offset=10),
    Accepted(magic=1, rebuilt=True),
    config=OLD,
    **UNGATED,
)
vector(
    "70",
    "to magic 1: inner offsets 0 and 5",
    wrapped(1, 0, 5, offset=5),
    Accepted(last=1001, magic=1, rebuilt=True),
    config=OLD,
    **UNGATED,
)
vector(
    "71",
    "wrapper offset below its last inner offset",
    wrapped(1, 0, 1, 2, offset=1),
    Refused(87),
    **UNGATED,
)
BAD_CRC = bytearray(old_set(1, 0, 1))
BAD_CRC[12] ^= 1
vector(
    "72",
    "wrong inner checksum",
    wrapper(1, "gzip", bytes(BAD_CRC), offset=1, timestamp=NOW),
    Refused(2, (), CRC),
    Refused(2, (0,), CRC),
    **UNGATED,
)
vector(
    "73",
    "compressed inside a wrapper",
    wrapper(1, "gzip", old(1) + old(1, 1, attributes=1), offset=1, timestamp=NOW),
    Refused(87),
    Refused(87, (1,)),
    **UNGATED,
)
vector(
    "74",
    "magic 1 in a wrapper of magic 0",
    wrapper(0, "gzip", old(1), offset=0),
    Refused(87, (0,), MAGIC),
    **UNGATED,
)
vector("75", "a wrapper without a value", old(1, value=None, attributes=1), Refused(87), **UNGATED)
vector(
    "75", "a wrapper without a record", wrapper(1, "gzip", b"", offset=0), Refused(87), **UNGATED
)
vector("75", "zstd with magic 1", wrapper(1, "zstd", old(1), offset=0), Refused(87), **UNGATED)
vector(
    "76",
    "a wrapper value that is no gzip",
    old(1, value=b"no gzip", attributes=1),
    Refused(-1),
    Refused(87),
    **UNGATED,
)
vector(
    "77",
    "a wrapper whose last entry is cut",
    wrapper(1, "gzip", old_set(1, 0, 1, 2)[:-1], offset=2, timestamp=NOW),
    Accepted(last=1001, rebuilt=True),
    **UNGATED,
)
vector("78", "two wrappers", WRAPPED + WRAPPED, Refused(87), **UNGATED)
vector("78", "a wrapper and a plain record", WRAPPED + old(1), Refused(87), **UNGATED)
STUB = bytes([1, 0]) + struct.pack(">q", NOW) + bytes(2)
vector(
    "79",
    "a magic 1 body of 16 bytes",
    entry(0, struct.pack(">I", zlib.crc32(STUB)) + STUB),
    Refused(-1),
    Refused(87, (0,)),
    **UNGATED,
)
vector(
    "80",
    "two spare bytes behind the value",
    old(1, spare=b"xx"),
    Accepted(last=1000, rebuilt=True),
    **UNGATED,
)
vector(
    "81",
    "a value length beyond the body",
    patched(old(1), 12 + 14 + 4 + 1, struct.pack(">i", 99)),
    Refused(-1),
    Refused(87, (0,)),
    **UNGATED,
)
vector(
    "82",
    "timestamp -5 to magic 1",
    old(1, timestamp=-5),
    Accepted(last=1000, magic=1, max_timestamp=-1),
    config=OLD | UNLIMITED,
    **UNGATED,
)
vector(
    "82",
    "timestamp -5 of magic 1 to magic 2",
    old(1, timestamp=-5),
    Refused(-1),
    Refused(87, (0,)),
    UNLIMITED,
    **UNGATED,
)
for wrong in (False, True):
    frame = compress("lz4", old(0), magic=0 if wrong else 1)
    vector(
        "83",
        f"magic 0 lz4, header checksum {'wrong' if wrong else 'right'}",
        old(0, key=None, value=frame, attributes=3),
        Accepted(last=1000, rebuilt=True),
        **UNGATED,
    )
vector(
    "84",
    "magic 1 lz4, header checksum wrong",
    old(1, key=None, value=compress("lz4", old(1), magic=0), attributes=3),
    Refused(-1),
    Refused(87),
    **UNGATED,
)
vector(
    "85", "header count -1", sent(record(header_count=-1), count=1), Refused(87), Refused(87, (0,))
)
vector(
    "85",
    "more headers than bytes",
    sent(record(header_count=99), count=1),
    Refused(87),
    Refused(87, (0,)),
)
NULL_HEADER = b"\0\0\0" + varint(-1) + varint(1) + b"v" + varint(1) + varint(-1) + varint(-1)
vector(
    "85",
    "header key length -1",
    sent(varint(len(NULL_HEADER)) + NULL_HEADER, count=1),
    Refused(87),
    Refused(87, (0,)),
)
ODD = b"\0\0\0" + varint(-1) + varint(1) + b"v" + varint(1) + varint(2) + b"\xff\xfe" + varint(-5)
vector(
    "86",
    "a header key that is no text, value length -5",
    sent(varint(len(ODD)) + ODD, count=1),
    Accepted(last=1000),
    Refused(87, (0,)),
)
ODD = b"\xff\0\0" + varint(-7) + varint(1) + b"v" + varint(0)
vector(
    "87",
    "record attributes 0xff, key length -7",
    sent(varint(len(ODD)) + ODD, count=1),
    Accepted(last=1000),
    Refused(87, (0,)),
)
LONG = b"\0" + b"\x80" * 10 + b"\0" * 5
vector(
    "88",
    "timestamp delta of eleven bytes",
    sent(varint(len(LONG)) + LONG, count=1),
    Refused(87),
    Refused(87, (0,)),
)
LONG = b"\0" + b"\x80" * 9 + b"\x7e" + b"\0" + varint(-1) + varint(-1) + varint(0)
vector(
    "88",
    "surplus bits in the tenth byte of a timestamp delta",
    sent(varint(len(LONG)) + LONG, count=1),
    Accepted(last=1000),
)
vector(
    "89",
    "a spare byte inside a record",
    sent(record(spare=b"x"), count=1),
    Refused(87),
    Refused(87, (0,)),
)
vector(
    "90",
    "the same in gzip",
    sent(record(spare=b"x"), "gzip", count=1),
    Refused(87),
    Refused(87, (0,)),
)
vector(
    "91",
    "larger than max.message.bytes",
    RIGHT,
    Refused(10),
    config={"max_message_bytes": len(RIGHT) - 1},
)
vector(
    "92",
    "larger than max.message.bytes once rebuilt",
    sent(section() + b"", "gzip"),
    Refused(10),
    config={"max_message_bytes": len(ZIPPED) if len(ZIPPED) < len(RIGHT) else 90}
    | to("uncompressed"),
)
vector(
    "93", "larger than segment.bytes", RIGHT, Refused(18), config={"segment_bytes": len(RIGHT) - 1}
)
IN_TRANSACTION: dict[str, Any] = {"transactional_id": "t"}
FIELDS: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
vector(
    "94",
    "transactional to magic 1",
    sent(attributes=TRANSACTIONAL, **FIELDS),
    Refused(-1),
    Refused(87),
    OLD,
    **UNGATED,
)
for codec in ("none", "gzip"):
    vector(
        "95",
        f"idempotent {codec} to magic 1",
        sent(codec=codec, **FIELDS),
        Refused(43),
        config=OLD,
        **UNGATED,
    )
vector(
    "95",
    "transactional gzip to magic 1",
    sent(codec="gzip", attributes=TRANSACTIONAL, **FIELDS),
    Refused(43),
    config=OLD,
    **UNGATED,
)
NOBODY = sent(attributes=TRANSACTIONAL)
vector("96", "transactional without producer", NOBODY, Accepted(), Refused(87), **IN_TRANSACTION)
vector(
    "96", "the same, none to gzip", NOBODY, Refused(-1), Refused(87), to("gzip"), **IN_TRANSACTION
)
vector(
    "96",
    "transactional without transactional id",
    sent(attributes=TRANSACTIONAL, **FIELDS),
    Refused(53, request_wide=True),
)
AGELESS = sent(producer_id=5, producer_epoch=-1, base_sequence=0)
vector("97", "producer epoch -1", AGELESS, Accepted(), Refused(87))
vector("97", "the same, none to gzip", AGELESS, Refused(-1), Refused(87), to("gzip"))
vector(
    "98",
    "sequences that wrap",
    sent(producer_id=5, producer_epoch=0, base_sequence=2**31 - 2),
    Accepted(),
)


def timed(timestamp: int) -> bytes:
    return sent(
        section((0,), times=(0,)), count=1, base_timestamp=timestamp, max_timestamp=timestamp
    )


vector("101", "as old as the limit", timed(NOW - 1000), Accepted(last=1000), config=SECOND)
vector("101", "older than the limit", timed(NOW - 1001), Refused(32, (0,)), config=SECOND)
vector("101", "no timestamp", timed(-1), Accepted(last=1000, max_timestamp=-1), config=SECOND)
vector("102", "an age that overflows", timed(MIN + NOW), Accepted(last=1000), config=SECOND)
THREE = old(1) + old(1, 1, key=None) + old(1, 2, key=None)
for codec in ("producer", "gzip"):
    vector(
        "103",
        f"compacted, {codec}: two of three of magic 1 without key",
        THREE,
        Refused(87, (0,), KEYLESS),
        Refused(87, (1, 2), KEYLESS, 2),
        COMPACT | to(codec),
        **UNGATED,
    )
vector(
    "104",
    "compacted, no key, then a broken record",
    sent(record(0) + record(1, header_count=-1), count=2),
    Refused(87, (), KEYLESS),
    Refused(87, (0, 1), KEYLESS),
    COMPACT,
)
vector("105", "one record, no bytes", sent(b"", count=1), Refused(87), Refused(87, (0,)))
vector(
    "106",
    "a header to magic 1",
    sent(record(headers=[(b"h", b"x")]), count=1),
    Refused(-1),
    Refused(87, (0,)),
    OLD,
    **UNGATED,
)
vector("106", "zstd to magic 1", ZSTDED, Refused(-1), Refused(87), OLD, **UNGATED)
vector(
    "107", "three records to magic 1", RIGHT, Accepted(rebuilt=True, magic=1), config=OLD, **UNGATED
)
vector(
    "107",
    "three gzip records to magic 1",
    ZIPPED,
    Accepted(rebuilt=True, magic=1),
    config=OLD,
    **UNGATED,
)
vector(
    "108",
    "gzip to zstd, deltas 0,2,1",
    sent(section((0, 2, 1)), "gzip"),
    Accepted(rebuilt=True, offsets=(1000, 1001, 1002)),
    Refused(87, (1, 2)),
    to("zstd"),
)

CASES = [
    pytest.param(vector, profile, id=f"{vector.number} {vector.says} ({profile})")
    for vector in VECTORS
    for profile in ("kafka", "strict")
]


def decided(vector: Vector, profile: str) -> ottla.Verdict:
    request = {"api_version": 9, "base_offset": 1000, "leader_epoch": 7} | vector.request
    # The specification has the answers of 4.1.
    version = "4.1" if profile == "kafka" else None
    config = ottla.TopicConfig(**vector.config, kafka_version=version)
    return ottla.validate(vector.records, config, now_ms=NOW, profile=profile, **request)


@pytest.mark.parametrize(("vector", "profile"), CASES)
def test_vector_of_the_specification(vector: Vector, profile: str) -> None:
    verdict = decided(vector, profile)
    expected = vector.kafka if profile == "kafka" else vector.strict
    if isinstance(expected, Refused):
        assert_refused(verdict, expected)
    else:
        assert_accepted(verdict, expected)


def assert_refused(verdict: ottla.Verdict, expected: Refused) -> None:
    culprits = [
        (item, expected.code) if isinstance(item, int) else item for item in expected.culprits
    ]
    assert (verdict.error, verdict.accepted, verdict.stored) == (expected.code, False, b"")
    assert [(error.batch_index, error.error) for error in verdict.record_errors] == culprits
    assert verdict.error_message
    assert all(error.message for error in verdict.record_errors)
    assert verdict.is_request_wide == expected.request_wide
    for meter in (OFFSETS, MAGIC, CRC, KEYLESS):
        assert verdict.metrics[meter] == (expected.marks if meter == expected.meter else 0), meter


def assert_accepted(verdict: ottla.Verdict, expected: Accepted) -> None:
    assert (verdict.error, verdict.error_message) == (0, None)
    assert (verdict.base_offset, verdict.last_offset) == (expected.first, expected.last)
    assert verdict.is_rebuilt == expected.rebuilt
    if expected.max_timestamp is not None:
        assert verdict.max_timestamp_ms == expected.max_timestamp
    batches = list(ottla.read_batches(verdict.stored))
    if not batches:
        assert expected.first == -1
        return
    assert {stored.magic for stored in batches} == {expected.magic}
    if expected.magic == 2:
        assert batches[0].partition_leader_epoch == 7
        batches[0].verify()
    if expected.attributes is not None:
        assert batches[0].attributes == expected.attributes
    if expected.offsets is not None:
        assert [r.offset for r in batches[0].records()] == list(expected.offsets)
    if expected.timestamps is not None:
        assert [r.timestamp for r in batches[0].records()] == list(expected.timestamps)


@pytest.mark.parametrize("profile", ["kafka", "strict"])
class TestDuplicates:
    """Vectors 99 and 100: six batches of a producer are in the log, and one comes again."""

    CONFIG = ottla.TopicConfig(
        message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=1000
    )

    def leader(self, profile: Any) -> ottla.Leader:
        leader = ottla.Leader(self.CONFIG, next_offset=1000, profile=profile)
        for index in range(6):
            assert leader.append(self.batch(index), now_ms=NOW, api_version=9).accepted
        return leader

    def batch(self, index: int) -> bytes:
        return sent(producer_id=5, producer_epoch=0, base_sequence=3 * index)

    @pytest.mark.parametrize("index", [5, 1])
    def test_vector_99_a_duplicate_of_the_newest_or_fifth_newest_batch_has_its_offsets(
        self, index: int, profile: str
    ) -> None:
        leader = self.leader(profile)
        again = leader.append(self.batch(index), now_ms=NOW, api_version=9)
        assert (again.error, again.is_duplicate, again.stored) == (0, True, b"")
        assert (again.base_offset, again.last_offset) == (1000 + 3 * index, 1002 + 3 * index)
        assert leader.log_end_offset == 1018

    def test_vector_100_a_duplicate_whose_timestamps_are_out_of_range_now_is_refused(
        self, profile: str
    ) -> None:
        leader = self.leader(profile)
        again = leader.append(self.batch(5), now_ms=NOW + 1002, api_version=9)
        culprits = [(error.batch_index, error.error) for error in again.record_errors]
        assert (again.error, again.is_duplicate, culprits) == (32, False, [(0, 32), (1, 32)])


def test_every_vector_about_a_record_set_is_here() -> None:
    by_leader = {99, 100}
    # acks and in-sync replicas: of the request and the partition's replicas, not of a record set.
    by_broker = {109, 110}
    numbers = {int(vector.number) for vector in VECTORS}
    assert numbers | by_leader | by_broker == set(range(1, 111))
