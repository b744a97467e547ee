"""Fetch (key 1), versions 4 to 18: record batches, which the data plane reads.

Version 4 has isolation levels (KIP-98), 5 the log start offset, 7 sessions (KIP-227), 9 leader
epochs (KIP-320), 10 allows zstd (KIP-110), 11 racks (KIP-392), 12 is flexible and tells where logs
diverge (KIP-595), 13 has topic ids (KIP-516), 15 replica states (KIP-903), 16 endpoints of other
leaders (KIP-951), 17 directory ids (KIP-853), 18 what followers know of the high watermark
(KIP-1166).

A request waits for its least bytes, at most its time; whatever moves one of its partitions has it
look again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.context import LATER
from ottla.broker.faults import Names
from ottla.broker.handlers.permission import may
from ottla.broker.waiting import Waiting
from ottla.protocol.codec import decode
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context, Later
    from ottla.broker.plane import Fetched
    from ottla.protocol.messages.fetch import FetchRequest

__all__ = ["handle", "refuse"]

_HAS_AN_ERROR = 7


def handle(broker: Broker, frame: bytes, position: int, context: Context) -> Later:
    """Answers at once where there is enough, or later."""

    def fetch(now_ms: int, *, must_answer: bool) -> Fetched:
        is_checked = broker.faults.are_set or broker.authorizer.is_enabled
        refused = _refused(broker, context) if is_checked else {}
        fetched = broker.plane.fetch(
            frame,
            position,
            context.version,
            now_ms=now_ms,
            must_answer=must_answer,
            refused=refused,
        )
        if fetched.answer is not None:
            if refused and fetched.errors:
                _count(broker, context, refused, fetched.answer)
            broker.send(context, fetched.answer, fetched.errors)
        return fetched

    first = fetch(context.now_ms, must_answer=False)
    if first.answer is None:

        def attempt(is_due: bool, now_ms: int) -> bool:
            return fetch(now_ms, must_answer=is_due).answer is not None

        watched = [("partition", handle) for handle in first.handles]
        broker.waiting.add(Waiting(context.now_ms + first.max_wait_ms, attempt, watched))
    return LATER


def _refused(broker: Broker, context: Context) -> dict[tuple[str, int], int]:
    """Returns the errors of all partitions that the client may not read, or a fault is set for.

    A request in a session does not name its partitions, so faults are counted in the answer.
    """
    denied = {
        (topic.name, partition.partition_index): ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for topic in broker.image.topics.values()
        if not may(broker, context, Operation.READ, topic.name)
        for partition in topic.partitions
    }
    return denied | {
        (topic.name, partition.partition_index): fault.error
        for fault in broker.faults
        if fault.is_an_error_of_an_entity and fault.is_for(context)
        for topic in broker.image.topics.values()
        for partition in topic.partitions
        if fault.covers(Names(topic.name, partition.partition_index))
    }


def _count(
    broker: Broker, context: Context, refused: dict[tuple[str, int], int], parts: list[bytes]
) -> None:
    """Counts the faults that are in an answer."""
    answer = decode(FetchResponse, context.version)(b"".join(parts), 0)[0]
    by_id = context.image.topics_by_id
    broker.faults.of_partitions(
        context,
        (
            (name, each.partition_index)
            for topic in answer.responses
            for name in [by_id[topic.topic_id].name if topic.topic_id in by_id else topic.topic]
            for each in topic.partitions
            if refused.get((name, each.partition_index)) == each.error_code
        ),
    )


def refuse(
    request: FetchRequest, context: Context, error: int, _message: str | None
) -> FetchResponse:
    """Answers with an error as a whole; before version 7, for each partition."""
    if context.version >= _HAS_AN_ERROR:
        return FetchResponse(error_code=error)
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    PartitionData(
                        partition_index=each.partition, error_code=error, high_watermark=-1
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
