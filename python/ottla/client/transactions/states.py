"""The states of a transactional producer, and which may follow which.

    UNINITIALIZED ─▸ INITIALIZING ─▸ READY ─▸ IN_TRANSACTION ─▸ COMMITTING ─▸ READY
                                                   │    └────────▸ ABORTING ─▸ READY
                                                   └─▸ ABORTABLE_ERROR ─▸ ABORTING

Any of them may become FATAL_ERROR, which none follows. A second initialization is allowed wherever
no commit or abort is under way: it ends what was open (KIP-691). A commit or an abort after which
the producer needs another epoch passes through INITIALIZING.
"""

from __future__ import annotations

from enum import Enum

from ottla.client.errors import IllegalStateError

__all__ = ["State", "require_transition"]


class State(Enum):
    """What a transactional producer is doing."""

    UNINITIALIZED = "not initialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    COMMITTING = "committing"
    ABORTING = "aborting"
    ABORTABLE_ERROR = "in a transaction that has to be aborted"
    FATAL_ERROR = "failed, and has to be closed"


_FROM = {
    State.UNINITIALIZED: {State.READY, State.ABORTABLE_ERROR},
    State.INITIALIZING: {
        State.UNINITIALIZED,
        State.READY,
        State.IN_TRANSACTION,
        State.COMMITTING,
        State.ABORTING,
        State.ABORTABLE_ERROR,
    },
    State.READY: {State.INITIALIZING, State.COMMITTING, State.ABORTING},
    State.IN_TRANSACTION: {State.READY},
    State.COMMITTING: {State.IN_TRANSACTION},
    State.ABORTING: {State.IN_TRANSACTION, State.ABORTABLE_ERROR},
    State.ABORTABLE_ERROR: {
        State.IN_TRANSACTION,
        State.COMMITTING,
        State.ABORTABLE_ERROR,
        State.INITIALIZING,
    },
    State.FATAL_ERROR: set(State),
}


def require_transition(now: State, then: State, doing: str) -> None:
    """Refuses what may not follow.

    Raises:
        IllegalStateError: ``then`` may not follow ``now``.
    """
    if now not in _FROM[then]:
        raise IllegalStateError(f"cannot {doing}: the producer is {now.value}")
