"""Read a segment: its batches, its records, and all of it as columns.

python examples/read_segment.py [SEGMENT]
"""

import sys
from pathlib import Path

import ottla

ORDERS = Path(__file__).parent / "data" / "orders-0" / "00000000000000000000.log"


def main() -> None:
    """Read the segment named on the command line, or one of the demo."""
    data = (Path(sys.argv[1]) if len(sys.argv) > 1 else ORDERS).read_bytes()

    # Batches: the headers alone, nothing is decompressed.
    batches = list(ottla.read_batches(data))
    codecs = sorted({batch.compression for batch in batches})
    print(f"{len(batches)} batches, compressed with {', '.join(codecs)}")

    # Records: what a consumer would receive, with checksums verified.
    for record in ottla.read(batches_until(data, 2)):
        print(record.offset, record.timestamp, record.key, (record.value or b"")[:40])

    # Columns: numbers as NumPy arrays, without an object per record.
    columns = ottla.read_columns(data)
    filled = columns.value_length[columns.value_length >= 0]
    print(f"{len(columns)} records, values of {filled.mean():.0f} bytes on average")
    print(f"offsets {columns.offset.min()} to {columns.offset.max()}")


def batches_until(data: bytes, count: int) -> bytes:
    """Return the first few batches, which follow each other."""
    batch = list(ottla.read_batches(data))[count - 1]
    return data[: batch.position + batch.size]


if __name__ == "__main__":
    main()
