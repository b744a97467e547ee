"""Malformed frames of every API and version, by the thousand, at a broker in a process of its own.

Beside them a client goes on that notices nothing of it. `make hostile FRAMES=1000000` sends as many
as it says, and tells what came of them.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import IO, Any

import pytest
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from support.flood import Steps, flood
from support.hostile_frames import (
    CLASSIC,
    PREFIX,
    TOPIC,
    TRANSACTIONAL_ID,
    Known,
    Seeds,
    visit,
    visit_before_login,
)
from support.served import WITHIN_S, Served, SocketClient, address_of, client_of, served

FRAMES = int(os.environ.get("OTTLA_HOSTILE_FRAMES", "60000"))
A_ROUND = 10_000
"""So many, and then what the broker has given out is asked for again."""

MAX_GROWTH = 16 << 20
"""Of resident memory, once every API's code is loaded and what is bounded is full."""

PASSWORD = "open sesame"  # noqa: S105 - for a test
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = (
    "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    f'listener.name.sasl_plaintext.plain.sasl.jaas.config={JAAS} user_healthy="{PASSWORD}";',
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users=User:healthy",
    # Strangers are to reach what is behind the check of their rights.
    "allow.everyone.if.no.acl.found=true",
    # What strangers are allowed to write does not stay for long.
    "log.segment.bytes=1048576",
    "log.retention.bytes=1048576",
    "log.retention.check.interval.ms=1000",
)


@contextmanager
def broker(log: IO[str]) -> Iterator[Served]:
    """A broker with a listener for strangers, and one for users."""
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    topics = ("--topic", "healthy", "--topic", f"{TOPIC}:2")
    with served(*settings, *topics, stderr=log, port=False) as running:
        allow_strangers(running)
        yield running


def allow_strangers(running: Served) -> None:
    """Let them do everything with what has a name of theirs, and nothing with the cluster."""
    with client_of(address_of(running.ready["SASL_PLAINTEXT"])) as client:
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        token = f"\0healthy\0{PASSWORD}".encode()
        assert client.ask(SaslAuthenticateRequest(auth_bytes=token), 2).error_code == 0
        anybody: dict[str, Any] = {"principal": "User:ANONYMOUS", "host": "*", "permission_type": 3}
        named = [
            AclCreation(
                resource_type=kind,
                resource_name=PREFIX,
                resource_pattern_type=4,
                operation=2,
                **anybody,
            )
            for kind in (2, 3, 5)
        ]
        cluster = [
            AclCreation(
                resource_type=4,
                resource_name="kafka-cluster",
                operation=operation,
                **anybody,
            )
            for operation in (8, 12)
        ]
        answer = client.ask(CreateAclsRequest(creations=[*named, *cluster]), 3)
        assert {each.error_code for each in answer.results} == {0}


def known_to(address: tuple[str, int]) -> Known:
    """What the broker gives a client that behaves, for others to abuse."""
    with client_of(address) as client:
        # Strangers may have deleted it.
        topics = [CreatableTopic(name=TOPIC, num_partitions=2, replication_factor=1)]
        client.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000), 5)
        (topic,) = [
            each
            for each in client.ask(MetadataRequest(topics=None), 12).topics
            if each.name == TOPIC
        ]
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
        asked = [FetchTopic(topic_id=topic.topic_id, partitions=[partition])]
        fetched = client.ask(FetchRequest(max_wait_ms=0, session_epoch=0, topics=asked), 13)
        member, generation = member_of_a_group(client)
        client.ask(FindCoordinatorRequest(key=TRANSACTIONAL_ID, key_type=1), 3)
        producer = client.ask(
            InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=60_000),
            4,
        )
        return Known(
            member,
            generation,
            producer.producer_id,
            max(producer.producer_epoch, 0),
            fetched.session_id,
            topic.topic_id,
        )


def member_of_a_group(client: SocketClient) -> tuple[str, int]:
    client.ask(FindCoordinatorRequest(key=CLASSIC), 3)
    join = JoinGroupRequest(
        group_id=CLASSIC,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=1_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    # Without the second step it is in no generation, and others go on without it.
    answer = client.ask(join, 5)
    return answer.member_id, max(answer.generation_id, 1)


@contextmanager
def healthy_client(running: Served, told: dict[str, Any]) -> Iterator[IO[str]]:
    """A producer and a consumer in a process of their own; at the end, what they tell."""
    config = {
        "bootstrap.servers": running.ready["SASL_PLAINTEXT"],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "healthy",
        "sasl.password": PASSWORD,
        "topic": "healthy",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "support.healthy_client", json.dumps(config)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent.parent,
    ) as process:
        try:
            assert process.stdin is not None
            yield process.stdin
            out, _ = process.communicate(timeout=300)
            told |= json.loads(out)
        finally:
            process.kill()


def throw(running: Served, chance: Random, count: int) -> Counter[str]:
    """Send so many steps of hostile connections, three of four to the listener of strangers."""
    strangers = running.address
    users = address_of(running.ready["SASL_PLAINTEXT"])
    seeds = Seeds(chance, known_to(strangers))

    def next_visit() -> tuple[tuple[str, int], Steps]:
        if chance.random() < 0.75:
            return strangers, visit(seeds, chance)
        return users, visit_before_login(seeds, chance)

    return flood(next_visit, count)


def resident_bytes(process_id: int) -> int:
    pages = Path(f"/proc/{process_id}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def run(
    count: int, tmp_path: Path, tell: Callable[[str], object] = lambda _: None
) -> dict[str, Any]:
    """Throw so many at a broker, and return what was seen; how far it is, is told on the way."""
    chance, told = Random(count), Counter[str]()
    resident: list[int] = []
    with (tmp_path / "log").open("w+") as log, broker(log) as running:
        seen: dict[str, Any] = {}
        begun_s = time.monotonic()
        with healthy_client(running, seen) as phases:
            time.sleep(min(count / 10_000, 5))
            phases.write("beside\n")
            phases.flush()
            flood_s = time.monotonic()
            for begin in range(0, count, A_ROUND):
                told += throw(running, chance, min(A_ROUND, count - begin))
                resident.append(resident_bytes(running.process.pid))
                tell(f"{sum(told.values()):,} frames, {resident[-1]:,} bytes resident\n")
                assert running.process.poll() is None
            took_s = time.monotonic() - flood_s
        with client_of(running.address) as client:
            assert client.ask(MetadataRequest(topics=[]), 12).cluster_id is not None
        whole_s = time.monotonic() - begun_s
        running.process.terminate()
        status = running.process.wait(WITHIN_S)
        log.seek(0)
        lines = log.read().splitlines()
    return {
        "steps": dict(told),
        "a_second": round(count / took_s),
        "resident_mib": [round(each / (1 << 20), 1) for each in resident],
        "lines": len(lines),
        "faults": [line for line in lines if "report it" in line or "fault" in line],
        "seconds": round(whole_s),
        "status": status,
        "healthy": seen,
    }


def check(seen: dict[str, Any]) -> None:
    assert seen["status"] == 0
    assert seen["faults"] == []
    assert seen["healthy"]["errors"] == []
    assert seen["healthy"]["is_whole"]
    assert seen["healthy"]["acknowledged_ms"]["beside"]["count"] > 0
    assert seen["lines"] <= 2 + seen["seconds"]


def test_a_few_thousand_malformed_frames_are_not_noticed_by_a_client_beside_them(
    tmp_path: Path,
) -> None:
    seen = run(3_000, tmp_path)
    check(seen)
    assert seen["steps"]["answered"] > 500
    assert seen["steps"]["closed"] > 500


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux alone tells memory so")
def test_memory_stays_as_it_was_under_any_number_of_malformed_frames(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        seen = run(FRAMES, tmp_path, sys.stdout.write)
        sys.stdout.write(f"\n{json.dumps(seen)}\n")
    check(seen)
    warm, *later = seen["resident_mib"][len(seen["resident_mib"]) // 4 :]
    assert max(later) - warm < MAX_GROWTH >> 20
