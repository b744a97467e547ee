"""A record to write."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NewRecord"]


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to write.

    Attributes:
        key, value: bytes, or ``None`` for null.
        timestamp: ms since 1970; -1 for none.
        headers: pairs of key and value; a key may be ``str`` or bytes.
        offset_delta: offset minus base offset; ``None`` for the one after the previous record.
    """

    key: bytes | None = None
    value: bytes | None = None
    timestamp: int = -1
    headers: Sequence[tuple[str | bytes, bytes | None]] = field(default=())
    offset_delta: int | None = None
