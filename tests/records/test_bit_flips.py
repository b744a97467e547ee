"""Damage of any kind to a small log: always found, never a crash, and what is whole is read."""

import random
from collections.abc import Callable, Iterator
from typing import TypeVar

import ottla
import pytest
from ottla import RecordBatchError, TruncatedBatchError
from records.crafting import COMPRESSED, batch, compressed_batch, entry, message, records, wrapper

from benches.data import renumbered

T = TypeVar("T")

# Position from which on the checksum covers a batch: all before is outside it.
COVERED_FROM = {0: 16, 1: 16, 2: 21}


def small_log() -> list[bytes]:
    """One batch of each kind."""
    return [
        entry(0, message(0)),
        wrapper(0, "gzip", entry(1, message(0)) + entry(2, message(0)), offset=2),
        entry(3, message(1)),
        wrapper(1, "snappy", entry(0, message(1)) + entry(1, message(1)), offset=5),
        batch(records(4), count=4, base_offset=6, producer_id=5, producer_epoch=1, base_sequence=0),
        *(compressed_batch(records(4), codec, count=4) for codec in COMPRESSED),
        batch(records(1), base_offset=10),
    ]


LOG = small_log()


def modern_log(count: int = 6) -> list[bytes]:
    """Batches of magic 2 that follow one another."""
    run, _ = renumbered([batch(records(3), count=3) for _ in range(count)], 0)
    size = len(run) // count
    return [run[start : start + size] for start in range(0, len(run), size)]


def flips(data: bytes, from_position: int) -> Iterator[tuple[int, bytes]]:
    for position in range(from_position, len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            yield position, bytes(flipped)


def found_at(damaged: bytes) -> int | None:
    """Where level `crc` sees a fault."""
    try:
        ottla.check_batches(damaged, level="crc")
    except RecordBatchError as error:
        return error.position
    return None


@pytest.mark.parametrize("index", range(len(LOG)))
def test_any_flipped_bit_under_the_checksum_is_found(index: int) -> None:
    log = b"".join(LOG)
    assert ottla.check_batches(log, level="crc") == ottla.check_batches(log) - 2
    start = sum(map(len, LOG[:index]))
    missed = []
    for position, flipped in flips(LOG[index], COVERED_FROM[LOG[index][16]]):
        damaged = log[:start] + flipped + log[start + len(flipped) :]
        if found_at(damaged) != start:
            missed.append(position)
    assert missed == []


@pytest.mark.parametrize("index", range(len(LOG)))
def test_any_flipped_bit_of_a_stored_checksum_is_found(index: int) -> None:
    data = LOG[index]
    first = 17 if data[16] == 2 else 12
    for position in range(first, first + 4):
        for bit in range(8):
            flipped = data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :]
            with pytest.raises(RecordBatchError) as caught:
                ottla.check_batches(flipped, level="crc")
            assert caught.value.kind == "crc-mismatch"


@pytest.mark.parametrize("index", range(len(LOG)))
def test_a_flipped_bit_outside_the_checksum_never_breaks_the_reader(index: int) -> None:
    before, behind = b"".join(LOG[:index]), b"".join(LOG[index + 1 :])
    for _, flipped in flips(LOG[index][:21], 0):
        damaged = before + flipped + LOG[index][21:] + behind
        assert outcome(damaged) >= index


@pytest.mark.parametrize("index", [index for index in range(len(LOG)) if LOG[index][16] == 2])
def test_a_flipped_bit_of_base_offset_or_leader_epoch_leaves_every_batch_readable(
    index: int,
) -> None:
    before, behind = b"".join(LOG[:index]), b"".join(LOG[index + 1 :])
    for position, flipped in flips(LOG[index][:16], 0):
        if not 8 <= position < 12:
            damaged = before + flipped + LOG[index][16:] + behind
            assert outcome(damaged) == len(LOG)


def asked(call: Callable[[], T], size: int) -> T | None:
    """What a call gives, or `None` for an error that names its place within the data."""
    fault = None
    try:
        return call()
    except RecordBatchError as error:
        fault = error
    assert fault.kind
    assert 0 <= fault.position <= size
    return None


def outcome(data: bytes) -> int:
    """Ask everything that can be asked of the data; returns the batches that verify and parse."""
    sound, ended = 0, False
    iterator = ottla.read_batches(data)

    def one() -> bool:
        nonlocal ended
        ended = True
        for found in iterator:
            ended = False
            found.verify()
            list(found.records())
            return True
        return False

    while not ended:
        sound += bool(asked(one, len(data)))
    asked(lambda: ottla.check_batches(data), len(data))
    asked(lambda: ottla.read_columns(data).numbers(), len(data))
    return sound


def test_a_log_cut_anywhere_in_its_last_batches_has_a_cut_or_a_clean_end() -> None:
    batches = modern_log()
    log = b"".join(batches)
    starts = [sum(map(len, batches[:index])) for index in range(len(batches) + 1)]
    for cut in range(starts[-4], len(log) + 1):
        whole = sum(start <= cut for start in starts) - 1
        # A few zeros of the next base offset cannot be told from those of a preallocated file.
        if not any(log[starts[whole] : cut]):
            assert ottla.check_batches(log[:cut]) == 3 * whole
        else:
            with pytest.raises(TruncatedBatchError) as caught:
                ottla.check_batches(log[:cut])
            assert caught.value.position == starts[whole]
        assert len(list(ottla.read_batches(log[:cut]))) == whole
        assert len(ottla.read_columns(log[:cut])) == 3 * whole


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_compressed_batch_cut_anywhere_is_cut(codec: str) -> None:
    log = compressed_batch(records(20), codec, count=20) * 2
    size = len(log) // 2
    for cut in range(size + 12, len(log)):
        with pytest.raises(TruncatedBatchError):
            ottla.check_batches(log[:cut])
        assert len(ottla.read_columns(log[:cut])) == 20


def injured(log: bytes, chance: random.Random) -> tuple[str, int, bytes]:
    """Bytes deleted, repeated, zeroed or inserted; gives what, where and the log."""
    size = chance.choice([1, 2, 12, 61, chance.randrange(1, 512), chance.randrange(1, 8193)])
    position = chance.randrange(len(log))
    piece = log[position : position + size]
    what = chance.choice(["delete", "repeat", "zero", "insert"])
    if what == "delete":
        return what, position, log[:position] + log[position + size :]
    if what == "repeat":
        return what, position, log[: position + size] + piece + log[position + size :]
    if what == "zero":
        return what, position, log[:position] + bytes(len(piece)) + log[position + size :]
    return what, position, log[:position] + chance.randbytes(size) + log[position:]


@pytest.mark.parametrize("seed", range(40))
def test_injuries_are_record_batch_errors_and_leave_what_is_before_them(seed: int) -> None:
    chance = random.Random(seed)
    batches = small_log() + modern_log(40) + [batch(records(60), count=60)] * 3
    log = b"".join(batches)
    ends = [sum(map(len, batches[: index + 1])) for index in range(len(batches))]
    for _ in range(15):
        what, position, damaged = injured(log, chance)
        whole = sum(end <= position for end in ends)
        assert outcome(damaged) >= whole, (what, position)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_many_more_injuries_are_record_batch_errors_as_well(seed: int) -> None:
    test_injuries_are_record_batch_errors_and_leave_what_is_before_them(seed)


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_are_record_batch_errors_or_a_cut(seed: int) -> None:
    chance = random.Random(seed)
    for size in (1, 12, 17, 61, 200, 5000):
        noise = bytearray(chance.randbytes(size))
        outcome(bytes(noise))
        if size > 61:
            # A header that may pass: magic 2, and a size that the bytes have.
            noise[8:12] = (size - 12).to_bytes(4, "big")
            noise[16] = chance.choice([0, 1, 2])
            assert outcome(bytes(noise)) == 0
