"""Moments as options have them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import click

__all__ = ["TIME", "Time"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EXPECTED = "a time such as 2026-11-21, 2026-11-21T10:05:57Z or 1795255557001 (ms since 1970)"

_MISTAKEN = range(1000, 100_000_000_000)
"""Numbers that are years, days as digits or seconds rather than ms."""


class Time(click.ParamType[int]):
    """A moment in ms since 1970: by ISO 8601, in UTC unless it says otherwise, or as a number."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See `click.ParamType`."""
        if isinstance(value, int):
            return value
        text = str(value)
        try:
            number = int(text)
        except ValueError:
            return self._of_text(text, param, ctx)
        if not 0 <= number < 2**63 or number in _MISTAKEN:
            self.fail(f"{text} is not {_EXPECTED}.", param, ctx)
        return number

    def _of_text(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        # Python 3.10 knows no Z.
        zoned = f"{text[:-1]}+00:00" if text[-1:] in {"Z", "z"} else text
        try:
            moment = datetime.fromisoformat(zoned)
        except ValueError:
            self.fail(f"{text!r} is not {_EXPECTED}.", param, ctx)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        return (moment - _EPOCH) // timedelta(milliseconds=1)


TIME = Time()
