"""Check bytes before trusting them, and use the attributes of an error.

The bytes here come from a file; those of a fetch response or of an object store are the same.

python examples/check_fetched.py
"""

from pathlib import Path

import ottla

ORDERS = Path(__file__).parent / "data" / "orders-1" / "00000000000000000000.log"


def report(name: str, data: bytes) -> None:
    """Check bytes, and print the result."""
    try:
        count = ottla.check_batches(data)
    except ottla.TruncatedBatchError as error:
        # Usual for the last batch of a fetch response: the batches before it are complete.
        print(f"{name}: whole up to byte {error.position}: {error}")
    except ottla.RecordBatchError as error:
        print(f"{name}: {error.kind}, a broker would answer {error.error_code}: {error}")
    else:
        print(f"{name}: {count} records, every rule kept")


def main() -> None:
    """Check a valid log, a truncated one and a damaged one."""
    sound = ORDERS.read_bytes()
    report("sound", sound)
    report("cut", sound[:-100])

    damaged = bytearray(sound)
    damaged[5000] ^= 0x10
    report("damaged", bytes(damaged))


if __name__ == "__main__":
    main()
