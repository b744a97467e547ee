"""What happens to a broker beside its clients: the faults of its API, and time that jumps."""

from collections.abc import Callable
from random import Random

from ottla.broker.api import APIS
from ottla.broker.faults import Fault
from ottla.protocol.api_key import ApiKey
from ottla.protocol.error_code import ErrorCode
from support.simulation.history import History
from support.simulation.world import World

_MOST_MS = 15_000
_COUNT = 8
_MOST_DELAY_MS = 1500
"""An answer comes before its client has given up: what it asks again comes after."""
_MOST_JUMP_MS = 90_000

_OF_LEADERS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS)
_OF_COORDINATORS = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
_ERRORS = {
    ApiKey.PRODUCE: _OF_LEADERS,
    ApiKey.FETCH: (ErrorCode.NOT_LEADER_OR_FOLLOWER,),
    ApiKey.OFFSET_COMMIT: _OF_COORDINATORS,
    ApiKey.JOIN_GROUP: _OF_COORDINATORS,
    ApiKey.SYNC_GROUP: _OF_COORDINATORS,
    ApiKey.HEARTBEAT: _OF_COORDINATORS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _OF_COORDINATORS,
    ApiKey.INIT_PRODUCER_ID: _OF_COORDINATORS,
    ApiKey.ADD_PARTITIONS_TO_TXN: _OF_COORDINATORS,
    ApiKey.END_TXN: _OF_COORDINATORS,
    ApiKey.TXN_OFFSET_COMMIT: _OF_COORDINATORS,
}
"""What a client asks again for, by API."""


def faults(world: World, random: Random) -> None:
    """Has requests fail, be lost, delayed and held."""
    for _ in range(_COUNT):
        world.after(random.randrange(_MOST_MS), _fault(world, random))


def jumps(world: World, random: Random, history: History) -> None:
    """Has time jump, further than sessions and transactions live."""

    def jump() -> None:
        if world.running:
            history.has_jumped = True
            world.jump(random.randrange(_MOST_JUMP_MS))

    for _ in range(2):
        world.after(random.randrange(_MOST_MS), jump)


def _fault(world: World, random: Random) -> Callable[[], None]:
    key = random.choice(list(_ERRORS))
    times, is_after, error = random.randrange(1, 4), random.random() < 1 / 2, 0
    kind, delay_ms = random.choice(("error", "disconnect", "delay", "pause")), 0
    if kind == "error":
        error = random.choice(_ERRORS[key])
    elif kind != "disconnect":
        delay_ms = random.randrange(1, _MOST_DELAY_MS)

    def strike() -> None:
        broker = world.broker
        fault = broker.faults.add(
            Fault(
                APIS[key],
                error=error,
                times=times,
                after=is_after and kind != "pause",
                disconnect=kind == "disconnect",
                delay_ms=delay_ms if kind == "delay" else 0,
            )
        )
        if kind == "pause":
            fault.is_paused = True

            def release() -> None:
                fault.is_paused = False
                broker.faults.remove(fault)
                broker.waiting.wake(("fault", fault))

            world.after(delay_ms, release)

    return strike
