"""Requests as a person reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.broker.journal import RequestEntry

__all__ = ["request_lines"]


def request_lines(
    requests: Sequence[RequestEntry], began_ms: int | None, max_count: int
) -> list[str]:
    """Returns a line for each of the last requests: when, who, what, and its errors by name.

    Args:
        requests: oldest first.
        began_ms: what their times are told from; by default the first of them.
        max_count: how many; how many there were before is the first line.

    >>> from ottla.broker.journal import RequestEntry
    >>> entry = RequestEntry(1250, "Produce", 9, "app", "127.0.0.1", "librdkafka", "2.4", (6,))
    >>> request_lines([entry], 1000, 20)
    ['+0.250 s  app  Produce 9  NOT_LEADER_OR_FOLLOWER']
    """
    from ottla.text import visible  # noqa: PLC0415 - for a test that has failed

    if not requests:
        return ["(none)"]
    start_ms = requests[0].time_ms if began_ms is None else began_ms
    left_out = len(requests) - max_count
    lines = [f"({left_out:,} requests before)"] if left_out > 0 else []
    for entry in requests[-max_count:]:
        parts = [
            f"{(entry.time_ms - start_ms) / 1000:+.3f} s",
            visible(entry.client_id) or "-",
            f"{entry.api} {entry.version}",
            ", ".join(entry.error_names),
        ]
        lines.append("  ".join(filter(None, parts)))
    return lines
