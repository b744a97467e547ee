"""What to do, as the table `recovery` says it of each start."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ottla.audit.advice.deed import MARK
from ottla.audit.advice.words import what_to_do
from ottla.audit.result.columns import RECOVERY
from ottla.logs.names import display

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.audit.advice.deed import Deed
    from ottla.audit.plan.plan import Plan
    from ottla.logs.columns import Row

_COLUMNS = [column.name for column in RECOVERY]

KEEP_MARK = "Do not delete .kafka_cleanshutdown"
UNREACHABLE = "Nothing: the broker has not stopped cleanly"


def with_actions(plan: Plan, rows: Iterable[Row], advice: Sequence[Deed]) -> tuple[Row, ...]:
    """Rows of `recovery` with what the best deed does to the partition.

    A start that is not the next one is to be kept off where it does harm.
    """
    directories = {plan.inventory.display(p.directory): p.directory for p in plan.partitions}
    best: dict[str, Deed] = {}
    for deed in advice:
        best.setdefault(deed.log_directory, deed)
    return tuple(_with_action(row, directories, best) for row in rows)


def _with_action(row: Row, directories: dict[str, bytes], best: dict[str, Deed]) -> Row:
    values = dict(zip(_COLUMNS, row, strict=True))
    outcome = values["outcome"]
    if outcome in (None, "opens", "empties", "put-aside"):
        return row
    if not values["is_next"]:
        action = KEEP_MARK if values["stop"] == "unclean" else UNREACHABLE
    else:
        above, name = os.path.split(directories[values["directory"]])
        deed = best.get(display(above))
        if deed is None:
            return row
        inside = display(name)
        action = what_to_do(
            [o for o in deed.operations if o.path == MARK or o.path.split("/")[0] == inside]
        )
    return tuple((values | {"action": action}).values())
