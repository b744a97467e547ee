"""The settings of a topic: Kafka's names, defaults and bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.configs.setting import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    MAX_INT,
    MAX_LONG,
    STRING,
    InvalidConfigError,
    Setting,
    parse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TOPIC_SETTINGS", "check_topic_configs"]

_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_DAY_MS = 86_400_000

TOPIC_SETTINGS: Final[dict[str, Setting]] = {
    setting.name: setting
    for setting in (
        Setting(
            "cleanup.policy", LIST, "delete", choices=("compact", "delete"),
            synonym="log.cleanup.policy",
            documentation="What becomes of old records: they are deleted, compacted, or both.",
        ),
        Setting(
            "compression.type", STRING, "producer", choices=_CODECS, synonym="compression.type",
            documentation="The codec of stored batches; producer keeps what was sent.",
        ),
        Setting(
            "compression.gzip.level", INT, "-1", -1, 9, synonym="compression.gzip.level",
            documentation="Level of gzip for batches that are compressed again.",
        ),
        Setting(
            "compression.lz4.level", INT, "9", 1, 17, synonym="compression.lz4.level",
            documentation="Level of LZ4 for batches that are compressed again.",
        ),
        Setting(
            "compression.zstd.level", INT, "3", -131_072, 22, synonym="compression.zstd.level",
            documentation="Level of Zstandard for batches that are compressed again.",
        ),
        Setting(
            "delete.retention.ms", LONG, str(_DAY_MS), 0, synonym="log.cleaner.delete.retention.ms",
            documentation="How long tombstones are kept in a compacted topic.",
        ),
        Setting(
            "file.delete.delay.ms", LONG, "60000", 0, synonym="log.segment.delete.delay.ms",
            documentation="How long a deleted file stays on the disk.",
        ),
        Setting(
            "flush.messages", LONG, str(MAX_LONG), 1, synonym="log.flush.interval.messages",
            documentation="How many records are appended before they are synced to disk.",
        ),
        Setting(
            "flush.ms", LONG, str(MAX_LONG), 0, synonym="log.flush.interval.ms",
            documentation="How long records stay unsynced.",
        ),
        Setting(
            "follower.replication.throttled.replicas", LIST, "", is_supported=False,
            documentation="Replicas whose replication is throttled on the follower.",
        ),
        Setting(
            "index.interval.bytes", INT, "4096", 0, synonym="log.index.interval.bytes",
            documentation="How many bytes are appended between two entries of the offset index.",
        ),
        Setting(
            "leader.replication.throttled.replicas", LIST, "", is_supported=False,
            documentation="Replicas whose replication is throttled on the leader.",
        ),
        Setting(
            "local.retention.bytes", LONG, "-2", -2, is_supported=False,
            documentation="How many bytes of a tiered log stay local.",
        ),
        Setting(
            "local.retention.ms", LONG, "-2", -2, is_supported=False,
            documentation="How long segments of a tiered log stay local.",
        ),
        Setting(
            "max.compaction.lag.ms", LONG, str(MAX_LONG), 1,
            synonym="log.cleaner.max.compaction.lag.ms",
            documentation="How long a record may stay uncompacted.",
        ),
        Setting(
            "max.message.bytes", INT, "1048588", 0, synonym="message.max.bytes",
            documentation="The largest record batch that is accepted.",
        ),
        Setting(
            "message.timestamp.after.max.ms", LONG, "3600000", 0,
            synonym="log.message.timestamp.after.max.ms",
            documentation="How far a timestamp may be ahead of the broker's clock.",
        ),
        Setting(
            "message.timestamp.before.max.ms", LONG, str(MAX_LONG), 0,
            synonym="log.message.timestamp.before.max.ms",
            documentation="How far a timestamp may be behind the broker's clock.",
        ),
        Setting(
            "message.timestamp.type", STRING, "CreateTime",
            choices=("CreateTime", "LogAppendTime"), synonym="log.message.timestamp.type",
            documentation="Whether records keep their producer's time or get the broker's.",
        ),
        Setting(
            "min.cleanable.dirty.ratio", DOUBLE, "0.5", 0, 1,
            synonym="log.cleaner.min.cleanable.ratio",
            documentation="The share of uncompacted bytes from which a log is compacted.",
        ),
        Setting(
            "min.compaction.lag.ms", LONG, "0", 0, synonym="log.cleaner.min.compaction.lag.ms",
            documentation="How long a record stays uncompacted at least.",
        ),
        Setting(
            "min.insync.replicas", INT, "1", 1, synonym="min.insync.replicas",
            documentation="How many replicas must have a record before acks=all succeeds.",
        ),
        Setting(
            "preallocate", BOOLEAN, "false", synonym="log.preallocate", is_supported=False,
            documentation="Whether a new segment's file has its full size from the beginning.",
        ),
        Setting(
            "remote.log.copy.disable", BOOLEAN, "false", is_supported=False,
            documentation="Whether segments are no longer copied to remote storage.",
        ),
        Setting(
            "remote.log.delete.on.disable", BOOLEAN, "false", is_supported=False,
            documentation="Whether remote segments go when remote storage is turned off.",
        ),
        Setting(
            "remote.storage.enable", BOOLEAN, "false", is_supported=False,
            documentation="Whether segments are copied to remote storage.",
        ),
        Setting(
            "retention.bytes", LONG, "-1", -1, synonym="log.retention.bytes",
            documentation="How large a partition grows before old segments go; -1 for no limit.",
        ),
        Setting(
            "retention.ms", LONG, str(7 * _DAY_MS), -1, synonym="log.retention.ms",
            documentation="How long segments are kept; -1 for ever.",
        ),
        Setting(
            "segment.bytes", INT, "1073741824", 1_048_576, synonym="log.segment.bytes",
            documentation="How large a segment grows before the next one begins.",
        ),
        Setting(
            "segment.index.bytes", INT, "10485760", 4, synonym="log.index.size.max.bytes",
            documentation="The largest size of an index file.",
        ),
        Setting(
            "segment.jitter.ms", LONG, "0", 0, synonym="log.roll.jitter.ms",
            documentation="At most by how much a segment begins before its time.",
        ),
        Setting(
            "segment.ms", LONG, str(7 * _DAY_MS), 1, synonym="log.roll.ms",
            documentation="How long a segment is written before the next one begins.",
        ),
        Setting(
            "unclean.leader.election.enable", BOOLEAN, "false",
            synonym="unclean.leader.election.enable",
            documentation="Whether a replica that lags may become leader when no other is left.",
        ),
    )
}  # fmt: skip
"""By name."""


def check_topic_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    """Returns the settings of a topic as they are kept.

    Raises:
        InvalidConfigError: Kafka would refuse one of them.
    """
    kept = {}
    for name, text in configs.items():
        setting = TOPIC_SETTINGS.get(name)
        if setting is None:
            raise InvalidConfigError(f"Unknown topic config name: {name}")
        if text is None:
            raise InvalidConfigError(f"Null value not supported for topic configs: {name}")
        parse(setting, text)
        kept[name] = text
    check_together(kept)
    return kept


def check_together(configs: Mapping[str, str]) -> None:
    """Checks settings that depend on each other.

    Raises:
        InvalidConfigError: two of them contradict each other.
    """
    before, after = (
        int(configs.get(name, TOPIC_SETTINGS[name].default))
        for name in ("min.compaction.lag.ms", "max.compaction.lag.ms")
    )
    if before > after:
        raise InvalidConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({before}) > "
            f"max.compaction.lag.ms ({after})"
        )


__all__ += ["MAX_INT", "check_together"]
