"""Deeds in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.audit.advice.deed import Operation

PATHS_SHOWN = 3


def listed(items: Sequence[str], shown: int) -> str:
    """Items as a sentence lists them; those beyond `shown` are counted.

    >>> listed(["a", "b", "c"], 3), listed(["a", "b", "c"], 1)
    ('a, b and c', 'a and 2 more')
    """
    rest = len(items) - shown
    words = [*items[:shown], *([f"{rest:,} more"] if rest > 0 else [])]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def what_to_do(operations: Sequence[Operation]) -> str:
    """Operations as a sentence.

    >>> from ottla.audit.advice.deed import Operation
    >>> what_to_do([Operation("delete", "orders-0/00000000000000000000.index")])
    'Delete orders-0/00000000000000000000.index'
    >>> what_to_do([])
    'Do nothing'
    """
    deleted = [operation.path for operation in operations if operation.operation == "delete"]
    moved = [operation.path for operation in operations if operation.operation == "move"]
    parts = [f"delete {listed(deleted, PATHS_SHOWN)}"] if deleted else []
    if moved:
        parts.append(f"move {listed(moved, PATHS_SHOWN)} out of the log directory")
    text = "; ".join(parts) or "do nothing"
    return text[0].upper() + text[1:]
