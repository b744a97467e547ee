"""The table of transactions, with what the coordinators' topics say of them, if audited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.logs.names import INTERNAL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ottla.audit.judge.collector import Outcome, TableRows
    from ottla.audit.plan.plan import Plan
    from ottla.logs.inventory import Partition

COORDINATOR_TABLES = ("groups", "transactional_ids")
"""Tables that the coordinators' topics fill."""

UNKNOWN_TO_COORDINATORS = {"transactional_id": None, "coordinator_state": None}


def has_coordinators(plan: Plan) -> bool:
    """Whether a plan has partitions of the coordinators' topics."""
    return any(partition.topic in INTERNAL_TOPICS for partition in plan.partitions)


def without_coordinators(outcome: Outcome) -> Outcome:
    """Returns the outcome if no topic of the coordinators is audited."""
    transactions = outcome.tables["transactions"]
    known = TransactionRows(transactions, lambda *_: UNKNOWN_TO_COORDINATORS)
    tables = {**outcome.tables, "transactions": known, "groups": (), "transactional_ids": ()}
    return outcome._replace(tables=tables)


class TransactionRows:
    """Rows of transactions with columns of the coordinator, added when they are read."""

    def __init__(
        self,
        transactions: TableRows,
        coordinator_columns: Callable[[Partition, Mapping[str, Any]], Mapping[str, Any]],
    ) -> None:
        self._transactions = transactions
        self._coordinator_columns = coordinator_columns

    def __len__(self) -> int:
        return len(self._transactions)

    def __iter__(self) -> Iterator[tuple[Partition, Mapping[str, Any]]]:
        for partition, row in self._transactions:
            yield partition, {**row, **self._coordinator_columns(partition, row)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TransactionRows) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]
