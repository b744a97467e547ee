"""A broker on loopback for real clients, and what clients have in common."""

from collections.abc import Iterator

import pytest
from ottla.testing import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker with one topic of three partitions."""
    with Broker(topics={"orders": 3}) as running:
        yield running
