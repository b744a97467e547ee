"""What the logs of each topic hold, from sums that the engine keeps of every log."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.audit.judge.collector import Outcome
    from ottla.audit.plan.plan import Plan
    from ottla.logs.inventory import Partition


class TopicTotals(NamedTuple):
    """Counts of what the logs of a topic hold, as far as they were read."""

    topic: str | None
    """None for directories that are named as no partition is."""
    partitions: int
    batches: int
    records: int
    bytes: int
    committed_transactions: int
    aborted_transactions: int


def topic_totals(plan: Plan, outcome: Outcome) -> list[TopicTotals]:
    """Returns what the topics hold, in the order of their first partitions."""
    logs: dict[str | None, list[int]] = {}
    partitions: dict[str | None, int] = {}
    before: Partition | None = None
    counts = outcome.files.counts_of_logs()
    for index, partition in enumerate(plan.logs.partitions):
        if partition is None or not counts[index]:
            continue
        topic = partition.topic
        if topic not in logs:
            logs[topic], partitions[topic] = [], 0
        logs[topic].append(index)
        # The logs of a partition are consecutive.
        if partition is not before:
            partitions[topic] += 1
            before = partition
    return [_totals(outcome, topic, partitions[topic], indexes) for topic, indexes in logs.items()]


def _totals(
    outcome: Outcome, topic: str | None, partitions: int, logs: Sequence[int]
) -> TopicTotals:
    totals = outcome.files.totals_of(logs)
    return TopicTotals(
        topic=topic,
        partitions=partitions,
        batches=totals.batches,
        records=totals.records,
        bytes=totals.bytes,
        committed_transactions=totals.committed_transactions,
        aborted_transactions=totals.aborted_transactions,
    )
