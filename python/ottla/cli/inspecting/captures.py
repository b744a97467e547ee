"""Produce and Fetch out of a capture: one body, or the frames of a connection in one direction.

A body says neither its API nor its version. Of requests, the headers of frames do. Else each
version is tried: one that reads all bytes may be it, and several are one where they say the same.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.errors import MalformedFrameError
from ottla.protocol.api_key import ApiKey
from ottla.protocol.codec import decode
from ottla.protocol.header import is_flexible, read_request_header
from ottla.protocol.messages import request_of, response_of
from ottla.protocol.varint import skip_tags
from ottla.protocol.wire import Message, Struct, records, schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["KINDS", "Captured", "captured", "versions_of"]

KINDS = {
    f"{api.name.lower()}-{what}": (api, what)
    for api in (ApiKey.PRODUCE, ApiKey.FETCH)
    for what in ("request", "response")
}
"""What may be in a capture: an API, and which of its messages."""

_SIZE = struct.Struct(">i")
_CORRELATION_ID = struct.Struct(">i")
_MAGIC_POSITION = 16
_MAGICS = frozenset({0, 1, 2})


class Captured(NamedTuple):
    """A message out of a capture."""

    message: Message
    versions: tuple[int, ...]
    """Those that it may be of, which read it alike."""
    position: int
    size: int
    """Of the message and what is around it."""
    correlation_id: int | None = None
    client_id: str | None = None


class _Frame(NamedTuple):
    position: int
    data: bytes
    """Without its size."""


def versions_of(kind: str) -> range:
    """The versions that a message has."""
    return schema(_message(kind)).versions


def captured(kind: str, data: bytes, version: int | None) -> Iterator[Captured]:
    """Yields the messages of a kind.

    Args:
        kind: one of `KINDS`.
        data: a body, or frames: those of other APIs are passed over.
        version: of all of them, where it is known.

    Raises:
        MalformedFrameError: it is no such message, or ends inside one; with its position.
    """
    frames, end = _frames(data)
    whole = [found for frame in frames if (found := _of_frame(kind, frame, version)) is not None]
    if not whole:
        yield _of_body(kind, data, version)
        return
    yield from whole
    if end < len(data):
        raise MalformedFrameError(end, _cut(data, end))


def _cut(data: bytes, position: int) -> str:
    left = len(data) - position
    if left < _SIZE.size:
        return f"the capture ends {left} bytes into the size of a frame"
    (size,) = _SIZE.unpack_from(data, position)
    return f"a frame of {size} bytes, of which {left - _SIZE.size} are here"


def _frames(data: bytes) -> tuple[list[_Frame], int]:
    """Returns the whole frames that data begins with, and where the last of them ends."""
    frames, position = [], 0
    while len(data) - position >= _SIZE.size:
        (size,) = _SIZE.unpack_from(data, position)
        end = position + _SIZE.size + size
        if size <= 0 or end > len(data):
            break
        frames.append(_Frame(position, data[position + _SIZE.size : end]))
        position = end
    return frames, position


def _message(kind: str) -> type[Message]:
    api, what = KINDS[kind]
    return request_of(api) if what == "request" else response_of(api)


def _of_frame(kind: str, frame: _Frame, version: int | None) -> Captured | None:
    """The message of a frame; None if it is another."""
    api, what = KINDS[kind]
    size = _SIZE.size + len(frame.data)
    try:
        if what == "request":
            header, position = read_request_header(frame.data)
            known = versions_of(kind)
            if header.api_key != api or header.api_version not in known:
                return None
            message = _read(kind, header.api_version, frame.data, position)
            versions: tuple[int, ...] = (header.api_version,)
            correlation_id, client_id = header.correlation_id, header.client_id
        else:
            client_id = None
            (correlation_id,) = _CORRELATION_ID.unpack_from(frame.data)
            message, versions = _fitting(kind, frame.data, version, has_header=True)
    except (MalformedFrameError, struct.error):
        return None
    return Captured(message, versions, frame.position, size, correlation_id, client_id)


def _of_body(kind: str, data: bytes, version: int | None) -> Captured:
    message, versions = _fitting(kind, data, version, has_header=False)
    return Captured(message, versions, 0, len(data))


def _fitting(
    kind: str, data: bytes, version: int | None, *, has_header: bool
) -> tuple[Message, tuple[int, ...]]:
    """Reads a message in the version that fits.

    Raises:
        MalformedFrameError: none does, or several do which read it differently.
    """
    api, _ = KINDS[kind]
    found: list[tuple[int, Message]] = []
    furthest: tuple[int, MalformedFrameError] | None = None
    for number in reversed(versions_of(kind)) if version is None else (version,):
        try:
            position = _behind_header(data, api, number) if has_header else 0
            found.append((number, _read(kind, number, data, position)))
        except MalformedFrameError as error:
            if furthest is None or error.position > furthest[1].position:
                furthest = number, error
    plausible = [item for item in found if _has_batches(item[1])] or found
    if not plausible:
        number, fault = furthest or (0, MalformedFrameError(0, "there is nothing"))
        among = "of no version; " if version is None else ""
        what = f"no {kind.replace('-', ' ')}: {among}as version {number}, {fault.what}"
        raise MalformedFrameError(fault.position, what)
    first = plausible[0][1]
    if any(message != first for _, message in plausible):
        numbers = ", ".join(str(number) for number, _ in reversed(plausible))
        raise MalformedFrameError(
            0, f"the versions {numbers} read it, and not alike: say which by --api-version"
        )
    return first, tuple(sorted(number for number, _ in plausible))


def _behind_header(data: bytes, api: ApiKey, version: int) -> int:
    """Where a response begins behind its header."""
    position = _CORRELATION_ID.size
    if not is_flexible(api, version):
        return position
    try:
        return skip_tags(data, position)
    except IndexError:
        raise MalformedFrameError(position, "the frame ends inside its header") from None


def _read(kind: str, version: int, data: bytes, position: int) -> Message:
    message, end = decode(_message(kind), version)(data, position)
    if end != len(data):
        raise MalformedFrameError(end, f"{len(data) - end} bytes are behind its end")
    return message


def _has_batches(value: Struct) -> bool:
    """Whether all record sets look like such: what is read in a wrong version hardly does."""
    for field in schema(type(value)).fields:
        item = getattr(value, field.name)
        if field.kind is records:
            if item and not _looks_like_batches(item):
                return False
        elif not all(_has_batches(part) for part in _structs(item)):
            return False
    return True


def _looks_like_batches(data: bytes) -> bool:
    return len(data) > _MAGIC_POSITION and data[_MAGIC_POSITION] in _MAGICS


def _structs(item: Any) -> Sequence[Struct]:
    if isinstance(item, Struct):
        return [item]
    return [part for part in item if isinstance(part, Struct)] if isinstance(item, list) else []
