"""What a Produce must be answered with where a verdict is known, in any version of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.protocol.codec import decode
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.produce import ProduceResponse

if TYPE_CHECKING:
    import ottla

LOG_START_IS_TOLD = 5
RECORDS_ARE_NAMED = 8
RECORD_CODES_ARE_TAGGED = 9
COORDINATOR_IS_ASKED = 12
# Of so many records to blame an answer says why; the others are named alone.
MESSAGES_OF_AN_ANSWER = 1000


class NamedRecord(NamedTuple):
    """A record to blame; `code` is 0 where it has the partition's."""

    batch_index: int
    message: str | None
    code: int


class Told(NamedTuple):
    """The answer of a partition."""

    code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    records: tuple[NamedRecord, ...]
    message: str | None


def told_by(version: int, body: bytes) -> Told:
    """Return what an answer about one partition tells."""
    answer, position = decode(ProduceResponse, version)(body, 0)
    assert position == len(body)
    ((found,),) = [topic.partition_responses for topic in answer.responses]
    records = tuple(
        NamedRecord(each.batch_index, each.batch_index_error_message, each.error_code)
        for each in found.record_errors
    )
    return Told(
        found.error_code,
        found.base_offset,
        found.log_append_time_ms,
        found.log_start_offset,
        records,
        found.error_message,
    )


def to_be_told(verdict: ottla.Verdict, version: int, profile: str, log_start_offset: int) -> Told:
    """Return what an answer of a version must tell of a verdict.

    `log_start_offset` is the partition's own.
    """
    is_strict = profile == "strict"
    code = verdict.error
    if is_strict and version < RECORDS_ARE_NAMED and code == ErrorCode.INVALID_RECORD:
        code = ErrorCode.INVALID_REQUEST
    if not is_strict and verdict.log_start_offset == -1:
        log_start_offset = -1
    records: tuple[NamedRecord, ...] = ()
    message = None
    if version >= RECORDS_ARE_NAMED:
        records = tuple(
            NamedRecord(
                error.batch_index,
                error.message if number < MESSAGES_OF_AN_ANSWER else None,
                own_code(error, code) if is_strict and version >= RECORD_CODES_ARE_TAGGED else 0,
            )
            for number, error in enumerate(verdict.record_errors)
        )
        if is_strict or records or says_why_to_all(verdict):
            message = verdict.error_message
    return Told(
        code,
        verdict.base_offset,
        verdict.log_append_time_ms,
        log_start_offset if version >= LOG_START_IS_TOLD else -1,
        records,
        message,
    )


def own_code(error: ottla.RecordError, code: int) -> int:
    """Return the code of a record, 0 where it is the partition's."""
    return 0 if error.error == code else error.error


def says_why_to_all(verdict: ottla.Verdict) -> bool:
    """Whether Kafka fails the whole request with the text of what it met."""
    return verdict.is_request_wide and verdict.error != ErrorCode.UNKNOWN_SERVER_ERROR
