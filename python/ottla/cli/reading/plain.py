"""Values of libraries as JSON."""

from __future__ import annotations

import math
from typing import Any

from ottla.audit.result.tables import jsonable
from ottla.cli.record_text import JsonText
from ottla.errors import SchemaError
from ottla.text import json_text

__all__ = ["plain_json"]


def plain_json(value: Any) -> JsonText:
    r"""Returns a value as JSON: moments by ISO 8601, bytes as JSON lines have them, others as text.

    >>> plain_json({"at": __import__("datetime").date(2026, 11, 21), "x": [1.5, b"\xff"]})
    '{"at": "2026-11-21", "x": [1.5, {"base64": "/w=="}]}'

    Raises:
        SchemaError: it is nested too deeply.
    """
    try:
        return JsonText(json_text(_plain(value)))
    except RecursionError:
        raise SchemaError("it is nested too deeply") from None


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return jsonable(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)
