"""Transactions that Apache Kafka ended without writing their markers.

Coordinators of Kafka 4.3 and 4.4 take a partition that has no leader for one that was deleted, and
skip its marker (`ottla explain marker-missing`): as a broker starts again, now and then. The marker
of the next transaction decides about those records then, which no client can do anything about.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ottla
from ottla.broker.transactions.log import read_record
from ottla.broker.transactions.metadata import TransactionState

_ENDED = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


def lost_markers(logs: Path) -> list[str]:
    """What is said of them, where the coordinator's own log has that each transaction ended.

    A transaction that never ended is not among them: that would be its client's fault.
    """
    ended = set()
    for record in ottla.read_partition(logs / "__transaction_state-0"):
        _, metadata = read_record(record.key, record.value)
        if metadata is not None and metadata.state in _ENDED:
            ended.add((metadata.producer_id, metadata.producer_epoch))
    found = ottla.audit(logs).findings
    missing = [finding for finding in found if finding["name"] == "marker-missing"]
    return [one["message"] for one in missing if _end(logs, one) in ended]


def _end(logs: Path, finding: Mapping[str, Any]) -> tuple[int, int]:
    """The producer of a transaction, with the epoch that it has since the transaction ended."""
    data = (logs / finding["file"]).read_bytes()
    [first] = [
        batch for batch in ottla.read_batches(data) if batch.base_offset == finding["first_offset"]
    ]
    return first.producer_id, first.producer_epoch + 1
