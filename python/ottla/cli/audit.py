"""`ottla audit`: what is wrong with logs, what is lost, and what to do."""

from __future__ import annotations

import sys
from itertools import chain
from typing import TYPE_CHECKING, Literal, TypedDict, get_args

import click

from ottla.audit import AuditResult, Level
from ottla.audit import audit as audit_sources
from ottla.audit.judge.context import TopicConfigs, parse_topic_config
from ottla.audit.run.threads import MAX_THREADS
from ottla.cli.options import Rate, Verb, storage_option
from ottla.severity import SEVERITIES, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from ottla.audit.result.save import Format
    from ottla.audit.result.selection import Baseline


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
    """Refuses a master that Spark does not know, for which it would print a stack trace."""
    if value is None:
        return None
    from ottla.spark.setup.command import MASTERS

    if not value.startswith(MASTERS):
        raise click.BadParameter(
            f"{value!r} is not a Spark master: local[N], spark://host:port, yarn, k8s://host:port,"
            " or sc://host:port for Spark Connect",
            context,
            parameter,
        )
    return value


def _finding_names(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """Refuses a name that no finding has, with those that are like it."""
    from ottla.audit.catalogue.explain import catalogue

    for name in values:
        if name not in catalogue():
            import difflib

            near = difflib.get_close_matches(name, catalogue(), n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else "; see `ottla explain`"
            raise click.BadParameter(f"no finding {name!r}{hint}", context, parameter)
    return values


def _baseline(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> Baseline | None:
    """Reads the baseline before hours of reading logs, not after them."""
    if value is None:
        return None
    from ottla.audit.result.selection import BaselineError, read_baseline

    try:
        return read_baseline(value)
    except OSError as error:
        reason = error.strerror or str(error)
        raise click.BadParameter(f"{value}: {reason}", context, parameter) from error
    except BaselineError as error:
        raise click.BadParameter(f"{value} {error}", context, parameter) from error


@click.command(cls=Verb)
@click.argument("paths", metavar="PATH...", nargs=-1, type=click.Path())
@click.option(
    "--level",
    type=click.Choice(get_args(Level)),
    default="full",
    show_default=True,
    help="What to check: checksums; decoding of every record; every rule of the format.",
)
@click.option(
    "-t",
    "--topic",
    "topics",
    metavar="GLOB",
    multiple=True,
    help="Only matching topics, such as 'orders-*'. May be repeated.",
)
@click.option(
    "--replica",
    "replicas",
    metavar="NAME=PATH",
    multiple=True,
    help="Logs of one broker, to be compared with those of other brokers. May be repeated.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1, max=MAX_THREADS),
    help="Files, or parts of large files, to scan in parallel.  [default: one per core]",
)
@click.option(
    "--max-mb-per-s",
    type=Rate(),
    help="Limit on reading, over all threads or tasks, to spare a broker in use.",
)
@click.option(
    "--topic-config",
    "topic_configs",
    metavar="GLOB:KEY=VALUE",
    multiple=True,
    callback=_topic_configs,
    help="Configuration of topics, such as 'orders:cleanup.policy=compact', which explains gaps.",
)
@click.option(
    "--follow-links",
    is_flag=True,
    help="Follow symbolic links that lead out of the given paths.",
)
@storage_option
@click.option(
    "--engine",
    type=click.Choice(["embedded", "spark"]),
    default="embedded",
    show_default=True,
    help="Scan in this process, or by tasks of a Spark cluster. The result is the same.",
)
@click.option(
    "--master",
    metavar="URL",
    callback=_master,
    help="Spark master, such as spark://host:7077, or sc://host for Spark Connect.",
)
@click.option(
    "--format",
    "--output-format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the result on standard output.",
)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(),
    help="New directory for the tables, a file each, and a summary.",
)
@click.option(
    "--table-format",
    "formats",
    type=click.Choice(["jsonl", "parquet"]),
    multiple=True,
    help="With --output: format of the tables. May be repeated.  [default: parquet if pyarrow is"
    " installed, else jsonl]",
)
@click.option("--batches", is_flag=True, help="With --output: include the table of all batches.")
@click.option("--records", is_flag=True, help="With --output: include the table of all records.")
@click.option("--all", "is_complete", is_flag=True, help="Print every event and every finding.")
@click.option(
    "--severity",
    type=click.Choice(SEVERITIES),
    default="info",
    show_default=True,
    help="Leave out findings below this severity.",
)
@click.option(
    "--ignore",
    metavar="FINDING",
    multiple=True,
    callback=_finding_names,
    help="Leave out findings of this name. May be repeated.",
)
@click.option(
    "--baseline",
    metavar="FILE",
    type=click.Path(),
    callback=_baseline,
    help="Leave out findings that FILE, the output of --format json of an earlier audit, has.",
)
def audit(
    paths: tuple[str, ...],
    level: Level,
    topics: tuple[str, ...],
    replicas: tuple[str, ...],
    threads: int | None,
    max_mb_per_s: float | None,
    topic_configs: TopicConfigs,
    follow_links: bool,
    storage_options: dict[str, str],
    engine: Literal["embedded", "spark"],
    master: str | None,
    form: Literal["text", "json"],
    output: str | None,
    formats: tuple[Format, ...],
    batches: bool,
    records: bool,
    is_complete: bool,
    severity: Severity,
    ignore: tuple[str, ...],
    baseline: Baseline | None,
) -> int:
    """Check logs for damage, losses and faults.

    Reports what the logs hold, what is wrong with them, which offsets are lost and what to do.
    Nothing is ever modified.

    PATH is a broker's log directory, a partition directory, a segment file, or a directory of
    these; local, or in an object store such as s3://bucket/logs. With a PATH for each of several
    brokers of a cluster, the copies of each partition are compared.

    Findings that are left out do not count for the exit status; the verdict says how many they are.

    \b
    Exit status:
      0    nothing worse than info
      1    warnings
      2    errors
      3    a path could not be read
      64   invalid command line
      130  Ctrl-C
    """  # noqa: D301 - click's mark of lines to keep
    sources = [*paths, *chain(*_paths_by_replica(replicas).values())]
    if not sources:
        raise click.UsageError("Missing argument 'PATH...', or --replica NAME=PATH.")
    _check_output(output, sources, formats, batches=batches, records=records)
    options: _AuditOptions = {
        "topics": topics or None,
        "level": level,
        "replicas": _paths_by_replica(replicas),
        "topic_configs": topic_configs,
        "storage_options": storage_options,
        "follow_links": follow_links,
        "max_mb_per_s": max_mb_per_s,
    }
    if engine == "spark":
        if threads is not None:
            raise click.UsageError("--threads applies to --engine embedded only")
        result = _audit_on_spark(master, list(paths), options)
    elif master is not None:
        raise click.UsageError("--master needs --engine spark")
    else:
        result = _audit_here(threads, list(paths), options)
    result = result.select(severity=severity, ignore=ignore, baseline=baseline)
    _save(result, output, formats, batches=batches, records=records)
    _print(result, form, is_complete=is_complete)
    return result.exit_code


class _AuditOptions(TypedDict):
    """Options of both engines."""

    topics: Sequence[str] | None
    level: Level
    replicas: dict[str, list[str]]
    topic_configs: TopicConfigs
    storage_options: dict[str, str]
    follow_links: bool
    max_mb_per_s: float | None


def _audit_here(threads: int | None, paths: list[str], options: _AuditOptions) -> AuditResult:
    with _progress() as progress:
        # The report says which paths are not there, and the status is 3.
        return audit_sources(paths, threads=threads, progress=progress, must_exist=False, **options)


def _audit_on_spark(master: str | None, paths: list[str], options: _AuditOptions) -> AuditResult:
    from ottla.spark import audit as audit_on_spark
    from ottla.spark.setup.command import session_of_command

    with session_of_command(master, app_name="ottla audit") as spark:
        return audit_on_spark(spark, paths, must_exist=False, **options).collect()


def _paths_by_replica(replicas: tuple[str, ...]) -> dict[str, list[str]]:
    """Parses NAME=PATH into paths by name."""
    paths: dict[str, list[str]] = {}
    for text in replicas:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise click.BadParameter(
                f"{text!r} is not NAME=PATH, such as broker-1=/backup/broker-1",
                param_hint="--replica",
            )
        paths.setdefault(name, []).append(path)
    return paths


def _check_output(
    output: str | None,
    sources: Sequence[str],
    formats: tuple[Format, ...],
    *,
    batches: bool,
    records: bool,
) -> None:
    """Checks the target before hours of reading, not after them."""
    if output is None:
        if formats:
            raise click.UsageError("--table-format needs --output DIR: --format is the report's")
        if batches or records:
            what = "records" if records else "batches"
            raise click.UsageError(f"--{what} needs --output DIR: {what} are not printed")
        return
    from ottla.audit.result.save import check_parquet
    from ottla.errors import StorageError
    from ottla.logs.output import check_output
    from ottla.storage.directory import check_new_directory as check_target

    try:
        check_target(output)
        check_output(output, sources)
    except StorageError:
        raise
    except (FileExistsError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--output") from error
    if "parquet" in formats:
        check_parquet()


def _save(
    result: AuditResult,
    output: str | None,
    formats: tuple[Format, ...],
    *,
    batches: bool,
    records: bool,
) -> None:
    if output is not None:
        from ottla.audit.result.result import save

        save(result, output, formats, batches=batches, records=records)


def _print(result: AuditResult, form: Literal["text", "json"], *, is_complete: bool) -> None:
    try:
        if form == "json":
            sys.stdout.writelines(result.json_chunks())
        else:
            from ottla.cli.report import print_report

            print_report(result, is_complete=is_complete)
        sys.stdout.flush()
    except BrokenPipeError:
        # The exit status is the same whether the report is read or not; main() flushes again.
        pass


def _progress() -> AbstractContextManager[Callable[[int, int], None] | None]:
    """Returns a progress bar if standard error is a terminal, else a context without one."""
    if not sys.stderr.isatty():
        from contextlib import nullcontext

        return nullcontext(None)
    from ottla.cli.progress import ProgressBar

    return ProgressBar()
