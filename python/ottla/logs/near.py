"""What was probably meant by a name that is not there."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

from ottla.logs.names import display
from ottla.storage import store_of

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMES_SHOWN = 5
MAX_NAMES = 10_000
"""Names that a wrong one is compared with."""


def near_names(wanted: str, names: Iterable[str], kind: str) -> str:
    """The end of a sentence about a name that is not there: the nearest ones, and all there are.

    >>> near_names("ordres", ["orders", "payments"], "topics")
    ': did you mean orders? topics here: orders, payments'
    >>> near_names("x", [], "topics")
    ': no topics here'
    """
    # It is loaded for a mistake alone.
    from difflib import get_close_matches

    there = sorted(names)
    if not there:
        return f": no {kind} here"
    near = get_close_matches(wanted.strip("*"), there[:MAX_NAMES], n=2)
    question = f"did you mean {' or '.join(near)}? " if near else ""
    shown = ", ".join(there[:NAMES_SHOWN])
    rest = len(there) - NAMES_SHOWN
    return f": {question}{kind} here: {shown}" + (f" and {rest:,} more" if rest > 0 else "")


def near_paths(path: bytes) -> str:
    """The same of a path that does not exist, from the nearest directory above that does."""
    if store_of(path) is not None or os.path.lexists(path):
        return ""
    above, name = os.path.split(path)
    while above != os.path.dirname(above) and not os.path.lexists(above):
        above, name = os.path.split(above)
    try:
        with os.scandir(above) as found:
            entries = [display(entry.name) for entry in islice(found, MAX_NAMES)]
    except OSError:
        return ""
    from difflib import get_close_matches

    near = get_close_matches(display(name), entries, n=2)
    places = [os.path.join(display(above), entry) for entry in near]
    return f": did you mean {' or '.join(places)}?" if places else ""
