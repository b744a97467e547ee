"""`ottla rebuild`: builds the files beside segments again, in a new directory."""

from __future__ import annotations

import click

from ottla.cli.options import Verb, storage_option
from ottla.cli.terminal import complain, say
from ottla.errors import StorageError
from ottla.logs.output import check_output
from ottla.logs.rebuild import DEFAULT_INDEX_INTERVAL_BYTES, rebuild_side_files
from ottla.storage.directory import check_new_directory as check_target

INCOMPLETE = 2


@click.command(cls=Verb)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    required=True,
    type=click.Path(),
    help="New directory for the files, with one directory per partition.",
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
    "--index-interval-bytes",
    type=click.IntRange(min=0, max=2**31 - 1),
    default=DEFAULT_INDEX_INTERVAL_BYTES,
    show_default=True,
    help="Bytes of batches between two index entries, the topic's index.interval.bytes.",
)
@storage_option
def rebuild(
    paths: tuple[str, ...],
    output: str,
    topics: tuple[str, ...],
    index_interval_bytes: int,
    storage_options: dict[str, str],
) -> int:
    """Rebuild indexes, producer snapshots and leader epochs.

    PATH is a broker's log directory, a partition directory, or a directory of these. It is never
    modified: to use the rebuilt files, stop the broker and copy them over its own.

    \b
    Exit status:
      0   all rebuilt
      2   some rebuilt only up to damage
      3   a file could not be read or written
      64  invalid command line
    """  # noqa: D301 - click's mark of lines to keep
    try:
        check_target(output)
        check_output(output, paths)
    except StorageError:
        raise
    except (FileExistsError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--output") from error
    try:
        built = rebuild_side_files(
            list(paths),
            output,
            topics=topics or None,
            index_interval_bytes=index_interval_bytes,
            storage_options=storage_options,
        )
    except ValueError as error:
        complain(error)
        return 3
    for partition in built:
        count = len(partition.files)
        say(f"{partition.directory}: {count} file{'' if count == 1 else 's'}")
        if partition.fault is not None:
            complain(f"{partition.directory}: up to {partition.fault}")
    return INCOMPLETE if any(partition.fault for partition in built) else 0
