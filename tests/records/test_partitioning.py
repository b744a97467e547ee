"""The partition of a key is the one that Java's clients choose."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.records import murmur2, partitions_of, rows_by_partition
from records.test_growing import column
from support.strategies import nullable_bytes

KEYS = st.lists(nullable_bytes(), max_size=40)


def naive_murmur2(key: bytes) -> int:
    """Java's `Utils.murmur2`, line by line, in numbers of any size that are cut to 32 bits."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(key)
    for place in range(0, len(key) - len(key) % 4, 4):
        k = int.from_bytes(key[place : place + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    left = key[len(key) - len(key) % 4 :]
    if left:
        h = (h ^ int.from_bytes(left, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    h ^= h >> 15
    return h - (1 << 32 if h >> 31 else 0)


@pytest.mark.parametrize(
    ("key", "found"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_key_has_the_hash_that_java_gives_it(key: bytes, found: int) -> None:
    assert murmur2(key) == naive_murmur2(key) == found


@given(KEYS, st.integers(1, 1000))
def test_a_key_goes_where_its_hash_without_sign_says(keys: list[bytes | None], count: int) -> None:
    expected = [-1 if key is None else (naive_murmur2(key) & 0x7FFFFFFF) % count for key in keys]
    for source in (keys, column(keys), column(keys, "int64")):
        found = partitions_of(source, count)
        assert found.dtype == np.int32
        assert found.tolist() == expected


@given(st.lists(st.integers(0, 9), max_size=60))
def test_rows_of_a_partition_stay_in_order(partitions: list[int]) -> None:
    rows, bounds = rows_by_partition(np.array(partitions, np.int32), 10)
    assert [rows[bounds[p] : bounds[p + 1]].tolist() for p in range(10)] == [
        [row for row, partition in enumerate(partitions) if partition == p] for p in range(10)
    ]


@pytest.mark.parametrize("partition", [-1, 3, 2**31 - 1, -(2**31)])
def test_a_row_for_a_partition_that_is_not_there_is_named(partition: int) -> None:
    with pytest.raises(ValueError, match=f"row 1 is for partition {partition}, expected 0 or mo"):
        rows_by_partition(np.array([0, partition], np.int32), 3)


@pytest.mark.parametrize("count", [0, 2**20 + 1])
def test_a_number_of_partitions_that_no_topic_has_is_refused(count: int) -> None:
    for call in (
        lambda: partitions_of([b"k"], count),
        lambda: rows_by_partition(np.array([0], np.int32), count),
    ):
        with pytest.raises(ValueError, match=f"{count} partitions, expected 1 to 1048576"):
            call()


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        (["key"], TypeError, "keys: expected a bytes-like object, found str; encode it first"),
        ((np.array([0, 9]), np.zeros(5, np.uint8)), ValueError, "row 0 from 0 to 9, expected wit"),
    ],
)
def test_keys_that_are_no_bytes_are_refused(
    keys: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        partitions_of(keys, 3)
