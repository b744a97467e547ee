"""The states of a member of a classic group, and which may follow which.

    OUT ─▸ PREPARING ─▸ JOINING ─▸ ASSIGNING ─▸ SYNCING ─▸ STABLE ─▸ PREPARING …
                           └────────────────────▸ ┘
                           ▴  └──────┴───────────┴─▸ JOINING   (refused, lost, or asked again)

Any of them may become LEAVING, which OUT follows; OUT, where the time between two polls is over;
and FAILED, which only LEAVING follows.

| state     | what it waits for                                    | heartbeats | may commit |
| --------- | ---------------------------------------------------- | ---------- | ---------- |
| OUT       | a subscription, and a poll                           | no         | no         |
| PREPARING | the consumer, which gives up what it must first      | yes        | yes        |
| JOINING   | the coordinator, with the answer to a JoinGroup      | no         | no         |
| ASSIGNING | metadata of all topics that the leader has to assign | yes        | no         |
| SYNCING   | the answer to a SyncGroup                            | yes        | no         |
| STABLE    | nothing; a heartbeat asks for the next generation    | yes        | yes        |
| LEAVING   | the consumer, then the answer to a LeaveGroup        | no         | yes        |
| FAILED    | that the consumer is closed                          | no         | no         |
"""

from __future__ import annotations

from enum import Enum

__all__ = ["BEATING", "COMMITTING", "State"]


class State(Enum):
    """What a member is doing."""

    OUT = "out"
    PREPARING = "preparing"
    JOINING = "joining"
    ASSIGNING = "assigning"
    SYNCING = "syncing"
    STABLE = "stable"
    LEAVING = "leaving"
    FAILED = "failed"


BEATING = {State.PREPARING, State.ASSIGNING, State.SYNCING, State.STABLE}
COMMITTING = {State.PREPARING, State.STABLE, State.LEAVING}
