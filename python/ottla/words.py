"""Numbers, offsets, times and lists as sentences have them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["count", "duration", "listed", "moment", "offsets", "time_span"]

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
"""Units of durations in ms, the largest first."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


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


def listed(items: Sequence[str], shown: int) -> str:
    """Items as a sentence lists them; those beyond `shown` are counted.

    >>> listed(["a", "b", "c"], 3), listed(["a", "b", "c"], 1)
    ('a, b and c', 'a and 2 more')
    """
    rest = len(items) - shown
    words = [*items[:shown], *([f"{rest:,} more"] if rest > 0 else [])]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def duration(time_ms: int) -> str:
    """A duration in its two largest units.

    >>> duration(60_000), duration(90), duration(2**31 - 1)
    ('1 min', '90 ms', '24 d 20 h')
    """
    if abs(time_ms) < _UNITS[-1][0]:
        return f"{time_ms} ms"
    at = next(index for index, (size, _) in enumerate(_UNITS) if abs(time_ms) >= size)
    parts = []
    for size, unit in _UNITS[at : at + 2]:
        parts.append(f"{time_ms // size} {unit}")
        time_ms %= size
    return " ".join(part for part in parts if not part.startswith("0 "))


def moment(timestamp_ms: int) -> str:
    """The time of a timestamp, or its number if no calendar has it.

    >>> moment(1_760_000_000_000), moment(2**60)
    ('2025-10-09 08:53:20 UTC', 'timestamp 1152921504606846976')
    """
    try:
        time = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"timestamp {timestamp_ms}"
    millis = f".{timestamp_ms % 1000:03}" if timestamp_ms % 1000 else ""
    return f"{time:%Y-%m-%d %H:%M:%S}{millis} UTC"


def time_span(first_ms: int | None, last_ms: int | None) -> str:
    """Where on the clock something lies, to the second; empty if nothing bounds it.

    >>> time_span(1_760_000_000_000, 1_760_000_060_000)
    'between 2025-10-09 08:53:20 UTC and 2025-10-09 08:54:20 UTC'
    >>> time_span(1_760_000_000_000, None), time_span(None, None)
    ('after 2025-10-09 08:53:20 UTC', '')
    """
    if first_ms is None:
        return "" if last_ms is None else f"before {_second(last_ms)}"
    if last_ms is None:
        return f"after {_second(first_ms)}"
    first, last = _second(min(first_ms, last_ms)), _second(max(first_ms, last_ms))
    return f"at {first}" if first == last else f"between {first} and {last}"


def _second(timestamp_ms: int) -> str:
    return moment(timestamp_ms - timestamp_ms % 1000)
