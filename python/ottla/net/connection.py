"""One connection: frames out of a stream, answers into it, and what it waits for.

    GREETING ──► OPEN ──► DRAINING ──► CLOSED          any state ──► CLOSED

- GREETING: a TLS handshake; the broker knows nothing of the connection. Without TLS it is left at
  once.
- OPEN: requests are handled one after the other. While one waits for its answer (`_waiting`), while
  the peer takes too little (`max_unsent_bytes`), and while its turn is over (`_has_more`), the next
  frame stays where it is, and past `max_held_bytes` nothing more is received.
- DRAINING: the peer sends no more. What it has sent is answered, for `max_half_closed_ms`.
- CLOSED: the socket is closed, and the broker is told, by the server, between two other calls.

Who serves it is its `keeper`: the broker, or the site of an endpoint of HTTP, of which a request is
what a frame is of the broker.

Invariants: answers leave in the order of requests; the broker is never called from within a call of
`Send`, which may itself be made from within the broker; the selector watches for nothing that would
not be dealt with, so nothing turns in place.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import partial
from itertools import islice
from selectors import EVENT_READ, EVENT_WRITE
from typing import TYPE_CHECKING, Any, Protocol

from ottla.broker.connection import CloseConnectionError
from ottla.errors import MalformedFrameError
from ottla.net.limits import (
    JOINED_BYTES,
    MAX_FRAMES_A_TURN,
    MAX_HTTP_IDLE_MS,
    MAX_HTTP_REQUEST_MS,
    MAX_SENT_PARTS,
    RECEIVE_BYTES,
    RECEIVE_BYTES_AMID_FRAME,
)
from ottla.net.outcome import outcome_of
from ottla.protocol.framing import Frames

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence

    from ottla.net.http import HttpRequests
    from ottla.net.limits import Limits
    from ottla.net.listener import Listener
    from ottla.net.served import Peer, Served
    from ottla.net.tls import TlsStream

    Part = bytes | bytearray | memoryview

__all__ = ["Connection", "Home"]

_SIZE_BYTES = 4
"""Before each frame."""


class Home(Protocol):
    """What a connection needs of its server."""

    served: Served
    limits: Limits
    now_ms: int
    """The broker's clock."""
    elapsed_ms: int
    """Real time."""
    unsent_bytes: int
    held_bytes: int
    sent_bytes: int
    """All that was sent, and received, since the beginning."""
    received_bytes: int
    errors: deque[BaseException]
    """What the broker has raised and should not have."""

    def watch(self, connection: Connection, events: int, before: int) -> None:
        """Has the selector watch for other events than before; 0 are none."""

    def call_again(self, connection: Connection) -> None:
        """Calls `Connection.serve` soon, when the broker is in no call."""

    def has_closed(self, connection: Connection, reason: str) -> None:
        """Forgets a connection, and tells the broker when that is in no call."""

    def is_known(self, connection: Connection) -> None:
        """Takes a connection out of those that have not said who they are."""

    def look_at(self, deadline_ms: int) -> None:
        """Looks at every connection's `deadline_ms` then, or before."""

    def keep_bounds(self) -> None:
        """Closes connections, this one perhaps, until all together hold no more than they may."""


class Answer:
    """The `Send` of one request."""

    __slots__ = ("connection", "is_given")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.is_given = False

    def __call__(self, parts: Sequence[Part] | None, /) -> None:
        if not self.is_given:
            self.is_given = True
            self.connection.answer(self, parts)


class Connection:
    """One connection of a server; see the head of this file."""

    __slots__ = (
        "_active_ms",
        "_begun_ms",
        "_cut",
        "_ended_ms",
        "_events",
        "_frames",
        "_has_more",
        "_held",
        "_held_since_ms",
        "_home",
        "_is_early",
        "_is_http",
        "_progress_ms",
        "_tls",
        "_unsent",
        "_waiting",
        "asked_ms",
        "is_open",
        "keeper",
        "listener",
        "peer",
        "served",
        "socket",
        "unsent_bytes",
    )

    def __init__(self, home: Home, sock: socket.socket, peer: Peer, listener: Listener) -> None:
        self._home = home
        self.socket = sock
        self.peer = peer
        self.listener = listener
        self.keeper: Served = home.served if listener.site is None else listener.site
        self.served: Any = None
        self.is_open = True
        self.unsent_bytes = 0
        self._tls = listener.tls_stream()
        self._frames = _frames_of(listener, home.limits)
        self._held = 0
        self._unsent: deque[Part] = deque()
        self._cut = 0
        """How much of the first of them is sent."""
        self._waiting: Answer | None = None
        self._has_more = False
        self._is_early = True
        self._is_http = listener.site is not None
        self._events = 0
        self._begun_ms = self._active_ms = self._progress_ms = home.elapsed_ms
        self._held_since_ms = home.elapsed_ms
        self.asked_ms = -1
        self._ended_ms: int | None = None

    def begin(self) -> None:
        """Watches for the peer's first bytes."""
        if self._tls is None:
            self._meet()
        else:
            self._home.look_at(self.deadline_ms())
        self._watch()

    @property
    def held_bytes(self) -> int:
        """What was received and not handled yet."""
        return self._held

    @property
    def is_waiting(self) -> bool:
        """Whether a request waits for its answer."""
        return self._waiting is not None

    @property
    def stalled_since_ms(self) -> int:
        """When the peer took a byte last, or had nothing to take."""
        return self._progress_ms

    def on_events(self, events: int) -> None:
        """Sends, receives and handles what can be without waiting."""
        if events & EVENT_WRITE:
            self._flush()
        if events & EVENT_READ and self.is_open:
            self._receive()
        self.serve()

    def serve(self) -> None:
        """Has whole frames handled, until one waits or it is the turn of other connections."""
        count, self._has_more = 0, False
        while self.is_open and self._waiting is None and self.served is not None:
            if self.unsent_bytes > self._home.limits.max_unsent_bytes:
                break
            if count == (MAX_FRAMES_A_TURN if self.listener.site is None else 1):
                self._has_more = True
                self._home.call_again(self)
                break
            try:
                frame = self._frames.take()
            except MalformedFrameError as error:
                self.close(str(error))
                break
            if frame is None:
                break
            count += 1
            self._handle(frame)
        if not self.is_open:
            return
        if self._is_http and self._is_over():
            self._end()
        held = self._frames.held_bytes
        if held != self._held:
            self._count_held(held)
        if self._ended_ms is not None:
            self._close_if_done()
        if self.is_open:
            self._watch()

    def _is_over(self) -> bool:
        """Whether an endpoint of HTTP has got its last request, as the client wants it."""
        if self._waiting is not None or self._ended_ms is not None:
            return False
        return getattr(self._frames, "is_over", False)

    def _handle(self, frame: Any) -> None:
        home, answer = self._home, Answer(self)
        self.asked_ms = home.elapsed_ms
        try:
            waits = self.keeper.handle(self.served, frame, home.now_ms, answer)
        except BaseException as error:  # noqa: BLE001 - the keeper's, which ends this connection
            answer.is_given = True
            self._fail(error)
            return
        if waits and not answer.is_given:
            self._waiting = answer
        else:
            answer.is_given = True
        if self._is_early and self.is_open:
            self._look_who_it_is()
            if getattr(self.served, "refusal", ""):
                self._end()

    def answer(self, answer: Answer, parts: Sequence[Part] | None) -> None:
        """Sends what a request is answered with; `Answer` calls it once."""
        if not self.is_open:
            return
        if parts is None:
            self.close("")
            return
        if parts:
            self._send(parts)
        if self._waiting is answer:
            self._waiting = None
            self._home.call_again(self)

    def _send(self, parts: Sequence[Part]) -> None:
        size, frame = sum(map(len, parts)), parts
        if not self._is_http:
            frame = (size.to_bytes(_SIZE_BYTES, "big"), *parts)
            size += _SIZE_BYTES
        if self._tls is not None:
            sealed = self._tls.seal(frame)
            if self._tls.fault:
                self.close(self._tls.fault)
                return
            self._queue((sealed,), len(sealed))
        elif size <= JOINED_BYTES:
            self._queue((b"".join(frame),), size)
        else:
            self._queue(frame, size)

    def _queue(self, parts: Sequence[Part], size: int) -> None:
        """Sends at once what the socket has room for, mostly all of it, and keeps the rest."""
        sent = 0
        if not self._unsent:
            self._progress_ms = self._home.elapsed_ms
            sent = self._send_some(
                parts if len(parts) <= MAX_SENT_PARTS else parts[:MAX_SENT_PARTS]
            )
            if sent == size or not self.is_open:
                return
        self._unsent.extend(parts)
        kept = size - self._drop(sent)
        self.unsent_bytes += kept
        self._home.unsent_bytes += kept
        self._home.look_at(self.deadline_ms())
        # At once: what one request wakes may be answers to thousands.
        self._home.keep_bounds()

    def _flush(self) -> None:
        unsent, freed = self._unsent, 0
        while unsent:
            sent = self._send_some(list(islice(unsent, MAX_SENT_PARTS)))
            if not sent:
                break
            freed += self._drop(sent)
        if self.is_open:
            self.unsent_bytes -= freed
            self._home.unsent_bytes -= freed

    def _send_some(self, parts: Sequence[Part]) -> int:
        """Returns how many bytes the socket has taken; closes it where that fails."""
        try:
            sent = self.socket.send(parts[0]) if len(parts) == 1 else self.socket.sendmsg(parts)
        except BlockingIOError:
            return 0
        except OSError as error:
            self.close(_reason(error))
            return 0
        self._home.sent_bytes += sent
        self._progress_ms = self._active_ms = self._home.elapsed_ms
        return sent

    def _drop(self, sent_bytes: int) -> int:
        """Forgets parts of the unsent that are sent; returns the bytes that are not held any more.

        A part that is half sent is held as a whole.
        """
        unsent, freed = self._unsent, 0
        while unsent and sent_bytes >= len(unsent[0]):
            size = len(unsent.popleft())
            sent_bytes -= size
            freed += size + self._cut
            self._cut = 0
        if sent_bytes:
            unsent[0] = memoryview(unsent[0])[sent_bytes:]
            self._cut += sent_bytes
        return freed

    def _receive(self) -> None:
        missing = self._frames.missing_bytes
        size = RECEIVE_BYTES if missing <= RECEIVE_BYTES else min(missing, RECEIVE_BYTES_AMID_FRAME)
        try:
            data = self.socket.recv(size)
        except BlockingIOError:
            return
        except OSError as error:
            self.close(_reason(error))
            return
        if not data:
            self._end()
            return
        self._active_ms = self._home.elapsed_ms
        self._home.received_bytes += len(data)
        if self._tls is not None:
            data = self._open(self._tls, data)
        if data:
            self._frames.feed(data)

    def _open(self, tls: TlsStream, data: bytes) -> bytes:
        """Takes bytes of TLS; the first of them are the handshake."""
        was_ready = tls.is_ready
        opened = tls.open(data)
        reply = tls.to_send()
        if reply:
            self._queue((reply,), len(reply))
        if tls.fault:
            self.close(tls.fault)
            return b""
        if tls.is_ready and not was_ready:
            self.peer = self.peer._replace(subject=tls.subject())
            self._meet()
        if tls.is_at_end:
            self._end()
        return opened

    def _meet(self) -> None:
        met = outcome_of(partial(self.keeper.connect, self.peer))
        if met.error is not None:
            self._fail(met.error)
            return
        self.served = met.get()
        self._look_who_it_is()
        self._home.look_at(self.deadline_ms())

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, CloseConnectionError):
            self.close(error.reason)
        else:
            self._home.errors.append(error)
            self.close(f"a fault of the broker, please report it: {error!r}")

    def _end(self) -> None:
        """The peer sends no more."""
        self._ended_ms = self._home.elapsed_ms
        self._home.look_at(self.deadline_ms())

    def _close_if_done(self) -> None:
        if self._ended_ms is None or self._waiting is not None or self._has_more or self._unsent:
            return
        self.close("")

    def _count_held(self, held: int) -> None:
        if not self._held:
            self._held_since_ms = self._home.elapsed_ms
        self._home.held_bytes += held - self._held
        self._held = held
        if held:
            self._home.look_at(self.deadline_ms())
            self._home.keep_bounds()

    def _watch(self) -> None:
        events = EVENT_WRITE if self._unsent else 0
        if self._wants_more():
            events |= EVENT_READ
        if events != self._events:
            self._home.watch(self, events, self._events)
            self._events = events

    def _wants_more(self) -> bool:
        limits = self._home.limits
        if self._ended_ms is not None or self._has_more:
            return False
        if self.unsent_bytes > limits.max_unsent_bytes:
            return False
        # What waits may be long; a frame that is not whole has a bound of its own.
        return self._waiting is None or self._held < limits.max_held_bytes

    def _look_who_it_is(self) -> None:
        self._is_early = getattr(self.served, "needs_authentication", False)
        if self._is_early:
            return
        self._home.is_known(self)
        if not self._is_http:
            self._frames.max_bytes = self._home.limits.max_frame_bytes

    def deadline_ms(self) -> int:
        """When it is closed unless something happens before, in real time."""
        return min(self._deadlines())[0]

    def lateness(self) -> str:
        """Why it is closed at its deadline."""
        return min(self._deadlines())[1]

    def _deadlines(self) -> Iterator[tuple[int, str]]:
        limits = self._home.limits
        if self._is_early:
            yield self._begun_ms + limits.max_early_ms, "it has not said in time who it is"
        if self._unsent:
            yield self._progress_ms + limits.max_stalled_ms, "it takes no answers"
        elif self._ended_ms is not None:
            yield self._ended_ms + limits.max_half_closed_ms, ""
        elif self._waiting is not None:
            # It is as old as the broker lets it become; this is only when to look again.
            yield self._home.elapsed_ms + limits.max_idle_ms, ""
        elif self._is_http:
            yield self._http_deadline()
        elif self._held:
            yield self._active_ms + limits.max_stalled_ms, "it does not go on with its request"
        else:
            yield self._active_ms + limits.max_idle_ms, ""

    def _http_deadline(self) -> tuple[int, str]:
        """The end of a request, whose bytes may come one by one, or of the time between two."""
        if self._held:
            begun_ms = max(self._held_since_ms, self.asked_ms)
            return begun_ms + MAX_HTTP_REQUEST_MS, "it does not go on with its request"
        if self.asked_ms < 0:
            return self._begun_ms + MAX_HTTP_REQUEST_MS, "it has asked for nothing in time"
        return self._active_ms + MAX_HTTP_IDLE_MS, ""

    def close(self, reason: str) -> None:
        """Closes the socket; an empty reason is an ordinary end."""
        if not self.is_open:
            return
        reason = getattr(self.served, "refusal", "") or reason
        self.is_open = False
        if self._tls is not None and self._tls.is_ready and not self._unsent:
            # Whether it arrives or not, it is over.
            with suppress(OSError):
                self.socket.send(self._tls.end())
        if self._events:
            self._home.watch(self, 0, self._events)
            self._events = 0
        self._home.unsent_bytes -= self.unsent_bytes
        self._home.held_bytes -= self._held
        self.unsent_bytes = self._held = 0
        self._unsent.clear()
        self._waiting = None
        self.socket.close()
        self._home.has_closed(self, reason)


def _frames_of(listener: Listener, limits: Limits) -> Frames | HttpRequests:
    if listener.site is None:
        return Frames(limits.max_early_frame_bytes)
    from ottla.net.http import HttpRequests

    return HttpRequests(listener.site.max_body_bytes)


def _reason(error: OSError) -> str:
    """Why an error of a socket is worth a line; a peer that is gone is not."""
    return "" if isinstance(error, ConnectionError) else f"{error.strerror or error}"
