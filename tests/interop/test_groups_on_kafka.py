"""Groups of three members at Apache Kafka, which leave, are killed and come back.

Needs Java and Maven.
"""

import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ottla.client import Admin, OffsetSpec, Producer, TopicPartition
from support.kafka_interop import RELEASES_OF_CLIENTS, RunningKafka, kafka_on

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]
PARTITIONS = 6
WITHIN_S = 120
CLASSIC = ("range", "roundrobin", "cooperative-sticky")
# Faster than by default, so that a member that was killed is missed soon.
SETTINGS = {
    "group_consumer_session_timeout_ms": "6000",
    "group_consumer_min_session_timeout_ms": "6000",
    "group_consumer_heartbeat_interval_ms": "500",
    "group_consumer_min_heartbeat_interval_ms": "500",
}


class Member:
    """A process that reads."""

    def __init__(self, command: list[str], path: Path) -> None:
        self._path = path
        self.was_killed = False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.group_member", *command, str(path)],
            cwd=TESTS,
            stdin=subprocess.DEVNULL,
        )

    def processed(self) -> list[tuple[int, int, int]]:
        """Partition, offset and number of each record, in order; a last line may be torn."""
        lines = self._lines()
        rows = [line.split() for line in lines if not line.startswith("#")]
        return [(int(row[0]), int(row[1]), int(row[2])) for row in rows]

    def remarks(self) -> list[str]:
        """What it had to say besides."""
        return [line for line in self._lines() if line.startswith("#")]

    def _lines(self) -> list[str]:
        text = self._path.read_text("utf-8") if self._path.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()

    def leave(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(WITHIN_S) == 0

    def kill(self) -> None:
        self.was_killed = True
        self._process.kill()
        self._process.wait()


class Group:
    """Three members, and who else was one, on a topic of their own."""

    def __init__(self, apache: RunningKafka, how: str, home: Path) -> None:
        self.topic = self.name = f"group-{how}"
        self._how = how
        self._servers = apache.servers
        self._home = home
        self._sent = 0
        self.everyone: list[Member] = []
        self.members: list[Member] = []
        apache.create(self.topic, PARTITIONS)
        self._producer = Producer(bootstrap_servers=apache.servers)
        self._admin = Admin(bootstrap_servers=apache.servers)

    def join(self) -> None:
        path = self._home / f"{self.name}-{len(self.everyone)}.txt"
        member = Member([self._servers, self.name, self._how, self.topic], path)
        self.everyone.append(member)
        self.members.append(member)

    def send(self) -> None:
        """A number to each partition, its offset."""
        for partition in range(PARTITIONS):
            values = [b"%d" % number for number in range(self._sent, self._sent + 10)]
            self._producer.produce_many(self.topic, values, partition=partition).raise_first()
        self._sent += 10

    def until(self, is_so: Callable[[], bool], what: str) -> None:
        """Sends until something is so."""
        ends_at = time.monotonic() + WITHIN_S
        while not is_so():
            said = [one.remarks() for one in self.everyone]
            assert time.monotonic() < ends_at, f"{self.name}: {what} does not come true; {said}"
            self.send()
            time.sleep(0.2)

    def until_all_work(self) -> None:
        before = {one: len(one.processed()) for one in self.members}
        self.until(
            lambda: all(len(one.processed()) > count for one, count in before.items()),
            "each member has something",
        )

    def offsets(self) -> tuple[dict[int, int], dict[int, int]]:
        """What is committed, and where partitions end."""
        partitions = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]
        committed = self._admin.list_group_offsets(self.name).check()
        ends = self._admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST)).check()
        return (
            {
                one.partition.partition: one.committed.offset
                for one in committed.values()
                if one.committed
            },
            {partition.partition: one.offset for partition, one in ends.items()},
        )

    def finish(self) -> None:
        """Waits until all is processed and committed, and has all members leave."""
        ends_at = time.monotonic() + WITHIN_S
        while True:
            committed, ends = self.offsets()
            if committed == ends:
                break
            assert time.monotonic() < ends_at, f"{self.name}: {committed} of {ends} are committed"
            time.sleep(0.2)
        for member in self.members:
            member.leave()
        assert self.offsets() == (ends, ends)
        self._producer.close()
        self._admin.close()

    def require_each_record(self) -> None:
        """Each was processed; a second time only where the first member was killed before."""
        by_record: dict[tuple[int, int], list[Member]] = defaultdict(list)
        for member in self.everyone:
            for partition, offset, number in member.processed():
                assert offset == number
                by_record[partition, offset].append(member)
        wanted = {(p, offset) for p in range(PARTITIONS) for offset in range(self._sent)}
        assert set(by_record) == wanted
        twice = [
            record
            for record, members in by_record.items()
            if sum(not one.was_killed for one in members) > 1
        ]
        said = [one.remarks() for one in self.everyone]
        assert twice == [], f"{self.name}: {said}"


def play(apache: RunningKafka, how: str, home: Path) -> None:
    group = Group(apache, how, home)
    try:
        for _ in range(3):
            group.join()
        group.until_all_work()
        group.members.pop(0).leave()
        group.until_all_work()
        group.join()
        group.until_all_work()
        for _ in range(2):
            group.members.pop(0).kill()
            group.join()
            group.until_all_work()
        group.finish()
        group.require_each_record()
    finally:
        for member in group.everyone:
            member.kill()


@pytest.mark.parametrize("release", RELEASES_OF_CLIENTS)
def test_a_group_whose_members_leave_and_are_killed_processes_each_record(
    release: str, tmp_path: Path
) -> None:
    is_new = release == "4.4.0"
    settings = SETTINGS if is_new else {}
    with (
        kafka_on(tmp_path, release, is_formatted=False, **settings) as servers,
        ThreadPoolExecutor() as pool,
    ):
        apache = RunningKafka(servers, release)
        hows = (*CLASSIC, "consumer") if is_new else CLASSIC
        # Most of it is waiting until somebody is missed.
        plays = [pool.submit(play, apache, how, tmp_path) for how in hows]
        for one in plays:
            one.result()
