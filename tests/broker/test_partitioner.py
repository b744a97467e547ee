"""The hash that decides which partition a coordinator keeps a name in."""

import pytest
from ottla.broker.partitioner import partition_of


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("", 0),
        ("a", 47),
        # Java: "payments-eu".hashCode() is -1539523760: its sign is dropped, not its highest bit.
        ("payments-eu", 10),
        ("refunds-ok", 42),
        ("refunds-dead", 46),
        # The hash of this one is -2147483648, which has no positive twin.
        ("polygenelubricants", 0),
        # Two units of UTF-16: 31 * 0xd83d + 0xde00 = 1772899.
        ("\N{GRINNING FACE}", 49),
    ],
)
def test_a_name_belongs_to_the_partition_that_java_computes(name: str, partition: int) -> None:
    assert partition_of(name, 50) == partition
