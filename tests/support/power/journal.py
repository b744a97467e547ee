"""What `recorder.c` has recorded: the calls of processes on files, in their order."""

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_HEAD = struct.Struct("=ciqqI")


class Entry(NamedTuple):
    """A call that has succeeded.

    Attributes:
        kind: a letter, as in `recorder.c`.
        end: where it ends in the journal: who was told something when the journal had that size was
            told it after this call.
    """

    kind: str
    descriptor: int
    number: int
    data: bytes
    end: int


def entries(data: bytes) -> Iterator[Entry]:
    position = 0
    while position < len(data):
        kind, descriptor, number, _, size = _HEAD.unpack_from(data, position)
        begin, position = position + _HEAD.size, position + _HEAD.size + size
        yield Entry(kind.decode(), descriptor, number, data[begin:position], position)


class Recorder:
    """The recorder, built, for processes whose files are below a directory.

    Args:
        folder: where it is built, and its journal is.
        directory: what it records.
        sync_us: how much longer every sync takes: others write meanwhile.
    """

    def __init__(self, folder: Path, directory: Path, *, sync_us: int = 0) -> None:
        self.journal = folder / "journal"
        self.directory = directory
        self._sync_us = sync_us
        self._library = folder / "recorder.so"
        compiler = shutil.which("cc")
        assert compiler is not None, "a C compiler builds the recorder: install one"
        source = Path(__file__).with_name("recorder.c")
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", "-o", self._library, source, "-ldl"], check=True
        )

    def environment(self) -> dict[str, str]:
        """The environment of a process that is recorded."""
        return {
            **os.environ,
            "LD_PRELOAD": str(self._library),
            "RECORDED_DIRECTORY": str(self.directory),
            "RECORDED_JOURNAL": str(self.journal),
            "RECORDED_SYNC_US": str(self._sync_us),
        }

    def position(self) -> int:
        """Where the journal ends now."""
        return self.journal.stat().st_size

    def read(self) -> list[Entry]:
        return [*entries(self.journal.read_bytes())]
