"""What a consumer does about the error codes of its partitions, as data."""

from __future__ import annotations

from enum import Enum

from ottla.client.consumer.errors import INVALID_PARTITION_EPOCH
from ottla.protocol.error_code import ErrorCode, is_retriable

__all__ = ["FETCH", "LOOKUP", "SESSION", "Reaction", "fetch_reaction", "lookup_reaction"]


class Reaction(Enum):
    """What becomes of a partition that was answered with an error."""

    RETRY = "asks again after a back-off"
    REFRESH = "looks at the metadata again, then asks again"
    OUT_OF_RANGE = "resets the position, by the policy"
    RECREATED = "the topic is another of the same name: the application has to decide"
    NOTHING = "the broker has no answer, now or later"
    RAISE = "tells the application, and asks again after a back-off"


FETCH: dict[int, Reaction] = {
    ErrorCode.OFFSET_OUT_OF_RANGE: Reaction.OUT_OF_RANGE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Reaction.REFRESH,
    ErrorCode.REPLICA_NOT_AVAILABLE: Reaction.REFRESH,
    ErrorCode.LEADER_NOT_AVAILABLE: Reaction.REFRESH,
    ErrorCode.KAFKA_STORAGE_ERROR: Reaction.REFRESH,
    ErrorCode.FENCED_LEADER_EPOCH: Reaction.REFRESH,
    ErrorCode.OFFSET_NOT_AVAILABLE: Reaction.REFRESH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.REFRESH,
    ErrorCode.UNKNOWN_TOPIC_ID: Reaction.REFRESH,
    ErrorCode.INCONSISTENT_TOPIC_ID: Reaction.REFRESH,
    ErrorCode.UNKNOWN_LEADER_EPOCH: Reaction.RETRY,
    ErrorCode.UNKNOWN_SERVER_ERROR: Reaction.RETRY,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.RAISE,
    ErrorCode.CORRUPT_MESSAGE: Reaction.RAISE,
    INVALID_PARTITION_EPOCH: Reaction.RECREATED,
}
"""Of Fetch. Others that are retriable are asked again; the rest is told to the application."""

LOOKUP: dict[int, Reaction] = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Reaction.REFRESH,
    ErrorCode.REPLICA_NOT_AVAILABLE: Reaction.REFRESH,
    ErrorCode.LEADER_NOT_AVAILABLE: Reaction.REFRESH,
    ErrorCode.KAFKA_STORAGE_ERROR: Reaction.REFRESH,
    ErrorCode.FENCED_LEADER_EPOCH: Reaction.REFRESH,
    ErrorCode.OFFSET_NOT_AVAILABLE: Reaction.REFRESH,
    ErrorCode.UNKNOWN_LEADER_EPOCH: Reaction.REFRESH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.REFRESH,
    ErrorCode.UNKNOWN_SERVER_ERROR: Reaction.RETRY,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: Reaction.NOTHING,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.RAISE,
    INVALID_PARTITION_EPOCH: Reaction.RECREATED,
}
"""Of ListOffsets and OffsetForLeaderEpoch; others as in `FETCH`."""

SESSION: frozenset[int] = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Of a whole Fetch: the next is a full one, at once."""


def fetch_reaction(code: int) -> Reaction:
    """Returns what a partition of a Fetch does about an error code other than 0."""
    return _reaction(FETCH, code)


def lookup_reaction(code: int) -> Reaction:
    """Returns what a lookup in a partition does about an error code other than 0."""
    return _reaction(LOOKUP, code)


def _reaction(table: dict[int, Reaction], code: int) -> Reaction:
    known = table.get(code)
    if known is not None:
        return known
    return Reaction.RETRY if is_retriable(code) else Reaction.RAISE
