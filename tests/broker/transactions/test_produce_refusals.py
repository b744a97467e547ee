"""What the coordinator of a transaction says, as a Produce of each version tells it (KIP-890)."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from ottla.broker.transactions.verification import produce_refusals
from ottla.protocol.error_code import ErrorCode
from support.plane_frames import PRODUCE_VERSIONS

NOW_MS = 1_800_000_000_000
ORDERS, PAYMENTS = ("orders", 0), ("payments", 1)


class Producer(NamedTuple):
    """Who writes, and where."""

    transactional_id: str = "t"
    producer_id: int = 5
    producer_epoch: int = 0
    partitions: Sequence[tuple[str, int]] = (ORDERS, PAYMENTS)


class Coordinator:
    """Says one thing of everything, and notes how it is asked."""

    def __init__(self, error: int) -> None:
        self.error = error
        self.asked: list[str] = []

    def add_partitions(self, *_asked: object, transaction_version: int) -> int:
        self.asked.append(f"add {transaction_version}")
        return self.error

    def verify_partitions(self, *asked: object) -> dict[tuple[str, int], int]:
        self.asked.append("verify")
        assert asked == ("t", 5, 0, (ORDERS, PAYMENTS))
        return {ORDERS: self.error, PAYMENTS: 0}


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@pytest.mark.parametrize(
    ("said", "told"),
    [
        (ErrorCode.NONE, [0, 0, 0]),
        # It cannot be asked: send again.
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [19, 19, 19]),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, [19, 19, 19]),
        (ErrorCode.NOT_COORDINATOR, [19, 19, 19]),
        # The one before is not over: send again, by a code that newer versions know.
        (ErrorCode.CONCURRENT_TRANSACTIONS, [19, 19, 51]),
        (ErrorCode.TRANSACTION_ABORTABLE, [48, 120, 120]),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [48, 48, 48]),
        (ErrorCode.PRODUCER_FENCED, [47, 47, 47]),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, [49, 49, 49]),
    ],
)
def test_what_a_coordinator_says_is_told_as_produce_tells_it(
    said: int, told: list[int], version: int
) -> None:
    coordinator = Coordinator(said)
    refusals = produce_refusals(coordinator, Producer(), version, NOW_MS)  # type: ignore[arg-type]
    code = told[0 if version < 11 else 1 if version < 12 else 2]
    partitions = [ORDERS] if version < 12 else [ORDERS, PAYMENTS]
    assert refusals == (dict.fromkeys(partitions, code) if code else {})
    assert coordinator.asked == ["verify" if version < 12 else "add 2"]
