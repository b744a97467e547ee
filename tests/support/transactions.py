"""Logs of transactions, at random."""

import random
from pathlib import Path
from typing import Literal

import ottla
from support.logs import write_partition


def transactional_log(root: Path, rng: random.Random) -> Path:
    """A log of several producers, plain and transactional, some aborted, some never ended."""
    open_since: dict[int, int] = {}
    segments, offset, base = {}, 0, 0
    data: list[bytes] = []
    for _ in range(rng.randrange(10, 60)):
        producer = rng.randrange(1, 5)
        if producer in open_since and rng.random() < 0.4:
            kind: Literal["commit", "abort"] = rng.choice(("commit", "abort"))
            data.append(
                ottla.build_control_batch(
                    kind,
                    base_offset=offset,
                    producer_id=producer,
                    producer_epoch=0,
                    timestamp=1000 + offset,
                    coordinator_epoch=0,
                )
            )
            del open_since[producer]
            offset += 1
        else:
            is_transactional = rng.random() < 0.8
            count = rng.randrange(1, 5)
            if not is_transactional and producer in open_since:
                continue
            data.append(
                ottla.build_batch(
                    [ottla.NewRecord(b"k", b"%d" % (offset + n)) for n in range(count)],
                    base_offset=offset,
                    producer_id=producer if is_transactional else -1,
                    producer_epoch=0 if is_transactional else -1,
                    base_sequence=0 if is_transactional else -1,
                    is_transactional=is_transactional,
                    compression=rng.choice(("none", "gzip", "zstd")),
                )
            )
            if is_transactional:
                open_since.setdefault(producer, offset)
            offset += count
        if rng.random() < 0.2:
            segments[base], base, data = b"".join(data), offset, []
    segments[base] = b"".join(data)
    return write_partition(root / "orders-0", segments)
