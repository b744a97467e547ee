"""Where a record was written, and the error of one that was not."""

from __future__ import annotations

from typing import NamedTuple

from ottla.client.errors import (
    FailureType,
    KafkaError,
    ProduceFailedError,
    failure_type,
)

__all__ = ["RecordMetadata", "produce_failed"]


class RecordMetadata(NamedTuple):
    """Where a record was written.

    Attributes:
        topic: the topic.
        partition: the partition.
        offset: in the partition; -1 where the leader did not say (``acks=0``), or does not know any
            more.
        timestamp_ms: of the record in the log: its own, or the leader's where the topic has those.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


def produce_failed(error: BaseException, *, is_transactional: bool) -> ProduceFailedError:
    """Returns the error of `produce` for what `send` raises, or its future has."""
    root = getattr(error, "root", error)
    if isinstance(root, KafkaError):
        found = failure_type(root, is_transactional=is_transactional)
    else:
        # The record itself is none.
        found = FailureType.MESSAGE_REJECTED
    return ProduceFailedError(found, root)
