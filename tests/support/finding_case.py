"""The shape of the cases in tests/findings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ottla.audit import Severity
from support.small_log import PARTITION


@dataclass(frozen=True)
class Found:
    """A finding without its sentences.

    `position` is bytes from the start of `file`, which is relative to the directory of the case;
    `offsets` are the first and the last one concerned.
    """

    name: str
    severity: Severity
    file: str
    topic_partition: str | None = PARTITION
    position: int | None = None
    offsets: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A broken log and its clean twin: the same log without the fault.

    `clean` and `broken` write into an empty directory. `found` is everything that an audit of the
    broken log finds, in the order of files and positions. `meanwhile` breaks it while the audit
    reads the first file.
    """

    clean: Callable[[Path], None]
    broken: Callable[[Path], None]
    found: Sequence[Found]
    meanwhile: Callable[[Path], None] | None = None
