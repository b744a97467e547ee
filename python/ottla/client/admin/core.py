"""The core of an admin client: calls under way, without I/O.

A call's key waits until it is known where its request goes, is asked for, and has a result or is
asked for again, after a back-off: where the connection broke, the node is another one by now, or
Kafka calls the error retriable. Once the time of the call is over, what is left has failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.client.admin.arguments import whole
from ottla.client.admin.operation import AGAIN, Controller, Operation, Outcome, Route
from ottla.client.admin.routes import Routes
from ottla.client.errors import (
    ApiError,
    KafkaError,
    KafkaTimeoutError,
    NetworkError,
    RetriableError,
    UnsupportedVersionError,
    error_of,
)
from ottla.client.groups.call import Call
from ottla.client.network.backoff import Backoff
from ottla.client.pending import Pending

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.network.network import ClientNetwork
    from ottla.client.options.settings import AdminSettings

__all__ = ["AdminCore"]


class _Key:
    """A key that has no result yet."""

    def __init__(self) -> None:
        self.attempts = 0
        self.not_before_ms = 0
        self.is_under_way = False
        self.error: Exception | None = None


class _Running:
    """A call under way."""

    def __init__(self, operation: Operation[Any, Any], timeout_ms: int, now_ms: int) -> None:
        self.operation = operation
        self.pending = Pending(operation.name)
        self.timeout_ms = timeout_ms
        self.deadline_ms = now_ms + timeout_ms
        self.names: list[Any] = []
        self.keys: dict[Any, _Key] | None = None
        self.outcomes: dict[Any, Outcome] = {}


class AdminCore:
    """A machine that makes calls.

    Args:
        settings: of the client.
        network: its connections.
        random: draws from [0, 1).
    """

    def __init__(
        self, settings: AdminSettings, network: ClientNetwork, *, random: Callable[[], float]
    ) -> None:
        self.network = network
        self._settings = settings
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random)
        self._routes = Routes(self.network, self._coordinator_answered)
        self._running: list[_Running] = []
        self._has_news = False
        self.network.metadata.on_change(self._note_news)

    def begin(
        self, operation: Operation[Any, Any], now_ms: int, timeout_ms: int | None = None
    ) -> Pending:
        """Begins a call.

        Args:
            operation: what it does.
            now_ms: the time.
            timeout_ms: how long it may take; ``None`` for `default_api_timeout_ms`.

        Raises:
            IllegalArgumentError: the time is none.
        """
        if timeout_ms is None:
            timeout_ms = self._settings.default_api_timeout_ms
        whole(timeout_ms, "timeout_ms", 0)
        call = _Running(operation, timeout_ms, now_ms)
        operation.timeout_ms = min(timeout_ms, self._settings.request_timeout_ms)
        self._running.append(call)
        self._has_news = True
        return call.pending

    def tick(self, now_ms: int) -> None:
        """Sends what waits, and ends what is done or has waited too long."""
        self.network.tick(now_ms)
        while self._has_news:
            self._has_news = False
            self._advance(now_ms)
        self._advance(now_ms)
        self.network.tick(now_ms)

    def next_deadline_ms(self) -> int | None:
        """Returns when there is something to do by itself."""
        due = [call.deadline_ms for call in self._running]
        for call in self._running:
            due += [
                key.not_before_ms
                for key in (call.keys or {}).values()
                if not key.is_under_way and key.not_before_ms
            ]
        network_ms = self.network.next_deadline_ms()
        if network_ms is not None:
            due.append(network_ms)
        return 0 if self._has_news else min(due, default=None)

    def _note_news(self) -> None:
        self._has_news = True

    def _advance(self, now_ms: int) -> None:
        for call in list(self._running):
            self._send(call, now_ms)
            if now_ms >= call.deadline_ms:
                self._time_out(call)
            self._end_if_done(call)

    def _end_if_done(self, call: _Running) -> None:
        if call.keys or call.keys is None:
            return
        self._running.remove(call)
        self._follow()
        outcomes = {name: call.outcomes[name] for name in call.names if name in call.outcomes}
        failure = call.operation.failure(call.outcomes)
        if failure is not None:
            call.pending.end(failure)
        else:
            call.pending.end(value=call.operation.value(outcomes))

    def _time_out(self, call: _Running) -> None:
        left = {None: _Key()} if call.keys is None else call.keys
        for name, key in left.items():
            why: Exception | str | None = key.error or self.network.last_failure()
            if why is None and not key.is_under_way:
                # Without keys, it is the brokers that are waited for: so is the controller.
                route = Controller() if call.keys is None else call.operation.route(name)
                why = self._routes.obstacle(route)
            about = "" if name is None else f" of {_named(name)}"
            call.outcomes[name] = KafkaTimeoutError(
                f"{call.operation.name}{about} took longer than {call.timeout_ms} ms"
                + (f": {why}" if why else "")
            )
        call.keys = {}

    def _send(self, call: _Running, now_ms: int) -> None:
        if call.keys is None and not self._begin_keys(call):
            return
        operation = call.operation
        groups: dict[tuple[Any, ...], list[Any]] = {}
        for name, key in list((call.keys or {}).items()):
            if key.is_under_way or now_ms < key.not_before_ms:
                continue
            key.not_before_ms = 0
            route = operation.route(name)
            try:
                is_known, node_id = self._routes.find(route, now_ms)
            except KafkaError as error:
                self._finish(call, name, error)
                continue
            if is_known:
                alone = None if operation.is_shared else name
                where = (node_id, *operation.request(name), alone)
                groups.setdefault(where, []).append(name)
        for where, names in groups.items():
            self._ask(call, where, names, now_ms)

    def _begin_keys(self, call: _Running) -> bool:
        metadata = self.network.metadata
        names = call.operation.keys(metadata.nodes)
        if names is not None:
            call.names = list(dict.fromkeys(names))
            call.keys = {name: _Key() for name in call.names}
            self._follow()
            return True
        if metadata.failure is not None:
            call.keys = {}
            call.outcomes[None] = metadata.failure
        elif not metadata.nodes:
            metadata.request_update()
        return False

    def _follow(self) -> None:
        self._routes.follow(
            call.operation.route(name) for call in self._running for name in call.keys or ()
        )

    def _ask(
        self,
        call: _Running,
        where: tuple[Any, ...],
        names: list[Any],
        now_ms: int,
    ) -> None:
        node_id, request, versions, _ = where

        def answered(_exchange: Call, response: Any, at_ms: int) -> None:
            self._has_news = True
            if not call.pending.is_done:
                self._answered(call, names, response, at_ms)

        def failed(_exchange: Call, error: Exception, at_ms: int) -> None:
            self._has_news = True
            if not call.pending.is_done:
                self._failed(call, names, error, at_ms)

        for name in names:
            (call.keys or {})[name].is_under_way = True
        fields = call.operation.fields(names)
        exchange = Call(request, fields, answered, failed, versions=versions)
        self.network.send(node_id, exchange, now_ms)

    def _answered(self, call: _Running, names: list[Any], response: Any, now_ms: int) -> None:
        left = set(names)
        for name, outcome in call.operation.read(names, response):
            if name not in left:
                continue
            left.discard(name)
            if isinstance(outcome, RetriableError) and (
                outcome.error_code not in call.operation.final
            ):
                self._again(call, name, outcome, now_ms)
            elif outcome is AGAIN:
                (call.keys or {})[name].is_under_way = False
            else:
                self._finish(call, name, _told(call.operation.name, name, outcome))
        for name in left:
            error = KafkaError(f"the answer to {call.operation.name} does not have {_named(name)}")
            self._finish(call, name, error)

    def _failed(self, call: _Running, names: list[Any], error: Exception, now_ms: int) -> None:
        if isinstance(error, UnsupportedVersionError) and call.operation.ask_otherwise(names):
            for name in names:
                (call.keys or {})[name].is_under_way = False
            return
        for name in names:
            if isinstance(error, NetworkError):
                self._again(call, name, error, now_ms)
            else:
                self._finish(call, name, error)

    def _coordinator_answered(self, route: Route, error: KafkaError | None, now_ms: int) -> None:
        self._has_news = True
        if error is None:
            return
        for call in self._running:
            for name in list(call.keys or ()):
                if call.operation.route(name) == route:
                    if isinstance(error, RetriableError):
                        self._again(call, name, error, now_ms)
                    else:
                        self._finish(call, name, error)

    def _again(self, call: _Running, name: Any, error: KafkaError, now_ms: int) -> None:
        key = (call.keys or {})[name]
        if key.attempts >= self._settings.retries:
            self._finish(call, name, error)
            return
        key.attempts += 1
        key.error = error
        key.is_under_way = False
        key.not_before_ms = now_ms + self._backoff.delay_ms(key.attempts)
        self._routes.forget(call.operation.route(name))

    def _finish(self, call: _Running, name: Any, outcome: Outcome) -> None:
        if call.keys is not None and call.keys.pop(name, None) is not None:
            call.outcomes[name] = outcome
            self._has_news = True


def _told(operation: str, key: Any, outcome: Outcome) -> Outcome:
    """Returns an outcome; an error that has no more than its code says of what it is."""
    if isinstance(outcome, ApiError) and str(outcome) == outcome.error and key is not None:
        return error_of(outcome.error_code, f"{outcome.error} ({operation} of {_named(key)})")
    return outcome


def _named(key: Any) -> str:
    """Returns a key as messages have it."""
    return "-".join(map(str, key)) if isinstance(key, tuple) else str(key)
