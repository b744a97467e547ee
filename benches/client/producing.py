"""`python -m benches.client.producing`: records a second and CPU a record, beside the peers.

Every round takes each client once, in turn, in a process of its own, against a new broker in a
process of its own; a ratio is taken round by round, and the table has medians.
"""

import argparse
import json
import statistics
import subprocess
import sys

import ottla.testing

from benches.client.writers import PER_CALL, TOPIC, VALUE, WRITERS
from benches.machine import demand_release, machine
from benches.worker import ROOT

# Each of ours, with the peer that it is held to.
RIVALS = {
    "ottla_send": "aiokafka_send",
    "ottla_send_threads": "kafka_python_send",
    "ottla_lists": "confluent_produce",
    "ottla_columns": "confluent_produce",
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


def table(rounds: list[dict[str, dict[str, float]]]) -> list[str]:
    """The figures, as lines of Markdown."""
    lines = ["| writer | M records/s | CPU µs a record | beside |", "|---|---|---|---|"]
    for name, writer in WRITERS.items():
        rates = [each[name]["records"] / each[name]["seconds"] / 1e6 for each in rounds]
        costs = [each[name]["cpu"] / each[name]["records"] * 1e6 for each in rounds]
        rival = RIVALS.get(name)
        beside = ""
        if rival is not None:
            ratios = [
                each[rival]["seconds"]
                / each[rival]["records"]
                / (each[name]["seconds"] / each[name]["records"])
                for each in rounds
            ]
            beside = f"{statistics.median(ratios):.1f} × {rival}"
        what = (writer.__doc__ or "").rstrip(".")
        lines.append(
            f"| {name}: {what} | {statistics.median(rates):.2f} | {statistics.median(costs):.2f} "
            f"| {beside} |"
        )
    return lines


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="Producers beside their peers.")
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    given, _ = parser.parse_known_args()
    demand_release()
    records = given.records // PER_CALL * PER_CALL
    # Calls of many rows are over too soon to be measured by as few.
    counts = {name: records * (10 if name.startswith("ottla_") else 1) for name in WRITERS}
    for name in ("ottla_send", "ottla_send_threads"):
        counts[name] = records
    rounds = [
        {name: measure(name, counts[name], given.partitions) for name in WRITERS}
        for _ in range(given.rounds)
    ]
    size = len(VALUE)
    print(f"{records:,} records of {size} bytes, {given.partitions} partitions; {machine()}")
    print("\n".join(table(rounds)))


if __name__ == "__main__":
    main()
