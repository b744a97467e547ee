"""`ottla audit`: is this log sound?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

import click

from ottla.audit import AuditResult, Level
from ottla.audit import audit as audit_sources
from ottla.audit.judge.context import TopicConfigs, parse_topic_config
from ottla.cli.options import storage_option

if TYPE_CHECKING:
    from collections.abc import Sequence


def _topic_configs(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> TopicConfigs:
    configs: TopicConfigs = {}
    for value in values:
        try:
            topic, key, setting = parse_topic_config(value)
        except ValueError as error:
            raise click.BadParameter(str(error), context, parameter) from error
        configs.setdefault(topic, {})[key] = setting
    return configs


def _master(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """A master as Spark knows them: of any other it says nothing but a trace."""
    if value is None:
        return None
    from ottla.spark.setup.command import MASTERS

    if not value.startswith(MASTERS):
        raise click.BadParameter(
            f"{value!r} is no master of Spark: local[N], spark://host:port, yarn, k8s://host:port,"
            " or sc://host:port of Spark Connect",
            context,
            parameter,
        )
    return value


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, type=click.Path())
@click.option(
    "--level",
    type=click.Choice(get_args(Level)),
    default="full",
    show_default=True,
    help="How deep to look: checksums only; every record read; every rule of the format.",
)
@click.option(
    "--topic",
    "topics",
    metavar="GLOB",
    multiple=True,
    help="Only topics that match, as in 'orders-*'. May be repeated.",
)
@click.option(
    "--replica",
    "replicas",
    metavar="NAME=PATH",
    multiple=True,
    help="A broker's copies, to be compared with those of the other brokers. May be repeated.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Files, or parts of large ones, scanned at once.  [default: one a core]",
)
@click.option(
    "--max-mb-per-s",
    type=click.FloatRange(min=0, min_open=True),
    help="Bound on reading, all threads together, for a broker in use.",
)
@click.option(
    "--topic-config",
    "topic_configs",
    metavar="GLOB:KEY=VALUE",
    multiple=True,
    callback=_topic_configs,
    help="Setting of topics, as in 'orders:cleanup.policy=compact': tells gaps apart better.",
)
@storage_option
@click.option(
    "--engine",
    type=click.Choice(["embedded", "spark"]),
    default="embedded",
    show_default=True,
    help="Who scans: this process, or tasks of Spark. The result is the same.",
)
@click.option(
    "--master",
    metavar="URL",
    callback=_master,
    help="With --engine spark: its master, as in spark://host:7077, or sc://host of Spark Connect.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the result on standard output.",
)
@click.option(
    "--output",
    metavar="DIR",
    type=click.Path(),
    help="New directory for every table, as JSON lines and, where pyarrow is, as Parquet.",
)
@click.option("--records", is_flag=True, help="With --output: the table of all records, too.")
def audit(
    paths: tuple[str, ...],
    level: Level,
    topics: tuple[str, ...],
    replicas: tuple[str, ...],
    threads: int | None,
    max_mb_per_s: float | None,
    topic_configs: TopicConfigs,
    storage_options: dict[str, str],
    engine: Literal["embedded", "spark"],
    master: str | None,
    form: Literal["text", "json"],
    output: str | None,
    records: bool,
) -> int:
    """Tells whether logs are sound, what is wrong with them, and what to do.

    PATH is a broker's log directory, a partition directory, a segment file, or a directory that
    holds some of these; on this machine, or in an object store as in s3://bucket/logs. Nothing is
    ever modified. Several PATHs of brokers of one cluster are compared: copies of a partition must
    not differ.

    Exit status: 0 nothing worse than info, 1 warnings, 2 errors, 3 something asked for could not
    be read, 64 wrong usage, 130 Ctrl-C.
    """
    if records and output is None:
        raise click.UsageError("--records needs --output DIR: records are not for the terminal")
    if output is not None:
        _check_output(output)
    if not paths and not replicas:
        raise click.UsageError("Missing argument 'PATH...', or --replica NAME=PATH.")
    wanted: _Wanted = {
        "topics": topics,
        "level": level,
        "replicas": _named(replicas),
        "topic_configs": topic_configs,
        "storage_options": storage_options,
    }
    if engine == "spark":
        if threads is not None or max_mb_per_s is not None:
            raise click.UsageError("--threads and --max-mb-per-s are of --engine embedded")
        result = _audit_on_spark(master, list(paths), wanted)
    elif master is not None:
        raise click.UsageError("--master needs --engine spark")
    else:
        with _progress() as progress:
            result = audit_sources(
                list(paths),
                threads=threads,
                max_mb_per_s=max_mb_per_s,
                progress=progress,
                **wanted,
            )
    if output is not None:
        _save(result, output, records=records)
    try:
        if form == "json":
            sys.stdout.writelines(result.json_chunks())
        else:
            from ottla.cli.report import print_report

            print_report(result)
        sys.stdout.flush()
    except BrokenPipeError:
        # The verdict stands, whether anybody reads it or not; main() flushes again and copes.
        pass
    return result.exit_code


class _Wanted(TypedDict):
    """What both engines take."""

    topics: Sequence[str]
    level: Level
    replicas: dict[str, list[str]]
    topic_configs: TopicConfigs
    storage_options: dict[str, str]


def _audit_on_spark(master: str | None, paths: list[str], wanted: _Wanted) -> AuditResult:
    from ottla.spark import audit as audit_on_spark
    from ottla.spark.setup.command import session_of_command

    with session_of_command(master, app_name="ottla audit") as spark:
        return audit_on_spark(spark, paths, **wanted).collect()


def _named(replicas: tuple[str, ...]) -> dict[str, list[str]]:
    """Paths by the name of their replica."""
    named: dict[str, list[str]] = {}
    for text in replicas:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise click.BadParameter(
                f"{text!r} is not NAME=PATH, as in broker-1=/backup/broker-1",
                param_hint="--replica",
            )
        named.setdefault(name, []).append(path)
    return named


def _check_output(output: str) -> None:
    """Before hours of reading, not after them."""
    from ottla.storage.directory import check_new_directory as check_target

    try:
        check_target(output)
    except FileExistsError as error:
        raise click.BadParameter(str(error), param_hint="--output") from error


def _save(result: AuditResult, output: str, *, records: bool) -> None:
    from ottla.audit.result.result import save
    from ottla.audit.result.save import Format, check_parquet
    from ottla.errors import MissingDependencyError

    formats: list[Format] = ["jsonl"]
    try:
        check_parquet()
        formats.append("parquet")
    except MissingDependencyError:
        pass
    save(result, output, formats, records=records)


def _progress() -> Any:
    """A progress bar where somebody watches, nothing elsewhere."""
    if not sys.stderr.isatty():
        from contextlib import nullcontext

        return nullcontext(None)
    from ottla.cli.progress import ProgressBar

    return ProgressBar()
