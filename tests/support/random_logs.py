"""Logs made from a seed: producers, transactions, codecs and holes, and then hurt."""

import random
from pathlib import Path

import ottla
from ottla.records import Compression
from support.logs import TIMESTAMP, segment_name, write_partition

CODECS: tuple[Compression, ...] = ("none", "none", "none", "gzip", "snappy", "lz4", "zstd")


def write_random_log(directory: Path, rng: random.Random) -> Path:
    """A partition directory of one to four segments, sound or hurt."""
    maker = _Maker(rng)
    segments: dict[int, bytes] = {}
    for _ in range(rng.randint(1, 4)):
        base_offset = maker.next_offset
        size = int(10 ** rng.uniform(2.5, 5.4))
        segments[base_offset] = _hurt(maker.segment(size), rng)
    write_partition(directory, segments)
    for base_offset in segments:
        if rng.random() < 0.3:
            index = directory / segment_name(base_offset, "index")
            index.unlink() if rng.random() < 0.5 else index.write_bytes(rng.randbytes(24))
    if rng.random() < 0.1:
        (directory / "stranger.txt").write_text("nobody's\n")
    return directory


class _Maker:
    """Batches that follow each other, most of them as a leader writes them."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.next_offset = rng.choice((0, 0, 0, 1_000))
        self._sequences: dict[int, int] = {}
        self._open: set[int] = set()

    def segment(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            data += self._batch(size)
        return bytes(data)

    def _batch(self, size: int) -> bytes:
        rng = self._rng
        if rng.random() < 0.02:
            self.next_offset += rng.randint(1, 5)
        base_offset = self.next_offset
        if self._open and rng.random() < 0.2:
            producer_id = rng.choice(sorted(self._open))
            self._open.discard(producer_id)
            self.next_offset += 1
            return ottla.build_control_batch(
                rng.choice(("commit", "abort")),
                producer_id=producer_id,
                producer_epoch=0,
                coordinator_epoch=0,
                timestamp=TIMESTAMP + base_offset,
                base_offset=base_offset,
            )
        count = rng.randint(1, 8)
        self.next_offset += count
        largest = max(20, min(4_000, size // 8))
        rows: list[ottla.NewRecord] = [
            ottla.NewRecord(
                rng.choice((None, b"key", b"\xff\x00")),
                None if rng.random() < 0.1 else rng.randbytes(rng.randint(0, largest)),
                timestamp=TIMESTAMP + base_offset + index + rng.choice((0, 0, 0, -5)),
                headers=[("source", b"web"), ("odd", None)] if rng.random() < 0.1 else [],
            )
            for index in range(count)
        ]
        compression = rng.choice(CODECS)
        producer_id = rng.choice((-1, -1, 7, 8, 9))
        if producer_id < 0:
            return ottla.build_batch(rows, base_offset=base_offset, compression=compression)
        sequence = self._sequences.get(producer_id, 0)
        if rng.random() < 0.02:
            sequence += rng.randint(1, 3)
        self._sequences[producer_id] = sequence + count
        is_transactional = producer_id == 9
        if is_transactional:
            self._open.add(producer_id)
        return ottla.build_batch(
            rows,
            base_offset=base_offset,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )


def _hurt(data: bytes, rng: random.Random) -> bytes:
    """The bytes with up to three injuries."""
    hurt = bytearray(data)
    for _ in range(rng.choice((0, 0, 1, 2, 3))):
        if len(hurt) < 100:
            break
        position = rng.randrange(len(hurt) - 1)
        kind = rng.randrange(6)
        length = rng.randint(1, max(1, len(hurt) // 10))
        if kind == 0:
            hurt[position] ^= 1 << rng.randrange(8)
        elif kind == 1:
            stop = min(position + length, len(hurt))
            hurt[position:stop] = bytes(stop - position)
        elif kind == 2:
            del hurt[position : position + length]
        elif kind == 3:
            hurt[position:position] = rng.randbytes(length)
        elif kind == 4:
            del hurt[len(hurt) - length :]
        else:
            hurt[position:position] = data[:length]
    return bytes(hurt)
