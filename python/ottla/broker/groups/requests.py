"""What a ConsumerGroupHeartbeat must say (KIP-848), whatever its group is."""

from ottla.broker.groups.assignors import ASSIGNORS
from ottla.broker.groups.config import GroupConfig
from ottla.broker.groups.consumer_group import LEFT, LEFT_STATIC
from ottla.broker.groups.error import GroupError
from ottla.broker.groups.limits import MAX_MEMBER_METADATA_BYTES
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

# The version from which a member makes its id itself (KIP-1082).
_OWN_MEMBER_ID = 1


def validate_heartbeat(
    request: ConsumerGroupHeartbeatRequest, api_version: int, config: GroupConfig
) -> None:
    """Refuses a request that says too little, or what contradicts itself.

    Raises:
        GroupError: INVALID_REQUEST, or UNSUPPORTED_ASSIGNOR (112).
    """
    _require(request.group_id != "", "GroupId can't be empty.")
    _require(request.instance_id != "", "InstanceId can't be empty.")
    _require(request.rack_id != "", "RackId can't be empty.")
    epoch = request.member_epoch
    if epoch != 0 or api_version >= _OWN_MEMBER_ID:
        _require(request.member_id != "", "MemberId can't be empty.")
    if epoch == 0:
        _validate_join(request)
    elif epoch == LEFT_STATIC:
        _require(request.instance_id is not None, "InstanceId can't be null.")
    else:
        _require(epoch > 0 or epoch == LEFT, "MemberEpoch is invalid.")
    names = request.subscribed_topic_names or ()
    _require(
        sum(map(len, names)) <= MAX_MEMBER_METADATA_BYTES, "SubscribedTopicNames are too many."
    )
    assignor = request.server_assignor
    if assignor is not None and (
        assignor not in config.group_consumer_assignors or assignor not in ASSIGNORS
    ):
        supported = ", ".join(config.group_consumer_assignors)
        raise GroupError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported. Supported assignors: {supported}.",
        )


def _validate_join(request: ConsumerGroupHeartbeatRequest) -> None:
    _require(
        request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request."
    )
    _require(request.topic_partitions == [], "TopicPartitions must be empty when (re-)joining.")
    _require(
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None,
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
    )


def _require(is_so: bool, message: str) -> None:
    if not is_so:
        raise GroupError(ErrorCode.INVALID_REQUEST, message)
