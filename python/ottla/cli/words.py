"""Paths as commands of reports have them."""

from __future__ import annotations

import os

from ottla.storage import store_of


def shell_path(path: str) -> str:
    """A path relative to the working directory if it is below, else absolute or a URI."""
    if not path or store_of(os.fsencode(path)):
        return path or "several stores"
    relative = os.path.relpath(path)
    if relative.startswith("-"):
        # A command would take it for an option.
        relative = os.path.join(os.curdir, relative)
    return path if relative.split(os.sep, 1)[0] == os.pardir else relative
