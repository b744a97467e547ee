"""What records get that a leader has refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.errors import ApiError, KafkaError, TransactionAbortedError, error_of
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.protocol.messages.produce import (
        BatchIndexAndErrorMessage,
        PartitionProduceResponse,
    )

__all__ = ["error_beside", "error_in", "error_of_record"]


def error_in(answer: PartitionProduceResponse) -> ApiError:
    """Returns the error of a whole batch."""
    return error_of(answer.error_code, answer.error_message)


def error_of_record(
    answer: PartitionProduceResponse,
    named: Mapping[int, BatchIndexAndErrorMessage],
    index: int,
) -> ApiError:
    """Returns what is wrong with a record that an answer names."""
    one = named[index]
    code = one.error_code or (answer.error_code if len(named) == 1 else 0)
    said = one.batch_index_error_message or answer.error_message
    return error_of(code or ErrorCode.INVALID_RECORD, said)


def error_beside(root: ApiError, *, is_transactional: bool) -> KafkaError:
    """Returns what a record gets that is not sent because of another one."""
    if is_transactional:
        return TransactionAbortedError(
            f"its transaction cannot commit, as another record was refused: {root}"
        )
    return KafkaError(
        f"its batch was refused for another record: {root}", root.error_code, root.error
    )
