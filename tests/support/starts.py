"""Deeds of the advice followed on a copy, and what the next start then makes of it.

Nothing here asks the advice: offsets come from `ottla.read_partition`, what a start does from
`ottla.predict_recovery`, and what it cuts off is cut off from the files before they are read again.
"""

import re
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import ottla
from ottla.audit.advice.deed import Deed

_PARTITION = re.compile(r"(.+)-(\d+)")


class AfterStart(NamedTuple):
    """What a start has made of a partition; `opens` is None where it is not there."""

    opens: bool | None
    log_end_offset: int | None
    readable: frozenset[int]


def partitions_of(log_directory: Path) -> list[str]:
    """Names of the partitions of a log directory."""
    return sorted(
        path.name
        for path in log_directory.iterdir()
        if path.is_dir()
        and _PARTITION.fullmatch(path.name)
        and not path.name.startswith("__cluster_metadata")
    )


def readable_offsets(partition: Path) -> frozenset[int]:
    """The offsets that `ottla read` gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return frozenset(record.offset for record in ottla.read_partition(partition))


def follow(deed: Deed, log_directory: Path) -> None:
    """Do what a deed says."""
    for operation in deed.operations:
        path = log_directory / operation.path
        assert path.resolve().is_relative_to(log_directory.resolve())
        if operation.operation == "move":
            aside = log_directory.with_name(f"{log_directory.name}-aside")
            aside.mkdir(exist_ok=True)
            path.rename(aside / operation.path.replace("/", "~"))
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def expected_start(partition: Path) -> tuple[bool, int | None, int]:
    """Whether a start that believes the checkpoint opens a partition, where it ends, producers."""
    if not partition.is_dir():
        return False, None, 0
    clean = (partition.parent / ".kafka_cleanshutdown").exists()
    after = ottla.predict_recovery(partition, clean=clean, recovery_point=None)
    return after.opens, after.log_end_offset, len(after.producers)


def start(
    log_directory: Path, partitions: Mapping[str, frozenset[int]], *, recovery_point: int | None = 0
) -> dict[str, AfterStart]:
    """Start a broker over a log directory, which is changed by it as far as bytes are cut off."""
    clean = (log_directory / ".kafka_cleanshutdown").exists()
    return {
        name: _start(log_directory / name, clean=clean, recovery_point=recovery_point)
        for name in partitions
    }


def _start(directory: Path, *, clean: bool, recovery_point: int | None) -> AfterStart:
    if not directory.is_dir():
        return AfterStart(opens=None, log_end_offset=None, readable=frozenset())
    after = ottla.predict_recovery(directory, clean=clean, recovery_point=recovery_point)
    if not after.opens:
        return AfterStart(opens=False, log_end_offset=None, readable=frozenset())
    if after.is_stray or after.log_start_offset is None or after.log_end_offset is None:
        return AfterStart(opens=True, log_end_offset=after.log_end_offset, readable=frozenset())
    is_split = any(file.endswith(".log") for file in after.files_created)
    for file in after.bytes_before:
        path = directory / file
        if file in after.segments:
            with path.open("r+b") as segment:
                segment.truncate(min(after.segments[file], after.bytes_before[file]))
        elif not is_split:
            path.unlink()
    offsets = range(after.log_start_offset, after.log_end_offset)
    left = frozenset(o for o in readable_offsets(directory) if o in offsets)
    return AfterStart(opens=True, log_end_offset=after.log_end_offset, readable=left)
