"""Deeds in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.words import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.audit.advice.deed import Operation

PATHS_SHOWN = 3


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
