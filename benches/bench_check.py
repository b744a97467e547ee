"""Checking logs: every rule, beside what peers check while they read."""

import pytest

from benches.conftest import TimePeer
from benches.data import MIB, Shape, generate
from benches.peers import AIOKAFKA, JOBS, MEMCPY, OURS, READ

SHAPES = (
    Shape(100, 1),
    Shape(100, 100),
    Shape(100),
    Shape(100, headers=4),
    Shape(1024),
)
# The peers that need seconds for 16 MiB tell nothing more there than at 1 MiB.
SIZES_AND_PEERS = [
    *((MIB, peer) for peer in JOBS["check"]),
    *(
        pytest.param(16 * MIB, peer, marks=pytest.mark.slow)
        for peer in (OURS, AIOKAFKA, READ, MEMCPY)
    ),
]
pytestmark = [pytest.mark.bench, pytest.mark.benchmark(group="check")]


def name_of(value: int | str) -> str:
    """Name a size or a peer in a test's id."""
    return value if isinstance(value, str) else f"{value // MIB}MiB"


@pytest.mark.parametrize(("size", "peer"), SIZES_AND_PEERS, ids=name_of)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_record_of_a_log_is_checked(
    time_peer: TimePeer, shape: Shape, size: int, peer: str
) -> None:
    time_peer("check", peer, generate(shape, size))


@pytest.mark.parametrize("peer", JOBS["check-crc"])
def test_the_checksums_of_a_log_are_checked(time_peer: TimePeer, peer: str) -> None:
    time_peer("check-crc", peer, generate(Shape(), MIB))


@pytest.mark.parametrize("peer", JOBS["call"])
@pytest.mark.parametrize("records", [1, 10])
def test_a_small_batch_is_checked_in_a_call(time_peer: TimePeer, records: int, peer: str) -> None:
    time_peer("call", peer, generate(Shape(100, records), 1))
