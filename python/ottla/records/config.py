"""The settings of a topic, as a user names them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from ottla._engine import TopicSettings

__all__ = ["TopicConfig"]


@dataclass(frozen=True, kw_only=True)
class TopicConfig:
    """The settings of a topic that affect produce requests.

    Names are Kafka's with underscores, defaults are Kafka's.

    Attributes:
        cleanup_policy: ``"delete"``, ``"compact"`` or ``"compact,delete"``; a compacted topic
            requires a key in every record.
        compression_type: ``"producer"`` keeps the producer's codec; or ``"uncompressed"``,
            ``"gzip"``, ``"snappy"``, ``"lz4"``, ``"zstd"``.
        compression_gzip_level, compression_lz4_level, compression_zstd_level: levels for batches
            that are compressed again (KIP-390).
        max_message_bytes: maximum size of a batch.
        max_decompressed_message_bytes: maximum size of a record in a compressed batch or set, a
            setting of Kafka 4.2.2 and 4.4.0.
        message_timestamp_type: ``"CreateTime"`` or ``"LogAppendTime"``.
        message_timestamp_before_max_ms, message_timestamp_after_max_ms: how far a record's
            timestamp may be from the broker's clock (KIP-937, KIP-1030).
        segment_bytes: maximum size of a record set; Kafka 4 requires at least 1 MiB.
        producer_id_expiration_ms: how long an idle producer is remembered, a setting of the broker.
        message_format_version: the release whose record format the log has; since Kafka 4.0 always
            that of 0.11.
        kafka_version: the release of the broker, as a line (``"4.4"``) or a release (``"4.2.2"``):
            its rules hold for every verdict with this configuration. The newest that is known
            holds where neither the configuration nor the call names one.

    Raises:
        ValueError: an unknown setting, a value that Kafka rejects, or a setting that the release
            does not have.

    >>> import ottla
    >>> ottla.TopicConfig(cleanup_policy="compact", compression_type="zstd").compression_type
    'zstd'
    """

    cleanup_policy: str = "delete"
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    max_message_bytes: int = 1_048_588
    max_decompressed_message_bytes: int = 2_147_483_639
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = 2**63 - 1
    message_timestamp_after_max_ms: int = 3_600_000
    segment_bytes: int = 1_073_741_824
    producer_id_expiration_ms: int = 86_400_000
    message_format_version: str = "3.0"
    kafka_version: str | None = None
    _settings: TopicSettings = field(init=False, repr=False, compare=False)

    def __new__(cls, **settings: object) -> TopicConfig:  # noqa: D102, PYI034 - no Self in 3.10
        known = [setting.name for setting in fields(cls) if setting.init]
        for name in settings:
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"; did you mean {near[0]}?" if near else f", expected one of {known}"
                raise ValueError(f"unknown topic setting {name}{hint}")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        pairs = [
            (setting.name, str(getattr(self, setting.name)))
            for setting in fields(self)
            if setting.init and setting.name != "kafka_version"
        ]
        object.__setattr__(self, "_settings", TopicSettings(pairs, self.kafka_version))

    def __reduce__(self) -> tuple[object, ...]:
        settings = {item.name: getattr(self, item.name) for item in fields(self) if item.init}
        return (_topic_config, (settings,))


def _topic_config(settings: dict[str, Any]) -> TopicConfig:
    return TopicConfig(**settings)
