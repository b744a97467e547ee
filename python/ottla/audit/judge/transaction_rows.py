"""The table of transactions, with what the coordinators' topics say of them, if audited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.audit.catalogue.explain import UNENDED, find_hanging, transaction_commands
from ottla.audit.judge.packed import Beside, columns_of_engine
from ottla.logs.names import INTERNAL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ottla.audit.judge.collector import Outcome, TableRows
    from ottla.audit.plan.plan import Plan
    from ottla.logs.columns import Row
    from ottla.logs.inventory import Partition

COORDINATOR_TABLES = ("groups", "transactional_ids")
"""Tables that the coordinators' topics fill."""

UNKNOWN_TO_COORDINATORS = {"transactional_id": None, "coordinator_state": None}


_COLUMNS = columns_of_engine("transactions")
_STATE = _COLUMNS.index("state")


def _unknown_with_commands(partition: Partition, values: Row) -> tuple[None, None, list[str]]:
    """Returns the columns of a transaction of which no coordinator's topic tells."""
    state, place = values[_STATE], (partition.topic, partition.partition)
    if state == "open":
        # A log may have thousands, and they differ in nothing else that a command asks for.
        return None, None, [find_hanging(*place)]
    if state not in UNENDED:
        return None, None, []
    row = {**dict(zip(_COLUMNS, values, strict=True)), "topic": place[0], "partition": place[1]}
    return None, None, transaction_commands(row)


BESIDE_TRANSACTIONS = Beside((*UNKNOWN_TO_COORDINATORS, "commands"), _unknown_with_commands)


def has_coordinators(plan: Plan) -> bool:
    """Whether a plan has partitions of the coordinators' topics."""
    return any(partition.topic in INTERNAL_TOPICS for partition in plan.partitions)


def without_coordinators(outcome: Outcome) -> Outcome:
    """Returns the outcome if no topic of the coordinators is audited."""
    return outcome._replace(tables={**outcome.tables, "groups": (), "transactional_ids": ()})


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
