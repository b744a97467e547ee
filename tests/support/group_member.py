"""A member of a group as a process: it writes down what it processed, and commits.

    python -m support.group_member SERVERS GROUP HOW TOPIC FILE

`HOW` is an assignor of the classic protocol, or `consumer`. SIGTERM has it leave.
"""

import signal
import sys
from pathlib import Path
from typing import IO, Any

from ottla.client import Consumer, KafkaError, RebalanceListener, TopicPartition

_COMMITS_EVERY = 5
_SESSION_TIMEOUT_MS = 6000


class Member(RebalanceListener):
    """Reads, and commits what it has written down."""

    def __init__(self, servers: str, group: str, how: str, output: IO[str]) -> None:
        options: dict[str, Any] = {"group_protocol": "consumer"}
        if how != "consumer":
            options = {
                "partition_assignment_strategy": [how],
                "session_timeout_ms": _SESSION_TIMEOUT_MS,
                "heartbeat_interval_ms": 500,
            }
        self._output = output
        self._is_over = False
        self._consumer = Consumer(
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **options,
        )

    def end(self, *_: object) -> None:
        """Has it leave soon."""
        self._is_over = True

    def on_partitions_revoked(self, _partitions: frozenset[TopicPartition]) -> None:
        self._commit()

    def on_partitions_lost(self, partitions: frozenset[TopicPartition]) -> None:
        self._say(f"lost {len(partitions)}")

    def run(self, topic: str) -> None:
        """Reads until it is to end."""
        with self._consumer as consumer:
            consumer.subscribe([topic], listener=self)
            polls = 0
            while not self._is_over:
                for one in consumer.poll(100, max_records=20):
                    self._output.write(f"{one.partition} {one.offset} {int(one.value)}\n")
                self._output.flush()
                polls += 1
                if polls % _COMMITS_EVERY == 0:
                    self._commit()
            self._commit()

    def _commit(self) -> None:
        try:
            self._consumer.commit()
        except KafkaError as error:
            self._say(repr(error))

    def _say(self, text: str) -> None:
        self._output.write(f"# {text}\n")


def main(servers: str, group: str, how: str, topic: str, path: str) -> None:
    """Runs a member."""
    with Path(path).open("w", encoding="utf-8") as output:
        member = Member(servers, group, how, output)
        signal.signal(signal.SIGTERM, member.end)
        member.run(topic)


if __name__ == "__main__":
    main(*sys.argv[1:])
