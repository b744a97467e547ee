"""The endpoint for those who watch a broker: its numbers, and whether it can be used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.net.http import NOT_OF_THIS_MACHINE, HttpRefusal, http_answer
from ottla.net.site import Site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ottla.broker.broker import Broker
    from ottla.broker.meters import Family
    from ottla.net.http import HttpRequest
    from ottla.net.served import Send, Traffic
    from ottla.net.server import Server

__all__ = ["MetricsSite", "broker_metrics"]

_EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = ("GET", "HEAD")


class MetricsSite(Site):
    """``/metrics`` in the text format of Prometheus, ``/health`` in JSON.

    Args:
        families: returns the numbers of the moment; called on the server's thread.
        health: returns what is wrong, in words, by subject; nothing where all is well.
        is_local: whether it is to answer to names of this machine alone.
    """

    def __init__(
        self,
        families: Callable[[], Iterable[Family]],
        health: Callable[[], Mapping[str, str]],
        *,
        is_local: bool = False,
    ) -> None:
        self._is_local = is_local
        self._families = families
        self._health = health

    def answer(self, _connection: Any, request: HttpRequest, _now_ms: int, send: Send) -> bool:
        """Answers at once."""
        if self._is_local and not request.is_of_this_machine:
            raise HttpRefusal(421, NOT_OF_THIS_MACHINE)
        pages = {"/metrics": self._metrics_page, "/health": self._health_page}
        page = pages.get(request.path)
        if page is None:
            raise HttpRefusal(404, "here are /metrics and /health")
        if request.method not in _METHODS:
            raise HttpRefusal(405, "the methods here are GET and HEAD")
        status, body, content_type = page()
        send(
            http_answer(
                status,
                body.encode(),
                content_type,
                is_last=request.is_last,
                without_body=request.method == "HEAD",
            )
        )
        return False

    def _metrics_page(self) -> tuple[int, str, str]:
        from ottla.broker.meters import exposition

        return 200, exposition(self._families()), _EXPOSITION

    def _health_page(self) -> tuple[int, str, str]:
        from ottla.text import json_text

        wrong = dict(self._health())
        told = {"status": "unavailable" if wrong else "ready", "wrong": wrong}
        return 503 if wrong else 200, f"{json_text(told)}\n", "application/json"


def broker_metrics(
    server: Server[Broker], health: Callable[[], Mapping[str, str]], *, is_local: bool = False
) -> MetricsSite:
    """Returns the site of a broker and the server that it is behind.

    Args:
        server: of the broker.
        health: returns what is wrong beside what the broker knows of itself.
        is_local: whether it is to answer to names of this machine alone.
    """

    def families() -> list[Family]:
        from ottla.broker.measured import measured

        return [*server.run(measured), *_sockets(server.traffic)]

    return MetricsSite(families, lambda: {**server.served.wrong, **health()}, is_local=is_local)


def _sockets(traffic: Traffic) -> Iterator[Family]:
    from ottla.broker.meters import COUNTER, GAUGE, Family, Sample

    name = "kafka_server_socket_server_metrics"
    for exported, kind, text, value in (
        (f"{name}_incoming_byte_total", COUNTER, "Bytes received.", traffic.received_bytes),
        (f"{name}_outgoing_byte_total", COUNTER, "Bytes sent.", traffic.sent_bytes),
        (
            "ottla_unsent_bytes",
            GAUGE,
            "Answers that clients do not take yet.",
            traffic.unsent_bytes,
        ),
        ("ottla_unhandled_bytes", GAUGE, "Requests that wait.", traffic.held_bytes),
    ):
        yield Family(exported, kind, text, [Sample((), value)])
