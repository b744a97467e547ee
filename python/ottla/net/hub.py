"""What a server's thread has in its hands: selector, listeners, connections. `turn` is its life.

In a turn it waits in one place, and then does, in this order: what sockets and jobs have, what the
turns of connections have left over, what is due, what somebody waits for. Connections that are gone
are told to the broker whenever that is in no call.
"""

from __future__ import annotations

import selectors
from collections import deque
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING

from ottla.net.clock import elapsed_ms
from ottla.net.connection import Connection
from ottla.net.limits import (
    ACCEPT_PAUSE_MS,
    AWAKE_BYTES,
    MAX_ACCEPTED_A_TURN,
    MAX_ERRORS,
    MAX_HTTP_CONNECTIONS,
    MAX_WAIT_MS,
)
from ottla.net.log_lines import LogLines
from ottla.net.outcome import outcome_of
from ottla.net.served import Peer
from ottla.net.watches import Watches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.net.clock import Clock
    from ottla.net.jobs import Jobs
    from ottla.net.limits import Limits
    from ottla.net.listener import Listener
    from ottla.net.served import Served

__all__ = ["Hub"]

SWEEP_PAUSE_US = 100
"""For each connection, between two looks at all of them, which take some 2 µs each."""


class Hub:
    """See the head of this file; attributes and methods without underscore serve connections."""

    def __init__(
        self,
        served: Served,
        listeners: Sequence[Listener],
        jobs: Jobs,
        *,
        clock: Clock,
        limits: Limits,
        log: Callable[[str], None] | None,
    ) -> None:
        self.served = served
        self.limits = limits
        self.elapsed_ms = elapsed_ms()
        self.now_ms = clock.now_ms()
        self.unsent_bytes = 0
        self.held_bytes = 0
        self.sent_bytes = 0
        self.received_bytes = 0
        self.errors: deque[BaseException] = deque(maxlen=MAX_ERRORS)
        self.connections: dict[Connection, None] = {}
        self.watches = Watches()
        self.awake_ns = 0
        self._is_soon = False
        self._moved_bytes = 0
        self._clock = clock
        self._jobs = jobs
        self._log = LogLines(log)
        self._listeners = list(listeners)
        self._accepted = 0
        self._hosts: dict[str, int] = {}
        self._early: dict[Connection, None] = {}
        self._visitors: dict[Connection, None] = {}
        """Those of endpoints of HTTP."""
        self._again: deque[Connection] = deque()
        self._gone: deque[Connection] = deque()
        self._sweep_ms: int | None = None
        self._swept_ms = self.elapsed_ms
        self._accept_ms: int | None = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(jobs.waker, selectors.EVENT_READ, None)
        self._listen()

    def _listen(self) -> None:
        for listener in self._listeners:
            self._listen_on(listener)

    def _listen_on(self, listener: Listener) -> None:
        accept = partial(self._accept, listener)
        self._selector.register(listener.socket, selectors.EVENT_READ, accept)

    def add(self, listener: Listener) -> None:
        """Accepts connections of another listener, too."""
        self._listeners.append(listener)
        if self._accept_ms is None:
            self._listen_on(listener)

    def turn(self) -> None:
        """Waits until there is something to do, and does it."""
        events = self._wait()
        self.elapsed_ms = elapsed_ms()
        self.now_ms = self._clock.at_ms(self.elapsed_ms)
        has_jobs = False
        for key, mask in events:
            if key.data is None:
                has_jobs = True
            else:
                key.data(mask)
        if self._again:
            again, self._again = self._again, deque()
            for connection in again:
                connection.serve()
        if has_jobs:
            self._jobs.do_all()
            self.now_ms = self._clock.now_ms()
        self.served.tick(self.now_ms)
        self._keep_time()
        if self._gone:
            self._tell_of_the_gone()
        self.watches.look(self.elapsed_ms)

    def _wait(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Returns what sockets and jobs have, once they have something or something is due.

        To be woken takes longer than to serve a small request. So where one client asks little
        at a time, after short pauses, and the process is ours, it looks a moment before it sleeps.
        """
        if not self.awake_ns:
            return self._selector.select(self._timeout_s())
        begin_ns = monotonic_ns()
        events: list[tuple[selectors.SelectorKey, int]] = []
        moved_bytes = self.received_bytes + self.sent_bytes
        is_small = moved_bytes - self._moved_bytes <= AWAKE_BYTES
        self._moved_bytes = moved_bytes
        if self._is_soon and is_small and not self._again and not self._gone:
            while not events and monotonic_ns() - begin_ns < self.awake_ns:
                events = self._selector.select(0)
        if not events:
            events = self._selector.select(self._timeout_s())
        self._is_soon = len(events) == 1 and monotonic_ns() - begin_ns < self.awake_ns
        return events

    def _timeout_s(self) -> float | None:
        if self._again or self._gone:
            return 0
        left_ms = self._clock.until_ms(self.served.next_deadline_ms())
        now_ms = elapsed_ms()
        for moment_ms in (self._sweep_ms, self._accept_ms, self.watches.next_ms(now_ms)):
            if moment_ms is not None and (left_ms is None or moment_ms - now_ms < left_ms):
                left_ms = max(0, moment_ms - now_ms)
        return None if left_ms is None else min(left_ms, MAX_WAIT_MS) / 1000

    def _keep_time(self) -> None:
        """Does what is due by real time."""
        if self._accept_ms is not None and self._accept_ms <= self.elapsed_ms:
            self._accept_ms = None
            self._listen()
        if self._sweep_ms is not None and self._sweep_ms <= self.elapsed_ms:
            self._sweep()

    def keep_bounds(self) -> None:
        """Closes connections until all together hold no more than they may."""
        # A few hold it all, and end here; a healthy one holds and owes little.
        while self.unsent_bytes > self.limits.max_unsent_total_bytes:
            owing = (each for each in self.connections if each.unsent_bytes)
            min(owing, key=lambda each: each.stalled_since_ms).close(
                "all that waits to be sent is too much, and it has taken nothing for longest"
            )
        while self.held_bytes > self.limits.max_held_total_bytes:
            max(self.connections, key=lambda each: each.held_bytes).close(
                "all that waits to be handled is too much, and it holds the most"
            )

    def _sweep(self) -> None:
        """Closes whoever is past a deadline."""
        self._sweep_ms, self._swept_ms = None, self.elapsed_ms
        for connection in tuple(self.connections):
            deadline_ms = connection.deadline_ms()
            if deadline_ms <= self.elapsed_ms:
                connection.close(connection.lateness())
            else:
                self.look_at(deadline_ms)

    def _tell_of_the_gone(self) -> None:
        while self._gone:
            connection = self._gone.popleft()
            if connection.served is not None:
                told = outcome_of(partial(connection.keeper.disconnect, connection.served))
                if told.error is not None:
                    self.errors.append(told.error)
                    self._log.say(f"a fault of the broker: {told.error!r}", self.elapsed_ms)

    def _accept(self, listener: Listener, _events: int) -> None:
        for _ in range(MAX_ACCEPTED_A_TURN):
            try:
                accepted = listener.accept()
            except OSError as error:
                self._pause(error)
                return
            if accepted is None:
                return
            sock, host, port = accepted
            settings = listener.settings
            here = listener.address
            self._accepted += 1
            ends = f"{here.host}:{here.port}-{host}:{port}-{self._accepted}"
            peer = Peer(host, port, settings.name, settings.security_protocol, "", ends)
            refusal = self._refusal(listener, host)
            if refusal:
                sock.close()
                self._log.say(f"{host}:{port}: {refusal}", self.elapsed_ms)
                continue
            connection = Connection(self, sock, peer, listener)
            self.connections[connection] = None
            listener.connection_count += 1
            if listener.site is not None:
                self._visitors[connection] = None
            self._hosts[host] = self._hosts.get(host, 0) + 1
            self._early[connection] = None
            if len(self._early) > self.limits.max_early_connections:
                next(iter(self._early)).close(
                    f"more than {self.limits.max_early_connections:,} have not said who they are, "
                    "and it has been silent for longest"
                )
            connection.begin()

    def _refusal(self, listener: Listener, host: str) -> str:
        limits = self.limits
        if listener.site is not None:
            # Apart from the others: who floods the broker does not hide how it is.
            if listener.connection_count < MAX_HTTP_CONNECTIONS:
                return ""
            here = (each for each in self._visitors if each.listener is listener)
            idle = [each for each in here if not each.is_waiting]
            if not idle:
                return f"{MAX_HTTP_CONNECTIONS} connections wait for their answers already"
            min(idle, key=lambda each: each.asked_ms).close(
                f"more than {MAX_HTTP_CONNECTIONS} connections, and it has asked for nothing for "
                "longest"
            )
            return ""
        of_broker = sum(each.connection_count for each in self._listeners if each.site is None)
        if of_broker >= limits.max_connections:
            return f"{limits.max_connections:,} connections are open already"
        if self._hosts.get(host, 0) >= limits.max_connections_per_host:
            return f"{limits.max_connections_per_host:,} connections of its host are open already"
        return ""

    def _pause(self, error: OSError) -> None:
        """Accepts nothing for a while: the system has no descriptors or memory for it."""
        for listener in self._listeners:
            self._selector.unregister(listener.socket)
        self._accept_ms = self.elapsed_ms + ACCEPT_PAUSE_MS
        self._log.say(
            f"cannot accept connections: {error.strerror or error}, with "
            f"{len(self.connections):,} open (ulimit -n)",
            self.elapsed_ms,
        )

    def watch(self, connection: Connection, events: int, before: int) -> None:
        """Has the selector watch for other events than before; 0 are none."""
        if not events:
            self._selector.unregister(connection.socket)
        elif not before:
            self._selector.register(connection.socket, events, connection.on_events)
        else:
            self._selector.modify(connection.socket, events, connection.on_events)

    def call_again(self, connection: Connection) -> None:
        """Calls `Connection.serve` soon, when the broker is in no call."""
        self._again.append(connection)

    def has_closed(self, connection: Connection, reason: str) -> None:
        """Forgets a connection, and tells the broker when that is in no call."""
        del self.connections[connection]
        self._early.pop(connection, None)
        self._visitors.pop(connection, None)
        connection.listener.connection_count -= 1
        host = connection.peer.host
        left = self._hosts[host] - 1
        if left:
            self._hosts[host] = left
        else:
            del self._hosts[host]
        self._gone.append(connection)
        if reason:
            peer = connection.peer
            self._log.say(f"{peer.host}:{peer.port}: {reason}", self.elapsed_ms)

    def is_known(self, connection: Connection) -> None:
        """Takes a connection out of those that have not said who they are."""
        self._early.pop(connection, None)

    def look_at(self, deadline_ms: int) -> None:
        """Looks at every connection's `deadline_ms` then, or before."""
        pause_ms = len(self.connections) * SWEEP_PAUSE_US // 1000
        moment_ms = max(deadline_ms, self._swept_ms + pause_ms)
        if self._sweep_ms is None or moment_ms < self._sweep_ms:
            self._sweep_ms = moment_ms

    def advance(self, duration_ms: int, max_steps: int) -> None:
        """Moves the clock, and does what is due at each deadline on the way."""
        end_ms = self._clock.now_ms() + duration_ms
        for _ in range(max_steps):
            deadline_ms = self.served.next_deadline_ms()
            if deadline_ms is None or deadline_ms >= end_ms:
                break
            self._clock.advance(max(0, deadline_ms - self._clock.now_ms()))
            self.served.tick(self._clock.now_ms())
        self._clock.advance(max(0, end_ms - self._clock.now_ms()))
        self.served.tick(self._clock.now_ms())

    def close_all(self) -> None:
        """Accepts no more, and closes every connection; what can be sent at once is on its way."""
        for listener in self._listeners:
            if self._accept_ms is None:
                self._selector.unregister(listener.socket)
            listener.close()
        self._listeners, self._accept_ms = [], None
        for connection in tuple(self.connections):
            connection.close("")
        self._tell_of_the_gone()

    def close(self) -> None:
        """Closes everything."""
        self.close_all()
        self._selector.close()

    def abandon(self) -> None:
        """Closes what a forked process has of it; the selector is shared, and stays as it is."""
        for listener in self._listeners:
            listener.close()
        for connection in self.connections:
            connection.socket.close()
        self._selector.close()
