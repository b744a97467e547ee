"""What a log directory and a partition say of themselves: `meta.properties`, `partition.metadata`.

Kafka's `MetaPropertiesEnsemble` and `PartitionMetadataFile` write them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla import _engine
from ottla.logs.inventory import FileEntry
from ottla.logs.names import MAX_OFFSET, META_PROPERTIES
from ottla.logs.side_files import SideFileError, read_side_file
from ottla.storage import ANYWHERE

if TYPE_CHECKING:
    from ottla.logs.inventory import LogDirectory
    from ottla.storage import Files


def parse_partition_metadata(data: bytes) -> str:
    """The topic id of a `partition.metadata`.

    Raises:
        SideFileError: no version, or no topic id of 22 base64url characters other than zero.
    """
    topic_id, fault = _engine.parse_partition_metadata(data)
    if topic_id is None:
        raise SideFileError(*(fault or ("no topic id", "a topic id", "none")))
    return topic_id


def parse_meta_properties(data: bytes) -> dict[str, str]:
    """The properties of a log directory: version, cluster.id, node.id or broker.id, directory.id.

    Raises:
        SideFileError: no version that Kafka knows, or no number of the broker.
    """
    fields = _properties(data, "=")
    version = fields.get("version", "none")
    if version not in ("0", "1"):
        raise SideFileError("unknown version", "version=0 or version=1", version)
    key = "broker.id" if version == "0" else "node.id"
    if not _is_number(fields.get(key, "")):
        raise SideFileError(f"no {key}", f"{key}=a number", fields.get(key, "none"))
    return fields


def read_meta_properties(log_directory: bytes, files: Files = ANYWHERE) -> dict[str, str]:
    """The `meta.properties` of a log directory; none where they cannot be read."""
    try:
        file = FileEntry(log_directory, META_PROPERTIES, "meta-properties")
        return parse_meta_properties(read_side_file(file, files))
    except (OSError, SideFileError):
        return {}


def cluster_id(directory: LogDirectory, files: Files = ANYWHERE) -> str | None:
    """The cluster that a log directory belongs to, as its `meta.properties` tells."""
    return read_meta_properties(directory.path, files).get("cluster.id")


def _is_number(digits: str) -> bool:
    """Whether this is a decimal number that fits 64 bits."""
    is_decimal = digits.isascii() and digits.isdecimal()
    return is_decimal and len(digits) <= len(str(MAX_OFFSET)) and int(digits) <= MAX_OFFSET


def _properties(data: bytes, separator: str) -> dict[str, str]:
    pairs = (
        line.split(separator, 1)
        for line in _text(data).splitlines()
        if separator in line and not line.lstrip().startswith(("#", "!"))
    )
    return {key.strip(): value.strip() for key, value in pairs}


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        found = f"byte {data[error.start]:#04x} at position {error.start}"
        raise SideFileError("no text", "UTF-8 text", found) from None
