"""Client quotas: kept and described (KIP-546). Nobody is throttled by them.

An entity is a user, a client id, both, or an address; a name of `None` is the default of its type.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.keeper import Entity, Keeper
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "MATCH_ANY",
    "MATCH_DEFAULT",
    "MATCH_EXACT",
    "MAX_ENTITIES",
    "ClientQuotas",
    "Component",
    "Entity",
]

MAX_ENTITIES: Final = 100_000
"""Each takes some 500 bytes."""

MATCH_EXACT: Final = 0
MATCH_DEFAULT: Final = 1
MATCH_ANY: Final = 2

_ADDRESS = "ip"
_TYPES: Final = frozenset({"user", "client-id", _ADDRESS})
_KEYS_OF_CLIENTS: Final = frozenset(
    {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
)
_KEYS_OF_ADDRESSES: Final = frozenset({"connection_creation_rate"})
_WHOLE_KEYS: Final = frozenset(
    {"producer_byte_rate", "consumer_byte_rate", "connection_creation_rate"}
)

Outcome = tuple[int, str | None]
"""An error code, and what to say about it."""

_DONE: Final[Outcome] = (ErrorCode.NONE, None)


class Component(NamedTuple):
    """What a filter asks of one type: an exact name, the default, or any name."""

    entity_type: str
    match_type: int
    match: str | None

    def fault(self) -> Outcome:
        """Returns an error code and message, `NONE` for a component that can be asked."""
        if not self.entity_type:
            return ErrorCode.INVALID_REQUEST, "Invalid empty entity type."
        if self.entity_type not in _TYPES:
            text = f"Custom entity type {self.entity_type} is not supported."
            return ErrorCode.UNSUPPORTED_VERSION, text
        if self.match_type not in {MATCH_EXACT, MATCH_DEFAULT, MATCH_ANY}:
            return ErrorCode.INVALID_REQUEST, f"Unknown match type {self.match_type}."
        if (self.match is not None) != (self.match_type == MATCH_EXACT):
            return ErrorCode.INVALID_REQUEST, "A name goes with an exact match, and with no other."
        return _DONE

    def takes(self, entity: Mapping[str, str | None]) -> bool:
        """Whether an entity is meant."""
        if self.entity_type not in entity:
            return False
        return self.match_type == MATCH_ANY or entity[self.entity_type] == self.match


class ClientQuotas:
    """Quotas by entity: those that were kept, to begin with."""

    def __init__(self, keeper: Keeper | None = None) -> None:
        self._keeper = keeper or Keeper()
        self._values = {entity: {**values} for entity, values in self._keeper.quotas().items()}

    def describe(
        self, components: Sequence[Component], *, strict: bool
    ) -> tuple[Outcome, list[tuple[Entity, Mapping[str, float]]]]:
        """Returns an error, and the quotas of entities that have all components.

        Args:
            strict: leave out entities that have a type beside those of the components.
        """
        types = [component.entity_type for component in components]
        if len(set(types)) < len(types):
            text = "An entity type cannot appear more than once in the filter."
            return (ErrorCode.INVALID_REQUEST, text), []
        fault = next((fault for fault in map(Component.fault, components) if fault[0]), None)
        if fault is not None:
            return fault, []
        return _DONE, list(self._matching(components, strict=strict))

    def _matching(
        self, components: Sequence[Component], *, strict: bool
    ) -> Iterator[tuple[Entity, Mapping[str, float]]]:
        for entity, values in self._values.items():
            names = dict(entity)
            is_taken = all(component.takes(names) for component in components)
            if is_taken and not (strict and len(names) > len(components)):
                yield entity, values

    def alter(
        self,
        entity: Sequence[tuple[str, str | None]],
        changes: Mapping[str, float | None],
        *,
        validate_only: bool,
    ) -> Outcome:
        """Sets quotas, or removes them by `None`: all of them, or none if one is at fault."""
        key = tuple(sorted(entity, key=lambda part: part[0]))
        fault = _fault_of_entity(key)
        if fault is None:
            allowed = _KEYS_OF_ADDRESSES if key[0][0] == _ADDRESS else _KEYS_OF_CLIENTS
            faults = (_fault_of_value(name, value, allowed) for name, value in changes.items())
            fault = next((text for text in faults if text is not None), None)
        if fault is not None:
            return ErrorCode.INVALID_REQUEST, fault
        if key not in self._values and len(self._values) >= MAX_ENTITIES:
            return ErrorCode.POLICY_VIOLATION, f"There are {MAX_ENTITIES} entities already."
        if not validate_only:
            self._apply(key, changes)
        return _DONE

    def _apply(self, entity: Entity, changes: Mapping[str, float | None]) -> None:
        self._keeper.set_quotas(entity, changes)
        values = {**self._values.get(entity, {})}
        for name, value in changes.items():
            if value is None:
                values.pop(name, None)
            else:
                values[name] = value
        if values:
            self._values[entity] = values
        else:
            self._values.pop(entity, None)


def _fault_of_entity(entity: Entity) -> str | None:
    types = [entity_type for entity_type, _ in entity]
    if not types:
        return "Invalid empty client quota entity."
    if len(set(types)) < len(types):
        return "A client quota entity has each type once."
    for entity_type, name in entity:
        if entity_type not in _TYPES:
            return f"Unhandled client quota entity type: {entity_type}"
        if name == "":
            return f"Empty {entity_type} not supported"
    if _ADDRESS in types and len(types) > 1:
        return "Invalid quota entity combination, ip cannot be combined with user or client-id."
    return None


def _fault_of_value(name: str, value: float | None, allowed: frozenset[str]) -> str | None:
    if name not in allowed:
        return f"Invalid configuration key {name}"
    if value is None:
        return None
    if not isfinite(value) or value < 0:
        return f"Configuration {name} must be a number from 0 on"
    if name in _WHOLE_KEYS and not value.is_integer():
        return f"Configuration {name} must be a whole number"
    return None
