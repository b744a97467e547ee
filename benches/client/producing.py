"""`python -m benches.client.producing`: records a second and CPU a record, beside the peers.

Every round takes each client once, in turn, in a process of its own, against a new broker in a
process of its own; a ratio is taken round by round, and the table has medians.
"""

import argparse
import json
import subprocess
import sys

import ottla.testing

from benches.client.rows import Goal, table
from benches.client.writers import PER_CALL, TOPIC, VALUE, WRITERS
from benches.machine import demand_release, machine
from benches.worker import ROOT

RECORDS = 300_000
PARTITIONS = 6
ROUNDS = 3
GOALS = {
    "ottla_send": Goal("aiokafka_send", ratio=2, rate=0.3),
    "ottla_send_threads": Goal("kafka_python_send"),
    "ottla_lists": Goal("confluent_produce", rate=1.5),
    "ottla_columns": Goal("confluent_produce", rate=1.5),
}


def measure(name: str, records: int, partitions: int) -> dict[str, float]:
    """Have a writer write, in a process of its own."""
    with ottla.testing.Broker(topics={TOPIC: partitions}, process=True) as broker:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "benches.client.writers", name),
                *(broker.bootstrap_servers, str(records)),
            ],
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
    # Calls of many rows are over too soon to be measured by as few.
    counts = {name: records * (10 if name.startswith("ottla_") else 1) for name in WRITERS}
    for name in ("ottla_send", "ottla_send_threads"):
        counts[name] = records
    rounds = [
        {name: measure(name, counts[name], partitions) for name in WRITERS} for _ in range(count)
    ]
    size = len(VALUE)
    return [
        f"{records:,} records of {size} bytes, {partitions} partitions.",
        "",
        *table("writer", WRITERS, GOALS, rounds),
    ]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="Producers beside their peers.")
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    demand_release()
    print(machine())
    print("\n".join(lines(given.records, given.partitions, given.rounds)))


if __name__ == "__main__":
    main()
