"""What is in an answer that the data plane has made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.broker import error_codes
from ottla.protocol.codec import decode

if TYPE_CHECKING:
    from ottla.broker.context import Context
    from ottla.protocol.wire import Message

__all__ = ["answered_errors"]


def answered_errors(
    message: type[Message], context: Context, parts: list[bytes]
) -> tuple[int, ...]:
    """Returns the distinct error codes of an answer, ascending, without 0."""
    answer = decode(message, context.version)(b"".join(parts), 0)[0]
    return error_codes(answer)
