"""A program: an idempotent producer and a consumer, which tell at their end how they have fared.

    python -m support.healthy_client '{"bootstrap.servers": "…", "topic": "…"}'

Each line of its input begins a phase of the name in it; at the end of its input it stops, and
writes an object of JSON: what was sent, what came back, errors, and times of each phase.
"""

import json
import select
import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer

PAUSE_S = 0.01
WITHIN_S = 60


class Healthy:
    """Both clients, and what they note."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.topic = config.pop("topic")
        self.errors: list[str] = []
        self.sent: list[float] = []
        self.acknowledged_ms: dict[str, list[float]] = {}
        self.received_ms: dict[str, list[float]] = {}
        self.received: list[int] = []
        self.phase = "alone"
        common = {**config, "error_cb": lambda error: self.errors.append(str(error))}
        self.producer = Producer({**common, "enable.idempotence": True, "linger.ms": 0})
        group = {"group.id": "healthy", "auto.offset.reset": "earliest"}
        self.consumer = Consumer({**common, **group})
        self.consumer.subscribe([self.topic])

    def send(self) -> None:
        """Sends the next number."""
        number, phase, sent_s = len(self.sent), self.phase, time.monotonic()
        self.sent.append(sent_s)

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                self.errors.append(str(error))
            took_ms = (time.monotonic() - sent_s) * 1000
            self.acknowledged_ms.setdefault(phase, []).append(took_ms)

        self.producer.produce(self.topic, str(number).encode(), on_delivery=delivered)
        self.producer.poll(0)

    def receive(self, timeout_s: float) -> None:
        """Takes a number, if there is one."""
        message = self.consumer.poll(timeout_s)
        if message is None:
            return
        error = message.error()
        if error is not None:
            self.errors.append(str(error))
            return
        number = int(message.value() or b"-1")
        self.received.append(number)
        took_ms = (time.monotonic() - self.sent[number]) * 1000
        self.received_ms.setdefault(self.phase, []).append(took_ms)

    def run(self) -> None:
        """Sends and receives until the input ends, and then until all that was sent is here."""
        while True:
            if select.select([sys.stdin], [], [], 0)[0]:
                line = sys.stdin.readline()
                if not line:
                    break
                self.phase = line.strip()
            self.send()
            next_s = time.monotonic() + PAUSE_S
            while (left_s := next_s - time.monotonic()) > 0:
                self.receive(left_s)
        self.producer.flush(WITHIN_S)
        end_s = time.monotonic() + WITHIN_S
        while len(self.received) < len(self.sent) and time.monotonic() < end_s:
            self.receive(0.1)
        self.consumer.close()

    def told(self) -> dict[str, Any]:
        """What is told of it."""
        return {
            "sent": len(self.sent),
            "is_whole": self.received == list(range(len(self.sent))),
            "errors": self.errors,
            "acknowledged_ms": {name: _times(all_) for name, all_ in self.acknowledged_ms.items()},
            "received_ms": {name: _times(all_) for name, all_ in self.received_ms.items()},
        }


def _times(times_ms: list[float]) -> dict[str, float]:
    times_ms = sorted(times_ms)
    return {
        "count": len(times_ms),
        "p50": round(times_ms[len(times_ms) // 2], 2),
        "p99": round(times_ms[len(times_ms) * 99 // 100], 2),
        "max": round(times_ms[-1], 2),
    }


if __name__ == "__main__":
    healthy = Healthy(json.loads(sys.argv[1]))
    healthy.run()
    json.dump(healthy.told(), sys.stdout)
