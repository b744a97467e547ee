"""Whether a log directory holds all of its cluster: every partition on one broker, and in there.

It is looked at before anything is written. Who leads a part of a cluster alone takes it from the
rest: others would find a leader that they did not elect, or logs that begin anew.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ottla.broker.uuids import base64_of
from ottla.errors import LogDirectoryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.data.cluster_state import ClusterState, PartitionState

__all__ = ["missing_partitions", "refuse_part_of_a_cluster"]

_RESERVED: Final = 100
"""Ids below it are no directory's: unassigned, lost, migrating (KIP-858)."""


def refuse_part_of_a_cluster(
    state: ClusterState, path: str, node_id: int, directory_id: bytes
) -> None:
    """Looks at where the partitions of a cluster are.

    Raises:
        LogDirectoryError: one of them is on another broker or in another log directory.
    """
    for topic in state.topics.values():
        if sorted(topic.partitions) != list(range(len(topic.partitions))):
            raise LogDirectoryError(
                f"__cluster_metadata has partitions {sorted(topic.partitions)} of topic "
                f"{topic.name}, and they should be numbered from 0"
            )
        for index, partition in sorted(topic.partitions.items()):
            name = f"{topic.name}-{index}"
            if partition.replicas != (node_id,):
                raise LogDirectoryError(
                    f"partition {name} is on the brokers "
                    f"{', '.join(map(str, partition.replicas))}: a directory can be served "
                    f"whose partitions are on node {node_id} alone"
                )
            elsewhere = _elsewhere(partition, directory_id)
            if elsewhere is not None and not os.path.isdir(os.path.join(path, name)):
                raise LogDirectoryError(
                    f"partition {name} is in the log directory with the directory.id {elsewhere}, "
                    f"and not in {path}: a directory can be served that has all partitions"
                )


def missing_partitions(state: ClusterState, path: str, *, was_clean: bool) -> Iterator[str]:
    """Yields partitions that had a directory, and have none.

    Behind a crash it may not have been made yet, for a partition that nobody has led again.
    """
    for topic in sorted(state.topics.values(), key=lambda topic: topic.name):
        for index, partition in sorted(topic.partitions.items()):
            name = f"{topic.name}-{index}"
            was_made = was_clean or partition.leader_epoch > 0
            if was_made and not os.path.isdir(os.path.join(path, name)):
                yield name


def _elsewhere(partition: PartitionState, directory_id: bytes) -> str | None:
    """Returns the id of the directory that a partition is in, where that is another."""
    for each in partition.directories:
        if each != directory_id and int.from_bytes(each, "big") >= _RESERVED:
            return base64_of(each)
    return None
