"""Produce requests of several producers to one partition, in order and out of it, by a seed."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import ottla


class CapturedSet(NamedTuple):
    """A record set as it arrives."""

    records: bytes
    origin: str
    now_ms: int


def captured_sets(seed: int, count: int = 40) -> list[CapturedSet]:
    """Return sets with repeats, gaps, new epochs, transactions, markers and bytes that are none."""
    random = Random(seed)
    now_ms = 1_700_000_000_000
    sequences: dict[int, int] = {}
    epochs: dict[int, int] = {}
    found: list[CapturedSet] = []
    for _ in range(count):
        now_ms += random.choice([1, 1_000, 700_000, 50_000_000])
        producer_id = random.choice([7, 8, 2**40])
        kind = random.random()
        epoch = epochs.setdefault(producer_id, 0)
        origin = "client"
        if kind < 0.15 and found:
            records = random.choice(found).records
        elif kind < 0.25:
            records = ottla.build_control_batch(
                random.choice(["commit", "abort"]), producer_id=producer_id, producer_epoch=epoch,
                coordinator_epoch=1, timestamp=now_ms,
            )  # fmt: skip
            origin = "coordinator"
        elif kind < 0.3:
            records = random.randbytes(random.randrange(80))
        else:
            if kind < 0.4:
                epochs[producer_id] = epoch = epoch + random.choice([-1, 1]) if epoch else 1
                sequences[producer_id] = 0
            size = random.randrange(1, 4)
            sequence = sequences.get(producer_id, 0) + random.choice([0, 0, 0, 0, 2])
            sequences[producer_id] = sequence + size
            records = ottla.build_batch(
                [ottla.NewRecord(value=b"v", timestamp=now_ms)] * size,
                producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence,
                is_transactional=producer_id == 8,
            )  # fmt: skip
        found.append(CapturedSet(records, origin, now_ms))
    return found
