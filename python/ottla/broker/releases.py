"""What releases of Kafka served, for a broker that imitates one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.api import APIS
from ottla.broker.configs.setting import MAX_LONG
from ottla.broker.features import FEATURES
from ottla.protocol.api_key import ApiKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.api import Api
    from ottla.broker.features import Feature

__all__ = ["OLDEST", "apis_of", "defaults_of", "features_of", "parse_release"]

OLDEST = (2, 4)
"""The first release with KIP-467 and KIP-511."""

NEWEST = (4, 4)
"""The last release that is known."""

_WITH_FEATURES = (4, 0)
"""The first release that has features which clients go by: consumer groups, and KIP-890."""

_BEFORE_4: Mapping[str, str] = {
    "log.message.timestamp.after.max.ms": str(MAX_LONG),
    "group.coordinator.rebalance.protocols": "classic",
}

_HIGHEST: dict[tuple[int, int], dict[int, int]] = {
    (2, 4): {
        ApiKey.PRODUCE: 8, ApiKey.FETCH: 11, ApiKey.LIST_OFFSETS: 5, ApiKey.METADATA: 9,
        ApiKey.OFFSET_COMMIT: 8, ApiKey.OFFSET_FETCH: 6, ApiKey.FIND_COORDINATOR: 3,
        ApiKey.JOIN_GROUP: 6, ApiKey.HEARTBEAT: 4, ApiKey.LEAVE_GROUP: 4, ApiKey.SYNC_GROUP: 4,
        ApiKey.DESCRIBE_GROUPS: 5, ApiKey.LIST_GROUPS: 3, ApiKey.SASL_HANDSHAKE: 1,
        ApiKey.API_VERSIONS: 3, ApiKey.CREATE_TOPICS: 5, ApiKey.DELETE_TOPICS: 4,
        ApiKey.DELETE_RECORDS: 1, ApiKey.INIT_PRODUCER_ID: 2, ApiKey.OFFSET_FOR_LEADER_EPOCH: 3,
        ApiKey.ADD_PARTITIONS_TO_TXN: 1, ApiKey.ADD_OFFSETS_TO_TXN: 1, ApiKey.END_TXN: 1,
        ApiKey.WRITE_TXN_MARKERS: 0, ApiKey.TXN_OFFSET_COMMIT: 2, ApiKey.DESCRIBE_ACLS: 2,
        ApiKey.CREATE_ACLS: 2, ApiKey.DELETE_ACLS: 2, ApiKey.DESCRIBE_CONFIGS: 2,
        ApiKey.ALTER_CONFIGS: 1, ApiKey.ALTER_REPLICA_LOG_DIRS: 1, ApiKey.DESCRIBE_LOG_DIRS: 1,
        ApiKey.SASL_AUTHENTICATE: 2, ApiKey.CREATE_PARTITIONS: 1, ApiKey.DELETE_GROUPS: 2,
        ApiKey.ELECT_LEADERS: 2, ApiKey.INCREMENTAL_ALTER_CONFIGS: 1,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: 0, ApiKey.LIST_PARTITION_REASSIGNMENTS: 0,
        ApiKey.OFFSET_DELETE: 0,
    },
    (2, 5): {
        ApiKey.INIT_PRODUCER_ID: 3, ApiKey.JOIN_GROUP: 7, ApiKey.SYNC_GROUP: 5,
        ApiKey.OFFSET_FETCH: 7, ApiKey.TXN_OFFSET_COMMIT: 3, ApiKey.DELETE_RECORDS: 2,
    },
    (2, 6): {
        ApiKey.LIST_GROUPS: 4, ApiKey.DESCRIBE_CONFIGS: 4, ApiKey.DESCRIBE_LOG_DIRS: 2,
        ApiKey.DESCRIBE_CLIENT_QUOTAS: 0, ApiKey.ALTER_CLIENT_QUOTAS: 0,
    },
    (2, 7): {
        ApiKey.FETCH: 12, ApiKey.INIT_PRODUCER_ID: 4, ApiKey.END_TXN: 2, ApiKey.LIST_OFFSETS: 5,
        ApiKey.ADD_PARTITIONS_TO_TXN: 2, ApiKey.ADD_OFFSETS_TO_TXN: 2, ApiKey.CREATE_TOPICS: 6,
        ApiKey.DELETE_TOPICS: 5, ApiKey.CREATE_PARTITIONS: 3, ApiKey.ALTER_CONFIGS: 2,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: 0, ApiKey.ALTER_USER_SCRAM_CREDENTIALS: 0,
        ApiKey.UPDATE_FEATURES: 0,
    },
    (2, 8): {
        ApiKey.PRODUCE: 9, ApiKey.METADATA: 11, ApiKey.LIST_OFFSETS: 6, ApiKey.CREATE_TOPICS: 7,
        ApiKey.DELETE_TOPICS: 6, ApiKey.OFFSET_FOR_LEADER_EPOCH: 4, ApiKey.ADD_OFFSETS_TO_TXN: 3,
        ApiKey.ADD_PARTITIONS_TO_TXN: 3, ApiKey.END_TXN: 3, ApiKey.WRITE_TXN_MARKERS: 1,
        ApiKey.DESCRIBE_CLUSTER: 0, ApiKey.DESCRIBE_PRODUCERS: 0,
        ApiKey.DESCRIBE_CLIENT_QUOTAS: 1, ApiKey.ALTER_CLIENT_QUOTAS: 1,
        ApiKey.ALTER_REPLICA_LOG_DIRS: 2,
    },
    (3, 0): {
        ApiKey.LIST_OFFSETS: 7, ApiKey.OFFSET_FETCH: 8, ApiKey.FIND_COORDINATOR: 4,
        ApiKey.DESCRIBE_TRANSACTIONS: 0, ApiKey.LIST_TRANSACTIONS: 0,
    },
    (3, 1): {ApiKey.FETCH: 13, ApiKey.METADATA: 12},
    (3, 2): {
        ApiKey.JOIN_GROUP: 9, ApiKey.LEAVE_GROUP: 5, ApiKey.DESCRIBE_LOG_DIRS: 3,
    },
    (3, 3): {
        ApiKey.DESCRIBE_LOG_DIRS: 4, ApiKey.DESCRIBE_ACLS: 3, ApiKey.CREATE_ACLS: 3,
        ApiKey.DELETE_ACLS: 3, ApiKey.DESCRIBE_QUORUM: 1, ApiKey.UPDATE_FEATURES: 1,
    },
    (3, 4): {},
    (3, 5): {ApiKey.FETCH: 15, ApiKey.LIST_OFFSETS: 8},
    (3, 6): {ApiKey.ADD_PARTITIONS_TO_TXN: 4},
    (3, 7): {
        ApiKey.PRODUCE: 10, ApiKey.FETCH: 16, ApiKey.OFFSET_COMMIT: 9, ApiKey.OFFSET_FETCH: 9,
        ApiKey.DESCRIBE_CLUSTER: 1, ApiKey.CONSUMER_GROUP_HEARTBEAT: 0,
        ApiKey.CONSUMER_GROUP_DESCRIBE: 0, ApiKey.LIST_CONFIG_RESOURCES: 0,
    },
    (3, 8): {
        ApiKey.PRODUCE: 11, ApiKey.FIND_COORDINATOR: 5, ApiKey.INIT_PRODUCER_ID: 5,
        ApiKey.ADD_PARTITIONS_TO_TXN: 5, ApiKey.ADD_OFFSETS_TO_TXN: 4, ApiKey.END_TXN: 4,
        ApiKey.TXN_OFFSET_COMMIT: 4, ApiKey.LIST_GROUPS: 5, ApiKey.LIST_TRANSACTIONS: 1,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: 0,
    },
    (3, 9): {
        ApiKey.FETCH: 17, ApiKey.LIST_OFFSETS: 9, ApiKey.FIND_COORDINATOR: 6,
        ApiKey.API_VERSIONS: 4, ApiKey.DESCRIBE_QUORUM: 2,
    },
    (4, 0): {
        ApiKey.PRODUCE: 12, ApiKey.LIST_OFFSETS: 10, ApiKey.METADATA: 13, ApiKey.END_TXN: 5,
        ApiKey.DESCRIBE_GROUPS: 6, ApiKey.TXN_OFFSET_COMMIT: 5, ApiKey.DESCRIBE_CLUSTER: 2,
        ApiKey.CONSUMER_GROUP_HEARTBEAT: 1, ApiKey.CONSUMER_GROUP_DESCRIBE: 1,
        ApiKey.UPDATE_FEATURES: 2,
    },
    (4, 1): {
        ApiKey.PRODUCE: 13, ApiKey.FETCH: 18, ApiKey.LIST_TRANSACTIONS: 2,
        ApiKey.LIST_CONFIG_RESOURCES: 1, ApiKey.ALTER_PARTITION_REASSIGNMENTS: 1,
    },
    (4, 2): {
        ApiKey.LIST_OFFSETS: 11, ApiKey.OFFSET_COMMIT: 10, ApiKey.OFFSET_FETCH: 10,
        ApiKey.WRITE_TXN_MARKERS: 2,
    },
    (4, 3): {ApiKey.DESCRIBE_LOG_DIRS: 5},
}  # fmt: skip
"""What each release raised. From `NEWEST` on everything is served."""


def parse_release(text: str) -> tuple[int, int]:
    """Returns the line of a release: (2, 4) of ``2.4`` and ``2.4.1``.

    Raises:
        ValueError: it is no release, one before 2.4, or one that is not known.
    """
    parts = text.split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts):  # noqa: PLR2004 - 4.1
        raise ValueError(f"{text!r} is no release of Kafka, such as '2.4' or '4.1.2'")
    line = int(parts[0]), int(parts[1])
    if line < OLDEST:
        raise ValueError(f"Kafka {text} cannot be imitated: the oldest is 2.4")
    if line != NEWEST and line not in _HIGHEST:
        known = ", ".join(f"{major}.{minor}" for major, minor in (*_HIGHEST, NEWEST))
        raise ValueError(f"Kafka {text} is not known; releases are {known}")
    return line


def defaults_of(line: tuple[int, int]) -> Mapping[str, str]:
    """Returns settings whose default was another one in a release (KIP-1030, KIP-848)."""
    return {} if line >= _WITH_FEATURES else _BEFORE_4


def features_of(line: tuple[int, int]) -> tuple[Feature, ...]:
    """Returns the features of a release."""
    return FEATURES if line >= _WITH_FEATURES else ()


def apis_of(line: tuple[int, int]) -> Mapping[int, Api]:
    """Returns the APIs of a release in the versions that it and Ottla serve."""
    if line > max(_HIGHEST):
        return APIS
    highest: dict[int, int] = {}
    for release, raised in _HIGHEST.items():
        if release <= line:
            highest |= {int(key): version for key, version in raised.items()}
    return {
        key: api._replace(max_version=min(api.max_version, highest[key]))
        for key, api in APIS.items()
        if key in highest and highest[key] >= api.min_version
    }
