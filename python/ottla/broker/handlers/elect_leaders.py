"""ElectLeaders (key 43), versions 0 to 2: has the preferred replica lead, or any (KIP-460).

Version 0 elects preferred replicas alone, 1 says which kind of election, 2 is flexible. Of one
broker each partition has one replica, which leads: no election is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.partitions import partition_fault
from ottla.broker.handlers.permission import cluster_error
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.elect_leaders import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.elect_leaders import ElectLeadersRequest

__all__ = ["handle", "refuse"]

_PREFERRED, _UNCLEAN = 0, 1
_ERROR_OF_ALL = 1


def handle(broker: Broker, request: ElectLeadersRequest, context: Context) -> ElectLeadersResponse:
    """Answers for each partition; of all of them, with those that were elected: none."""
    error = cluster_error(broker, context, Operation.ALTER)
    if error:
        return refuse(request, context, error, None)
    if request.election_type not in {_PREFERRED, _UNCLEAN}:
        message = f"Unknown election type {request.election_type}"
        return refuse(request, context, ErrorCode.INVALID_REQUEST, message)

    def outcome(topic: str, index: int) -> tuple[int, str | None]:
        fault = partition_fault(broker, context, topic, index)
        if fault:
            return fault, None
        if topic not in context.image.topics:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}"
        if context.image.partition(topic, index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{index}"
        message = "Leader election not needed for topic partition."
        return ErrorCode.ELECTION_NOT_NEEDED, message

    return _response(request, outcome)


def refuse(
    request: ElectLeadersRequest, context: Context, error: int, message: str | None
) -> ElectLeadersResponse:
    """Answers with an error, and with the same for each partition."""
    response = _response(request, lambda _topic, _index: (error, message))
    if context.version >= _ERROR_OF_ALL:
        response.error_code = error
    return response


def _response(
    request: ElectLeadersRequest, outcome: Callable[[str, int], tuple[int, str | None]]
) -> ElectLeadersResponse:
    results = []
    for topic in request.topic_partitions or ():
        partitions = []
        for index in topic.partitions:
            code, message = outcome(topic.topic, index)
            partitions.append(
                PartitionResult(partition_id=index, error_code=code, error_message=message)
            )
        results.append(ReplicaElectionResult(topic=topic.topic, partition_result=partitions))
    return ElectLeadersResponse(replica_election_results=results)
