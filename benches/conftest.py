"""What every benchmark does: prepare a peer, time it, hold its answer, keep its speed."""

from collections.abc import Callable
from typing import Any

import pytest

from benches.data import Data
from benches.peers import CALLED, CALLS, JOBS, LIBRARIES, OURS, Prepare

TimePeer = Callable[[str, str, Data], None]


def _prepare_of(job: str, peer: str, data: Data) -> Prepare:
    if peer in JOBS[job]:
        return JOBS[job][peer]
    return LIBRARIES[data.shape.compression][peer]


@pytest.fixture
def time_peer(benchmark: Any) -> TimePeer:
    """Return a function that times how a peer does a job on some data."""

    def time(job: str, peer: str, data: Data) -> None:
        try:
            candidate = _prepare_of(job, peer, data)(data)
        except ImportError as error:
            if peer == OURS:
                raise
            pytest.skip(f"{peer}: {error}")
        repeats = CALLS if job in CALLED else 1
        count = benchmark(candidate)
        assert count == (CALLS if job == "call" else data.records)
        if benchmark.stats is not None:
            median = benchmark.stats["median"]
            benchmark.extra_info["bytes_per_s"] = repeats * data.raw_size / median
            benchmark.extra_info["records_per_s"] = repeats * data.records / median

    return time
