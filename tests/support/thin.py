"""Batches as the cleaner leaves them, written without the engine."""

import struct
from collections.abc import Mapping

from crc32c import crc32c

from benches.data import encode_record

TIMESTAMP = 1_760_000_000_000


def encode_thin(first: int, last: int, values: Mapping[int, bytes], epoch: int = 0) -> bytes:
    """A batch of offsets from the first to the last, of which these have a record left."""
    stamps = [TIMESTAMP + offset for offset in values]
    records = b"".join(
        encode_record((TIMESTAMP + offset, b"key", value, ()), offset - first, stamps[0])
        for offset, value in values.items()
    )
    numbers = (0, last - first, stamps[0], stamps[-1], -1, -1, -1, len(values))
    checked = struct.pack(">hiqqqhii", *numbers) + records
    return struct.pack(">qiibI", first, 9 + len(checked), epoch, 2, crc32c(checked)) + checked
