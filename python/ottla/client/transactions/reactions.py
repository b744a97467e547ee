"""What a producer does about an error of a transaction's requests.

One row an error code, one column an API. A cell with two words has that of each policy: first
``kip691``, under which what a person has to mend is fatal, then ``kafka``, which does as Kafka's
own client.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal, TypeAlias

from ottla.protocol.error_code import ErrorCode, is_retriable

__all__ = ["APIS", "TABLE", "Policy", "Reaction", "reaction"]

Policy: TypeAlias = Literal["kip691", "kafka"]


class Reaction(Enum):
    """What an error of one answer means for the producer.

    - ``RETRY``: the same request again, after a while.
    - ``FIND``: the coordinator is looked for, then the same request again.
    - ``ABORT``: the transaction has to be aborted.
    - ``BUMP``: likewise, and then the producer needs a new epoch; fatal where it cannot have one.
    - ``FENCED``: another producer has taken over; fatal, and told as `ProducerFencedError`.
    - ``REMOVED``: the consumer is no member of its group; told as `CommitFailedError`.
    - ``FATAL``: the producer has to be closed.
    """

    RETRY = "retry"
    FIND = "find"
    ABORT = "abort"
    BUMP = "bump"
    FENCED = "fenced"
    REMOVED = "removed"
    FATAL = "fatal"


APIS = (
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "TxnOffsetCommit",
    "EndTxn",
    "FindCoordinator",
)

TABLE = """
                                      Init   AddPart     AddOff      TxnOffset   End    Find
COORDINATOR_NOT_AVAILABLE             find   find        find        find        find   retry
NOT_COORDINATOR                       find   find        find        find        find   retry
REQUEST_TIMED_OUT                     retry  retry       retry       find        retry  retry
INVALID_PRODUCER_EPOCH                fenced fenced      fenced      fenced      fenced fatal
PRODUCER_FENCED                       fatal  fatal       fatal       fatal       fatal  fatal
TRANSACTIONAL_ID_AUTHORIZATION_FAILED fatal  fatal       fatal       fatal       fatal  fatal
CLUSTER_AUTHORIZATION_FAILED          fatal  fatal       fatal       fatal       fatal  fatal
INVALID_TXN_STATE                     fatal  fatal       fatal       fatal       fatal  fatal
INVALID_PRODUCER_ID_MAPPING           fatal  bump        bump        bump        bump   fatal
UNKNOWN_PRODUCER_ID                   fatal  bump        bump        bump        bump   fatal
TOPIC_AUTHORIZATION_FAILED            fatal  fatal/abort fatal       fatal       fatal  fatal
GROUP_AUTHORIZATION_FAILED            fatal  abort       fatal/abort fatal/abort fatal  fatal/abort
FENCED_INSTANCE_ID                    fatal  abort       fatal       fatal/abort fatal  fatal
UNKNOWN_MEMBER_ID                     fatal  abort       fatal       removed     fatal  fatal
ILLEGAL_GENERATION                    fatal  abort       fatal       removed     fatal  fatal
UNSUPPORTED_FOR_MESSAGE_FORMAT        fatal  abort       fatal       fatal       fatal  fatal
UNSUPPORTED_VERSION                   fatal  fatal       fatal       fatal       fatal  fatal
SASL_AUTHENTICATION_FAILED            fatal  fatal       fatal       fatal       fatal  fatal
TRANSACTION_ABORTABLE                 abort  abort       abort       abort       abort  abort
INVALID_TRANSACTION_TIMEOUT           fatal  abort       fatal       fatal       fatal  fatal
other                                 fatal  abort       fatal       fatal       fatal  fatal
"""


def _read(table: str) -> dict[str, dict[str, dict[Policy, Reaction]]]:
    rows: dict[str, dict[str, dict[Policy, Reaction]]] = {}
    for line in table.strip().splitlines()[1:]:
        name, *cells = line.split()
        rows[name] = {}
        for api, cell in zip(APIS, cells, strict=True):
            ours, _, kafkas = cell.partition("/")
            rows[name][api] = {"kip691": Reaction(ours), "kafka": Reaction(kafkas or ours)}
    return rows


_ROWS = _read(TABLE)
_CODES = {getattr(ErrorCode, name): row for name, row in _ROWS.items() if name != "other"}


def reaction(api: str, error_code: int, policy: Policy = "kip691") -> Reaction:
    """Returns what a producer does about an error.

    Args:
        api: which request was answered, one of `APIS`.
        error_code: Kafka's code, other than 0.
        policy: whose rules.

    >>> reaction("AddPartitionsToTxn", 29), reaction("AddPartitionsToTxn", 29, "kafka")
    (<Reaction.FATAL: 'fatal'>, <Reaction.ABORT: 'abort'>)
    """
    row = _CODES.get(error_code)
    if row is not None:
        return row[api][policy]
    return Reaction.RETRY if is_retriable(error_code) else _ROWS["other"][api][policy]
