"""A broker with a log directory, without sockets and threads."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random, SystemRandom

from ottla.broker.broker import Broker
from ottla.broker.configs.broker import BrokerConfig
from ottla.broker.data.opened import OpenedData
from ottla.broker.image import BrokerNode
from ottla.broker.plane import DataPlane
from support.wire_client import NOW_MS

SMALL = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}


def opened_data(
    path: Path,
    plane: DataPlane | None = None,
    *,
    lines: list[str] | None = None,
    cluster_id: str | None = None,
    node_id: int | None = None,
    release: tuple[int, int] | None = None,
    seed: int | None = None,
    now_ms: int = NOW_MS,
) -> OpenedData:
    """The data of a broker that is about to be made; `lines` gets what is said."""
    said: list[str] = [] if lines is None else lines
    return OpenedData(
        str(path),
        plane or DataPlane(),
        cluster_id=cluster_id,
        node_id=node_id,
        default_node_id=1,
        release=release,
        random_bits=(SystemRandom() if seed is None else Random(seed)).getrandbits,
        clock=lambda: now_ms,
        say=said.append,
    )


@contextlib.contextmanager
def kept_broker(
    path: Path,
    config: Mapping[str, str] | None = None,
    *,
    lines: list[str] | None = None,
    is_killed: bool = False,
    seed: int | None = None,
    now_ms: int = NOW_MS,
) -> Iterator[Broker]:
    """A broker that begins with what a directory has; it stops in the end, or is as if killed."""
    plane = DataPlane()
    data = opened_data(path, plane, lines=lines, seed=seed, now_ms=now_ms)
    try:
        broker = Broker(
            BrokerNode(data.directory.node_id, {"PLAINTEXT": ("127.0.0.1", 9092)}),
            BrokerConfig(SMALL if config is None else SMALL | dict(config)),
            plane=plane,
            random=Random(7 if seed is None else seed),
            cluster_id=data.directory.cluster_id,
            now_ms=now_ms,
            storage=data.storage,
            keeper=data.keeper,
        )
        data.restore(broker)
        yield broker
        if not is_killed:
            data.close(broker)
    finally:
        data.abandon()
