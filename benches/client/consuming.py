"""`python -m benches.client.consuming`: records a second and CPU a record, beside the peers.

One broker in a process of its own serves all. Every round takes each client once, in turn, in a
process of its own; a ratio is taken round by round, and the table has medians.
"""

import argparse
import json
import statistics
import subprocess
import sys

import numpy as np
import ottla.testing
from ottla.client import Producer

from benches.client.readers import READERS, TOPIC
from benches.machine import demand_release, machine
from benches.worker import ROOT

VALUE_BYTES = 100
PER_CALL = 100_000
# Each of ours, with the peer that it is held to.
RIVALS = {
    "ottla_columns": "confluent_batches",
    "ottla_columns_threads": "confluent_batches",
    "ottla_poll": "aiokafka_poll",
    "ottla_each": "aiokafka_each",
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


def table(rounds: list[dict[str, dict[str, float]]]) -> list[str]:
    """The figures, as lines of Markdown."""
    lines = ["| reader | M records/s | CPU µs a record | beside |", "|---|---|---|---|"]
    for name, reader in READERS.items():
        rates = [each[name]["records"] / each[name]["seconds"] / 1e6 for each in rounds]
        costs = [each[name]["cpu"] / each[name]["records"] * 1e6 for each in rounds]
        rival = RIVALS.get(name)
        beside = ""
        if rival is not None:
            ratios = [each[rival]["seconds"] / each[name]["seconds"] for each in rounds]
            beside = f"{statistics.median(ratios):.1f} × {rival}"
        what = (reader.__doc__ or "").rstrip(".")
        lines.append(
            f"| {name}: {what} | {statistics.median(rates):.2f} | {statistics.median(costs):.2f} "
            f"| {beside} |"
        )
    return lines


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="Consumers beside their peers.")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    demand_release()
    records = given.records // PER_CALL * PER_CALL
    with ottla.testing.Broker(topics={TOPIC: given.partitions}, process=True) as broker:
        servers = broker.bootstrap_servers
        fill(servers, records, given.partitions)
        rounds = [
            {name: measure(name, servers, records, given.partitions) for name in READERS}
            for _ in range(given.rounds)
        ]
    print(f"{records:,} records of {VALUE_BYTES} bytes, {given.partitions} partitions; {machine()}")
    print("\n".join(table(rounds)))


if __name__ == "__main__":
    main()
