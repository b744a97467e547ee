"""Headers before requests and responses.

Of a request: version 1, in flexible versions of its API version 2, which adds tagged fields; the
client id is never compact. ControlledShutdown 0 has version 0, without a client id. Of a response:
version 0, in flexible versions version 1, which adds tagged fields; but always 0 before the answer
to ApiVersions, so that a client finds its error code whatever version it asked for (KIP-511).
"""

from __future__ import annotations

import struct

from ottla.errors import MalformedFrameError
from ottla.protocol.api_key import FIRST_FLEXIBLE, ApiKey
from ottla.protocol.varint import skip_tags

__all__ = [
    "RequestHeader",
    "read_client_id",
    "read_request_header",
    "request_header",
    "response_header",
]

_FIXED = struct.Struct(">hhi")
_LENGTH = struct.Struct(">h")
_CORRELATION_ID = struct.Struct(">i")
_NEVER = 32768
_CONTROLLED_SHUTDOWN = int(ApiKey.CONTROLLED_SHUTDOWN)
_API_VERSIONS = int(ApiKey.API_VERSIONS)


class RequestHeader:
    """What a request begins with.

    Attributes:
        api_key: of the API, which need not be a known one.
        api_version: of the request, which need not be a known one.
        correlation_id: which the response repeats.
        client_id: empty where the client says none.
    """

    __slots__ = ("api_key", "api_version", "client_id", "correlation_id")

    def __init__(
        self, api_key: int, api_version: int, correlation_id: int, client_id: str = ""
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id

    def __repr__(self) -> str:
        return (
            f"RequestHeader(api_key={self.api_key}, api_version={self.api_version}, "
            f"correlation_id={self.correlation_id}, client_id={self.client_id!r})"
        )


def is_flexible(api_key: int, api_version: int) -> bool:
    """Whether a version of an API is flexible (KIP-482); no API that is not known is."""
    return api_version >= FIRST_FLEXIBLE.get(api_key, _NEVER)


def read_request_header(frame: bytes) -> tuple[RequestHeader, int]:
    """The header of a request, and the position of the request behind it.

    Raises:
        MalformedFrameError: the frame ends inside, or the client id is not UTF-8.
    """
    try:
        api_key, api_version, correlation_id = _FIXED.unpack_from(frame)
    except struct.error:
        raise MalformedFrameError(0, "the frame ends inside its header") from None
    client_id, position = read_client_id(frame, api_key, api_version)
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def read_client_id(frame: bytes, api_key: int, api_version: int) -> tuple[str, int]:
    """The client id of a request of this API, and the position of the request behind its header.

    Raises:
        MalformedFrameError: the frame ends inside, or the client id is not UTF-8.
    """
    position = _FIXED.size
    client_id = ""
    try:
        if api_key != _CONTROLLED_SHUTDOWN or api_version:
            (length,) = _LENGTH.unpack_from(frame, position)
            position += _LENGTH.size
            if length > len(frame) - position:
                raise MalformedFrameError(
                    position,
                    f"client_id takes {length} bytes, of which {len(frame) - position} are left",
                )
            if length > 0:
                client_id = frame[position : position + length].decode()
                position += length
        if is_flexible(api_key, api_version):
            # Hardly any client has tags here.
            position = skip_tags(frame, position) if frame[position] else position + 1
    except UnicodeDecodeError as error:
        raise MalformedFrameError(position + error.start, "client_id is not UTF-8") from None
    except (IndexError, struct.error):
        raise MalformedFrameError(position, "the frame ends inside its header") from None
    return client_id, position


def request_header(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """The header of a request of a client."""
    fixed = _FIXED.pack(api_key, api_version, correlation_id)
    if api_key == _CONTROLLED_SHUTDOWN and not api_version:
        return fixed
    encoded = b"" if client_id is None else client_id.encode()
    length = _LENGTH.pack(-1 if client_id is None else len(encoded))
    return fixed + length + encoded + b"\0" * is_flexible(api_key, api_version)


def response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """The header of a response."""
    header = _CORRELATION_ID.pack(correlation_id)
    if is_flexible(api_key, api_version) and api_key != _API_VERSIONS:
        return header + b"\0"
    return header
