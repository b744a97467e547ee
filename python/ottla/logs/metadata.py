"""`meta.properties` of a log directory, and `partition.metadata` of a partition.

Written by Kafka's `MetaPropertiesEnsemble` and `PartitionMetadataFile`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla import _engine
from ottla.logs.inventory import FileEntry
from ottla.logs.names import META_PROPERTIES
from ottla.logs.side_files import SideFileError, read_side_file
from ottla.storage import ANYWHERE

if TYPE_CHECKING:
    from ottla.logs.inventory import LogDirectory
    from ottla.storage import Files


def parse_partition_metadata(data: bytes) -> str:
    """Parses the topic id of a `partition.metadata`.

    Raises:
        SideFileError: there is no version, or no topic id of 22 base64url characters but zero.
    """
    topic_id, fault = _engine.parse_partition_metadata(data)
    if topic_id is None:
        raise SideFileError(*(fault or ("no topic id", "a topic id", "none")))
    return topic_id


def parse_meta_properties(data: bytes) -> dict[str, str]:
    """Parses a `meta.properties`: version, cluster.id, node.id or broker.id, directory.id.

    Raises:
        SideFileError: the version is unknown to Kafka, or the broker's id is missing.
    """
    properties, fault = _engine.parse_meta_properties(data)
    if fault is not None:
        raise SideFileError(*fault)
    return properties


def read_meta_properties(log_directory: bytes, files: Files = ANYWHERE) -> dict[str, str]:
    """Reads the `meta.properties` of a log directory; returns none if they cannot be read."""
    try:
        file = FileEntry(log_directory, META_PROPERTIES, "meta-properties")
        return parse_meta_properties(read_side_file(file, files))
    except (OSError, SideFileError):
        return {}


def cluster_id(directory: LogDirectory, files: Files = ANYWHERE) -> str | None:
    """Returns the cluster id in the `meta.properties` of a log directory."""
    return read_meta_properties(directory.path, files).get("cluster.id")
