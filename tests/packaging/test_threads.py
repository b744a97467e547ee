"""The engine under many threads at once, also where no lock of the interpreter orders them."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import ottla
import pytest
from ottla.records import BatchBuilder, Compression

THREADS, ROUNDS = 8, 20


def in_threads(work: Callable[[int], object]) -> list[object]:
    """What a call returns in threads that begin together."""
    together = threading.Barrier(THREADS)

    def begin(thread: int) -> object:
        together.wait()
        return work(thread)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


def address_of_offsets(columns: ottla.Columns, _thread: int) -> object:
    return columns.offset.__array_interface__["data"]


def batches_of(thread: int, compression: Compression) -> bytes:
    records = [ottla.NewRecord(b"key", b"%d of %d" % (number, thread)) for number in range(50)]
    return b"".join(
        ottla.build_batch(records, base_offset=50 * number, compression=compression)
        for number in range(ROUNDS)
    )


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_threads_that_build_and_read_batches_of_their_own_are_not_mixed_up(
    compression: Compression,
) -> None:
    expected = [[b"%d of %d" % (n, t) for n in range(50)] * ROUNDS for t in range(THREADS)]

    def values(thread: int) -> object:
        data = batches_of(thread, compression)
        assert ottla.check_batches(data) == 50 * ROUNDS
        return [record.value for record in ottla.read(data)]

    assert in_threads(values) == expected


def test_threads_that_share_a_batch_read_the_same() -> None:
    data = batches_of(0, "zstd")
    shared = list(ottla.read_batches(data))

    def values(_thread: int) -> object:
        return [record.value for batch in shared for record in batch.records()]

    assert in_threads(values) == [[b"%d of 0" % n for n in range(50)] * ROUNDS] * THREADS


def test_threads_that_share_an_iterator_get_each_record_once() -> None:
    (batch,) = ottla.read_batches(ottla.build_batch([ottla.NewRecord(b"k", b"v")] * 2000))
    shared = batch.records()
    taken = in_threads(lambda _thread: [record.offset for record in shared])
    offsets = sorted(offset for part in taken if isinstance(part, list) for offset in part)
    assert offsets == list(range(2000))


def test_threads_that_share_columns_get_the_same_arrays() -> None:
    data = batches_of(0, "lz4")
    for shared in [ottla.read_columns(data) for _ in range(ROUNDS)]:
        pointers = in_threads(partial(address_of_offsets, shared))
        assert pointers == [pointers[0]] * THREADS


def test_threads_that_share_a_builder_get_the_batch_that_each_asked_for() -> None:
    codecs: list[Compression] = ["gzip", "lz4", "zstd", "none"]
    builder = BatchBuilder(1 << 20)
    records = [b"%d" % number * 50 for number in range(300)]
    for record in records:
        builder.append(1000, None, record)

    def read_back(thread: int) -> object:
        compression = codecs[thread % len(codecs)]
        for _ in range(ROUNDS):
            (batch,) = ottla.read_batches(builder.finish(compression=compression))
            assert batch.compression == compression
            assert [record.value for record in batch.records()] == records
            assert builder.count == len(records)
        return thread

    assert in_threads(read_back) == list(range(THREADS))


def test_a_builder_that_grows_while_it_is_finished_gives_whole_batches() -> None:
    builder = BatchBuilder(1 << 20)
    builder.append(1000, None, b"0" * 5000)

    def grow_or_finish(thread: int) -> None:
        for _ in range(ROUNDS):
            if thread % 2:
                builder.append(1000, None, b"value")
            else:
                ottla.check_batches(builder.finish(compression="zstd"))

    in_threads(grow_or_finish)
    assert builder.count == 1 + ROUNDS * THREADS // 2


def test_a_leader_that_threads_share_gives_each_batch_offsets_of_its_own() -> None:
    leader = ottla.Leader()
    batch = ottla.build_batch([ottla.NewRecord(None, b"value")] * 3)

    def bases(_thread: int) -> object:
        return [leader.append(batch, now_ms=1000).base_offset for _ in range(ROUNDS)]

    found = in_threads(bases)
    offsets = sorted(offset for bases in found if isinstance(bases, list) for offset in bases)
    assert offsets == list(range(0, 3 * ROUNDS * THREADS, 3))


def test_the_engine_leaves_a_python_without_a_lock_without_one() -> None:
    is_locked = getattr(sys, "_is_gil_enabled", lambda: True)
    if is_locked() and "free-threading" not in sys.version:
        pytest.skip("this Python has a lock")
    assert not is_locked()
