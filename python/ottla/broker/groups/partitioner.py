"""The partition of `__consumer_offsets` that a group belongs to."""


def partition_of(group_id: str, partition_count: int) -> int:
    """Returns Java's hash of the name, without its sign, modulo the number of partitions."""
    units = group_id.encode("utf-16-be", "surrogatepass")
    hash_code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        hash_code = (31 * hash_code + (high << 8 | low)) & 0xFFFFFFFF
    return (hash_code & 0x7FFFFFFF) % partition_count
