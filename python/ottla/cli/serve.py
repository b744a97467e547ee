"""`ottla serve`: a Kafka broker in the foreground, for a laptop or a CI job."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

import click

from ottla.cli.options import Verb
from ottla.cli.terminal import complain, say

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

MAX_PORT = 65_535
DEFAULT_PORT = 9092
_MAX_DIGITS = 9
_ENDS = (signal.SIGINT, signal.SIGTERM)


@click.command(cls=Verb)
@click.option(
    "--port",
    type=click.IntRange(0, MAX_PORT),
    default=DEFAULT_PORT,
    show_default=True,
    help="Where clients connect; 0 for a free port, which the first line names.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on, which clients are told to connect to.",
)
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(),
    help="Settings by Kafka's names, as a server.properties has them.",
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
    help="Keep logs in this directory, a log directory as Kafka's; in memory by default.",
)
@click.option(
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
def serve(
    port: int,
    host: str,
    config_file: str | None,
    settings: tuple[str, ...],
    data: str | None,
    topics: tuple[str, ...],
    kafka_version: str | None,
) -> int:
    """Serve a Kafka broker until Ctrl-C or SIGTERM.

    It speaks Kafka's protocol to any client. It keeps records in memory and forgets them when it
    ends, or keeps everything in the directory of --data (or log.dirs), as Kafka does. One line on
    standard output says that it is ready, and where.

    \b
    Exit status:
      0   stopped by Ctrl-C or SIGTERM
      3   the port is taken, or a file or directory that was given cannot be used
      64  invalid command line, or a setting that is not allowed
    """  # noqa: D301 - click's mark of lines to keep
    from ottla.broker.configs.setting import InvalidConfigError
    from ottla.broker.topics import TopicError
    from ottla.errors import ListenError, LogDirectoryError
    from ottla.net.serving import broker_server
    from ottla.net.settings import ListenerSettings

    texts = _settings(config_file, settings)
    wanted = [_topic(text) for text in topics]
    try:
        server = broker_server(
            texts,
            listeners=(ListenerSettings(host=host, port=port),),
            kafka_version=kafka_version,
            log=complain,
            data=data,
        )
    except InvalidConfigError as error:
        raise click.UsageError(str(error)) from None
    except (ListenError, LogDirectoryError) as error:
        complain(error)
        return 3
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--kafka-version") from None
    # Threads inherit the mask: the signals that end it reach `sigwait` and nobody else.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    try:
        with server:
            server.run(lambda broker: _prepare(broker, wanted, server.clock.now_ms()))
            address = server.addresses[0]
            say(f"ready: bootstrap.servers={address.host}:{address.port}")
            sys.stdout.flush()
            signal.sigwait(_ENDS)
    except TopicError as refusal:
        raise click.BadParameter(refusal.message, param_hint="--topic") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return 0


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
        with open(config_file, encoding="utf-8", errors="surrogateescape") as file:
            try:
                texts = parse_properties(file.read())
            except ValueError as error:
                raise click.UsageError(f"{config_file}: {error}") from None
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--set")
        texts[name.strip()] = value
    return texts


def _topic(text: str) -> tuple[str, int]:
    name, colon, count = text.rpartition(":")
    if not colon:
        return text, -1
    if not (count.isascii() and count.isdigit() and len(count) <= _MAX_DIGITS):
        raise click.BadParameter(
            f"{text!r}: {count!r} is no number of partitions", param_hint="--topic"
        )
    return name, int(count)
