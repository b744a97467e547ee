"""AlterClientQuotas: sets or removes quotas of users and clients (KIP-546)."""

from __future__ import annotations

from ottla.protocol.wire import Message, Struct, array, boolean, float64, int16, int32, string

__all__ = [
    "AlterClientQuotasRequest",
    "AlterClientQuotasResponse",
    "EntityData",
    "EntryData",
    "OpData",
    "ResponseEntityData",
    "ResponseEntryData",
]


class EntityData(Struct):
    entity_type: str = string("0+")
    entity_name: str | None = string("0+", null="0+")


class OpData(Struct):
    key: str = string("0+")
    value: float = float64("0+")
    remove: bool = boolean("0+")


class EntryData(Struct):
    entity: list[EntityData] = array(EntityData, "0+")
    ops: list[OpData] = array(OpData, "0+")


class AlterClientQuotasRequest(Message, api_key=49, versions="0-1", flexible="1+"):
    entries: list[EntryData] = array(EntryData, "0+")
    validate_only: bool = boolean("0+")


class ResponseEntityData(Struct):
    entity_type: str = string("0+")
    entity_name: str | None = string("0+", null="0+")


class ResponseEntryData(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", null="0+")
    entity: list[ResponseEntityData] = array(ResponseEntityData, "0+")


class AlterClientQuotasResponse(Message, api_key=49, versions="0-1", flexible="1+"):
    throttle_time_ms: int = int32("0+")
    entries: list[ResponseEntryData] = array(ResponseEntryData, "0+")
