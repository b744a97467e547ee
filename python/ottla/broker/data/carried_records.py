"""Records of `__cluster_metadata` that have no effect here, carried on into snapshots as they are.

A controller of Kafka that reads a snapshot finds its brokers, controllers and delegation tokens in
it. Of each broker and controller the last registration is carried, with what followed it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.protocol.metadata_record import whose

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CarriedRecords"]

_REGISTER_BROKER: Final = 0
_UNREGISTER_BROKER: Final = 1
_OF_BROKER: Final = frozenset({7, 8, 17})
_REGISTER_CONTROLLER: Final = 27
_MIGRATION: Final = 21
_TOKENS: Final = frozenset({10, 26})
_LATER: Final = 29
_NOTHING: Final = frozenset({20, 28})
"""No-operations, and what was forgotten of replicas: each start says anew which are eligible."""


class CarriedRecords:
    """Records by what they are about."""

    MISSED: Final = _TOKENS
    """Kinds that a user may miss here."""

    def __init__(self) -> None:
        self._records: dict[tuple[int, int], list[bytes]] = {}

    def take(self, kind: int, value: bytes) -> bool:
        """Takes the value of a record; returns whether its kind is among those that are carried.

        Raises:
            MalformedFrameError: it is not whole.
        """
        if kind == _REGISTER_BROKER:
            self._records[kind, whose(value)] = [value]
        elif kind == _UNREGISTER_BROKER:
            self._records.pop((_REGISTER_BROKER, whose(value)), None)
        elif kind in _OF_BROKER:
            # Of a broker that is not registered there is nothing to change.
            self._records.get((_REGISTER_BROKER, whose(value)), []).append(value)
        elif kind == _REGISTER_CONTROLLER:
            self._records[kind, whose(value)] = [value]
        elif kind == _MIGRATION:
            self._records[kind, 0] = [value]
        elif kind in _TOKENS:
            self._records.setdefault((min(_TOKENS), 0), []).append(value)
        elif kind == _LATER:
            self._records.setdefault((kind, 0), []).append(value)
        elif kind not in _NOTHING:
            return False
        return True

    def __iter__(self) -> Iterator[bytes]:
        """Their values."""
        for _, values in sorted(self._records.items()):
            yield from values
