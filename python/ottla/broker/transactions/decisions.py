"""What the coordinator answers, from what it knows and what is asked: nothing is changed here.

A decision is an error code that ends the request, `NONE` among them where there is nothing left to
do, or `PROCEED`. Which code a version of an API can carry is for its handler (`error_codes.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.transactions.metadata import (
    EPOCH_BUMPS,
    MAX_EPOCH,
    NO_PRODUCER,
    TransactionState,
)
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.transactions.metadata import TopicPartition, TransactionMetadata

__all__ = ["PROCEED", "decide_add", "decide_end", "decide_init", "decide_producer"]

PROCEED: Final = None
"""Nothing speaks against it."""


def decide_init(known: TransactionMetadata, producer_id: int, producer_epoch: int) -> int | None:
    """Judges a producer that resumes with its id and epoch, or starts with -1 and -1 (KIP-360)."""
    expects = producer_id != NO_PRODUCER
    if expects and not _is_own_id(known, producer_id, producer_epoch):
        return ErrorCode.PRODUCER_FENCED
    if known.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    # Another producer that started in between would have reset the last epoch, so a retry that
    # names it fences nobody.
    accepted = {known.producer_epoch, known.last_producer_epoch} - {NO_PRODUCER}
    if expects and known.is_idle and accepted and producer_epoch not in accepted:
        return ErrorCode.PRODUCER_FENCED
    return PROCEED


def _is_own_id(known: TransactionMetadata, producer_id: int, producer_epoch: int) -> bool:
    if known.producer_epoch == NO_PRODUCER or producer_id == known.producer_id:
        return True
    # The answer that brought another id, because epochs were used up, may have been lost.
    return producer_id == known.previous_producer_id and producer_epoch >= MAX_EPOCH - 1


def decide_producer(
    known: TransactionMetadata | None, producer_id: int, producer_epoch: int
) -> int | None:
    """Judges whether a producer is the one that may act for a transactional id."""
    if known is None or known.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.producer_epoch != producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if known.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return PROCEED


def decide_add(
    known: TransactionMetadata | None,
    producer_id: int,
    producer_epoch: int,
    partitions: Iterable[TopicPartition],
) -> int | None:
    """Judges whether partitions can join the transaction; `NONE` if they are in it already."""
    error = decide_producer(known, producer_id, producer_epoch)
    if error is not PROCEED or known is None:
        return error
    is_ongoing = known.state == TransactionState.ONGOING
    return ErrorCode.NONE if is_ongoing and known.partitions.issuperset(partitions) else PROCEED


def decide_end(
    known: TransactionMetadata | None,
    producer_id: int,
    producer_epoch: int,
    *,
    commit: bool,
    transaction_version: int,
) -> int | None:
    """Judges the end of a transaction; `NONE` if that very end has come already."""
    if known is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction_version >= EPOCH_BUMPS:
        return _decide_bumping_end(known, producer_id, producer_epoch, commit=commit)
    if known.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.producer_epoch != producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if known.state == TransactionState.ONGOING:
        return PROCEED
    if known.state == TransactionState.EMPTY or _is_committed(known) != commit:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.CONCURRENT_TRANSACTIONS if known.is_prepared else ErrorCode.NONE


def _is_committed(known: TransactionMetadata) -> bool:
    return known.state in {TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT}


def _decide_bumping_end(
    known: TransactionMetadata, producer_id: int, producer_epoch: int, *, commit: bool
) -> int | None:
    """Judges an end that raises the epoch (KIP-890).

    The epoch tells a retry, which has the one before, from the end of the next transaction.
    """
    is_retry_with_new_id = (
        known.previous_producer_id == producer_id != known.producer_id
        and producer_epoch == MAX_EPOCH - 1
        and known.producer_epoch == 0
    )
    is_retry = is_retry_with_new_id or known.producer_epoch == producer_epoch + 1
    is_current = known.producer_epoch == producer_epoch
    if known.producer_id != producer_id and not is_retry_with_new_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.is_prepared:
        if not is_retry:
            return ErrorCode.PRODUCER_FENCED
        is_same = _is_committed(known) == commit
        return ErrorCode.CONCURRENT_TRANSACTIONS if is_same else ErrorCode.INVALID_TXN_STATE
    has_ended = known.is_idle and known.state != TransactionState.EMPTY
    if has_ended and is_retry:
        is_same = _is_committed(known) == commit
        return ErrorCode.NONE if is_same else ErrorCode.INVALID_TXN_STATE
    if not is_current:
        return ErrorCode.PRODUCER_FENCED
    # Nothing was added, as far as is known here: to abort that is a matter of course.
    return ErrorCode.INVALID_TXN_STATE if commit and known.is_idle else PROCEED
