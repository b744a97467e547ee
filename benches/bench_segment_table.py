"""Reading segment files as Arrow record batches, keys and values copied, as Spark takes them."""

import pytest

from benches.conftest import TimePeer
from benches.data import MIB, Shape, generate
from benches.peers import JOBS

SHAPES = (Shape(100), Shape(1024), Shape(100, headers=4), Shape(100, compression="zstd"))
SIZES = (
    MIB,
    pytest.param(64 * MIB, marks=pytest.mark.slow),
)
pytestmark = [pytest.mark.bench, pytest.mark.benchmark(group="rows")]


@pytest.mark.parametrize("peer", JOBS["rows"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size // MIB}MiB")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_segment_file_is_read_as_arrow_record_batches(
    time_peer: TimePeer, shape: Shape, size: int, peer: str
) -> None:
    time_peer("rows", peer, generate(shape, size))
