"""The ways in: jobs, time, the worker; beginning, ending, failing."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

import pytest
from ottla.errors import ListenError, ServerBusyError, ServerError, ServerStoppedError
from ottla.net.clock import Clock
from ottla.net.outcome import Outcome
from ottla.net.served import Address
from ottla.net.server import Server
from ottla.net.settings import ListenerSettings
from support.fake_broker import WITHIN_S, FakeBroker, connect, serving, wait_for


def test_a_job_runs_on_the_thread_of_the_server_and_its_result_comes_back() -> None:
    with serving() as server:
        assert server.run(lambda broker: (type(broker), threading.current_thread().name)) == (
            FakeBroker,
            "ottla-server",
        )


def test_an_error_of_a_job_is_raised_by_the_caller_and_harms_nothing() -> None:
    def fails(_: FakeBroker) -> None:
        raise ZeroDivisionError("of a job")

    with serving() as server, connect(server) as client:
        with pytest.raises(ZeroDivisionError, match="of a job"):
            server.run(fails)
        assert client.ask(b"echo") == b"echo"


def test_a_job_may_run_another_one() -> None:
    with serving() as server:
        assert server.run(lambda broker: server.run(lambda same: same is broker)) is True


def test_jobs_of_many_threads_are_all_done_one_at_a_time() -> None:
    inside: list[int] = []
    done: list[int] = []

    def job(broker: FakeBroker) -> None:
        inside.append(1)
        assert len(inside) == 1
        broker.handled += 1
        inside.pop()

    def work() -> None:
        for _ in range(200):
            server.run(job)
        done.append(1)

    with serving() as server:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WITHIN_S)
        assert len(done) == 8
        assert server.run(lambda broker: broker.handled) == 1600


def test_a_server_that_has_stopped_says_so_and_stops_again_without_effect() -> None:
    with serving() as server:
        pass
    server.stop()
    with pytest.raises(ServerStoppedError, match="the server has stopped"):
        server.run(lambda _: None)
    with pytest.raises(ServerStoppedError):
        server.start()
    with pytest.raises(ServerStoppedError):
        server.work(lambda: None, lambda _, __: None)


def test_a_server_that_never_started_gives_its_port_back() -> None:
    server = Server(lambda _: FakeBroker())
    _, host, port = server.addresses[0]
    with pytest.raises(ServerStoppedError, match="is not started yet"):
        server.run(lambda _: None)
    server.stop()
    with socket.create_server((host, port)):
        pass


def test_it_stops_while_clients_are_connected_send_and_wait() -> None:
    with serving() as server:
        clients = [connect(server) for _ in range(50)]
        for number, client in enumerate(clients):
            client.send([b"wait", b"echo", b"big 10000000"][number % 3])
        broker = server.run(lambda broker: broker)
    assert broker.connections == []
    for client in clients:
        client.socket.close()


def test_it_stops_from_many_threads_at_once() -> None:
    with serving() as server:
        threads = [threading.Thread(target=server.stop) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WITHIN_S)
        assert not any(thread.is_alive() for thread in threads)


def test_its_own_thread_cannot_stop_it() -> None:
    with serving() as server:
        with pytest.raises(ServerError, match="another thread than its own"):
            server.run(lambda _: server.stop())
        assert server.run(lambda _: 7) == 7


def test_a_port_that_is_taken_is_one_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError) as caught:
            Server(lambda _: FakeBroker(), [ListenerSettings(), ListenerSettings(port=port)])
    expected = f"cannot listen on 127.0.0.1:{port}: Address already in use; port 0 takes a free one"
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (ListenerSettings(port=70_000), "a port is from 0 to 65535"),
        (ListenerSettings(host="203.0.113.7"), "cannot listen on 203.0.113.7:0: "),
        (
            ListenerSettings(host="no such host"),
            "cannot listen on no such host:0: this name has no address",
        ),
    ],
)
def test_an_address_that_cannot_be_had_is_named(settings: ListenerSettings, why: str) -> None:
    with pytest.raises(ListenError, match=why) as caught:
        Server(lambda _: FakeBroker(), [settings])
    # Errors of names have numbers of their own, which `strerror` does not know.
    assert "Unknown error" not in str(caught.value)


def test_every_listener_has_its_name_and_its_address() -> None:
    listeners = (ListenerSettings(name="INSIDE"), ListenerSettings(name="OUTSIDE"))
    with serving(*listeners) as server:
        assert [address.listener for address in server.addresses] == ["INSIDE", "OUTSIDE"]
        for number, name in enumerate(["INSIDE", "OUTSIDE"]):
            with connect(server, number) as client:
                assert client.ask(b"echo") == b"echo"
                (peer,) = server.run(lambda broker: [each.peer for each in broker.connections])
                assert (peer.listener, peer.host) == (name, "127.0.0.1")
                assert peer.port == client.socket.getsockname()[1]
            wait_for(server, lambda broker: not broker.connections)


def test_a_broker_that_cannot_be_made_leaves_no_listener_behind() -> None:
    ports: list[int] = []

    def fails(addresses: Sequence[Address]) -> FakeBroker:
        ports.extend(address.port for address in addresses)
        raise ValueError("no such configuration")

    with pytest.raises(ValueError, match="no such configuration"):
        Server(fails)
    with socket.create_server(("127.0.0.1", ports[0])):
        pass


class FailingBroker(FakeBroker):
    """Fails when it is due."""

    def tick(self, now_ms: int) -> None:
        super().tick(now_ms)
        if self.handled:
            raise RuntimeError("a fault of the broker")


def test_a_broker_that_fails_when_it_is_due_ends_the_server_with_its_error() -> None:
    server: Server[FakeBroker] = Server(lambda _: FailingBroker())
    with server, connect(server) as client:
        client.send(b"wait")
        assert client.is_closed()
        with pytest.raises(ServerStoppedError, match="a fault of the broker"):
            server.run(lambda _: None)
    assert isinstance(server.failure, RuntimeError)


def test_deadlines_come_by_themselves_in_real_time() -> None:
    with serving() as server, connect(server) as client:
        due_ms = server.clock.now_ms() + 30
        assert client.ask(b"due %d" % due_ms) == b"due %d" % due_ms
        assert server.clock.now_ms() >= due_ms


def test_a_deadline_beyond_what_the_system_can_wait_for_harms_nobody() -> None:
    with serving() as server:
        # Nobody is connected, so nothing else is due before.
        server.run(lambda broker: broker.due.append((2**62, lambda _: None, b"")))
        assert server.run(lambda broker: len(broker.due)) == 1
        with connect(server) as client:
            assert client.ask(b"hello") == b"hello"


def test_an_advanced_clock_passes_each_deadline_before_it_returns() -> None:
    with serving(clock=Clock(frozen_at_ms=1_000_000)) as server, connect(server) as client:
        client.send(b"due 1045000")
        wait_for(server, lambda broker: len(broker.due) == 1)
        server.advance(44.999)
        assert server.run(lambda broker: len(broker.due)) == 1
        server.run(lambda broker: broker.ticks.clear())
        server.advance(10)
        assert server.clock.now_ms() == 1_054_999
        due, ticks = server.run(lambda broker: (broker.due, broker.ticks))
        assert due == []
        assert 1_045_000 in ticks
        assert client.receive() == b"due 1045000"
        with pytest.raises(ValueError, match="cannot go back"):
            server.advance(-1)


def test_a_real_clock_that_was_advanced_goes_on_from_there() -> None:
    with serving() as server, connect(server) as client:
        due_ms = server.clock.now_ms() + 3_600_000
        client.send(b"due %d" % due_ms)
        wait_for(server, lambda broker: len(broker.due) == 1)
        server.advance(3600)
        assert client.receive() == b"due %d" % due_ms


@pytest.mark.parametrize("is_awake", [False, True])
def test_an_idle_server_does_not_turn(is_awake: bool) -> None:
    with serving(clock=Clock(frozen_at_ms=5)) as server, connect(server) as client:
        if is_awake:
            server.wait_awake()
            # One after the other, so that it has reason to expect another one at once.
            for number in range(100):
                assert client.ask(b"echo %d" % number) == b"echo %d" % number
        client.send(b"due 6")
        wait_for(server, lambda broker: len(broker.due) == 1)
        before = server.run(lambda _: time.thread_time())
        time.sleep(0.2)
        assert server.run(lambda _: time.thread_time()) - before < 0.1


def test_a_server_that_waits_awake_does_all_that_others_do() -> None:
    with serving() as server, connect(server) as client, connect(server) as other:
        server.wait_awake()
        for number in range(200):
            assert client.ask(b"echo %d" % number) == b"echo %d" % number
            assert other.ask(b"echo other") == b"echo other"
            assert server.run(lambda _: 7) == 7
        due_ms = server.clock.now_ms() + 20
        client.send(b"due %d" % due_ms)
        assert client.receive() == b"due %d" % due_ms


def test_a_sealed_job_is_done_beside_and_its_outcome_comes_to_the_broker() -> None:
    told: list[object] = []
    gate = threading.Event()

    def flush() -> str:
        gate.wait(WITHIN_S)
        return threading.current_thread().name

    def then(broker: FakeBroker, outcome: Outcome[str]) -> None:
        told.append((type(broker), outcome.get(), threading.current_thread().name))

    with serving() as server, connect(server) as client:
        server.work(flush, then)
        assert client.ask(b"echo") == b"echo"
        assert told == []
        gate.set()
        wait_for(server, lambda _: bool(told))
    assert told == [(FakeBroker, "ottla-worker", "ottla-server")]


def test_no_sealed_job_waits_for_a_slow_one() -> None:
    told: list[str] = []
    gate = threading.Event()
    with serving() as server:
        server.work(lambda: gate.wait(WITHIN_S), lambda _, __: told.append("slow"), is_slow=True)
        server.work(lambda: None, lambda _, __: told.append("quick"))
        wait_for(server, lambda _: bool(told))
        assert told == ["quick"]
        gate.set()
    assert told == ["quick", "slow"]


def test_a_stop_waits_for_sealed_jobs_and_tells_their_errors() -> None:
    errors: list[BaseException | None] = []

    def fails() -> None:
        raise OSError("the disk is full")

    with serving() as server:
        for _ in range(10):
            server.work(fails, lambda _, outcome: errors.append(outcome.error))
    assert [str(error) for error in errors] == ["the disk is full"] * 10


def test_outcomes_and_a_stop_are_taken_however_many_jobs_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ottla.net.jobs.MAX_JOBS", 1)
    told: list[object] = []
    is_busy, gate, is_full = threading.Event(), threading.Event(), threading.Event()
    is_told = threading.Event()

    def keep_busy(_: FakeBroker) -> str:
        is_busy.set()
        gate.wait(WITHIN_S)
        return ""

    def nothing(_: FakeBroker) -> str:
        return ""

    server = Server(lambda _: FakeBroker())
    server.start()
    server.watch(keep_busy, lambda _: None, WITHIN_S)
    assert is_busy.wait(WITHIN_S)
    server.work(lambda: is_full.wait(WITHIN_S), lambda _, outcome: told.append(outcome.get()))
    # One worker does both: the outcome of the first is told before the second begins.
    server.work(is_told.set, lambda _, outcome: told.append(outcome.error))
    server.watch(nothing, lambda _: None, WITHIN_S)
    with pytest.raises(ServerBusyError):
        server.watch(nothing, lambda _: None, WITHIN_S)
    is_full.set()
    assert is_told.wait(WITHIN_S)
    stops = threading.Thread(target=server.stop)
    stops.start()
    gate.set()
    stops.join(WITHIN_S)
    assert (told, server.failure) == ([True, None], None)


def test_an_async_user_awaits_jobs_and_the_end() -> None:
    def fails(_: FakeBroker) -> None:
        raise ZeroDivisionError("of a job")

    async def use() -> int:
        async with Server(lambda _: FakeBroker()) as server:
            _, host, port = server.addresses[0]
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"\0\0\0\x04echo")
            assert await reader.readexactly(8) == b"\0\0\0\x04echo"
            writer.close()
            await writer.wait_closed()
            with pytest.raises(ZeroDivisionError):
                await server.run_async(fails)
            jobs = [server.run_async(lambda broker: broker.handled) for _ in range(100)]
            return sum(await asyncio.gather(*jobs))

    assert asyncio.run(use()) == 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_forked_process_holds_no_connection_open_and_cannot_run_jobs() -> None:
    with serving() as server, connect(server) as client:
        assert client.ask(b"echo") == b"echo"
        child = os.fork()
        if child == 0:
            try:
                server.run(lambda _: None)
            except ServerStoppedError:
                server.stop()
                # The parent ends us, after its own end of the connection.
                time.sleep(WITHIN_S)
            os._exit(1)
        try:
            assert client.ask(b"echo") == b"echo"
            server.stop()
            assert client.is_closed()
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def test_it_loads_nothing_costly_before_it_is_asked_for() -> None:
    program = (
        "import sys\nfrom ottla.net.server import Server\n"
        "print(*{'asyncio', 'ssl', 'logging', 'concurrent.futures', 'json', 'numpy', 'random',"
        " 'dataclasses', 'subprocess', 'ottla.audit.pipeline'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.split() == []
