"""The APIs that the broker serves: one row each.

To serve another API, write ``protocol/messages/<name>.py`` and ``broker/handlers/<name>.py``, and
add a row. ApiVersions, dispatch, faults and the tests over all APIs follow.

A handler's file has two functions:

    handle(broker, request, context)          -> response, LATER, or None for no answer at all
    refuse(request, context, error, message)  -> the response in which everything asked for failed

`refuse` is what a fault, a missing permission or a failure inside `handle` is answered with.
Produce and Fetch are served from bytes by the data plane: their `handle` takes the frame and the
position of the request's body in place of the request.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.protocol.api_key import ApiKey

__all__ = ["APIS", "Api", "apis_markdown"]


class Api(NamedTuple):
    """An API that the broker serves."""

    key: int
    name: str
    """Name of its files in ``protocol/messages`` and ``broker/handlers``."""
    title: str
    """Its name in Kafka's protocol, as in ``ApiVersions``."""
    min_version: int
    max_version: int
    advertised_min_version: int
    """Below the served one where old clients take it for a sign (KIP-896)."""
    takes_frame: bool
    """Whether its handler decodes the request itself."""
    selectors: frozenset[str]
    """What a fault may be limited to, beside the client."""


def _row(
    key: int, name: str, versions: tuple[int, int], *selectors: str, advertised: int | None = None
) -> Api:
    low, high = versions
    is_plane = key in {ApiKey.PRODUCE, ApiKey.FETCH}
    lowest = low if advertised is None else advertised
    title = "".join(map(str.capitalize, name.split("_")))
    return Api(int(key), name, title, low, high, lowest, is_plane, frozenset(selectors))


_TOPIC = ("topic",)
_PARTITION = ("topic", "partition")
_GROUP = ("group",)
_OFFSETS = ("group", "topic", "partition")
_TRANSACTION = ("transactional_id",)

APIS: dict[int, Api] = {
    row.key: row
    for row in (
        # librdkafka before 2.11.1 compresses only where Produce 0 is advertised (KIP-896).
        _row(ApiKey.PRODUCE, "produce", (3, 13), *_PARTITION, "transactional_id", advertised=0),
        _row(ApiKey.FETCH, "fetch", (4, 18), *_PARTITION),
        _row(ApiKey.LIST_OFFSETS, "list_offsets", (1, 11), *_PARTITION),
        _row(ApiKey.METADATA, "metadata", (0, 13), *_TOPIC),
        _row(ApiKey.OFFSET_COMMIT, "offset_commit", (2, 10), *_OFFSETS),
        _row(ApiKey.OFFSET_FETCH, "offset_fetch", (1, 10), *_OFFSETS),
        _row(ApiKey.FIND_COORDINATOR, "find_coordinator", (0, 6), "group", "transactional_id"),
        _row(ApiKey.JOIN_GROUP, "join_group", (0, 9), *_GROUP),
        _row(ApiKey.HEARTBEAT, "heartbeat", (0, 4), *_GROUP),
        _row(ApiKey.LEAVE_GROUP, "leave_group", (0, 5), *_GROUP),
        _row(ApiKey.SYNC_GROUP, "sync_group", (0, 5), *_GROUP),
        _row(ApiKey.DESCRIBE_GROUPS, "describe_groups", (0, 6), *_GROUP),
        _row(ApiKey.LIST_GROUPS, "list_groups", (0, 5)),
        _row(ApiKey.API_VERSIONS, "api_versions", (0, 5)),
        _row(ApiKey.CREATE_TOPICS, "create_topics", (2, 7), *_TOPIC),
        _row(ApiKey.DELETE_TOPICS, "delete_topics", (1, 6), *_TOPIC),
        _row(ApiKey.DELETE_RECORDS, "delete_records", (0, 2), *_PARTITION),
        _row(ApiKey.TXN_OFFSET_COMMIT, "txn_offset_commit", (0, 6), *_OFFSETS, "transactional_id"),
        _row(ApiKey.DELETE_GROUPS, "delete_groups", (0, 3), *_GROUP),
        _row(ApiKey.OFFSET_DELETE, "offset_delete", (0, 0), *_OFFSETS),
        _row(ApiKey.CONSUMER_GROUP_HEARTBEAT, "consumer_group_heartbeat", (0, 1), *_GROUP),
        _row(ApiKey.CONSUMER_GROUP_DESCRIBE, "consumer_group_describe", (0, 1), *_GROUP),
        _row(ApiKey.OFFSET_FOR_LEADER_EPOCH, "offset_for_leader_epoch", (2, 4), *_PARTITION),
        _row(ApiKey.DESCRIBE_CONFIGS, "describe_configs", (1, 4), *_TOPIC),
        _row(ApiKey.ALTER_CONFIGS, "alter_configs", (0, 2), *_TOPIC),
        _row(ApiKey.CREATE_PARTITIONS, "create_partitions", (0, 3), *_TOPIC),
        _row(ApiKey.INCREMENTAL_ALTER_CONFIGS, "incremental_alter_configs", (0, 1), *_TOPIC),
        _row(ApiKey.SASL_HANDSHAKE, "sasl_handshake", (0, 1)),
        _row(ApiKey.INIT_PRODUCER_ID, "init_producer_id", (0, 5), *_TRANSACTION),
        _row(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            "add_partitions_to_txn",
            (0, 5),
            *_PARTITION,
            *_TRANSACTION,
        ),
        _row(ApiKey.ADD_OFFSETS_TO_TXN, "add_offsets_to_txn", (0, 4), *_GROUP, *_TRANSACTION),
        _row(ApiKey.END_TXN, "end_txn", (0, 5), *_TRANSACTION),
        _row(ApiKey.WRITE_TXN_MARKERS, "write_txn_markers", (1, 2), *_PARTITION),
        _row(ApiKey.DESCRIBE_ACLS, "describe_acls", (1, 3)),
        _row(ApiKey.CREATE_ACLS, "create_acls", (1, 3)),
        _row(ApiKey.DELETE_ACLS, "delete_acls", (1, 3)),
        _row(ApiKey.SASL_AUTHENTICATE, "sasl_authenticate", (0, 2)),
        _row(ApiKey.DESCRIBE_CLIENT_QUOTAS, "describe_client_quotas", (0, 1)),
        _row(ApiKey.ALTER_CLIENT_QUOTAS, "alter_client_quotas", (0, 1)),
        _row(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "describe_user_scram_credentials", (0, 0)),
        _row(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "alter_user_scram_credentials", (0, 0)),
        _row(ApiKey.DESCRIBE_PRODUCERS, "describe_producers", (0, 0), *_PARTITION),
        _row(ApiKey.DESCRIBE_TRANSACTIONS, "describe_transactions", (0, 0), *_TRANSACTION),
        _row(ApiKey.LIST_TRANSACTIONS, "list_transactions", (0, 2)),
        _row(ApiKey.ALTER_REPLICA_LOG_DIRS, "alter_replica_log_dirs", (1, 2), *_PARTITION),
        _row(ApiKey.DESCRIBE_LOG_DIRS, "describe_log_dirs", (1, 5), *_PARTITION),
        _row(ApiKey.ELECT_LEADERS, "elect_leaders", (0, 2), *_PARTITION),
        _row(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            "alter_partition_reassignments",
            (0, 1),
            *_PARTITION,
        ),
        _row(
            ApiKey.LIST_PARTITION_REASSIGNMENTS,
            "list_partition_reassignments",
            (0, 0),
            *_PARTITION,
        ),
        _row(ApiKey.DESCRIBE_QUORUM, "describe_quorum", (0, 2), *_PARTITION),
        _row(ApiKey.UPDATE_FEATURES, "update_features", (0, 2)),
        _row(ApiKey.LIST_CONFIG_RESOURCES, "list_config_resources", (0, 1)),
        _row(ApiKey.DESCRIBE_CLUSTER, "describe_cluster", (0, 2)),
        _row(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "describe_topic_partitions", (0, 0), *_TOPIC),
    )
}
"""By API key."""


def apis_markdown() -> str:
    """Returns the page of the docs about what is served."""
    lines = [
        "# What the broker serves",
        "",
        "Generated from `ottla.broker.api`. Whatever else is asked for closes the connection.",
        "",
        "| key | API | versions | a fault can be limited to |",
        "| --- | --- | --- | --- |",
    ]
    for key, api in sorted(APIS.items()):
        versions = f"{api.min_version} to {api.max_version}"
        if api.min_version == api.max_version:
            versions = str(api.min_version)
        if api.advertised_min_version != api.min_version:
            versions += f" (advertised from {api.advertised_min_version})"
        limits = ", ".join(sorted(api.selectors)) or "–"
        lines.append(f"| {key} | {api.title} | {versions} | {limits} |")
    return "\n".join([*lines, ""])
