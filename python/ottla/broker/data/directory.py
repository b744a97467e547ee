"""A broker's log directory: whose it is, that nobody else has it, and how it was left.

``meta.properties`` says of which cluster and node it is, ``.lock`` is locked while a broker has it,
``.kafka_cleanshutdown`` is there from a clean stop to the next start. See `docs/kafka/log-dir.md`.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.broker.data.small_files import read_text, sync_directory, write_file
from ottla.broker.data.special_files import refuse_special_files
from ottla.broker.plane import write_offset_checkpoint
from ottla.broker.uuids import base64_of, random_uuid, uuid_of
from ottla.errors import LogDirectoryError
from ottla.logs.metadata import parse_meta_properties
from ottla.logs.side_files import SideFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["DataDirectory"]

_LOCK: Final = ".lock"
_META: Final = "meta.properties"
_CLEAN: Final = ".kafka_cleanshutdown"
_OURS_WITHOUT_META: Final = frozenset({_LOCK, f"{_META}.tmp", "lost+found"})
_VERSION: Final = "1"
_MAX_CHARACTERS: Final = 1 << 16

_held_here: set[str] = set()
"""Directories that brokers of this process have: locks of files are one for a process."""


class DataDirectory:
    """A directory that this process has, until `release`.

    Args:
        path: it is made where its parent is there.
        cluster_id: what it has to be of; `None` takes that of the directory.
        node_id: likewise.
        default_node_id: of a new directory.
        random_bits: where ids of a new directory come from.

    Attributes:
        path: as it was given.
        cluster_id, node_id, directory_id: whose it is.
        was_clean: whether it was left by a clean stop.
        broker_epoch: of the broker that left it so.

    Raises:
        LogDirectoryError: it cannot be had; the message says why.
    """

    def __init__(
        self,
        path: str,
        *,
        cluster_id: str | None,
        node_id: int | None,
        default_node_id: int,
        random_bits: Callable[[int], int],
    ) -> None:
        self.path = path
        self._lock = -1
        self._is_complete = True
        self._real_path = os.path.realpath(path)
        try:
            self._make()
            refuse_special_files(path)
            self._take_lock()
            try:
                self._identify(cluster_id, node_id, default_node_id, random_bits)
                self._read_clean_mark()
            except BaseException:
                self.release()
                raise
        except OSError as error:
            raise LogDirectoryError(
                f"{error.filename or path}: {error.strerror or error}"
            ) from None

    def complete_meta(self) -> None:
        """Writes the id of the directory where it has none, as releases before 3.7 leave it.

        Of a directory that is there, that waits until nothing else speaks against having it.

        Raises:
            OSError: the system could not.
        """
        if self._is_complete:
            return
        lines = {
            "version": _VERSION,
            "cluster.id": self.cluster_id,
            "node.id": str(self.node_id),
            "directory.id": base64_of(self.directory_id),
        }
        written = "".join(f"{name}={value}\n" for name, value in lines.items())
        write_file(os.path.join(self.path, _META), written.encode())
        self._is_complete = True

    def take_clean_mark(self) -> None:
        """Has whoever comes next find it unclean, until `leave_clean`.

        Raises:
            OSError: the system could not.
        """
        if self.was_clean:
            os.unlink(os.path.join(self.path, _CLEAN))
            # A mark that is back after a power cut would have the next start read nothing again.
            sync_directory(self.path)

    def leave_clean(self, broker_epoch: int) -> None:
        """Says that everything was closed as it should be.

        Raises:
            OSError: the system could not write it.
        """
        text = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
        write_file(os.path.join(self.path, _CLEAN), text.encode())

    def write_checkpoint(self, name: str, offsets: Iterable[tuple[str, int, int]]) -> None:
        """Writes a checkpoint of topics, partitions and offsets.

        Raises:
            OSError: the system could not; the file is as it was.
        """
        write_file(os.path.join(self.path, name), write_offset_checkpoint([*offsets]))

    def release(self) -> None:
        """Gives the lock back."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
            _held_here.discard(self._real_path)

    def _make(self) -> None:
        if os.path.isdir(self.path):
            return
        if os.path.exists(self.path):
            raise LogDirectoryError(f"{self.path} is a file, and should be a directory for logs")
        parent = os.path.dirname(os.path.abspath(self.path))
        if not os.path.isdir(parent):
            raise LogDirectoryError(
                f"there is no directory {self.path}, and none {parent} to make it in"
            )
        os.mkdir(self.path)
        sync_directory(parent)

    def _take_lock(self) -> None:
        self._refuse_what_is_no_log_directory()
        import fcntl  # noqa: PLC0415 - not every system has it, and a broker in memory needs none

        if self._real_path in _held_here:
            raise LogDirectoryError(_locked(self.path, "this process"))
        descriptor = os.open(
            os.path.join(self.path, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
        )
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise LogDirectoryError(_locked(self.path, "another process")) from None
        self._lock = descriptor
        _held_here.add(self._real_path)

    def _refuse_what_is_no_log_directory(self) -> None:
        names = set(os.listdir(self.path))
        if _META not in names and names - _OURS_WITHOUT_META:
            some = ", ".join(sorted(names - _OURS_WITHOUT_META)[:3])
            raise LogDirectoryError(
                f"{self.path} is no log directory: it has no {_META}, and is not empty ({some}); "
                f"give an empty directory, or one of a broker"
            )

    def _identify(
        self,
        cluster_id: str | None,
        node_id: int | None,
        default_node_id: int,
        random_bits: Callable[[int], int],
    ) -> None:
        known = self._read_meta()
        self.cluster_id = (
            known.get("cluster.id") or cluster_id or base64_of(random_uuid(random_bits))
        )
        self.node_id = default_node_id if node_id is None else node_id
        if known:
            self._check_version(known)
            if cluster_id is not None and cluster_id != self.cluster_id:
                raise LogDirectoryError(
                    f"{self.path} is of the cluster {self.cluster_id}, not of {cluster_id}"
                )
            of_node = int(known["node.id"])
            if node_id is not None and of_node != node_id:
                raise LogDirectoryError(
                    f"{self.path} is of node {of_node}, not of node {node_id}: set broker.id to "
                    f"{of_node}, or give another directory"
                )
            self.node_id = of_node
        text = known.get("directory.id")
        self.directory_id = self._directory_id(text, random_bits)
        self._is_complete = text is not None
        if not known:
            self.complete_meta()

    def _read_meta(self) -> Mapping[str, str]:
        path = os.path.join(self.path, _META)
        text = read_text(path, _MAX_CHARACTERS)
        if text is None:
            return {}
        try:
            return parse_meta_properties(text.encode("utf-8", "surrogateescape"))
        except SideFileError as error:
            raise LogDirectoryError(f"{path}: {error}") from None

    def _check_version(self, known: Mapping[str, str]) -> None:
        version = known.get("version")
        if version != _VERSION or "node.id" not in known:
            raise LogDirectoryError(
                f"{os.path.join(self.path, _META)} is of version {version}, which brokers with "
                f"ZooKeeper write; expected version {_VERSION}"
            )
        if not known.get("cluster.id"):
            raise LogDirectoryError(f"{os.path.join(self.path, _META)} has no cluster.id")

    def _read_clean_mark(self) -> None:
        text = read_text(os.path.join(self.path, _CLEAN), _MAX_CHARACTERS)
        self.was_clean = text is not None
        self.broker_epoch = -1
        # Releases before 3.8 leave it empty.
        with suppress(ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            self.broker_epoch = int(json.loads(text or "").get("brokerEpoch", -1))

    @staticmethod
    def _directory_id(text: str | None, random_bits: Callable[[int], int]) -> bytes:
        if text is None:
            return random_uuid(random_bits)
        try:
            return uuid_of(text)
        except ValueError as error:
            raise LogDirectoryError(f"directory.id: {error}") from None


def _locked(path: str, whose: str) -> str:
    return f"{path} is in use: a broker of {whose} has locked it"
