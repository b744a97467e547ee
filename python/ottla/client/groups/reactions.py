"""What a consumer does about an error of its group's requests.

One row an error code, one column an API. A code that no row names is sent again where Kafka calls
it retriable, and raised elsewhere.
"""

from __future__ import annotations

from enum import Enum

from ottla.client.errors import ApiError, error_of
from ottla.protocol.error_code import ErrorCode, is_retriable

__all__ = ["APIS", "TABLE", "Reaction", "error_for", "reaction"]


class Reaction(Enum):
    """What an error of one answer means.

    - ``RETRY``: the same request again, after a while.
    - ``REFRESH``: metadata is looked up, then likewise.
    - ``FIND``: the coordinator is looked for, then the same request again.
    - ``IDENTIFY``: the same request again, at once, with the member id that the answer gives.
    - ``REJOIN``: the member joins again, and keeps what it has.
    - ``REJOINING``: of a commit: the same may be made again once the member has joined again.
    - ``STALE``: the member's epoch has gone on: the same request again once it has heard of it.
    - ``LOST``: its generation is over without it: it has lost what it had, and joins again.
    - ``REMOVED``: likewise, and its member id is void as well.
    - ``RAISE``: the application is told, once; after that it is tried again.
    - ``FATAL``: the application is told, each time: the consumer has to be closed.
    """

    RETRY = "retry"
    REFRESH = "refresh"
    FIND = "find"
    IDENTIFY = "identify"
    REJOIN = "rejoin"
    REJOINING = "rejoining"
    STALE = "stale"
    LOST = "lost"
    REMOVED = "removed"
    RAISE = "raise"
    FATAL = "fatal"


APIS = (
    "FindCoordinator",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "ConsumerGroupHeartbeat",
    "OffsetCommit",
    "OffsetFetch",
)

TABLE = """
                               Find   Join     Sync    Beat    848     Commit    Fetch
UNKNOWN_TOPIC_OR_PARTITION     raise  raise    raise   raise   raise   refresh   refresh
UNKNOWN_TOPIC_ID               raise  raise    raise   raise   raise   refresh   refresh
REQUEST_TIMED_OUT              retry  find     find    find    find    find      find
COORDINATOR_LOAD_IN_PROGRESS   retry  retry    retry   retry   retry   retry     retry
COORDINATOR_NOT_AVAILABLE      retry  find     find    find    find    find      find
NOT_COORDINATOR                retry  find     find    find    find    find      find
UNKNOWN_MEMBER_ID              raise  removed  removed removed lost    removed   removed
ILLEGAL_GENERATION             raise  lost     lost    lost    lost    lost      lost
FENCED_MEMBER_EPOCH            raise  lost     lost    lost    lost    lost      lost
STALE_MEMBER_EPOCH             raise  raise    raise   raise   lost    stale     stale
MEMBER_ID_REQUIRED             raise  identify raise   raise   raise   raise     raise
REBALANCE_IN_PROGRESS          raise  rejoin   rejoin  rejoin  raise   rejoining raise
FENCED_INSTANCE_ID             raise  fatal    fatal   fatal   fatal   fatal     fatal
UNSTABLE_OFFSET_COMMIT         raise  raise    raise   raise   raise   retry     retry
GROUP_ID_NOT_FOUND             raise  raise    raise   raise   lost    lost      raise
"""


def _read(table: str) -> dict[int, dict[str, Reaction]]:
    rows = {}
    for line in table.strip().splitlines()[1:]:
        name, *cells = line.split()
        rows[getattr(ErrorCode, name)] = dict(zip(APIS, map(Reaction, cells), strict=True))
    return rows


_ROWS = _read(TABLE)

_ADVICE = {
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "the user may not read group {group}: "
    "give it an ACL for READ on the group",
    ErrorCode.INVALID_GROUP_ID: "the coordinator takes no group named {group}: set "
    "another group_id",
    ErrorCode.INVALID_SESSION_TIMEOUT: "the coordinator takes no session_timeout_ms of this size: "
    "set one between its group.min.session.timeout.ms and group.max.session.timeout.ms",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "the members of group {group} assign by other means: "
    "give all of them a strategy of partition_assignment_strategy in common, and the same "
    "group_protocol",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "group {group} has as many members as its coordinator "
    "allows: close one, or raise group.max.size",
    ErrorCode.FENCED_INSTANCE_ID: "another consumer of group {group} has the same "
    "group_instance_id: give each one of its own, and close this one",
    ErrorCode.UNRELEASED_INSTANCE_ID: "another consumer of group {group} has the same "
    "group_instance_id, and has not left: give each one of its own, or wait for its session to "
    "be over",
    ErrorCode.UNSUPPORTED_ASSIGNOR: "the coordinator has no such assignor: set "
    "group_remote_assignor to one of its group.consumer.assignors, or leave it out",
    ErrorCode.UNSUPPORTED_VERSION: "the coordinator of group {group} does not know the protocol "
    'that the consumer speaks: set group_protocol to "classic"',
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "the metadata of a committed offset is larger than the "
    "coordinator's offset.metadata.max.bytes",
}


def reaction(api: str, error_code: int) -> Reaction:
    """Returns what a consumer does about an error.

    Args:
        api: which request was answered, one of `APIS`.
        error_code: Kafka's code, other than 0.

    >>> reaction("Heartbeat", 27), reaction("JoinGroup", 30)
    (<Reaction.REJOIN: 'rejoin'>, <Reaction.RAISE: 'raise'>)
    """
    row = _ROWS.get(error_code)
    if row is not None:
        return row[api]
    return Reaction.RETRY if is_retriable(error_code) else Reaction.RAISE


def error_for(group_id: str, error_code: int, message: str | None = None) -> ApiError:
    """Returns what the application is told, with what there is to do about it."""
    advice = _ADVICE.get(error_code)
    if advice is None:
        return error_of(error_code, message)
    said = advice.format(group=repr(group_id))
    return error_of(error_code, f"{said} ({message})" if message else said)
