"""Records of coordinators that 4.2 to 4.4 write, as the generated classes of 4.4.0 wrote these."""

from __future__ import annotations

from typing import Any

import ottla
import pytest

OFFSETS, STATE = "__consumer_offsets", "__share_group_state"
TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAg"
TASK = {"subtopology_id": "0", "partitions": [0]}

RECORDS: dict[str, tuple[str, str, str, dict[str, Any], dict[str, Any]]] = {
    "share-group": (
        OFFSETS,
        "000b000167",
        "000000000003000000000000000400",
        {"group": "g"},
        {"epoch": 3, "metadata_hash": 4},
    ),
    "share-group-member": (
        OFFSETS,
        "000a00016700016d",
        "0000000263032f6802027400",
        {"group": "g", "member_id": "m"},
        {
            "rack_id": None,
            "client_id": "c",
            "client_host": "/h",
            "subscribed_topic_names": ["t"],
        },
    ),
    "share-group-target-assignment": (
        OFFSETS,
        "000c000167",
        "0000000000050100080000000000000006",
        {"group": "g"},
        {"assignment_epoch": 5, "assignment_timestamp": 6},
    ),
    "share-group-target-assignment-member": (
        OFFSETS,
        "000d00016700016d",
        "000002000000000000000100000000000000020300000000000000010000",
        {"group": "g", "member_id": "m"},
        {"topic_partitions": [{"topic_id": TOPIC_ID, "partitions": [0, 1]}]},
    ),
    "share-group-current-assignment": (
        OFFSETS,
        "000e00016700016d",
        "0000000000070000000600020000000000000001000000000000000202000000020000",
        {"group": "g", "member_id": "m"},
        {
            "member_epoch": 7,
            "previous_member_epoch": 6,
            "state": 0,
            "assigned_partitions": [{"topic_id": TOPIC_ID, "partitions": [2]}],
        },
    ),
    "share-group-state-partitions": (
        OFFSETS,
        "000f000167",
        (
            "0000010200000000000000010000000000000002027402000000000002000000000000000100000000"
            "0000000202750000"
        ),
        {"group": "g"},
        {
            "initializing_topics": [],
            "initialized_topics": [{"topic_id": TOPIC_ID, "topic_name": "t", "partitions": [0]}],
            "deleting_topics": [{"topic_id": TOPIC_ID, "topic_name": "u"}],
        },
    ),
    "streams-group": (
        OFFSETS,
        "0011000173",
        "000000000003000000000000000402000400000002010602026b027600",
        {"group": "s"},
        {
            "epoch": 3,
            "metadata_hash": 4,
            "validated_topology_epoch": 2,
            "last_assignment_configs": [{"key": "k", "value": "v"}],
        },
    ),
    "streams-group-member": (
        OFFSETS,
        "001300017300016d",
        "00000269000263032f68000493e00000000102700105686f7374ffff0002057a6f6e6502610000",
        {"group": "s", "member_id": "m"},
        {
            "instance_id": "i",
            "rack_id": None,
            "client_id": "c",
            "client_host": "/h",
            "rebalance_timeout_ms": 300_000,
            "topology_epoch": 1,
            "process_id": "p",
            "user_endpoint": {"host": "host", "port": 65_535},
            "client_tags": [{"key": "zone", "value": "a"}],
        },
    ),
    "streams-group-target-assignment": (
        OFFSETS,
        "0014000173",
        "00000000000500",
        {"group": "s"},
        {"assignment_epoch": 5},
    ),
    "streams-group-target-assignment-member": (
        OFFSETS,
        "001500017300016d",
        "000002023003000000000000000100010100",
        {"group": "s", "member_id": "m"},
        {
            "active_tasks": [{"subtopology_id": "0", "partitions": [0, 1]}],
            "standby_tasks": [],
            "warmup_tasks": [],
        },
    ),
    "streams-group-current-assignment": (
        OFFSETS,
        "001600017300016d",
        "000000000007000000060102023002000000000100050200000007010101010100",
        {"group": "s", "member_id": "m"},
        {
            "member_epoch": 7,
            "previous_member_epoch": 6,
            "state": 1,
            "active_tasks": [{**TASK, "assignment_epochs": [7]}],
            "standby_tasks": [],
            "warmup_tasks": [],
            "active_tasks_pending_revocation": [],
            "standby_tasks_pending_revocation": [],
            "warmup_tasks_pending_revocation": [],
        },
    ),
    "streams-group-topology": (
        OFFSETS,
        "0017000173",
        (
            "0000000000010202300203696e0102046c6f67000000000003020f636c65616e75702e706f6c69637908"
            "636f6d70616374000002046f757401020200000101000000"
        ),
        {"group": "s"},
        {
            "epoch": 1,
            "subtopologies": [
                {
                    "subtopology_id": "0",
                    "source_topics": ["in"],
                    "source_topic_regex": [],
                    "state_changelog_topics": [
                        {
                            "name": "log",
                            "partitions": 0,
                            "replication_factor": 3,
                            "topic_configs": [{"key": "cleanup.policy", "value": "compact"}],
                        }
                    ],
                    "repartition_sink_topics": ["out"],
                    "repartition_source_topics": [],
                    "copartition_groups": [
                        {
                            "source_topics": [0],
                            "source_topic_regex": [],
                            "repartition_source_topics": [],
                        }
                    ],
                }
            ],
        },
    ),
    "consumer-group-target-assignment": (
        OFFSETS,
        "0006000163",
        "0000000000050100080000000000000006",
        {"group": "c"},
        {"assignment_epoch": 5, "assignment_timestamp": 6},
    ),
    "consumer-group-partitions": (
        OFFSETS,
        "0004000163",
        "000002000000000000000100000000000000020274000000010200000000020272000000",
        {"group": "c"},
        {
            "topics": [
                {
                    "topic_id": TOPIC_ID,
                    "topic_name": "t",
                    "num_partitions": 1,
                    "partition_metadata": [{"partition": 0, "racks": ["r"]}],
                }
            ]
        },
    ),
    "offset-commit": (
        OFFSETS,
        "000100016300017400000000",
        "000400000000000000090000000101000000000000000801001000000000000000010000000000000002",
        {"group": "c", "topic": "t", "partition": 0},
        {
            "offset": 9,
            "leader_epoch": 1,
            "metadata": "",
            "commit_timestamp": 8,
            "topic_id": TOPIC_ID,
        },
    ),
    "share-snapshot": (
        STATE,
        "00000001670000000000000001000000000000000200000004",
        (
            "0000000000010000000200000003000000000000002800000000000000050000000000000006020000"
            "000000000028000000000000002a0200010001000400000007"
        ),
        {"group": "g", "topic_id": TOPIC_ID, "partition": 4},
        {
            "snapshot_epoch": 1,
            "state_epoch": 2,
            "leader_epoch": 3,
            "start_offset": 40,
            "create_timestamp": 5,
            "write_timestamp": 6,
            "state_batches": [
                {"first_offset": 40, "last_offset": 42, "delivery_state": 2, "delivery_count": 1}
            ],
            "delivery_complete_count": 7,
        },
    ),
    "share-update": (
        STATE,
        "00010001670000000000000001000000000000000200000004",
        "00000000000100000003ffffffffffffffff0100",
        {"group": "g", "topic_id": TOPIC_ID, "partition": 4},
        {"snapshot_epoch": 1, "leader_epoch": 3, "start_offset": -1, "state_batches": []},
    ),
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_of_a_newer_broker_is_decoded(name: str) -> None:
    topic, key, value, expected_key, expected = RECORDS[name]
    decoded = ottla.decode_record(topic, bytes.fromhex(key), bytes.fromhex(value))
    assert decoded is not None
    assert (decoded["type"], decoded["key"]) == (name, expected_key)
    assert decoded["value"] == expected
    deleted = ottla.decode_record(topic, bytes.fromhex(key), None)
    assert deleted == {"type": name, "key": expected_key, "version": None, "value": None}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_that_is_cut_has_a_fault(name: str) -> None:
    topic, key, value, *_ = RECORDS[name]
    data = bytes.fromhex(value)
    for size in range(len(data)):
        decoded = ottla.decode_record(topic, bytes.fromhex(key), data[:size])
        assert decoded == {"fault": "the bytes end inside a field"}


def test_a_member_of_a_streams_group_need_not_have_an_endpoint() -> None:
    key = bytes.fromhex("001300017300016e")
    value = bytes.fromhex("00000002720263032f6800000001000000010270ff0100")
    decoded = ottla.decode_record(OFFSETS, key, value)
    assert decoded is not None
    assert decoded["value"]["user_endpoint"] is None
    assert decoded["value"]["rack_id"] == "r"
