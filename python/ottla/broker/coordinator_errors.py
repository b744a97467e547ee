"""What a client hears when the log of a coordinator did not take a record."""

from __future__ import annotations

from typing import Final

from ottla.protocol.error_code import ErrorCode

__all__ = ["error_of_log"]

_ERRORS: Final[dict[int, int]] = {
    # Try again: the log may be there by then, or have its replicas.
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    # Ask who coordinates by now.
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    # Not the client's fault, and not to be mended by sending again.
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def error_of_log(error: int) -> int:
    """Returns an error of the log as one of the coordinator, other errors as they are."""
    return _ERRORS.get(error, error)
