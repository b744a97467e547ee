"""Numbers, offsets and paths as sentences of reports have them."""

from __future__ import annotations

import os

from ottla.storage import store_of


def count(number: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> count(1, "batch", "batches"), count(1200, "batch", "batches")
    ('1 batch', '1,200 batches')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def offsets(first: int, last: int | None) -> str:
    """A range of offsets, both inclusive.

    >>> offsets(3, 3), offsets(3, 5)
    ('offset 3', 'offsets 3 to 5')
    """
    return f"offset {first}" if last is None or last == first else f"offsets {first} to {last}"


def shell_path(path: str) -> str:
    """A path relative to the working directory if it is below, else absolute or a URI."""
    if not path or store_of(os.fsencode(path)):
        return path or "several stores"
    relative = os.path.relpath(path)
    return path if relative.split(os.sep, 1)[0] == os.pardir else relative
