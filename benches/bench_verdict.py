"""A leader's decisions, beside what a client does with the same bytes, and checking alone."""

import pytest

from benches.conftest import TimePeer
from benches.data import CODECS, MIB, Compression, Shape, generate
from benches.peers import JOBS

pytestmark = [pytest.mark.bench, pytest.mark.benchmark(group="verdict")]


@pytest.mark.parametrize("peer", JOBS["append"])
@pytest.mark.parametrize("shape", [Shape(100, 100), Shape(100, 8000), Shape(1024)], ids=str)
def test_a_producers_batches_are_appended(time_peer: TimePeer, shape: Shape, peer: str) -> None:
    time_peer("append", peer, generate(shape, MIB))


@pytest.mark.parametrize("peer", JOBS["append-joined"])
@pytest.mark.parametrize("shape", [Shape(100, 100), Shape(1024)], ids=str)
def test_what_is_stored_is_taken_in_one_piece(time_peer: TimePeer, shape: Shape, peer: str) -> None:
    time_peer("append-joined", peer, generate(shape, MIB))


@pytest.mark.parametrize("peer", JOBS["accept"])
@pytest.mark.parametrize("shape", [Shape(100, 1), Shape(100, 8000), Shape(1024)], ids=str)
def test_a_decision_in_place_stands_beside_a_check(
    time_peer: TimePeer, shape: Shape, peer: str
) -> None:
    time_peer("accept", peer, generate(shape, MIB // 8))


@pytest.mark.parametrize("peer", JOBS["append-inflate"])
@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != "none"])
def test_a_producers_compressed_batches_are_appended(
    time_peer: TimePeer, codec: Compression, peer: str
) -> None:
    time_peer("append-inflate", peer, generate(Shape(1024, compression=codec), MIB))


@pytest.mark.parametrize("peer", JOBS["decide"])
@pytest.mark.parametrize("shape", [Shape(100), Shape(1024, 100), Shape(100, 1)], ids=str)
def test_a_batch_is_decided_on_in_a_call(time_peer: TimePeer, shape: Shape, peer: str) -> None:
    time_peer("decide", peer, generate(shape, 1))
