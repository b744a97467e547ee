"""`python -m benches.client.consuming`: records a second and CPU a record, beside the peers.

One broker in a process of its own serves all. Every round takes each client once, in turn, in a
process of its own; a ratio is taken round by round, and the table has medians.
"""

import argparse
import json
import subprocess
import sys

import numpy as np
import ottla.testing
from ottla.client import Producer

from benches.client.readers import READERS, TOPIC
from benches.client.rows import Goal, table
from benches.machine import demand_release, machine
from benches.worker import ROOT

VALUE_BYTES = 100
PER_CALL = 100_000
RECORDS = 2_000_000
PARTITIONS = 1
ROUNDS = 3
GOALS = {
    "ottla_columns": Goal("confluent_batches", ratio=2, rate=5),
    "ottla_columns_threads": Goal("confluent_batches", ratio=2, rate=5),
    "ottla_poll": Goal("aiokafka_poll", ratio=2),
    "ottla_each": Goal("aiokafka_each", ratio=2),
}


def fill(servers: str, records: int, partitions: int) -> None:
    """Write records of 100 bytes in turn to the partitions."""
    offsets = np.arange(PER_CALL + 1, dtype=np.int64) * VALUE_BYTES
    data = np.random.default_rng(0).integers(0, 256, PER_CALL * VALUE_BYTES, dtype=np.uint8)
    with Producer(bootstrap_servers=servers, batch_size=1 << 16) as producer:
        for turn in range(records // PER_CALL):
            producer.produce_many(TOPIC, (offsets, data), partition=turn % partitions)


def measure(name: str, servers: str, records: int, partitions: int) -> dict[str, float]:
    """Have a reader read everything, in a process of its own."""
    command = [sys.executable, "-m", "benches.client.readers", name, servers]
    done = subprocess.run(
        [*command, str(records), str(partitions)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    took: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return took


def lines(records: int, partitions: int, count: int) -> list[str]:
    """Measure in so many rounds, and return the figures as lines of Markdown."""
    records = records // PER_CALL * PER_CALL
    with ottla.testing.Broker(topics={TOPIC: partitions}, process=True) as broker:
        servers = broker.bootstrap_servers
        fill(servers, records, partitions)
        rounds = [
            {name: measure(name, servers, records, partitions) for name in READERS}
            for _ in range(count)
        ]
    return [
        f"{records:,} records of {VALUE_BYTES} bytes, partitions: {partitions}.",
        "",
        *table("reader", READERS, GOALS, rounds),
    ]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="Consumers beside their peers.")
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    demand_release()
    print(machine())
    print("\n".join(lines(given.records, given.partitions, given.rounds)))


if __name__ == "__main__":
    main()
