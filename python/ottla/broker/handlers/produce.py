"""Produce (key 0), versions 3 to 13: record sets, which the data plane judges and appends.

Version 3 has the transactional id, 5 the log start offset (KIP-192), 7 allows zstd (KIP-110), 8
names the records to blame (KIP-467), 9 is flexible, 10 names the leader where it is another one
(KIP-951), 11 and 12 belong to KIP-890, 13 has topic ids (KIP-516). Versions 0 to 2 are advertised
and not served.

A request with acks=0 has no answer; if a partition of it fails, its connection is closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.connection import CloseConnectionError
from ottla.broker.context import LATER
from ottla.broker.handlers.answers import answered_errors
from ottla.broker.handlers.permission import may, transactional_id_error
from ottla.broker.transactions.verification import once_produce_is_added, produce_refusals
from ottla.protocol.codec import decode
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context, Later
    from ottla.broker.plane import Produced

__all__ = ["handle", "refuse"]


def handle(broker: Broker, frame: bytes, position: int, context: Context) -> Later | None:
    """Appends what is in a frame, and answers; what joins its transaction is kept before."""
    is_checked = broker.faults.are_set or broker.authorizer.is_enabled
    refused = _refused(broker, frame, position, context) if is_checked else {}
    plane, version, now_ms = broker.plane, context.version, context.now_ms
    produced = plane.produce(frame, position, version, now_ms=now_ms, refused=refused)
    verification = produced.to_verify
    if verification is None:
        return _answer(broker, context, produced)
    refused |= produce_refusals(broker.transactions, verification, version, now_ms)

    def go_on(is_synced: bool) -> None:
        if not is_synced:
            context.send(None)
            return
        broker.storage.begin()
        produced = plane.produce(
            frame, position, version, now_ms=now_ms, refused=refused, verified=verification
        )
        try:
            if _answer(broker, context, produced) is None:
                context.is_answered = True
                context.send([])
        except CloseConnectionError:
            context.send(None)

    once_produce_is_added(broker.transactions, verification.transactional_id, version, go_on)
    return LATER


def _answer(broker: Broker, context: Context, produced: Produced) -> Later | None:
    """Answers, unless the producer wants no answer."""
    broker.moved(produced.moved)
    broker.storage.repeated(produced.repeated)
    if produced.answer is None:
        broker.remember(context, (ErrorCode.UNKNOWN_SERVER_ERROR,) if produced.failed else ())
        if produced.failed:
            raise CloseConnectionError("a record set with acks=0 that cannot be appended")
        return None
    errors = answered_errors(ProduceResponse, context, produced.answer) if produced.failed else ()
    broker.send(context, produced.answer, errors)
    return LATER


def _refused(
    broker: Broker, frame: bytes, position: int, context: Context
) -> dict[tuple[str, int], int]:
    """Returns the errors of partitions that the client may not write to, or a fault is set for."""
    request = decode(ProduceRequest, context.version)(frame, position)[0]
    by_id = context.image.topics_by_id
    partitions = [
        (name, each.index)
        for topic in request.topic_data
        for name in [by_id[topic.topic_id].name if topic.topic_id in by_id else topic.name]
        for each in topic.partition_data
    ]
    if request.transactional_id is not None:
        error = transactional_id_error(broker, context, request.transactional_id)
        if error:
            return dict.fromkeys(partitions, error)
    denied = {
        (name, index): ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for name, index in partitions
        if not may(broker, context, Operation.WRITE, name)
    }
    return broker.faults.of_partitions(context, partitions) | denied


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
