"""What can be asked of the control endpoint: a row of one table each, checked by it."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OPERATIONS", "Operation"]

TEXT = (str,)
WHOLE = (int,)
NUMBER = (int, float)
FLAG = (bool,)
OBJECT = (dict,)
BYTES = (bytes,)
"""Texts of base64, handed on as what they say."""
HEADERS = (list,)
TEXT_OR_WHOLE = (str, int)

_WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "a flag",
    dict: "an object",
    bytes: "base64",
    list: "a list of pairs of a name and base64",
}
_MAX_WHOLE = 1 << 53
"""Larger ones are not the same in every language's JSON."""


class Operation(NamedTuple):
    """An operation.

    Attributes:
        name: of `ottla.net.operations.Operations`, and of `ottla.testing.Broker` mostly.
        arguments: types that each may have.
        required: those that have no default.
        changes: whether it does anything.
        waits: whether its answer may come later.
    """

    name: str
    arguments: Mapping[str, tuple[type, ...]]
    required: tuple[str, ...] = ()
    changes: bool = False
    waits: bool = False

    def described(self) -> dict[str, str]:
        """Returns what its arguments are, in words."""
        return {
            name: _expected(types) + (", required" if name in self.required else "")
            for name, types in self.arguments.items()
        }

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns arguments as they are handed on; null is as good as nothing.

        Raises:
            ValueError: one that there is not, that is missing, or of another type.
        """
        for name, value in given.items():
            types = self.arguments.get(name)
            if types is None:
                known = ", ".join(self.arguments) or "none"
                raise ValueError(f"{self.name} has no argument {name!r}: arguments are {known}")
            if value is not None and not _is_one(value, types):
                raise ValueError(f"{name} is to be {_expected(types)}, not {value!r:.100}")
        found = {
            name: _handed_on(value, self.arguments[name])
            for name, value in given.items()
            if value is not None
        }
        missing = [name for name in self.required if name not in found]
        if missing:
            raise ValueError(f"{self.name} needs {' and '.join(missing)}")
        return found


def _is_one(value: object, types: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        # To Python, a flag is a whole number.
        return bool in types
    if isinstance(value, int):
        return (int in types or float in types) and abs(value) < _MAX_WHOLE
    if types == BYTES:
        return _is_base64(value)
    if types == HEADERS:
        return isinstance(value, list) and all(map(_is_header, value))
    return isinstance(value, types)


def _is_base64(value: object) -> bool:
    try:
        return isinstance(value, str) and b64decode(value, validate=True) is not None
    except ValueError:
        return False


def _is_header(value: object) -> bool:
    if not isinstance(value, list) or [isinstance(each, str) for each in value[:1]] != [True]:
        return False
    return len(value) == 2 and (value[1] is None or _is_base64(value[1]))  # noqa: PLR2004 - a pair


def _handed_on(value: Any, types: tuple[type, ...]) -> Any:
    if types == BYTES:
        return b64decode(value)
    if types == HEADERS:
        return [(name, None if data is None else b64decode(data)) for name, data in value]
    return value


def _expected(types: tuple[type, ...]) -> str:
    return _WORDS[float] if float in types else " or ".join(_WORDS[each] for each in types)


_FAULT = {"fault": WHOLE}

OPERATIONS: Mapping[str, Operation] = {
    row.name: row
    for row in (
        Operation("operations", {}),
        Operation("bootstrap_servers", {}),
        Operation("topics", {}),
        Operation(
            "create_topic",
            {"name": TEXT, "partitions": WHOLE, "configs": OBJECT},
            required=("name",),
            changes=True,
        ),
        Operation("compact", {"topic": TEXT}, changes=True),
        Operation("delete_topic", {"name": TEXT}, required=("name",), changes=True),
        Operation(
            "produce",
            {
                "topic": TEXT,
                "value": BYTES,
                "key": BYTES,
                "partition": WHOLE,
                "headers": HEADERS,
                "timestamp": WHOLE,
            },
            required=("topic",),
            changes=True,
        ),
        Operation(
            "records",
            {"topic": TEXT, "partition": WHOLE, "offset": WHOLE, "max_bytes": WHOLE},
            required=("topic",),
        ),
        Operation(
            "log",
            {"topic": TEXT, "partition": WHOLE, "offset": WHOLE, "max_bytes": WHOLE},
            required=("topic",),
        ),
        Operation("logs", {}),
        Operation(
            "producers", {"topic": TEXT, "partition": WHOLE}, required=("topic", "partition")
        ),
        Operation("requests", {"last": WHOLE}),
        Operation("request_count", {}),
        Operation("groups", {}),
        Operation("delete_group", {"group": TEXT}, required=("group",), changes=True),
        Operation("expire", {"group": TEXT}, required=("group",), changes=True),
        Operation("transactions", {}),
        Operation("now_ms", {}),
        Operation("advance", {"seconds": NUMBER}, required=("seconds",), changes=True),
        Operation("freeze", {}, changes=True),
        Operation("resume", {}, changes=True),
        Operation(
            "fail",
            {
                "api": TEXT_OR_WHOLE,
                "error": TEXT_OR_WHOLE,
                "topic": TEXT,
                "partition": WHOLE,
                "group": TEXT,
                "transactional_id": TEXT,
                "client": TEXT,
                "times": WHOLE,
                "after": FLAG,
                "disconnect": FLAG,
                "delay": NUMBER,
                "corrupt": FLAG,
                "observe": FLAG,
            },
            changes=True,
        ),
        Operation(
            "fail_disk",
            {"kind": TEXT, "topic": TEXT, "partition": WHOLE},
            required=("kind",),
            changes=True,
        ),
        Operation("faults", {}),
        Operation("hits", _FAULT, required=("fault",)),
        Operation("pause", _FAULT, required=("fault",), changes=True),
        Operation("release", _FAULT, required=("fault",), changes=True),
        Operation("remove", _FAULT, required=("fault",), changes=True),
        Operation(
            "wait",
            {**_FAULT, "hits": WHOLE, "timeout_s": NUMBER},
            required=("fault",),
            waits=True,
        ),
        Operation(
            "wait_for",
            {
                "group": TEXT,
                "state": TEXT,
                "members": WHOLE,
                "transactional_id": TEXT,
                "topic": TEXT,
                "partition": WHOLE,
                "records": WHOLE,
                "timeout_s": NUMBER,
            },
            waits=True,
        ),
        Operation("stop", {}, changes=True),
    )
}
"""By name."""
