"""What became of a call, to be told to another thread, or without ending this one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Outcome", "outcome_of"]

Result = TypeVar("Result")


class Outcome(Generic[Result]):
    """A result or an error."""

    __slots__ = ("_result", "error")

    def __init__(self, result: Result | None = None, error: BaseException | None = None) -> None:
        self._result = result
        self.error = error

    def get(self) -> Result:
        """Returns the result, or raises the error."""
        if self.error is not None:
            raise self.error
        return self._result  # type: ignore[return-value] # there is no error, so there is a result


def outcome_of(call: Callable[[], Result]) -> Outcome[Result]:
    """Calls, and returns what became of it."""
    try:
        return Outcome(call())
    except BaseException as error:  # noqa: BLE001 - whoever asked is told, whatever it is
        return Outcome(error=error)
