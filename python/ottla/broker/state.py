"""What the parts of a broker share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ottla.broker.configs.dynamic import DynamicSettings
from ottla.broker.faults import Faults
from ottla.broker.features import FEATURES
from ottla.broker.image import Image
from ottla.broker.keeper import Keeper
from ottla.broker.loggers import Loggers
from ottla.broker.storage import Storage
from ottla.broker.waiting import WaitingList

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.configs.broker import BrokerConfig
    from ottla.broker.features import Feature
    from ottla.broker.image import BrokerNode
    from ottla.broker.plane import DataPlane

__all__ = ["MEMORY", "Random", "State"]

MEMORY = "memory"
"""Stands for the directory of logs that are in no file; Kafka's own have absolute paths."""


class Random(Protocol):
    """Where random numbers come from: `random.Random` has it."""

    def getrandbits(self, k: int, /) -> int:
        """Returns a number of that many bits."""


class State:
    """The state of a broker, as its parts see it.

    Attributes:
        node_id: of this broker.
        config: its settings.
        dynamic: where each of them comes from, as clients may change some.
        settings_watchers: called with the settings when these have changed.
        loggers: their levels.
        group_settings: what was set for single groups, by Kafka's names.
        plane: its partitions.
        storage: where their logs are.
        keeper: where everything else is kept that survives the broker.
        random: where ids come from.
        features: the levels that are in force.
        image: the cluster as of now; replaced whole.
        waiting: everything that waits.
        faults: under a test's control.
        log_dir: the directory that its logs are in, as clients are told.
    """

    def __init__(
        self,
        node: BrokerNode,
        config: BrokerConfig,
        *,
        plane: DataPlane,
        random: Random,
        cluster_id: str,
        storage: Storage | None = None,
        keeper: Keeper | None = None,
        features: tuple[Feature, ...] = FEATURES,
    ) -> None:
        self.node_id = node.node_id
        self.plane = plane
        self.storage = storage or Storage(plane)
        self.keeper = keeper or Keeper()
        self.dynamic = DynamicSettings(config, self.keeper.broker_settings(), node.node_id)
        self.config = self.dynamic.config()
        self.settings_watchers: list[Callable[[BrokerConfig], None]] = []
        self.loggers = Loggers()
        self.group_settings = {
            group: dict(settings) for group, settings in self.keeper.group_settings().items()
        }
        self.random = random
        self.features = self.keeper.features(features)
        self.image = Image.of_one(cluster_id, node)
        self.waiting = WaitingList()
        self.faults = Faults()
        self.log_dir = MEMORY

    def moved(self, handles: tuple[int, ...]) -> None:
        """Wakes whoever waits for partitions that have got records or lost some."""
        self.storage.moved(handles)
        for handle in handles:
            self.waiting.wake(("partition", handle))
