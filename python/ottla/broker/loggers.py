"""The loggers of a broker.

There are two, by names that Kafka has for the same: `ROOT` writes what the broker says of peers and
the system, all of it warnings; `REQUESTS` the log of requests, where one is kept, at DEBUG. Levels
are those of the moment: a restart forgets them, as Kafka's does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["LEVELS", "REQUESTS", "ROOT", "Loggers"]

ROOT: Final = "root"
REQUESTS: Final = "kafka.request.logger"
LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
"""From all to little."""


class Loggers:
    """Levels by name. One without a level of its own has that of the root."""

    def __init__(self) -> None:
        self._levels: dict[str, str | None] = {ROOT: "INFO"}

    def add(self, name: str, level: str) -> None:
        """A logger begins to write."""
        self._levels[name] = level

    def levels(self) -> dict[str, str]:
        """Returns the levels in force."""
        root = self._levels[ROOT] or "INFO"
        return {name: level or root for name, level in self._levels.items()}

    def shows(self, name: str, level: str) -> bool:
        """Whether a logger writes lines of a level."""
        return LEVELS.index(self.levels()[name]) <= LEVELS.index(level)

    def replace(self, levels: Mapping[str, str | None]) -> None:
        """Some loggers get other levels, or that of the root."""
        self._levels.update(levels)

    def warning(self, write: Callable[[str], None]) -> Callable[[str], None]:
        """Returns what writes a line of the root as long as that shows warnings."""

        def write_warning(line: str) -> None:
            if self.shows(ROOT, "WARN"):
                write(line)

        return write_warning
