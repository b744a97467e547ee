"""Every hypothesis strategy of the tests.

A record is drawn as plain data, `DrawnRecord`, and becomes bytes through `benches.data`, which
writes batches in plain Python from the format's description: what the engine reads in a property
was never written by the engine.
"""

from dataclasses import dataclass

from hypothesis import strategies as st

from benches.data import CODECS, Compression

# Lengths around the places where a varint grows by a byte are drawn as often as all others.
_EDGE_SIZES = (0, 1, 62, 63, 64, 65, 126, 127, 128, 129, 8190, 8191, 8192, 8193)
_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)


@dataclass(frozen=True)
class DrawnRecord:
    """One record: what a producer hands over, and nothing the format adds."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def sized_bytes() -> st.SearchStrategy[bytes]:
    """Bytes of any length to 300, or of a length beside a varint's edge."""
    edges = st.sampled_from(_EDGE_SIZES).map(
        lambda size: bytes(index % 251 for index in range(size))
    )
    return st.one_of(st.binary(max_size=300), edges)


def nullable_bytes() -> st.SearchStrategy[bytes | None]:
    """Return a key or a value: null, empty and filled are three different things."""
    return st.one_of(st.none(), sized_bytes())


def headers() -> st.SearchStrategy[tuple[tuple[str, bytes | None], ...]]:
    """Headers of a record: repeated keys and null values are allowed, null keys are not."""
    key = st.text(st.characters(codec="utf-8"), max_size=20)
    value = st.one_of(st.none(), st.binary(max_size=70))
    return st.lists(st.tuples(key, value), max_size=5).map(tuple)


def timestamps() -> st.SearchStrategy[int]:
    """Timestamps in milliseconds that Kafka's clients write: −1 is "none"."""
    return st.one_of(st.just(-1), st.integers(0, 2**43), st.integers(0, 2**50))


def records() -> st.SearchStrategy[DrawnRecord]:
    """One record of any content."""
    return st.builds(DrawnRecord, timestamps(), nullable_bytes(), nullable_bytes(), headers())


def batches_of_records(max_size: int = 20) -> st.SearchStrategy[list[DrawnRecord]]:
    """Return the records of one batch: at least one."""
    return st.lists(records(), min_size=1, max_size=max_size)


def base_offsets() -> st.SearchStrategy[int]:
    """Offsets a log can hold, with room for the offsets of a batch."""
    return st.one_of(st.integers(0, 2**20), st.integers(0, 2**63 - 1 - 2**31))


def int32() -> st.SearchStrategy[int]:
    """Any 32-bit integer."""
    return st.integers(*_INT32)


def int64() -> st.SearchStrategy[int]:
    """Any 64-bit integer."""
    return st.integers(*_INT64)


def compressions() -> st.SearchStrategy[Compression]:
    """Return the name of a codec, "none" included."""
    return st.sampled_from(CODECS)
