"""The last requests that the broker answered, for tests and for a person who looks."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    _Entry: TypeAlias = tuple[int, str, int, str, str, str, str, tuple[int, ...]]

__all__ = ["Journal", "RequestEntry"]

MAX_ENTRIES = 10_000
"""A test of some minutes fits; some 3 MiB of memory."""

MAX_NAME = 1_000
"""Characters of a name that a client has given itself: it may have 32,767."""


class RequestEntry(NamedTuple):
    """One request.

    Attributes:
        time_ms: when it arrived, by the broker's clock.
        api: name of the API, as in ``Produce``.
        version: of the request.
        client_id: of its header; what is too much of it is counted, as of the software's.
        host: address of the client.
        software_name, software_version: what the client says it is (KIP-511).
        errors: the distinct error codes of the answer, ascending; empty where it was not answered.
    """

    time_ms: int
    api: str
    version: int
    client_id: str
    host: str
    software_name: str
    software_version: str
    errors: tuple[int, ...]

    @property
    def error_names(self) -> tuple[str, ...]:
        """Kafka's names of its errors."""
        # Who serves requests needs no names.
        from ottla.protocol.error_code import name_of  # noqa: PLC0415

        return tuple(map(name_of, self.errors))


class Journal:
    """A bounded list of requests, oldest first."""

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        # A request waits for no class of its own: those are made when somebody looks.
        self._entries: deque[_Entry] = deque(maxlen=max_entries)
        self.dropped = 0
        """How many older requests were forgotten."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[RequestEntry]:
        return iter(self.entries())

    def add(self, entry: _Entry) -> None:
        """Remembers a request: a `RequestEntry`, or the same as a plain tuple."""
        entries = self._entries
        if len(entry[3]) + len(entry[5]) + len(entry[6]) > MAX_NAME:
            entry = _with_short_names(entry)
        if len(entries) == entries.maxlen:
            self.dropped += 1
        entries.append(entry)

    def entries(self) -> tuple[RequestEntry, ...]:
        """Returns what is remembered."""
        return tuple(map(RequestEntry._make, self._entries))

    def clear(self) -> None:
        """Forgets everything."""
        self._entries.clear()
        self.dropped = 0


def _with_short_names(entry: _Entry) -> _Entry:
    # Hardly any client has such names.
    from ottla.text import shortened  # noqa: PLC0415

    time_ms, api, version, client_id, host, *software, errors = entry
    name, software_version = (shortened(text, MAX_NAME) for text in software)
    short_id = shortened(client_id, MAX_NAME)
    return time_ms, api, version, short_id, host, name, software_version, errors
