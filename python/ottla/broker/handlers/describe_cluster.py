"""DescribeCluster (key 60), versions 0 to 2: the brokers and who controls them (KIP-700).

Version 1 asks for brokers or for controllers (KIP-919), 2 may list fenced brokers, of which there
are none here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import NOT_ASKED
from ottla.broker.handlers.permission import cluster_operations
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.describe_cluster import DescribeClusterRequest

__all__ = ["handle", "refuse"]

_BROKERS, _CONTROLLERS = 1, 2


def handle(
    broker: Broker, request: DescribeClusterRequest, context: Context
) -> DescribeClusterResponse:
    """Answers with the brokers of the image, as the listener that was asked advertises them."""
    if request.endpoint_type == _CONTROLLERS:
        error, message = (
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            (
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint "
                "of type CONTROLLER"
            ),
        )
        return refuse(request, context, error, message)
    if request.endpoint_type != _BROKERS:
        error, message = (
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"Unsupported endpoint type {request.endpoint_type}",
        )
        return refuse(request, context, error, message)
    image, listener = context.image, context.connection.listener
    return DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=node.node_id, host=host, port=port, rack=node.rack)
            for node in image.brokers.values()
            for host, port in [node.endpoint(listener)]
        ],
        cluster_authorized_operations=cluster_operations(broker, context)
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def refuse(
    request: DescribeClusterRequest, _context: Context, error: int, message: str | None
) -> DescribeClusterResponse:
    """Answers with an error."""
    return DescribeClusterResponse(
        error_code=error, error_message=message, endpoint_type=request.endpoint_type
    )
