"""Heartbeat: a member of a classic group lives, and learns of a rebalance."""

from __future__ import annotations

from ottla.protocol.wire import Message, int16, int32, string

__all__ = ["HeartbeatRequest", "HeartbeatResponse"]


class HeartbeatRequest(Message, api_key=12, versions="0-4", flexible="4+"):
    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", null="3+", default=None)


class HeartbeatResponse(Message, api_key=12, versions="0-4", flexible="4+"):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
