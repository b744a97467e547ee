"""SaslHandshake: the mechanism that a client will authenticate by."""

from __future__ import annotations

from ottla.protocol.wire import Message, array, int16, string

__all__ = ["SaslHandshakeRequest", "SaslHandshakeResponse"]


class SaslHandshakeRequest(Message, api_key=17, versions="0-1", flexible="none"):
    mechanism: str = string("0+")


class SaslHandshakeResponse(Message, api_key=17, versions="0-1", flexible="none"):
    error_code: int = int16("0+")
    mechanisms: list[str] = array(string, "0+")
