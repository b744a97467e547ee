"""Standard input as a file that can be read anywhere in it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.storage import LocalPlace

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["spooled"]


@contextmanager
def spooled() -> Iterator[LocalPlace]:
    """Yields a temporary file with all of standard input, whatever its size."""
    with tempfile.NamedTemporaryFile(prefix="ottla-") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield LocalPlace(os.fsencode(file.name))
