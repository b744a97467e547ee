"""What running a command line gives."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Ran:
    """Exit status and both outputs."""

    status: int
    out: str
    err: str


class Run(Protocol):
    """Runs `ottla` with arguments; the fixtures `run` and `spawn` of the command line's tests."""

    def __call__(self, *arguments: object) -> Ran: ...
