"""Log directories made from a seed: a few partitions of `examples/data`, changed at random.

Bytes of every kind of file, names, numbers in text files, links and directories in the place of
files. Batches keep a right checksum now and then, so that what is wrong lies behind it.
"""

import os
import random
import re
import shutil
import struct
from pathlib import Path

from crc32c import crc32c

EXAMPLES = Path(__file__).parents[2] / "examples" / "data"

# What a terminal obeys, a shell expands, a format string takes, and a file system allows.
HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\rSOUND\n\x9b31m\u202e\u2066\u2028\u2029\x85\u200f\ufeff\U000e0041",
    "$(reboot)`reboot`'\"; reboot #",
    "{0.__class__}%s%n[bold red]\\",
    "-rf",
    " ",
    "\udcff\udc80",
    "x" * 200,
)
SUFFIXES = (
    ".log",
    ".index",
    ".timeindex",
    ".txnindex",
    ".snapshot",
    ".log.deleted",
    ".log.swap",
    ".log.cleaned",
    ".checkpoint",
    ".checkpoint.part",
)
PARTITIONS = ("-0", "-1", "-2147483648", "-00", "-0.0123456789abcdef0123456789abcdef-delete", "-0-")
NUMBERS = (
    "-1",
    "0",
    "2147483648",
    str((1 << 63) - 1),
    str(1 << 63),
    str(-(1 << 63)),
    "9" * 5000,
    "1e3",
    "\u0663",
    "",
)
HEADER = struct.Struct(">qiibI")
HEADER_BYTES = 61


def write_mutated_directory(directory: Path, rng: random.Random) -> Path:
    """Write a log directory of a few partitions with a few changes."""
    directory.mkdir(parents=True)
    partitions = sorted(path for path in EXAMPLES.iterdir() if path.is_dir())
    for path in rng.sample(partitions, rng.randint(1, 3)):
        shutil.copytree(path, directory / path.name)
    for path in EXAMPLES.iterdir():
        if path.is_file() and rng.random() < 0.8:
            shutil.copy(path, directory)
    if rng.random() < 0.3:
        (directory / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')
    for _ in range(rng.randint(1, 12)):
        _change(directory, rng)
    return directory


def _change(directory: Path, rng: random.Random) -> None:
    files = sorted(p for p in directory.rglob("*") if p.is_file() and not p.is_symlink())
    folders = sorted(p for p in directory.rglob("*") if p.is_dir() and not p.is_symlink())
    if not files or not folders or rng.random() < 0.2:
        _add(rng.choice([directory, *folders]), rng)
        return
    file = rng.choice(files)
    action = rng.choice(
        (change_bytes, change_bytes, _batches, _batches, _text, _text, _name, _kind)
    )
    action(file, rng)


def change_bytes(file: Path, rng: random.Random) -> None:
    """Damage of any file."""
    data = bytearray(file.read_bytes())
    at = rng.randint(0, len(data))
    size = int(2 ** rng.uniform(0, 12))
    match rng.randrange(6):
        case 0:
            data[at : at + 1] = rng.randbytes(1)
        case 1:
            del data[at:]
        case 2:
            data[at : at + size] = bytes(size)
        case 3:
            data[at:at] = rng.randbytes(size)
        case 4:
            data[at:at] = data[: rng.randint(0, len(data))]
        case _:
            data.clear()
    file.write_bytes(data)


def _batches(file: Path, rng: random.Random) -> None:
    """Fields of batches that are not what they should be, under a right checksum."""
    data = bytearray(file.read_bytes())
    starts = list(_starts(data))
    for start in rng.sample(starts, min(len(starts), rng.randint(1, 4))):
        end = start + 12 + int.from_bytes(data[start + 8 : start + 12], "big")
        at = rng.randrange(start + 21, start + HEADER_BYTES)
        if rng.random() < 0.3:
            at = rng.randrange(start, end)
        data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        data[start + 17 : start + 21] = crc32c(bytes(data[start + 21 : end])).to_bytes(4, "big")
    file.write_bytes(data)


def _starts(data: bytearray) -> list[int]:
    starts, position = [], 0
    while position + HEADER_BYTES <= len(data):
        _, length, _, magic, _ = HEADER.unpack_from(data, position)
        if magic != 2 or length < HEADER_BYTES - 12 or position + 12 + length > len(data):
            break
        starts.append(position)
        position += 12 + length
    return starts


def _text(file: Path, rng: random.Random) -> None:
    """A number, a word or a line of a text file."""
    beside = [p for p in file.parent.iterdir() if p.is_file() and not p.is_symlink()]
    texts = [p for p in beside if b"\0" not in p.read_bytes()]
    file = rng.choice(sorted(texts) or [file])
    text = file.read_bytes().decode("utf-8", "surrogateescape")
    hostile = rng.choice(HOSTILE)
    match rng.randrange(4):
        case 0:
            words = [word.span() for word in re.finditer(r"\S+", text)] or [(0, 0)]
            start, end = rng.choice(words)
            text = text[:start] + rng.choice((hostile, *NUMBERS)) + text[end:]
        case 1:
            text = text.replace("0", rng.choice(NUMBERS), rng.randint(1, 3))
        case 2:
            text += f"{hostile} 0 {rng.choice(NUMBERS)}\n" * rng.randint(1, 20)
        case _:
            lines = text.splitlines(keepends=True)
            rng.shuffle(lines)
            text = "".join(lines)
    file.write_bytes(text.encode("utf-8", "surrogateescape"))


def _name(file: Path, rng: random.Random) -> None:
    """Another name, of a segment or of a stranger."""
    target = file.parent / _some_name(rng)
    if not target.exists():
        file.rename(target)


def _kind(file: Path, rng: random.Random) -> None:
    """A link, a directory or nothing in the place of a file; or one that may not be read."""
    file.unlink()
    match rng.randrange(4):
        case 0:
            file.symlink_to(rng.choice((file, Path("/proc/self/mem"), Path("..") / "gone")))
        case 1:
            file.mkdir()
        case 2:
            os.mkfifo(file)
        case _:
            pass


def _add(folder: Path, rng: random.Random) -> None:
    """A file or a directory of any name."""
    path = folder / _some_name(rng)
    if path.exists() or path.is_symlink():
        return
    if rng.random() < 0.5:
        path.write_bytes(rng.randbytes(rng.choice((0, 1, 100, 5000))))
        return
    path.mkdir()
    (path / _some_name(rng)).write_bytes(rng.randbytes(rng.choice((0, 100))))


def _some_name(rng: random.Random) -> str:
    stem = rng.choice((*HOSTILE, "orders", f"{rng.choice((0, 7, (1 << 63) - 1)):020}"))
    name = stem + rng.choice((*SUFFIXES, *PARTITIONS, ""))
    return name.replace("/", "")[:100] if name.strip() else "unnamed"
