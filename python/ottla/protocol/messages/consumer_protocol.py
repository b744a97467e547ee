"""What members of classic groups put into JoinGroup and SyncGroup for consumers to assign by."""

from __future__ import annotations

from ottla.protocol.wire import Message, Struct, array, byte_string, int32, string

__all__ = ["ConsumerProtocolAssignment", "ConsumerProtocolSubscription", "TopicPartition"]


class TopicPartition(Struct):
    topic: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class ConsumerProtocolSubscription(Message, versions="0-3", flexible="none"):
    topics: list[str] = array(string, "0+")
    user_data: bytes | None = byte_string("0+", null="0+", default=None)
    owned_partitions: list[TopicPartition] = array(TopicPartition, "1+", ignorable=True)
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", null="3+", default=None, ignorable=True)


class ConsumerProtocolAssignment(Message, versions="0-3", flexible="none"):
    assigned_partitions: list[TopicPartition] = array(TopicPartition, "0+")
    user_data: bytes | None = byte_string("0+", null="0+", default=None)
