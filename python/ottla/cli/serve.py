"""`ottla serve`: a Kafka broker in the foreground, for a laptop or a CI job."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from ottla.cli.options import Verb
from ottla.cli.terminal import complain, discard, say

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.net.server import Server

MAX_PORT = 65_535
DEFAULT_PORT = 9092
LOCAL = "127.0.0.1"
FAILED = 3
_MAX_DIGITS = 9
_ENOUGH_DESCRIPTORS = 65_536
_ENDS = (signal.SIGINT, signal.SIGTERM)
_LOOK_EVERY_S = 1.0
"""How often it is seen that the broker has ended by itself, which is a fault of it."""
_ONE_SIGNAL_S = 1.0
"""Signals within it are one: `timeout` sends two, as do a terminal and a wrapper that passes on."""


class _Place(NamedTuple):
    """Where an endpoint listens."""

    host: str
    port: int


@click.command(cls=Verb)
@click.option(
    "-p",
    "--port",
    type=click.IntRange(0, MAX_PORT),
    default=DEFAULT_PORT,
    show_default=True,
    help="Where clients connect; 0 for a free port, which the first line names.",
)
@click.option(
    "--host",
    default=LOCAL,
    show_default=True,
    help="Address to listen on, which clients are told to connect to.",
)
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(),
    help="Settings by Kafka's names, as a server.properties has them; - for standard input.",
)
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="One setting by Kafka's name, such as num.partitions=3. May be repeated.",
)
@click.option(
    "--data",
    metavar="DIR",
    type=click.Path(),
    help="Keep logs in this directory, a log directory as Kafka's; in memory, or where log.dirs of "
    "--config says, by default.",
)
@click.option(
    "-t",
    "--topic",
    "topics",
    metavar="NAME[:PARTITIONS]",
    multiple=True,
    help="A topic to create at the start. May be repeated.",
)
@click.option(
    "--kafka-version",
    metavar="RELEASE",
    help="A release to imitate, from 2.4 on: its versions of APIs and its verdicts.",
)
@click.option(
    "--metrics",
    metavar="[HOST:]PORT",
    help="Where /metrics (for Prometheus) and /health are; of this host alone by default.",
)
@click.option(
    "--request-log",
    type=click.Choice(["text", "json"]),
    help="Log every request, in one of Kafka's two forms.",
)
@click.option(
    "--request-log-file",
    metavar="FILE",
    type=click.Path(),
    help="The file that this log is appended to; standard error by default.",
)
@click.option(
    "--control",
    metavar="[HOST:]PORT",
    help="Serve faults, time and inspection by HTTP, for tests in any language; 0 for a free port.",
)
@click.option(
    "--control-token-file",
    metavar="FILE",
    type=click.Path(),
    help="What clients of --control have to show; by default the ready line names a random one.",
)
@click.pass_context
def serve(
    context: click.Context,
    port: int,
    host: str,
    config_file: str | None,
    settings: tuple[str, ...],
    data: str | None,
    topics: tuple[str, ...],
    kafka_version: str | None,
    metrics: str | None,
    request_log: str | None,
    request_log_file: str | None,
    control: str | None,
    control_token_file: str | None,
) -> int:
    """Serve a Kafka broker until Ctrl-C or SIGTERM.

    It speaks Kafka's protocol to any client. It keeps records in memory and forgets them when it
    ends, or keeps everything in the directory of --data (or log.dirs), as Kafka does. One line on
    standard output says that it is ready, and where. Another Ctrl-C or SIGTERM, a second later,
    ends it at once.

    \b
    Exit status:
      0    stopped by Ctrl-C or SIGTERM
      3    a port, file or directory cannot be used, or the
           broker has failed
      64   invalid command line, or a setting not allowed
      130, 143  ended at once
    """  # noqa: D301 - click's mark of lines to keep
    from ottla.cli.serve_control import add_control
    from ottla.errors import ListenError, LogDirectoryError
    from ottla.net.memory import keep_freed_memory

    keep_freed_memory()
    texts = _settings(config_file, settings)
    names = {text.partition("=")[0].strip() for text in settings}
    if data is not None and not names.isdisjoint({"log.dir", "log.dirs"}):
        raise click.UsageError("--data says where logs are: leave out --set log.dirs")
    if "listeners" in texts and _is_given(context, "port", "host"):
        raise click.UsageError("listeners says where to listen: leave out --port and --host")
    if request_log is None and request_log_file is not None:
        raise click.UsageError("--request-log-file is for --request-log text or json")
    wanted = [_topic(text) for text in topics]
    endpoint = None if metrics is None else _place(metrics, "--metrics")
    controller = None if control is None else _place(control, "--control")
    _allow_descriptors()
    try:
        server = _server(texts, host, port, kafka_version, data)
        try:
            if request_log is not None:
                _log_requests(server, request_log, request_log_file)
            controlled = add_control(server, controller, control_token_file)
            server.wait_awake()
            return _run(server, wanted, endpoint, controlled)
        finally:
            server.stop()
    except (ListenError, LogDirectoryError) as error:
        complain(error)
        return FAILED


def _is_given(context: click.Context, *names: str) -> bool:
    given = click.core.ParameterSource.COMMANDLINE
    return any(context.get_parameter_source(name) is given for name in names)


def _server(
    texts: dict[str, str], host: str, port: int, kafka_version: str | None, data: str | None
) -> Server[Broker]:
    from ottla.broker.configs.setting import InvalidConfigError
    from ottla.errors import LogDirectoryError
    from ottla.net.serving import broker_server

    if host.count(":") == 1:
        raise click.BadParameter(f"{host!r} has a port, which --port gives", param_hint="--host")
    try:
        return broker_server(
            texts, host=host, port=port, kafka_version=kafka_version, log=_complain, data=data
        )
    except InvalidConfigError as error:
        raise click.UsageError(str(error)) from None
    except LogDirectoryError:
        # A ValueError too, but the command line is not at fault.
        raise
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--kafka-version") from None


def _allow_descriptors() -> None:
    """Takes as many as the system lets it: each connection and each open file is one."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _ENOUGH_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        # Some systems let nobody have as many as they say.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _complain(line: str) -> None:
    """Prints a line of the broker's, unless nobody goes on reading: clients do not wait for one."""
    from ottla.net.log_lines import has_room

    if has_room(sys.stderr.fileno()):
        complain(line)


def _log_requests(server: Server[Broker], form: str, file: str | None) -> None:
    from ottla.net.request_log import log_requests

    if file is None:
        descriptor = sys.stderr.fileno()
    else:
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    log_requests(server, form, descriptor, _complain)


def _run(
    server: Server[Broker],
    topics: list[tuple[str, int]],
    metrics: _Place | None,
    controlled: list[str],
) -> int:
    from ottla.broker.topics import TopicError

    wrong = {"broker": "it is starting"}
    ready = [_addresses(server)]
    if metrics is not None:
        from ottla.net.http import is_of_this_machine
        from ottla.net.metrics import broker_metrics
        from ottla.net.settings import ListenerSettings

        is_local = is_of_this_machine(metrics.host)
        site = broker_metrics(server, lambda: wrong, is_local=is_local)
        place = server.add_site(site, ListenerSettings(metrics.host, metrics.port, "METRICS"))
        ready.append(f"metrics=http://{place.authority}/metrics")
    # Threads inherit the mask: the signals that end it reach `sigwait` and nobody else.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    handlers = [(end, signal.getsignal(end)) for end in _ENDS]
    try:
        with server:
            server.run(lambda broker: _prepare(broker, topics, server.clock.now_ms()))
            wrong.clear()
            _tell(f"ready: {' '.join([*ready, *controlled])}")
            has_failed = not _wait_for_the_end(server)
            wrong["broker"] = "it is stopping"
    except TopicError as refusal:
        raise click.BadParameter(refusal.message, param_hint="--topic") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for end, handler in handlers:
            signal.signal(end, handler)
    if has_failed:
        complain(f"the broker has failed, please report it: {server.failure!r}")
    return FAILED if has_failed else 0


def _addresses(server: Server[Broker]) -> str:
    """Returns where clients connect, by listener, as they are told."""
    from ottla.net.serving import endpoints_of

    (_, first), *others = endpoints_of(server).items()
    return " ".join([f"bootstrap.servers={first}", *(f"{name}={at}" for name, at in others)])


def _tell(line: str) -> None:
    """Prints the line that says it is ready. Who reads no output may still be a client."""
    try:
        say(line)
        sys.stdout.flush()
    except OSError:
        discard(sys.stdout)


def _wait_for_the_end(server: Server[Broker]) -> bool:
    """Waits for a signal; returns whether one came, and not the end of a broker that failed.

    A later signal ends the process at once: nobody has to wait for a disk that hangs.
    """
    if hasattr(signal, "sigtimedwait"):
        while signal.sigtimedwait(_ENDS, _LOOK_EVERY_S) is None:
            if server.failure is not None:
                return False
    else:
        signal.sigwait(_ENDS)
    end_at_once = partial(_end_at_once, time.monotonic() + _ONE_SIGNAL_S)
    for end in _ENDS:
        signal.signal(end, end_at_once)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
    return True


def _end_at_once(after: float, number: int, _frame: object) -> None:
    if time.monotonic() < after:
        return
    _complain("ended at once")
    os._exit(128 + number)


def _prepare(broker: Broker, topics: list[tuple[str, int]], now_ms: int) -> None:
    for name in broker.config.ignored:
        complain(f"{name} has no effect here")
    for name, partitions in topics:
        known = broker.image.topics.get(name)
        if known is not None and partitions in {-1, len(known.partitions)}:
            # It was kept.
            continue
        count, configs = broker.topics.check(name, partitions, -1, {})
        broker.topics.create(name, count, configs, now_ms)


def _settings(config_file: str | None, settings: tuple[str, ...]) -> dict[str, str]:
    from ottla.broker.configs.properties import parse_properties

    texts: dict[str, str] = {}
    if config_file is not None:
        try:
            texts = parse_properties(_text_of(config_file))
        except ValueError as error:
            raise click.UsageError(f"{config_file}: {error}") from None
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--set")
        texts[name.strip()] = value
    return texts


def _text_of(file: str) -> str:
    if file == "-":
        data = sys.stdin.buffer.read()
    else:
        with open(file, "rb") as opened:
            data = opened.read()
    return data.decode("utf-8", "surrogateescape")


def _topic(text: str) -> tuple[str, int]:
    name, colon, count = text.rpartition(":")
    if not colon:
        return text, -1
    if not (count.isascii() and count.isdigit() and len(count) <= _MAX_DIGITS):
        raise click.BadParameter(
            f"{text!r}: {count!r} is no number of partitions", param_hint="--topic"
        )
    return name, int(count)


def _place(text: str, option: str) -> _Place:
    host, _, port = text.rpartition(":")
    is_port = port.isascii() and port.isdigit() and len(port) <= _MAX_DIGITS
    if not is_port or int(port) > MAX_PORT:
        raise click.BadParameter(
            f"{text!r} is no port from 0 to {MAX_PORT}, nor a host and one", param_hint=option
        )
    return _Place(host.removeprefix("[").removesuffix("]") or LOCAL, int(port))
