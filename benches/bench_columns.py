"""Reading logs as columns: numbers alone, views of keys and values, captured sets split."""

import pytest

from benches.conftest import TimePeer
from benches.data import MIB, Shape, generate
from benches.peers import JOBS

SHAPES = (Shape(100, 1), Shape(100), Shape(100, headers=4), Shape(1024))
# Batches of less than 1 MiB, which a topic takes by default.
SPLIT_SHAPES = (*SHAPES[:3], Shape(1024, 100), Shape(100, compression="zstd"))
SIZES = (
    MIB,
    pytest.param(16 * MIB, marks=pytest.mark.slow),
)
pytestmark = [pytest.mark.bench, pytest.mark.benchmark(group="columns")]


@pytest.mark.parametrize("peer", JOBS["numbers"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size // MIB}MiB")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_log_is_read_as_columns_of_numbers(
    time_peer: TimePeer, shape: Shape, size: int, peer: str
) -> None:
    time_peer("numbers", peer, generate(shape, size))


@pytest.mark.parametrize("peer", JOBS["views"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size // MIB}MiB")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_log_is_read_as_an_arrow_table(
    time_peer: TimePeer, shape: Shape, size: int, peer: str
) -> None:
    time_peer("views", peer, generate(shape, size))


@pytest.mark.parametrize("peer", JOBS["split"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size // MIB}MiB")
@pytest.mark.parametrize("shape", SPLIT_SHAPES, ids=str)
def test_captured_record_sets_are_split_into_columns(
    time_peer: TimePeer, shape: Shape, size: int, peer: str
) -> None:
    time_peer("split", peer, generate(shape, size))
