"""Levels of loggers as clients change them (KIP-412)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.loggers import LEVELS, ROOT
from ottla.broker.topics import TopicError
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.broker.loggers import Loggers

__all__ = ["changed_levels"]

_SET, _DELETE = 0, 1
_OPERATIONS: Final = {2: "APPEND", 3: "SUBTRACT"}


def changed_levels(
    loggers: Loggers, changes: Sequence[tuple[str, int, str | None]]
) -> dict[str, str | None]:
    """Returns the new levels of loggers by name, `None` for that of the root.

    Args:
        loggers: those that there are.
        changes: names, operations and levels, as of IncrementalAlterConfigs.

    Raises:
        TopicError: a change is not possible; then none is made.
    """
    found: dict[str, str | None] = {}
    for name, operation, level in changes:
        if operation not in {_SET, _DELETE}:
            kind = _OPERATIONS.get(operation)
            raise TopicError(
                ErrorCode.INVALID_REQUEST,
                f"{kind} operation is not allowed for the BROKER_LOGGER resource"
                if kind
                else f"Unknown operation type {operation} for the BROKER_LOGGER resource",
            )
        if name not in loggers.levels():
            raise TopicError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
        if operation == _DELETE:
            if name == ROOT:
                why = "Removing the log level of the root logger is not allowed"
                raise TopicError(ErrorCode.INVALID_REQUEST, why)
            found[name] = None
            continue
        if level is None:
            raise TopicError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
        if level not in LEVELS:
            raise TopicError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {name} to {level} as it is not a supported log "
                f"level. Valid log levels are {', '.join(sorted(LEVELS))}",
            )
        found[name] = level
    return found
