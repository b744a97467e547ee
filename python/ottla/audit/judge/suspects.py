"""Partitions that the next start of a broker may change or refuse; the others open unchanged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ottla.audit.catalogue.explain import explain
from ottla.logs.names import PARTITION_METADATA

if TYPE_CHECKING:
    from collections.abc import Collection

    from ottla.audit.catalogue.findings import Findings
    from ottla.audit.plan.plan import Plan
    from ottla.logs.inventory import Partition


def all_open_unchanged(plan: Plan, findings: Findings) -> bool:
    """Whether nothing gives reason to look at the next start of any partition of a plan."""
    if findings or plan.repeated:
        return False
    return all(has_topic_id(partition) for partition in plan.partitions if _is_live(partition))


def suspects_of(plan: Plan, findings: Findings, has_ids: Collection[bytes]) -> list[Partition]:
    """Returns live partitions with a finding that may matter to a start, or without a topic id.

    `has_ids` are the log directories in which some partition has one.
    """
    found = {directory for name, _, directory in findings.kinds if explain(name).matters_to_start}
    suspects = []
    for partition in filter(_is_live, plan.partitions):
        above = os.path.dirname(partition.directory)
        lacks_id = above in has_ids and not has_topic_id(partition)
        if (partition.directory in found or lacks_id) and partition.has_segments:
            suspects.append(partition)
    return suspects


def has_topic_id(partition: Partition) -> bool:
    """Whether a partition has the file that holds its topic's id."""
    return PARTITION_METADATA in partition.names


def _is_live(partition: Partition) -> bool:
    return partition.state == "live" and partition.is_whole
