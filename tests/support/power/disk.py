"""A disk under a journal of calls, and the states in which a power cut may leave it.

The model is harsher than ext4 or XFS with their defaults, as far as files go:

- What was written to a file before a sync of it began is there once the sync has ended.
- Of everything else, each sector of 512 bytes of each write is there or not, on its own. Where one
  is not, but a later one is, there are zeros, or what was there before. A file may also have its
  length, and zeros in it.
- A truncation comes before the writes behind it: without the one there are not the others.
- What is done to the names in one directory is there in order, up to some moment, and all of it
  that came before a sync of the directory began. A sync of a file does nothing for its name.
- Directories do not wait for each other: one may have what another was told long before.
"""

from collections.abc import Iterable
from pathlib import Path
from random import Random

from support.power.journal import Entry

SECTOR = 512
_CREATE, _TRUNCATE = 0o100, 0o1000


class File:
    """A file: what is on the disk for certain, and what else was done to it."""

    def __init__(self) -> None:
        self.live = bytearray()
        self.durable = bytearray()
        # The number of the call, where, and what; nothing for a truncation to there.
        self.pending: list[tuple[int, int, bytes | None]] = []

    def change(self, call: int, at: int, data: bytes | None) -> None:
        self.pending.append((call, at, data))
        _apply(self.live, at, data)

    def sync(self, before: int) -> None:
        """Everything that was called before is on the disk."""
        for call, at, data in self.pending:
            if call < before:
                _apply(self.durable, at, data)
        self.pending = [each for each in self.pending if each[0] >= before]

    def after_a_cut(self, random: Random) -> bytes:
        content = bytearray(self.durable)
        how = random.random()
        for _, at, data in self.pending:
            if data is None:
                if how < 0.6 and random.random() < 0.3:
                    break
                _apply(content, at, None)
            elif how < 0.2:
                continue
            elif how < 0.6:
                _write_some(content, at, data, random)
            else:
                _apply(content, at, data)
        return bytes(content)


class Directory:
    """A directory: names that are on the disk for certain, and what else was done to them."""

    def __init__(self) -> None:
        self.live: dict[str, File | Directory] = {}
        self.durable: dict[str, File | Directory] = {}
        # The number of the call, and what each name stands for since then.
        self.pending: list[tuple[int, dict[str, File | Directory | None]]] = []

    def change(self, call: int, names: dict[str, "File | Directory | None"]) -> None:
        self.pending.append((call, names))
        _rename(self.live, names)

    def sync(self, before: int) -> None:
        for call, names in self.pending:
            if call < before:
                _rename(self.durable, names)
        self.pending = [each for each in self.pending if each[0] >= before]

    def after_a_cut(self, random: Random) -> dict[str, "File | Directory"]:
        names = dict(self.durable)
        kept = random.choice((0, len(self.pending), random.randint(0, len(self.pending))))
        for _, changed in self.pending[:kept]:
            _rename(names, changed)
        return names


class Disk:
    """A directory, and what becomes of it by one entry of a journal after the other.

    Args:
        syncs: whether syncs do anything; without them a test shows what it finds.
    """

    def __init__(self, *, syncs: bool = True) -> None:
        self.root = Directory()
        self._syncs = syncs
        self._calls = 0
        self._open: dict[int, File | Directory] = {}
        self._syncing: dict[tuple[int, int], tuple[File | Directory, int]] = {}

    def play(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._calls += 1
            self._play(entry)

    def _play(self, entry: Entry) -> None:
        file = self._open.get(entry.descriptor)
        match entry.kind:
            case "P":
                # What a process leaves behind that is killed is the system's.
                self._open, self._syncing = {}, {}
            case "O":
                self._open[entry.descriptor] = self._opened(entry.data.decode(), entry.number)
            case "W":
                assert isinstance(file, File)
                file.change(self._calls, entry.number, entry.data)
            case "T":
                assert isinstance(file, File)
                file.change(self._calls, entry.number, None)
            case "t":
                named = self._find(entry.data.decode())
                assert isinstance(named, File)
                named.change(self._calls, entry.number, None)
            case "S":
                assert file is not None
                self._syncing[entry.descriptor, entry.number] = file, self._calls
            case "s":
                synced, before = self._syncing.pop((entry.descriptor, entry.number))
                if self._syncs:
                    synced.sync(before)
            case "M":
                self._change(entry.data.decode(), Directory())
            case "U":
                self._change(entry.data.decode(), None)
            case "R":
                self._renamed(*entry.data.decode().split("\0"))
            case _:
                raise AssertionError(f"a call that cannot be played again: {entry}")

    def _opened(self, path: str, flags: int) -> File | Directory:
        if flags & _CREATE:
            directory, name = self._place(path)
            if name not in directory.live:
                directory.change(self._calls, {name: File()})
        found = self._find(path)
        if flags & _TRUNCATE and isinstance(found, File) and found.live:
            found.change(self._calls, 0, None)
        return found

    def _find(self, path: str) -> File | Directory:
        found: File | Directory = self.root
        for name in path.split("/") if path else ():
            assert isinstance(found, Directory)
            found = found.live[name]
        return found

    def _place(self, path: str) -> tuple[Directory, str]:
        parent, _, name = path.rpartition("/")
        directory = self._find(parent)
        assert isinstance(directory, Directory)
        return directory, name

    def _change(self, path: str, found: "File | Directory | None") -> None:
        directory, name = self._place(path)
        directory.change(self._calls, {name: found})

    def _renamed(self, before: str, after: str) -> None:
        (directory, old), (other, new) = self._place(before), self._place(after)
        assert directory is other, f"{before} goes to another directory: {after}"
        directory.change(self._calls, {old: None, new: directory.live[old]})

    # What is there.

    def leave(self, path: Path, random: Random) -> None:
        """Writes what is there after a power cut; another one leaves something else."""
        _write(self.root, path, random)

    def leave_all(self, path: Path) -> None:
        """Writes what is there while there is power."""
        _write(self.root, path, None)


def _write(directory: Directory, path: Path, random: Random | None) -> None:
    path.mkdir()
    names = directory.live if random is None else directory.after_a_cut(random)
    for name, found in names.items():
        if isinstance(found, Directory):
            _write(found, path / name, random)
        else:
            content = found.live if random is None else found.after_a_cut(random)
            (path / name).write_bytes(content)


def _rename(
    names: dict[str, "File | Directory"], changed: dict[str, "File | Directory | None"]
) -> None:
    for name, found in changed.items():
        if found is None:
            names.pop(name, None)
        else:
            names[name] = found


def _apply(content: bytearray, at: int, data: bytes | None) -> None:
    if data is None:
        del content[at:]
    if len(content) < at:
        content.extend(bytes(at - len(content)))
    if data is not None:
        content[at : at + len(data)] = data


def _write_some(content: bytearray, at: int, data: bytes, random: Random) -> None:
    """Writes some sectors of it."""
    share = random.choice((0.0, 0.5, 0.9, 1.0))
    position = 0
    while position < len(data):
        end = min(len(data), position + SECTOR - (at + position) % SECTOR)
        if random.random() < share:
            _apply(content, at + position, data[position:end])
        position = end
    if len(content) < at + len(data) and random.random() < 0.2:
        content.extend(bytes(at + len(data) - len(content)))
