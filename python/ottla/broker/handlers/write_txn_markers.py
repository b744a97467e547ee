"""WriteTxnMarkers (key 27), versions 1 and 2: a coordinator ends transactions (KIP-98).

Version 1 is flexible; 2 says the transaction version, by which a partition knows whether the marker
has to have a higher epoch (KIP-1228). Clients send it to end a transaction that hangs (KIP-664).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.handlers.permission import cluster_error
from ottla.broker.transactions.coordinator import Marker
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.write_txn_markers import (
        WritableTxnMarker,
        WriteTxnMarkersRequest,
    )

__all__ = ["handle", "refuse"]


def handle(
    broker: Broker, request: WriteTxnMarkersRequest, context: Context
) -> WriteTxnMarkersResponse:
    """Writes each marker; answers with an error for each partition."""
    is_denied = all(
        cluster_error(broker, context, operation)
        for operation in (Operation.CLUSTER_ACTION, Operation.ALTER)
    )
    if is_denied:
        return refuse(request, context, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)

    def write(marker: WritableTxnMarker, topic: str, index: int) -> int:
        fault = broker.faults.error(context, topic=topic, partition=index) if broker.faults else 0
        if fault:
            return fault
        meant = Marker(
            "",
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            marker.transaction_result,
            marker.transaction_version,
        )
        return broker.transactions.write_marker(meant, (topic, index), context.now_ms)

    return _response(request, write)


def refuse(
    request: WriteTxnMarkersRequest, _context: Context, error: int, _message: str | None
) -> WriteTxnMarkersResponse:
    """Answers with an error for each partition."""
    return _response(request, lambda _marker, _topic, _index: error)


def _response(
    request: WriteTxnMarkersRequest, error_of: Callable[[WritableTxnMarker, str, int], int]
) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index,
                                error_code=error_of(marker, topic.name, index),
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
