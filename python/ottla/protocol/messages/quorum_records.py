"""Control records of a KRaft quorum: in its log and around a snapshot (KIP-595, KIP-630)."""

from __future__ import annotations

from ottla.protocol.wire import (
    Message,
    Struct,
    array,
    int16,
    int32,
    int64,
    uuid,
)

__all__ = [
    "LeaderChangeMessage",
    "SnapshotFooterRecord",
    "SnapshotHeaderRecord",
    "Voter",
]


class Voter(Struct):
    voter_id: int = int32("0+")
    voter_directory_id: bytes = uuid("1+")


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    version: int = int16("0+")
    leader_id: int = int32("0+")
    voters: list[Voter] = array(Voter, "0+")
    granting_voters: list[Voter] = array(Voter, "0+")


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    version: int = int16("0+")
    last_contained_log_timestamp: int = int64("0+")


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    version: int = int16("0+")
