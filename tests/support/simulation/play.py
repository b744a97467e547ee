"""Seeds that are played and judged: over a bad network, with kills, and with power cuts.

``python -m support.simulation.play KIND DIRECTORY SEED…`` plays seeds; for power cuts it has to be
started with the compiled `disk.c` preloaded.
"""

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

from ottla.broker.broker import Broker
from support.simulation.checker import (
    Logs,
    check,
    check_offsets_of_transactions,
    check_power_cut,
    check_readings,
    ends_of,
)
from support.simulation.clients import (
    PARTITIONS,
    TOPIC,
    Model,
    committer,
    hasty_producer,
    idempotent_producer,
    reader,
    transactional_producer,
    vanishing_producer,
)
from support.simulation.disk import Disk
from support.simulation.history import History
from support.simulation.kept import (
    CONFIGS,
    check_kept,
    check_starts,
    deleting_producer,
    keyed_producer,
    starts_of,
)
from support.simulation.members import classic_member, new_member
from support.simulation.stage import Starts, a_broker, logs_of, whole_batches
from support.simulation.weather import faults, jumps
from support.simulation.world import World

HOUR_MS = 3_600_000
_CRASHES = 4
_MOST_MS_TO_CRASH = 20_000
_CHECK_MS = 3000
SYNCED = {"flush.messages": "1"}
"""Topics of the level at which an answer says that records are on the disk."""


def play(seed: int, world: World, history: History) -> None:
    """Play the history of a seed."""
    model = Model(
        Random(seed + 1),
        history,
        is_new=seed % 2 == 0,
        clock=lambda: world.now_ms,
        topic_id=lambda: world.broker.image.topics[TOPIC].topic_id,
    )
    world.start(idempotent_producer(model, "first", 12))
    world.start(idempotent_producer(model, "second", 12))
    world.start(transactional_producer(model, "payments", 8, is_alone=True))
    # Two of one name: each start of one fences the other.
    world.start(transactional_producer(model, "shared", 3))
    world.start(transactional_producer(model, "shared", 3))
    world.start(vanishing_producer(model, "gone"))
    for number in range(6):
        world.start(hasty_producer(model, f"hasty-{number}"))
    for partition in range(PARTITIONS):
        world.start(reader(model, partition, 20, is_committed=True))
        world.start(reader(model, partition, 10, is_committed=False))
    world.start(committer(model, "readers", 8))
    if seed % 3:
        faults(world, Random(seed + 3))
    if seed % 3 == 1:
        jumps(world, Random(seed + 4), history)
    for number in range(2):
        world.start(classic_member(model, "classic", f"classic-{number}", 3))
    for number in range(3):
        world.start(new_member(model, "new", f"new-{number}", 8))
    keyed = replace(model, random=Random(seed + 5))
    world.start(keyed_producer(keyed, "state"))
    world.start(deleting_producer(keyed, "event"))
    # What is old is gone in the end, so that it is looked at before.
    for delay_ms in range(_CHECK_MS, _MOST_MS_TO_CRASH, _CHECK_MS):
        world.after(delay_ms, lambda: check_kept(history, world.broker))
    world.run(HOUR_MS)
    # What was left open times out.
    world.pass_time(HOUR_MS)


def judge(history: History, broker: Broker) -> None:
    """Hold a history against what the broker has in the end."""
    logs = logs_of(broker)
    check(history, logs)
    check_kept(history, broker)
    kept = broker.groups.store.offsets.get("of-payments", TOPIC, 0)
    offset = None if kept is None else kept.offset
    check_offsets_of_transactions(history, logs, "payments", offset)
    for index in range(PARTITIONS):
        partition = broker.image.partition(TOPIC, index)
        assert partition is not None
        _, last_stable_offset, high_watermark, _ = broker.plane.offsets(partition.handle)
        assert last_stable_offset == high_watermark, "a transaction is open for ever"


def hold(seed: int) -> None:
    """Play and judge a seed."""
    world, history = World(seed, a_broker), History()
    play(seed, world, history)
    judge(history, world.broker)


def hold_with_crashes(seed: int, path: Path) -> None:
    """Play and judge a seed, with crashes between."""
    starts, history = Starts(path), History()
    with starts.kept:
        world = World(seed, starts)

        def crash() -> None:
            if world.running:
                before = starts_of(world.broker)
                world.crash()
                check_starts(before, starts_of(world.broker))
                check_kept(history, world.broker)

        for _ in range(_CRASHES):
            world.after(world.random.randrange(_MOST_MS_TO_CRASH), crash)
        play(seed, world, history)
        assert world.crashes
        judge(history, world.broker)
        # What the last broker knows, another knows again.
        world.crash()
        judge(history, world.broker)


def hold_with_power_cuts(seed: int, path: Path) -> None:
    """Play and judge a seed, with power cuts between; every second one has synced topics."""
    is_synced = seed % 4 < 2
    path.mkdir()
    disk, history = Disk(path, Random(seed + 2)), History()
    starts = Starts(path, disk, SYNCED if is_synced else {})
    try:
        with starts.kept:
            world = World(seed, starts, loses_answers=True)

            def cut() -> None:
                if world.running:
                    _cut(world, history, disk, is_synced=is_synced)

            for _ in range(_CRASHES):
                delay_ms = world.random.randrange(_MOST_MS_TO_CRASH)
                world.after(delay_ms, lambda: world.at_work(cut))
            play(seed, world, history)
            judge(history, world.broker)
            _cut(world, history, disk, is_synced=is_synced)
            judge(history, world.broker)
    finally:
        disk.close()
    shutil.rmtree(path)


def _cut(world: World, history: History, disk: Disk, *, is_synced: bool) -> None:
    before, starts = logs_of(world.broker), starts_of(world.broker)
    check_readings(history, before)
    sure = _sure(disk)
    world.crash()
    after = logs_of(world.broker)
    ends = ends_of(check_power_cut(before, sure, after))
    history.unread(ends)
    if not is_synced:
        history.lose(ends | {(topic, 0): _end_of(world.broker, topic) for topic in CONFIGS})
    check_starts(starts, starts_of(world.broker))
    check_kept(history, world.broker)


def _end_of(broker: Broker, topic: str) -> int:
    partition = broker.image.partition(topic, 0)
    assert partition is not None
    return broker.plane.offsets(partition.handle)[3]


def _sure(disk: Disk) -> Logs:
    """What of the topic's logs was synced."""
    data: dict[tuple[str, int], bytes] = {(TOPIC, index): b"" for index in range(PARTITIONS)}
    for path, found in sorted(disk.synced_bytes().items()):
        directory, _, name = path.rpartition("/")
        for topic, index in data:
            if directory == f"{topic}-{index}" and name.endswith(".log"):
                data[topic, index] += found
    return {place: whole_batches(found) for place, found in data.items()}


KINDS = {
    "network": lambda seed, _path: hold(seed),
    "kills": hold_with_crashes,
    "power": hold_with_power_cuts,
}
"""What is played, by the name that the command line has for it."""


def main(kind: str, folder: str, *seeds: str) -> None:
    """Play seeds until one is not held."""
    for text in seeds:
        try:
            KINDS[kind](int(text), Path(folder, text))
        except Exception as error:
            raise AssertionError(f"seed {text}: {error!r:.300}") from error


if __name__ == "__main__":
    main(*sys.argv[1:])
