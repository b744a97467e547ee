"""Tokens of OAUTHBEARER, which a function of the user's returns."""

from __future__ import annotations

import asyncio
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Any

from ottla.client.errors import AuthenticationError, NetworkError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["token_of"]


async def token_of(function: Callable[..., Any] | None) -> str:
    """Returns a new token.

    Args:
        function: may wait for others: it is awaited, or else called in a thread of its own.

    Raises:
        NetworkError: it raised, and may not the next time.
        AuthenticationError: it returned no text.
    """
    if function is None:
        raise AuthenticationError("sasl_mechanism is OAUTHBEARER, and there is no sasl_oauth_token")
    try:
        if iscoroutinefunction(function):
            found = await function()
        else:
            found = await asyncio.to_thread(function)
            if isawaitable(found):
                found = await found
    except Exception as error:
        raise NetworkError(f"sasl_oauth_token raised {error!r}", is_sent=False) from error
    if not isinstance(found, str) or not found:
        raise AuthenticationError(
            f"sasl_oauth_token returned {type(found).__name__}, expected a token as text"
        )
    return found
