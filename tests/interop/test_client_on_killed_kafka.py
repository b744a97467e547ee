"""Apache Kafka that is killed again and again, under clients that go on. Needs Java and Maven."""

import os
import sys
import time
from pathlib import Path
from random import Random

import ottla
import pytest
from support.clients_under_kills import PARTITIONS, TOPICS, Clients
from support.kafka_interop import RELEASES_OF_CLIENTS, RunningKafka, killed_kafka
from support.lost_markers import lost_markers

pytestmark = pytest.mark.slow

# `make client-on-kafka` asks for more.
KILLS = int(os.environ.get("OTTLA_KAFKA_KILLS", "3"))
# One in which Kafka itself has lost a marker shows nothing of the clients. With 4.4 that is one of
# ten, on a busy machine.
RUNS = 5


@pytest.mark.parametrize("release", RELEASES_OF_CLIENTS)
def test_nothing_acknowledged_is_lost_or_doubled_where_kafka_is_killed(
    release: str, tmp_path: Path
) -> None:
    lost = []
    for run in range(RUNS):
        home = tmp_path / str(run)
        home.mkdir()
        clients, logs = run_under_kills(release, home)
        lost = lost_markers(logs)
        if not lost:
            break
        assert clients.faults == []
        sys.stdout.write(f"{release} lost {len(lost)} markers: {lost[0]}\n")
    assert lost == []

    def values(topic: str, partition: int) -> list[int]:
        records = ottla.read_partition(logs / f"{topic}-{partition}", isolation="read_committed")
        return [int(record.value or b"") for record in records]

    assert [*clients.losses(values)] == []
    assert clients.copies > KILLS
    assert len(clients.committed) > KILLS
    sys.stdout.write(
        f"{release}: {KILLS} kills, {sum(clients.sent)} records, {len(clients.committed)} "
        f"transactions committed, {clients.copies} of copies\n"
    )


def run_under_kills(release: str, home: Path) -> tuple[Clients, Path]:
    """The clients after all kills, and the logs of a broker that has stopped."""
    random = Random(KILLS)
    with killed_kafka(home, release) as broker:
        running = RunningKafka(broker.bootstrap_servers, release)
        for topic in TOPICS:
            running.create(topic, PARTITIONS)
        clients = Clients(broker.bootstrap_servers)
        clients.start()
        for _ in range(KILLS):
            clients.wait_for_copies()
            time.sleep(random.uniform(0.0, 1.5))
            broker.kill()
            time.sleep(random.uniform(0.0, 0.5))
            broker.start()
        clients.wait_for_copies()
        clients.finish()
    return clients, broker.log_directory
