"""VotersRecord: the voters of a KRaft quorum, as its log has them (KIP-853)."""

from __future__ import annotations

from ottla.protocol.wire import (
    Message,
    Struct,
    array,
    int16,
    int32,
    string,
    struct,
    uint16,
    uuid,
)

__all__ = ["Endpoint", "KRaftVersionFeature", "Voter", "VotersRecord"]


class Endpoint(Struct):
    name: str = string("0+")
    host: str = string("0+")
    port: int = uint16("0+")


class KRaftVersionFeature(Struct):
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


class Voter(Struct):
    voter_id: int = int32("0+")
    voter_directory_id: bytes = uuid("0+")
    endpoints: list[Endpoint] = array(Endpoint, "0+")
    k_raft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature, "0+")


class VotersRecord(Message, versions="0", flexible="0+"):
    version: int = int16("0+")
    voters: list[Voter] = array(Voter, "0+")
