"""Building batches from columns, beside builders that take record by record."""

import pytest

from benches.conftest import TimePeer
from benches.data import MIB, Shape, generate
from benches.peers import JOBS

SHAPES = (Shape(100, 100), Shape(100), Shape(1024), Shape(10240, 100))
pytestmark = [pytest.mark.bench, pytest.mark.benchmark(group="build")]


@pytest.mark.parametrize("peer", JOBS["build"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_batches_are_built_from_records(time_peer: TimePeer, shape: Shape, peer: str) -> None:
    time_peer("build", peer, generate(shape, MIB))
