"""A producer's core with calls that wait, on the virtual clock of a scripted cluster."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.client.errors import AbortableError, KafkaTimeoutError, ProduceFailedError
from ottla.client.options.settings import ProducerSettings
from ottla.client.producer.core import ProducerCore

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from ottla.client.delivery.promises import Place
    from support.scripted_cluster import ScriptedCluster

__all__ = ["Fates", "SimulatedProducer"]


class Fates:
    """What became of records: offsets, or errors; each is told once."""

    def __init__(self) -> None:
        self.delivered: dict[bytes, int] = {}
        self.failed: dict[bytes, BaseException] = {}

    def require_new(self, value: bytes) -> None:
        assert value not in self.delivered, f"{value!r} was told twice"
        assert value not in self.failed, f"{value!r} was told twice"


class _Run:
    """Records that follow each other in a batch."""

    def __init__(self, fates: Fates, values: list[bytes] | None = None) -> None:
        self._fates = fates
        self.promises = values or []
        self.times: list[int] = []

    def __len__(self) -> int:
        return len(self.promises)

    def part(self, start: int, stop: int) -> _Run:
        return _Run(self._fates, self.promises[start:stop])

    def succeed(self, place: Place) -> None:
        for index, value in enumerate(self.promises):
            self._fates.require_new(value)
            known = place.base_offset >= 0
            self._fates.delivered[value] = place.base_offset + index if known else -1

    def fail(self, error: BaseException) -> None:
        for value in self.promises:
            self._fates.require_new(value)
            require_flat(error)
            assert not isinstance(error, (AbortableError, ProduceFailedError))
            self._fates.failed[value] = error


class SimulatedProducer:
    """A producer.

    Attributes:
        core: what is under test.
        fates: of its records.
        lost: what it was told of lost data.
    """

    def __init__(self, cluster: ScriptedCluster, random: Random, **options: Any) -> None:
        self.cluster = cluster
        self.fates = Fates()
        self.lost: list[Any] = []
        self.max_block_ms = options.get("max_block_ms", 60_000)
        settings = ProducerSettings(
            bootstrap_servers="boot:9092", **{"request_timeout_ms": 5_000, **options}
        )
        self.core: Any = ProducerCore(
            settings,
            cluster.network,
            new_run=lambda: _Run(self.fates),
            random=random.random,
            now_ms=cluster.now_ms,
            on_data_loss=lambda *what: self.lost.append(what),
        )
        cluster.machine = self.core

    # Calls as a shell makes them.

    def send(self, topic: str, partition: int, value: bytes) -> None:
        """Sends a record, once it is taken."""
        self.raising(lambda: self._send(topic, partition, value))

    def _send(self, topic: str, partition: int, value: bytes) -> None:
        core, cluster = self.core, self.cluster
        row = (cluster.now_ms, None, value, None)
        while True:
            waiter = core.append(topic, partition, row, value, cluster.now_ms)
            if waiter is None:
                return
            self._pass_until(partial(getattr, waiter, "is_done"))
            if not waiter.is_done:
                raise core.time_out_send(waiter, self.max_block_ms)
            if waiter.error is not None:
                raise waiter.error
            if waiter.value:
                return

    def flush(self) -> None:
        """Waits until nothing is under way."""
        self._wait(self.core.flush)

    def init_transactions(self) -> None:
        """See the core."""
        self._wait(self.core.init_transactions)

    def begin_transaction(self) -> None:
        """See the core."""
        self.raising(self.core.begin_transaction)

    def send_offsets_to_transaction(self, offsets: Any, group: Any) -> None:
        """See the core."""
        self._wait(lambda: self.core.send_offsets(offsets, group))

    def commit_transaction(self) -> None:
        """See the core."""
        self._wait(self.core.commit_transaction)

    def abort_transaction(self) -> None:
        """See the core."""
        self._wait(self.core.abort_transaction)

    def close(self) -> None:
        """Ends at once."""
        self.core.close_now(self.cluster.now_ms)
        self.cluster.run(max_ms=100)

    def pass_ms(self, time_ms: int) -> None:
        """Lets time pass."""
        self.cluster.run(max_ms=time_ms)

    def _wait(self, call: Callable[[], Any]) -> None:
        self.raising(lambda: self._ended(call()))

    def _ended(self, pending: Any) -> None:
        self._pass_until(lambda: pending.is_done)
        if not pending.is_done:
            if pending.name == "flush":
                raise KafkaTimeoutError("flush")
            raise self.core.manager.time_out(pending)
        if pending.error is not None:
            raise pending.error

    def _pass_until(self, is_done: Callable[[], bool]) -> None:
        end_ms = self.cluster.now_ms + self.max_block_ms
        self.cluster.after(self.max_block_ms, lambda: None)
        self.cluster.run(until=lambda: is_done() or self.cluster.now_ms >= end_ms)

    def raising(self, call: Callable[[], None]) -> None:
        """Makes a call; what it raises has one wrapper at most."""
        try:
            call()
        except Exception as error:
            require_flat(error)
            raise


def require_flat(error: BaseException) -> None:
    """An error has at most one wrapper, which is outermost."""
    wrappers = 0
    found: BaseException | None = error
    while found is not None:
        wrappers += isinstance(found, (AbortableError, ProduceFailedError))
        found = found.__cause__
    assert wrappers <= 1
    if wrappers:
        assert isinstance(error, (AbortableError, ProduceFailedError))
