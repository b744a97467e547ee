"""Requests that no client would send, by chance: valid ones of every API and version, damaged.

The valid ones name what is there, such as a member of a group, so that what is wrong with them is
looked at behind the first check. All names begin with `PREFIX`.
"""

import struct
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import ottla
from ottla.broker.api import APIS
from ottla.protocol.codec import encode
from ottla.protocol.header import request_header
from ottla.protocol.wire import Field, Kind
from support.messages import Chance, modules, one_item_in_each_list

PREFIX = "h-"
TOPIC, CLASSIC, CONSUMER, TRANSACTIONAL_ID = "h-orders", "h-classic", "h-consumer", "h-transaction"

VERSIONS = [
    (key, version)
    for key, api in APIS.items()
    for version in range(api.min_version, 1 + api.max_version)
]
SASL_VERSIONS = [(key, version) for key, version in VERSIONS if key in {17, 18, 36}]

SEEDS_OF_A_VERSION = 6
FRAME_SIZES = (0, 1, 3, 7, 8, 0x7FFF, 1 << 24, 104_857_600, 104_857_601, 0x7FFFFFFF, -1, -(1 << 31))
_NUMBERS = {
    1: (0, 1, 0x7F, 0x80, 0xFF),
    2: (0, 1, 0x7FFF, 0x8000, 0xFFFF, 0xFFFE),
    4: (0, 1, 0xFFFF, 1 << 24, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE),
    8: (0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1),
}
_VARINTS = (
    b"\0", b"\1", b"\x7f", b"\x80\1", b"\xff\xff\x03", b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\1", b"\x80" * 12, b"\xff" * 12,
)  # fmt: skip
_TAGS = (
    b"\1\0\0", b"\1\0\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x0f", b"\2\0\1a\0\1b",
    b"\2\5\1a\4\1b", b"\3\0\2\0\0\1\1\0\2\0", b"\x01\xff\xff\xff\xff\x0f\0", b"\x80\x80\x80\0",
)  # fmt: skip
_PATTERNS = ("h-.*", "(a*)*b", "(a|aa)+$", "(((((x{1,99}){1,99}){1,99})))", "[", "\\p{L}" * 50, "")

_TYPES = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint16", "uint32", "bool"), int),
    **dict.fromkeys(("bytes", "records", "uuid"), bytes),
    "string": str,
    "float64": float,
}


class Known(NamedTuple):
    """What the broker has given out, as a hostile client would use it."""

    member_id: str = "h-member"
    generation_id: int = 1
    producer_id: int = 0
    producer_epoch: int = 0
    session_id: int = 0
    topic_id: bytes = bytes(16)


def _records(chance: Random) -> bytes:
    made = [
        ottla.NewRecord(value=chance.randbytes(chance.choice((0, 1, 40))), timestamp=5)
        for _ in range(chance.choice((1, 1, 3)))
    ]
    fields: dict[str, Any] = {}
    if chance.random() < 0.5:
        fields = {"producer_id": chance.randrange(9), "producer_epoch": 0, "base_sequence": 0}
    codec: Any = chance.choice(("none", "gzip", "snappy", "lz4", "zstd"))
    return ottla.build_batch(made, compression=codec, **fields)


class _Knowing(Chance):
    """Values that are known to the broker, four times out of five."""

    def __init__(self, version: int, chance: Random, known: Known) -> None:
        super().__init__(version, chance, 12, private=True)
        number = chance.choice
        self.known: dict[str, Callable[[], object]] = {
            "member_id": lambda: number(("", known.member_id, "h-member")),
            "generation_id": lambda: number((known.generation_id, -1, 0)),
            "generation_id_or_member_epoch": lambda: number((known.generation_id, -1, 0)),
            "member_epoch": lambda: number((0, 1, -1, -2)),
            "group_instance_id": lambda: number((None, "h-static")),
            "producer_id": lambda: known.producer_id,
            "producer_epoch": lambda: known.producer_epoch,
            "session_id": lambda: number((0, known.session_id)),
            "session_epoch": lambda: number((-1, 0, 1, 2)),
            "session_timeout_ms": lambda: number((6000, 30_000)),
            "topic_id": lambda: known.topic_id,
            "records": lambda: _records(chance),
            "max_wait_ms": lambda: number((0, 1)),
            "subscribed_topic_regex": lambda: number(_PATTERNS),
            "transactional_id_pattern": lambda: number(_PATTERNS),
            "protocol_type": lambda: "consumer",
            "acks": lambda: number((-1, 1, 2)),
            "mechanism": lambda: number(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")),
        }
        for name in ("group_id", "group_ids", "groups", "groups_names"):
            self.known[name] = lambda: number((CLASSIC, CONSUMER))
        for name in ("topic", "topic_name", "topic_names", "subscribed_topic_names", "name"):
            self.known[name] = lambda: number((TOPIC, "h-second"))
        for name in ("transactional_id", "transactional_ids"):
            self.known[name] = lambda: TRANSACTIONAL_ID
        for name in ("key", "coordinator_keys", "resource_name"):
            self.known[name] = lambda: number((CLASSIC, TRANSACTIONAL_ID, TOPIC))
        for name in ("partition", "partitions", "partition_index", "partition_indexes", "index"):
            self.known[name] = lambda: number((0, 1))

    def one(self, field: Field) -> object:
        known = self.known.get(field.name.removeprefix("v3_and_below_"))
        if known is None or not isinstance(field.kind, Kind) or self.random.random() < 0.2:
            return super().one(field)
        value = known()
        if value is None:
            return None if self.version in field.null else super().one(field)
        # A name may be that of a number elsewhere.
        return value if isinstance(value, _TYPES[field.kind.name]) else super().one(field)


class Seeds:
    """Valid requests, a few of each version, made when they are first asked for."""

    def __init__(self, chance: Random, known: Known | None = None) -> None:
        self._chance = chance
        self._known = known or Known()
        self._made: dict[tuple[int, int], list[bytes]] = {}

    def of(self, key: int, version: int) -> bytes:
        """A request with its header, without its size."""
        made = self._made.setdefault((key, version), [])
        if len(made) < SEEDS_OF_A_VERSION:
            made.append(self._new(key, version, len(made)))
            return made[-1]
        return self._chance.choice(made)

    def _new(self, key: int, version: int, number: int) -> bytes:
        chance = self._chance
        name = APIS[key].title
        request = getattr(modules()[APIS[key].name], f"{name}Request")
        if number == 0:
            message = one_item_in_each_list(request, version)
        else:
            message = _Knowing(version, chance, self._known).struct(request)
        client = chance.choice((None, "", "h-client"))
        header = request_header(key, version, chance.randrange(1 << 31), client)
        return b"".join([header, *map(bytes, encode(request, version)(message))])


def damaged(seeds: Seeds, chance: Random, versions: list[tuple[int, int]]) -> bytes:
    """A request with one to three faults."""
    data = bytearray(seeds.of(*chance.choice(versions)))
    for _ in range(chance.choice((1, 1, 2, 3))):
        # Mostly of the body: behind a header that is none, nothing is looked at.
        begin = 0 if chance.random() < 0.1 else min(8, len(data))
        place = chance.randint(begin, len(data))
        chance.choice(_FAULTS)(data, place, chance, seeds)
    return bytes(data)


def _flip_a_bit(data: bytearray, place: int, chance: Random, _seeds: Seeds) -> None:
    if place < len(data):
        data[place] ^= 1 << chance.randrange(8)


def _cut(data: bytearray, place: int, _chance: Random, _seeds: Seeds) -> None:
    del data[place:]


def _leave_out(data: bytearray, place: int, chance: Random, _seeds: Seeds) -> None:
    del data[place : place + chance.randrange(1, 9)]


def _put_in(data: bytearray, place: int, chance: Random, _seeds: Seeds) -> None:
    data[place:place] = chance.randbytes(chance.choice((1, 2, 4, 30)))


def _lie_about_a_number(data: bytearray, place: int, chance: Random, _seeds: Seeds) -> None:
    size = chance.choice((1, 2, 4, 8))
    data[place : place + size] = chance.choice(_NUMBERS[size]).to_bytes(size, "big")


def _lie_about_a_varint(data: bytearray, place: int, chance: Random, _seeds: Seeds) -> None:
    data[place : place + 1] = chance.choice(_VARINTS)


def _abuse_tags(data: bytearray, place: int, chance: Random, _seeds: Seeds) -> None:
    at = len(data) - 1 if chance.random() < 0.5 else place
    data[max(at, 0) : at + 1] = chance.choice(_TAGS)


def _take_for_another_type(data: bytearray, place: int, chance: Random, seeds: Seeds) -> None:
    other = seeds.of(*chance.choice(VERSIONS))
    begin = chance.randrange(len(other))
    data[place : place + chance.randrange(20)] = other[begin : begin + chance.randrange(60)]


def _take_for_another_version(data: bytearray, _place: int, chance: Random, _seeds: Seeds) -> None:
    if len(data) >= 4:
        struct.pack_into(">hh", data, 0, *chance.choice(VERSIONS))


def _repeat(data: bytearray, place: int, chance: Random, _seeds: Seeds) -> None:
    data[place:place] = data[place : place + chance.randrange(1, 40)] * chance.choice((2, 9, 200))


def _spoil_the_header(data: bytearray, _place: int, chance: Random, _seeds: Seeds) -> None:
    at = chance.choice((0, 2, 8))
    data[at : at + 2] = chance.choice(_NUMBERS[2]).to_bytes(2, "big")


_FAULTS: list[Callable[[bytearray, int, Random, Seeds], None]] = [
    _flip_a_bit,
    _flip_a_bit,
    _cut,
    _leave_out,
    _put_in,
    _lie_about_a_number,
    _lie_about_a_number,
    _lie_about_a_varint,
    _abuse_tags,
    _take_for_another_type,
    _take_for_another_version,
    _repeat,
    _spoil_the_header,
]


def framed(request: bytes) -> bytes:
    """A request behind its size."""
    return struct.pack(">i", len(request)) + request


def visit(seeds: Seeds, chance: Random) -> Iterator[bytes]:
    """What one connection sends, step by step: frames, and at times what is none."""
    for _ in range(chance.choice((1, 5, 20))):
        frame = framed(damaged(seeds, chance, VERSIONS))
        match chance.randrange(40):
            case 0:
                # The size is a lie: what follows is too short or taken for the next frame.
                frame = struct.pack(">i", chance.choice(FRAME_SIZES)) + frame[4:]
            case 1:
                frame += chance.randbytes(chance.randrange(200))
            case 2:
                frame = frame[: chance.randrange(1, len(frame))]
            case 3:
                more = (framed(damaged(seeds, chance, VERSIONS)) for _ in range(5))
                frame += b"".join(more)
            case _:
                pass
        yield frame


def visit_before_login(seeds: Seeds, chance: Random) -> Iterator[bytes]:
    """The same of a connection that should say first who it is."""
    choice = chance.randrange(4)
    if choice == 0:
        yield from visit(seeds, chance)
        return
    version = chance.randrange(2)
    mechanism = chance.choice(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI"))
    name = mechanism.encode()
    handshake = request_header(17, version, 1, "h-client") + struct.pack(">h", len(name)) + name
    yield framed(handshake)
    for _ in range(3):
        token = bytearray(
            chance.choice(
                (
                    b"\0healthy\0wrong",
                    b"n,,n=healthy,r=abcdefgh",
                    b"n,,n=healthy,r=" + b"r" * 2_000,
                    b"c=biws,r=abcdefgh,p=AAAA",
                    b"\0" * 50,
                    b"",
                )
            )
        )
        if chance.random() < 0.7:
            place = chance.randrange(len(token) + 1)
            token[place : place + chance.randrange(4)] = chance.randbytes(chance.randrange(4))
        if version == 0:
            yield framed(bytes(token))
        elif chance.random() < 0.3:
            yield framed(damaged(seeds, chance, SASL_VERSIONS))
        else:
            header = request_header(36, 1, 2, "h-client")
            yield framed(header + struct.pack(">i", len(token)) + bytes(token))
