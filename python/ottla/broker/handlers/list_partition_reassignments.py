"""ListPartitionReassignments (key 46), version 0: moves of replicas under way (KIP-455).

With one broker there are none, of whichever partitions it is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.partitions import partition_fault
from ottla.broker.handlers.permission import cluster_error
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.list_partition_reassignments import (
        ListPartitionReassignmentsRequest,
    )

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: ListPartitionReassignmentsRequest, context: Context
) -> ListPartitionReassignmentsResponse:
    """Answers that nothing is under way."""
    error = cluster_error(broker, context, Operation.DESCRIBE)
    faults = (
        partition_fault(broker, context, topic.name, index)
        for topic in request.topics or ()
        for index in topic.partition_indexes
    )
    error = error or next((fault for fault in faults if fault), 0)
    return refuse(request, context, error, None)


def refuse(
    _request: ListPartitionReassignmentsRequest,
    _context: Context,
    error: int,
    message: str | None,
) -> ListPartitionReassignmentsResponse:
    """Answers with an error."""
    return ListPartitionReassignmentsResponse(error_code=error, error_message=message)
