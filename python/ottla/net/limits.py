"""Everything that is bounded at the sockets, each bound with its reason.

Times here are real ones: a test that advances the broker's clock closes no connection by it.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Limits"]

RECEIVE_BYTES = 1 << 16
"""Of one call. Larger buffers come from the system anew each time, at four times the cost."""

RECEIVE_BYTES_AMID_FRAME = 1 << 20
"""Of one call once so much of a frame is there that it is a large one: half the cost a byte."""

JOINED_BYTES = 1 << 14
"""Of an answer: to put the parts of a smaller one together costs less than to name each of them."""

MAX_SENT_PARTS = 512
"""Of one `sendmsg`: no system takes fewer than 1,024 (IOV_MAX)."""

MAX_FRAMES_A_TURN = 64
"""Pipelined requests of one connection before the others have theirs, some milliseconds. Of an
endpoint of HTTP it is one, since a page of numbers takes as long."""

MAX_ACCEPTED_A_TURN = 64
"""New connections before the old ones have their turn."""

MAX_HTTP_CONNECTIONS = 100
"""Of an endpoint: who asks for numbers or sets faults is one program or two. For one more, that
gives way which has asked for nothing for the longest time."""

MAX_HTTP_IDLE_MS = 60_000
"""Between requests; a scrape comes as often at least."""

MAX_HTTP_REQUEST_MS = 10_000
"""From the first byte of a request to its last, and from the beginning to the first request."""

AWAKE_US = 150
"""Before it sleeps, where the last pause was no longer: a client that sends one record after the
other pauses for some 100 µs, and the system takes 20 to 50 µs to wake who sleeps."""

AWAKE_BYTES = 4 << 10
"""Received and sent in the turn before: behind more, the time to wake up counts for little."""

MAX_WAIT_MS = 3_600_000
"""Between two looks at what is due: settings of Kafka are longer than system calls can wait."""

ACCEPT_PAUSE_MS = 250
"""Without descriptors every attempt to accept fails at once: a pause, or it would never rest."""

BACKLOG = 1_024
"""Connections that the kernel holds for us; it lowers this to its own bound."""

LOG_LINES_EVERY_MS = 1_000
"""One line: a peer that sends garbage as fast as it can must not fill a disk with what we say."""

LOG_PATIENCE_MS = 1_000
"""For a reader of the log of requests that does not go on: once, and then lines are left out."""

MAX_JOBS = 10_000
"""Jobs of other threads that wait: of callers that wait for the result there are fewer."""

MAX_WATCHES = 1_000
"""Conditions that somebody waits for; each is looked at in every turn."""

WATCH_EVERY_MS = 100
"""A condition that depends on something outside of the broker is looked at so often."""

MAX_WORK = 1_000
"""Sealed jobs that wait for the worker; each may hold a segment open."""

MAX_ERRORS = 16
"""Faults of the broker that are kept to be looked at: the newest, with all that they refer to."""

MAX_ADVANCE_S = 1_000_000_000
"""By which a test moves a clock, or delays an answer: some 30 years. Times stay far from the end of
64 bits."""

MAX_STEPS_OF_TIME = 10_000
"""Deadlines that an advanced clock passes one after the other; beyond, it jumps."""


class Limits(NamedTuple):
    """Bounds that a configuration may set; a broker's names are in the comments.

    Attributes:
        max_frame_bytes: a larger frame ends its connection before it is received.
        max_early_frame_bytes: the same until the peer has said who it is.
        max_connections: of all listeners; a further one is closed as soon as it is accepted.
        max_connections_per_host: of one address.
        max_early_connections: that have not said who they are: the oldest of more is closed, so
            that a crowd of strangers keeps out nobody who is quick.
        max_early_ms: until the TLS handshake and the authentication are done.
        max_idle_ms: without a request.
        max_stalled_ms: in which a peer takes no byte of an answer, or goes on with no frame.
        max_half_closed_ms: in which a peer that sends no more gets its last answers.
        max_unsent_bytes: of a connection: above, no further request of it is looked at. An answer
            may be larger.
        max_held_bytes: of a connection: requests that are received while one waits for its answer.
        max_unsent_total_bytes: of all connections: above, that which takes nothing for the longest
            time is closed.
        max_held_total_bytes: of all connections: above, that which holds the most is closed.
    """

    max_frame_bytes: int = 104_857_600  # socket.request.max.bytes
    max_early_frame_bytes: int = 524_288  # sasl.server.max.receive.size
    max_connections: int = 20_000  # max.connections; each takes some 3 KiB here, and a descriptor
    max_connections_per_host: int = 2_147_483_647  # max.connections.per.ip
    max_early_connections: int = 1_000
    max_early_ms: int = 30_000
    max_idle_ms: int = 600_000  # connections.max.idle.ms
    max_stalled_ms: int = 30_000  # as long as a client waits for an answer (request.timeout.ms)
    max_half_closed_ms: int = 5_000
    max_unsent_bytes: int = 1 << 20  # one fetch of one partition (max.partition.fetch.bytes)
    max_held_bytes: int = 1 << 20
    max_unsent_total_bytes: int = 1 << 29
    max_held_total_bytes: int = 1 << 29
