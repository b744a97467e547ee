"""Checking compressed logs, beside decompressing them and doing nothing else."""

import pytest

from benches.conftest import TimePeer
from benches.data import CODECS, MIB, Compression, Shape, generate
from benches.peers import JOBS, LIBRARIES

PEERS = [
    (codec, peer)
    for codec in CODECS
    if codec != "none"
    for peer in (*JOBS["inflate"], *LIBRARIES[codec])
]
pytestmark = [pytest.mark.bench, pytest.mark.benchmark(group="codecs")]


@pytest.mark.parametrize("value_size", [100, 1024])
@pytest.mark.parametrize(("codec", "peer"), PEERS)
def test_a_compressed_log_is_checked(
    time_peer: TimePeer, codec: Compression, peer: str, value_size: int
) -> None:
    time_peer("inflate", peer, generate(Shape(value_size, compression=codec), MIB))
