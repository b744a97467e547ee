"""A broker that is killed again and again, and clients that are told nothing that is not so."""

import os
import signal
import time
from pathlib import Path
from random import Random

import ottla
import pytest
from support.killed_broker import Clients, KilledBroker

COMMITS_EVERY = 5
# `make kills` asks for more.
ROUNDS = int(os.environ.get("OTTLA_KILLS", "12"))


def findings(path: Path) -> list[dict[str, object]]:
    """What an audit says of a directory; a transaction may be under way when a broker is killed."""
    found = [dict(finding) for finding in ottla.audit(path).findings]
    return [each for each in found if each["name"] != "open-transaction"]


def kill_again_and_again(path: Path, rounds: int, *settings: str) -> None:
    random = Random(rounds)
    broker = KilledBroker(path, *settings)
    broker.start()
    clients = Clients(broker)
    try:
        clients.start()
        for number in range(rounds):
            if number % COMMITS_EVERY == 0:
                clients.wait_for_commit()
            time.sleep(random.uniform(0.05, 1.0))
            broker.end(signal.SIGKILL)
            assert findings(path) == [], f"after kill {number}"
            broker.start()
        time.sleep(1.0)
        clients.finish()
        assert clients.offsets_that_went_back() == {}
        broker.end(signal.SIGTERM)
        assert [*clients.losses()] == []
        assert findings(path) == []
        # Every client had something to lose.
        assert all(clients.acknowledged)
        assert clients.committed
        assert clients.offsets
    finally:
        broker.end(signal.SIGKILL)


def test_nothing_that_was_acknowledged_is_lost_or_doubled_by_three_kills(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "data", 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [(), ("log.flush.interval.messages=1",)], ids=["cached", "synced"]
)
def test_nothing_that_was_acknowledged_is_lost_or_doubled_by_many_kills(
    tmp_path: Path, settings: tuple[str, ...]
) -> None:
    kill_again_and_again(tmp_path / "data", ROUNDS, *settings)
