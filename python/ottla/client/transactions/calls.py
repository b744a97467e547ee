"""The calls of a transactional producer that wait.

One that initializes, commits or aborts has the producer to itself. When its time is over, it goes
on: the same call made again waits for the same end, and no other is taken before. Offsets are sent
beside others; when their time is over, nobody waits for them, and the transaction may be ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.errors import IllegalStateError, KafkaTimeoutError, ProducerClosedError
from ottla.client.pending import Pending

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Calls"]


class Calls:
    """Those of one producer."""

    def __init__(self) -> None:
        self._only: Pending | None = None
        self._timed_out: Pending | None = None
        self._beside: list[Pending] = []
        self._is_closed = False

    def begin(self, name: str) -> Pending:
        """Begins one that has the producer to itself."""
        self._only = Pending(name)
        return self._only

    def begin_beside(self, name: str) -> Pending:
        """Begins one beside others."""
        pending = Pending(name)
        self._beside.append(pending)
        return pending

    def resume(self, name: str) -> Pending | None:
        """Returns the call of this name that timed out, to go on waiting for it.

        Raises:
            IllegalStateError: another one is under way.
        """
        self._require_not_closed(name)
        if self._timed_out is None or self._timed_out.name != name:
            self.require_none(name)
            return None
        resumed, self._timed_out = self._timed_out, None
        return resumed

    def require_none(self, name: str) -> None:
        """Refuses a call while one has the producer to itself.

        Raises:
            IllegalStateError: one has.
        """
        self._require_not_closed(name)
        if self._only is not None:
            raise IllegalStateError(
                f"cannot {name}: {self._only.name} is under way; call {self._only.name} again"
            )
        self._timed_out = None

    def time_out(self, pending: Pending) -> KafkaTimeoutError:
        """Nobody waits for a call any more, for now; returns what to raise."""
        late = f"{pending.name} took longer than max_block_ms"
        if pending in self._beside:
            self._beside.remove(pending)
            return KafkaTimeoutError(
                f"{late}; whether the transaction has the offsets is not known: abort it, or call "
                f"{pending.name} again"
            )
        self._timed_out = pending
        return KafkaTimeoutError(
            f"{late}; what it comes to is not known: call {pending.name} again, or close the "
            "producer"
        )

    def end(self, pending: Pending | None) -> None:
        """A call has done what it should."""
        if pending is None:
            return
        self._forget(pending)
        pending.end()

    def fail(self, error_of: Callable[[str], BaseException]) -> None:
        """All have failed: each with its own error, by its name."""
        for pending in self._all():
            self._forget(pending)
            pending.end(error_of(pending.name))
        self._timed_out = None

    def fail_beside(self, error_of: Callable[[str], BaseException]) -> None:
        """Those beside others have failed."""
        for pending in [*self._beside]:
            self._forget(pending)
            pending.end(error_of(pending.name))

    def close(self) -> None:
        """Releases who waits, and takes no call any more."""
        self._is_closed = True
        self.fail(lambda name: ProducerClosedError(f"the producer was closed during {name}"))

    def _all(self) -> list[Pending]:
        return [*self._beside] + ([] if self._only is None else [self._only])

    def _forget(self, pending: Pending) -> None:
        if pending is self._only:
            self._only = None
        elif pending in self._beside:
            self._beside.remove(pending)

    def _require_not_closed(self, name: str) -> None:
        if self._is_closed:
            raise ProducerClosedError(f"cannot {name}: the producer is closed")
