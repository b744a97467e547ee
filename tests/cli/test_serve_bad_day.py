"""A served broker on a bad day: one clear line for each fault, and the others are served on."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.metadata import MetadataRequest
from support.certificates import Authority
from support.commands import Run
from support.served import COMMAND, WITHIN_S, Served, SocketClient, client_of, served

HOST = IPv4Address("127.0.0.1")


def is_well(broker: Served) -> bool:
    with client_of(broker.address) as client:
        return client.ask(MetadataRequest(topics=None), 9).cluster_id is not None


def only_line(ran_err: str) -> str:
    assert ran_err.startswith("ottla: ")
    assert ran_err.count("\n") == 1
    return ran_err


# Files and addresses.


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


def tls(*settings: str) -> list[str]:
    all_settings = ["listeners=SSL://127.0.0.1:0", *settings]
    return [word for setting in all_settings for word in ("--set", setting)]


def test_a_certificate_that_is_not_of_its_key_is_told_with_both(
    run: Run, authority: Authority, tmp_path: Path
) -> None:
    one, other = authority.issue("one", HOST), authority.issue("other", HOST)
    chain = one.read_text().split("-----BEGIN PRIVATE")[0]
    key = "-----BEGIN PRIVATE" + other.read_text().split("-----BEGIN PRIVATE")[1]
    mixed = tmp_path / "mixed.pem"
    mixed.write_text(chain + key)
    ran = run("serve", *tls(f"ssl.keystore.location={mixed}"))
    assert ran.status == 3
    assert "certificate and key do not belong together" in only_line(ran.err)
    assert str(mixed) in ran.err
    ran = run("serve", *tls(f"ssl.keystore.certificate.chain={chain}", f"ssl.keystore.key={key}"))
    assert "ssl.keystore.certificate.chain and ssl.keystore.key" in only_line(ran.err)
    assert "PRIVATE" not in ran.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xfe\xed\xfe\xed\0\0\0\2", "a key store of Java (JKS), and PEM is read here; convert"),
        (b"\x30\x82\x0a\x00\x02\x01\x03", "a key store of PKCS12, and PEM is read here; convert"),
        (b"", "there is no PEM in it"),
        (b"-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----\n", "cannot use"),
    ],
)
def test_a_key_store_that_cannot_be_read_is_one_line_with_what_to_do(
    run: Run, tmp_path: Path, content: bytes, said: str
) -> None:
    store = tmp_path / "store"
    store.write_bytes(content)
    ran = run("serve", *tls(f"ssl.keystore.location={store}"))
    assert ran.status == 3
    line = only_line(ran.err)
    assert said in line
    assert str(store) in line
    assert ("keytool -importkeystore" in line) is ("convert" in said)


def test_a_key_store_of_java_is_told_by_its_type_too(run: Run, authority: Authority) -> None:
    store = authority.issue("broker", HOST)
    for kind in ("JKS", "PKCS12"):
        settings = (f"ssl.keystore.location={store}", f"ssl.keystore.type={kind}")
        ran = run("serve", *tls(*settings))
        assert ran.status == 64
        said = f"ssl.keystore.type is {kind}, and PEM is read here: convert it by: keytool"
        assert said in " ".join(ran.err.split())


def test_an_encrypted_key_asks_nobody_for_its_password(authority: Authority) -> None:
    issued = authority.issue("encrypted", HOST)
    chain, begin, key = issued.read_text().partition("-----BEGIN PRIVATE")
    locked = load_pem_private_key((begin + key).encode(), None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"open sesame")
    )
    issued.write_text(chain + locked.decode())
    location = f"ssl.keystore.location={issued}"
    for settings, said in (
        ([location], "the key is encrypted, and ssl.key.password is not set"),
        ([location, "ssl.key.password=wrong"], "ssl.key.password is not its password"),
    ):
        ran = subprocess.run(
            [*COMMAND, *tls(*settings)],
            stdin=subprocess.PIPE,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        assert (ran.returncode, ran.stdout) == (3, "")
        assert said in only_line(ran.stderr)
    with served(*tls(location, "ssl.key.password=open sesame"), port=False) as broker:
        assert broker.end() == (0, "")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ([], "speaks TLS and has no certificate: set ssl.keystore.location"),
        (["ssl.keystore.location=/no/such.pem"], "cannot use /no/such.pem for TLS: No such file"),
        (["ssl.keystore.certificate.chain=x"], "is set without ssl.keystore.key"),
        (["ssl.client.auth=always"], "must be one of: none, requested, required"),
        (["sasl.enabled.mechanisms=GSSAPI"], "must be one of: PLAIN"),
        (
            ["listener.name.ssl.ssl.keystore.locatio=x"],
            "did you mean listener.name.ssl.ssl.keystor",
        ),
    ],
)
def test_settings_of_security_that_cannot_be_are_one_message(
    run: Run, settings: list[str], said: str
) -> None:
    ran = run("serve", *tls(*settings))
    assert ran.status in {3, 64}
    assert ran.out == ""
    assert said in " ".join(ran.err.split())


def test_clients_certificates_need_an_authority(run: Run, authority: Authority) -> None:
    store = authority.issue("broker", HOST)
    ran = run("serve", *tls(f"ssl.keystore.location={store}", "ssl.client.auth=required"))
    assert ran.status == 64
    assert "set ssl.truststore.location or ssl.truststore.certificates" in ran.err


def test_listeners_and_a_port_contradict_each_other(run: Run) -> None:
    ran = run("serve", "--port", "0", "--set", "listeners=PLAINTEXT://127.0.0.1:0")
    assert ran.status == 64
    assert "leave out --port and --host" in ran.err


def test_a_port_in_the_host_is_told_where_it_belongs(run: Run) -> None:
    ran = run("serve", "--host", "localhost:9092")
    assert ran.status == 64
    assert "'localhost:9092' has a port, which --port gives" in ran.err


def test_of_two_listeners_on_a_port_that_is_taken_none_stays_open(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        names = f"listeners=A://127.0.0.1:0,B://127.0.0.1:{port}"
        protocols = "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT"
        ran = run("serve", "--set", names, "--set", protocols)
    assert ran.status == 3
    assert str(port) in only_line(ran.err)


def test_a_metrics_port_that_is_taken_is_told_and_nothing_is_served(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = run("serve", "--port", "0", "--metrics", port)
    assert (ran.status, ran.out) == (3, "")
    assert str(port) in only_line(ran.err)


def test_a_setting_that_is_known_and_has_no_effect_is_said_to_have_none() -> None:
    with served("--set", "ssl.cipher.suites=A", "--set", "num.io.threads=8") as broker:
        status, complaints = broker.end()
    assert status == 0
    assert complaints.splitlines() == [
        "ottla: num.io.threads has no effect here",
        "ottla: ssl.cipher.suites has no effect here",
    ]


def test_an_unreadable_file_of_settings_is_one_line(run: Run, tmp_path: Path) -> None:
    ran = run("serve", "--port", "0", "--config", tmp_path)
    assert ran.status == 3
    assert f"{tmp_path}: Is a directory" in only_line(ran.err)


# Topics.


def test_a_topic_may_have_249_characters_and_not_250(run: Run) -> None:
    with served("--topic", "x" * 249) as broker:
        with client_of(broker.address) as client:
            topics = client.ask(MetadataRequest(topics=None), 9).topics
        assert [len(topic.name) for topic in topics] == [249]
    ran = run("serve", "--port", "0", "--topic", "x" * 250)
    assert ran.status == 64
    assert "250 characters, more than 249" in " ".join(ran.err.split())


def test_a_topic_that_is_given_twice_or_collides_is_refused(run: Run) -> None:
    ran = run("serve", "--port", "0", "--topic", "a", "--topic", "a:2")
    assert ran.status == 64
    assert "'a' already exists" in ran.err
    ran = run("serve", "--port", "0", "--topic", "a.b", "--topic", "a_b")
    assert "collides with existing topic: a.b" in ran.err


# Its life.


def test_it_serves_on_where_nobody_reads_its_first_line() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen(
        [*COMMAND, "--port", str(port)], stdout=writer, stderr=subprocess.PIPE, text=True
    ) as process:
        os.close(writer)
        try:
            client = None
            while client is None and process.poll() is None:
                try:
                    client = socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S)
                except ConnectionRefusedError:
                    continue
            assert client is not None
            with client:
                answer = SocketClient(client).ask(MetadataRequest(topics=None), 9)
            assert len(answer.brokers) == 1
            process.send_signal(signal.SIGTERM)
            _, complaints = process.communicate(timeout=WITHIN_S)
            assert (process.returncode, complaints) == (0, "")
        finally:
            process.kill()


def test_two_signals_of_one_moment_are_one_clean_end(tmp_path: Path) -> None:
    with served("--topic", "orders", "--data", tmp_path) as broker:
        broker.process.send_signal(signal.SIGINT)
        broker.process.send_signal(signal.SIGTERM)
        _, complaints = broker.process.communicate(timeout=WITHIN_S)
        assert (broker.process.returncode, complaints) == (0, "")
    assert (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_is_no_traceback(first: signal.Signals) -> None:
    with served("--topic", "orders") as broker:
        # Stopped, it meets them together: one that came late would find Python at its end, with no
        # handler left.
        for each in (signal.SIGSTOP, first, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
            broker.process.send_signal(each)
        _, complaints = broker.process.communicate(timeout=WITHIN_S)
        assert broker.process.returncode in {0, 130, 143}
        assert complaints in {"", "ottla: ended at once\n"}


def test_a_frame_of_two_gib_ends_its_connection_alone() -> None:
    with served() as broker, client_of(broker.address) as healthy:
        with client_of(broker.address) as hostile:
            hostile.socket.sendall(b"\x7f\xff\xff\xff" + b"x" * 1_000)
            with pytest.raises((EOFError, ConnectionError)):
                hostile.receive()
        assert len(healthy.ask(MetadataRequest(topics=None), 9).brokers) == 1
        status, complaints = broker.end()
    assert status == 0
    (line,) = complaints.splitlines()
    assert "a frame of 2147483647 bytes, where 104857600 are the most" in line


def test_clients_that_never_read_hold_nobody_up() -> None:
    with served("--topic", "orders:100") as broker, ExitStack() as stack:
        asks_for_all_topics = b"\0\0\0\x0e\0\3\0\0\0\0\0\1\xff\xff\0\0\0\0"
        for _ in range(5):
            lazy = stack.enter_context(client_of(broker.address))
            lazy.socket.settimeout(0.3)
            with suppress(TimeoutError):
                while True:
                    lazy.socket.sendall(asks_for_all_topics * 1_000)
            assert is_well(broker)
        assert broker.end()[0] == 0


def test_without_descriptors_it_says_so_and_serves_those_that_it_has() -> None:
    with (
        subprocess.Popen(
            ["sh", "-c", 'ulimit -n 48; exec "$@"', "sh", *COMMAND, "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        ExitStack() as stack,
    ):
        try:
            assert process.stdout is not None
            broker = Served(process, process.stdout.readline())
            first = stack.enter_context(client_of(broker.address))
            assert first.ask(MetadataRequest(topics=None), 9).topics == []
            for _ in range(60):
                stack.enter_context(client_of(broker.address))
            for _ in range(20):
                assert first.ask(MetadataRequest(topics=None), 9).topics == []
            status, complaints = broker.end()
        finally:
            process.kill()
    assert status == 0
    assert "cannot accept connections: Too many open files" in complaints.splitlines()[0]


@pytest.mark.slow
def test_a_hundred_thousand_topics_take_time_and_memory_in_proportion() -> None:
    def resident_bytes(process_id: int) -> int:
        pages = Path(f"/proc/{process_id}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    if sys.platform != "linux":
        pytest.skip("nothing tells the memory of a process")
    with served("--metrics", "0") as broker, client_of(broker.address) as client:
        client.socket.settimeout(300)
        before = resident_bytes(broker.process.pid)
        for begin in range(0, 100_000, 1_000):
            topics = [
                CreatableTopic(name=f"topic-{number}", num_partitions=1, replication_factor=1)
                for number in range(begin, begin + 1_000)
            ]
            answer = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7)
            assert {topic.error_code for topic in answer.topics} == {0}
        assert resident_bytes(broker.process.pid) - before < 100_000 * 10_000
        status, page = broker.page("/metrics")
        assert status == 200
        assert len(page) < 2_000_000
        assert "ottla_partitions_left_out 98000" in page
        assert broker.end()[0] == 0
