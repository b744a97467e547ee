"""A directory or a file of results that appears complete or not at all."""

from __future__ import annotations

import itertools
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO


def check_new_directory(directory: str | os.PathLike[str]) -> None:
    """Raises FileExistsError unless the directory is absent or empty."""
    if os.path.isdir(directory) and not os.listdir(directory):
        return
    if os.path.lexists(directory):
        raise FileExistsError(f"{os.fspath(directory)} exists: use a new or an empty directory")


@contextmanager
def new_directory(target: str) -> Iterator[str]:
    """Yields an empty directory to write into, which becomes the target when the block ends.

    Raises:
        FileExistsError: the target exists and is not empty.
        OSError: what the block raises, with the target as its file if it names none.
    """
    check_new_directory(target)
    with _beside(target) as partial:
        yield partial
        os.rename(partial, target)


def check_new_file(target: str) -> None:
    """Raises FileExistsError if there is anything at a path."""
    if os.path.lexists(target):
        raise FileExistsError(f"{target} exists: use a new name")


@contextmanager
def new_file(target: str) -> Iterator[BinaryIO]:
    """Yields a file to write, which becomes the target when the block ends.

    Raises:
        FileExistsError: there is something at the target.
        OSError: what the block raises, with the target as its file if it names none.
    """
    check_new_file(target)
    with _beside(target) as partial:
        with open(os.path.join(partial, "file"), "wb") as file:
            yield file
        os.rename(os.path.join(partial, "file"), target)


@contextmanager
def _beside(target: str) -> Iterator[str]:
    """Yields an empty directory beside the target, where it can be renamed; gone behind the block.

    Raises:
        OSError: what the block raises, with the target as its file if it names none.
    """
    parent, name = os.path.split(os.path.abspath(target))
    os.makedirs(parent, exist_ok=True)
    for number in itertools.count():
        partial = os.path.join(parent, f".{name}.partial-{os.getpid()}-{number}")
        is_ours = True
        try:
            try:
                os.mkdir(partial)
            except FileExistsError:
                is_ours = False
                continue
            yield partial
        except OSError as error:
            if error.filename is None and error.errno is not None:
                # A write to a full disk does not name its file.
                error.filename = target
            raise
        finally:
            # Ctrl-C may come as soon as the directory is made.
            if is_ours:
                shutil.rmtree(partial, ignore_errors=True)
        return
