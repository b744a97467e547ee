"""Produce (key 0), versions 3 to 13: record sets, which the data plane judges and appends.

Version 3 has the transactional id, 5 the log start offset (KIP-192), 7 allows zstd (KIP-110), 8
names the records to blame (KIP-467), 9 is flexible, 10 names the leader where it is another one
(KIP-951), 11 and 12 belong to KIP-890, 13 has topic ids (KIP-516). Versions 0 to 2 are advertised
and not served.

A request with acks=0 has no answer; if a partition of it fails, its connection is closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.connection import CloseConnectionError
from ottla.broker.context import LATER
from ottla.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context, Later
    from ottla.protocol.messages.produce import ProduceRequest

__all__ = ["handle", "refuse"]


def handle(broker: Broker, frame: bytes, position: int, context: Context) -> Later | None:
    """Appends what is in a frame, and answers at once."""
    refused = broker.faults.refusals(context) if broker.faults else {}
    produced = broker.plane.produce(
        frame, position, context.version, now_ms=context.now_ms, refused=refused
    )
    if refused:
        broker.faults.count_refused(context, produced.refused)
    broker.moved(produced.moved)
    if produced.answer is None:
        broker.remember(context, produced.errors)
        if produced.errors:
            raise CloseConnectionError("a record set with acks=0 that cannot be appended")
        return None
    broker.send(context, produced.answer, produced.errors)
    return LATER


def refuse(
    request: ProduceRequest, _context: Context, error: int, message: str | None
) -> ProduceResponse | None:
    """Answers with an error for each partition; nothing where no answer is wanted."""
    if request.acks == 0:
        return None
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=each.index, error_code=error, base_offset=-1, error_message=message
                    )
                    for each in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
