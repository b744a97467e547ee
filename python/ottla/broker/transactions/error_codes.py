"""Error codes that are younger than an API, and what its older versions have in their place."""

from __future__ import annotations

from typing import Final

from ottla.protocol.api_key import ApiKey
from ottla.protocol.error_code import ErrorCode

__all__ = ["known_to"]

_NEVER: Final = 1 << 15

# KIP-588: a producer is told that another one has taken over, and not only that its epoch is old.
_FENCED_SINCE: Final[dict[int, int]] = {
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 2,
    ApiKey.ADD_OFFSETS_TO_TXN: 2,
    ApiKey.END_TXN: 2,
}
# KIP-890: a transaction can only be aborted, but its producer can go on.
_ABORTABLE_SINCE: Final[dict[int, int]] = {
    ApiKey.PRODUCE: 11,
    ApiKey.FIND_COORDINATOR: 5,
    ApiKey.INIT_PRODUCER_ID: 5,
    ApiKey.ADD_PARTITIONS_TO_TXN: 5,
    ApiKey.ADD_OFFSETS_TO_TXN: 4,
    ApiKey.END_TXN: 4,
    ApiKey.TXN_OFFSET_COMMIT: 4,
}


def known_to(api_key: int, version: int, error: int) -> int:
    """Returns an error code as a client of that version knows it."""
    if error == ErrorCode.PRODUCER_FENCED and version < _FENCED_SINCE.get(api_key, _NEVER):
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error == ErrorCode.TRANSACTION_ABORTABLE and version < _ABORTABLE_SINCE.get(api_key, _NEVER):
        return ErrorCode.INVALID_TXN_STATE
    return error
