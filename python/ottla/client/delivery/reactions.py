"""What a producer does about an error of a partition's batch.

One row an error code; a column each for producers without ids (``none``), idempotent and
transactional ones. A cell with two words has that of each policy, as in
`ottla.client.transactions.reactions`.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Literal, TypeAlias

from ottla.protocol.error_code import ErrorCode, is_retriable

if TYPE_CHECKING:
    from ottla.client.transactions.reactions import Policy

__all__ = ["KINDS", "TABLE", "Kind", "Reaction", "reaction"]

Kind: TypeAlias = Literal["none", "idempotent", "transactional"]

KINDS: tuple[Kind, ...] = ("none", "idempotent", "transactional")


class Reaction(Enum):
    """What an error of one batch means.

    - ``DONE``: the records are in the log.
    - ``RETRY``: the same batch again, after a while.
    - ``REFRESH``: the same, once the leader was looked up again.
    - ``SPLIT``: its records again, in smaller batches; one that cannot be split fails.
    - ``DROP``: the records that the answer names fail, the others are sent again; where it names
      none, all of them fail.
    - ``FAIL``: its records fail.
    - ``STATE``: the leader's idea of the producer is another one: `PartitionQueue` finds out why.
    - ``BUMP``: the producer needs a new epoch, and the records are sent again with it.
    - ``ABORT``: its records fail, and their transaction has to be aborted.
    - ``ABORT_BUMP``: likewise, and then the producer needs a new epoch.
    - ``FATAL``: its records fail, and the producer has to be closed.
    """

    DONE = "done"
    RETRY = "retry"
    REFRESH = "refresh"
    SPLIT = "split"
    DROP = "drop"
    FAIL = "fail"
    STATE = "state"
    BUMP = "bump"
    ABORT = "abort"
    ABORT_BUMP = "abort+bump"
    FATAL = "fatal"


TABLE = """
                                      none    idempotent transactional
NONE                                  done    done       done
DUPLICATE_SEQUENCE_NUMBER             done    done       done
CONCURRENT_TRANSACTIONS               fail    fail       retry
MESSAGE_TOO_LARGE                     split   split      split
RECORD_LIST_TOO_LARGE                 fail    fail       abort
INVALID_RECORD                        drop    drop       drop
INVALID_TIMESTAMP                     drop    drop       drop
UNSUPPORTED_FOR_MESSAGE_FORMAT        fail    fatal      fatal
UNSUPPORTED_VERSION                   fail    fatal      fatal
TOPIC_AUTHORIZATION_FAILED            fail    fail       fatal/abort
CLUSTER_AUTHORIZATION_FAILED          fail    fatal      fatal
TRANSACTIONAL_ID_AUTHORIZATION_FAILED fail    fatal      fatal
OUT_OF_ORDER_SEQUENCE_NUMBER          fail    state      state
UNKNOWN_PRODUCER_ID                   fail    state      state
INVALID_PRODUCER_EPOCH                fail    bump       abort+bump
PRODUCER_FENCED                       fail    fatal      fatal
INVALID_PRODUCER_ID_MAPPING           fail    fail       abort+bump
INVALID_TXN_STATE                     fail    fail       fatal
other                                 fail    fail       abort
"""

_REFRESH = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


def _read(table: str) -> dict[str, dict[Kind, dict[Policy, Reaction]]]:
    rows: dict[str, dict[Kind, dict[Policy, Reaction]]] = {}
    for line in table.strip().splitlines()[1:]:
        name, *cells = line.split()
        rows[name] = {}
        for kind, cell in zip(KINDS, cells, strict=True):
            ours, _, kafkas = cell.partition("/")
            rows[name][kind] = {"kip691": Reaction(ours), "kafka": Reaction(kafkas or ours)}
    return rows


_ROWS = _read(TABLE)
_CODES = {getattr(ErrorCode, name): row for name, row in _ROWS.items() if name != "other"}


def reaction(error_code: int, kind: Kind, policy: Policy = "kip691") -> Reaction:
    """Returns what a producer does about an error of a batch.

    Args:
        error_code: Kafka's code.
        kind: of the producer.
        policy: whose rules.

    >>> reaction(87, "idempotent"), reaction(6, "none")
    (<Reaction.DROP: 'drop'>, <Reaction.REFRESH: 'refresh'>)
    """
    row = _CODES.get(error_code)
    if row is not None:
        return row[kind][policy]
    if error_code in _REFRESH:
        return Reaction.REFRESH
    return Reaction.RETRY if is_retriable(error_code) else _ROWS["other"][kind][policy]
