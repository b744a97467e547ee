"""A disk that forgets what was not synced when the power is cut.

The system's own calls are watched (`disk.c`, which is preloaded): a sync of a file keeps its bytes,
a sync of a directory keeps its names, and nothing else is sure. After a cut each file has what was
synced, and of what was written behind that everything, a part, garbage in the last sector, zeros to
the end, or a sector of zeros in the midst. A directory has the names of one of the moments since it
was last synced: names change in order, as in the journals of ext4 and xfs.
"""

import ctypes
import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from random import Random

SECTOR = 512
SHIM = Path(__file__).with_name("disk.c")

_Names = dict[str, int]
_OnSync = ctypes.CFUNCTYPE(None, ctypes.c_int)
_OnChange = ctypes.CFUNCTYPE(None, ctypes.c_char_p)


class Disk:
    """What is sure of the files below a directory; their paths are never symbolic links."""

    def __init__(self, root: Path, random: Random) -> None:
        self._root = root
        self._random = random
        self._files: dict[int, int] = {}
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, list[_Names]] = {}
        self._errors: list[BaseException] = []
        # They are called as long as the process lives, or until others take their place.
        self._watchers = _OnSync(self._on_sync), _OnChange(self._on_change)
        self._top = -1
        self._begin()
        ctypes.CDLL(None).disk_watch(*self._watchers)

    def close(self) -> None:
        """Watches no more."""
        ctypes.CDLL(None).disk_watch(None, None)
        self._forget()

    def synced_bytes(self) -> Mapping[str, bytes]:
        """The bytes that are sure of the files whose names are, by path below the root."""
        found: dict[str, bytes] = {}

        def walk(directory: int, path: str) -> None:
            for name, inode in self._names[directory][0].items():
                if inode in self._names:
                    walk(inode, f"{path}{name}/")
                else:
                    found[path + name] = self._bytes.get(inode, b"")

        walk(self._top, "")
        return found

    def cut_power(self) -> None:
        """Puts in the place of the directory what the disk has after a power cut."""
        if self._errors:
            raise self._errors[0]
        after, before = (self._root.with_name(self._root.name + end) for end in (".new", ".old"))
        self._lay(self._top, after)
        self._root.rename(before)
        after.rename(self._root)
        shutil.rmtree(before)
        self._forget()
        self._begin()

    def _begin(self) -> None:
        """What is there is sure."""
        self._top = self._hold(self._root)
        self._sync(self._top)
        for path, directories, files in os.walk(self._root):
            for name in directories + files:
                self._sync(self._hold(Path(path, name)))

    def _forget(self) -> None:
        for file in self._files.values():
            os.close(file)
        for known in (self._files, self._bytes, self._names):
            known.clear()

    def _hold(self, path: Path | str, directory: int | None = None) -> int:
        """Keep a file open, so that its number is no other's, and it can be read once deleted."""
        number = os.stat(path, dir_fd=directory, follow_symlinks=False).st_ino
        if number not in self._files:
            self._files[number] = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
        return number

    def _names_now(self, inode: int) -> _Names:
        directory = self._files[inode]
        names = sorted(os.listdir(directory))  # noqa: PTH208 - it may have no path any more
        return {name: self._hold(name, directory) for name in names}

    def _bytes_now(self, inode: int) -> bytes:
        file = self._files[inode]
        return os.pread(file, os.fstat(file).st_size, 0)

    def _is_directory(self, inode: int) -> bool:
        return stat.S_ISDIR(os.fstat(self._files[inode]).st_mode)

    def _sync(self, inode: int) -> None:
        if self._is_directory(inode):
            self._names[inode] = [self._names_now(inode)]
        else:
            self._bytes[inode] = self._bytes_now(inode)

    def _is_below(self, path: Path | str) -> bool:
        return f"{os.path.realpath(path)}/".startswith(f"{os.path.realpath(self._root)}/")

    def _on_sync(self, file: int) -> None:
        try:
            path = str(Path(f"/proc/self/fd/{file}").readlink())
            if self._is_below(path.removesuffix(" (deleted)")):
                number = os.fstat(file).st_ino
                if number not in self._files:
                    self._files[number] = os.open(f"/proc/self/fd/{file}", os.O_RDONLY)
                self._sync(number)
        except OSError as error:
            self._errors.append(error)

    def _on_change(self, path: bytes) -> None:
        try:
            directory = Path(os.fsdecode(path)).parent
            if self._is_below(directory):
                inode = self._hold(directory)
                self._names.setdefault(inode, [{}]).append(self._names_now(inode))
        except OSError as error:
            self._errors.append(error)

    def _lay(self, inode: int, to: Path) -> None:
        """Write what is there of a directory after a cut."""
        to.mkdir()
        states = self._names.setdefault(inode, [{}])
        states.append(self._names_now(inode))
        for name, found in self._random.choice(states).items():
            if self._is_directory(found):
                self._lay(found, to / name)
            else:
                kept = self._bytes.get(found, b"")
                (to / name).write_bytes(torn(self._random, kept, self._bytes_now(found)))


def torn(random: Random, synced: bytes, written: bytes) -> bytes:
    """What may be left of a file."""
    if written == synced:
        return written
    if not written.startswith(synced):
        return random.choice((synced, written))
    begin, end = len(synced), len(written)
    cut = random.randrange(begin, end + 1)
    match random.randrange(5):
        case 0:
            return written
        case 1:
            return written[:cut]
        case 2:
            sector = max(begin, (max(cut, begin + 1) - 1) // SECTOR * SECTOR)
            return written[:sector] + random.randbytes(cut - sector)
        case 3:
            return written[:cut] + bytes(end - cut)
        case _:
            first = max(begin, min(cut, end - 1) // SECTOR * SECTOR)
            last = min(end, (first // SECTOR + 1) * SECTOR)
            return written[:first] + bytes(last - first) + written[last:]
