"""`ottla read`: the records of partitions that a consumer would receive."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, get_args

import click

from ottla.cli.options import OFFSET, Verb, storage_option
from ottla.cli.reading.offsets import bounds_of
from ottla.cli.reading.output import ENDINGS, FORMS, Output
from ottla.cli.reading.run import IO_ERROR, Reading
from ottla.cli.reading.selection import MAX_TAIL, Selection
from ottla.cli.reading.sources import find
from ottla.cli.reading.times import TIME
from ottla.cli.terminal import complain, say
from ottla.errors import NotAPartitionError, StorageError
from ottla.logs.reading import Isolation
from ottla.words import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.cli.reading.deserializers import Deserializers
    from ottla.cli.reading.lines import Lines
    from ottla.cli.reading.sources import Source

MAX_LIMIT = 10**12
"""More records than a partition is kept with; help shows it."""


@click.command(cls=Verb)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
@click.option(
    "-t",
    "--topic",
    "topics",
    metavar="GLOB",
    multiple=True,
    help="Only matching topics, such as 'orders-*'. May be repeated.",
)
@click.option(
    "-p",
    "--partition",
    "partitions",
    type=click.IntRange(min=0, max=2**31 - 1),
    metavar="NUMBER",
    multiple=True,
    help="Only partitions of this number. May be repeated.",
)
@click.option(
    "--isolation",
    type=click.Choice(get_args(Isolation)),
    default="read_uncommitted",
    show_default=True,
    help="All records, or only those that are not part of an aborted or open transaction.",
)
@click.option("--from", "from_offset", type=OFFSET, help="First offset to read.")
@click.option("--to", "to_offset", type=OFFSET, help="Offset to stop before.")
@click.option(
    "--from-time",
    type=TIME,
    help="Only records with this timestamp or a later one: 2026-11-21, 2026-11-21T10:05:57Z"
    " (UTC by default), or ms since 1970.",
)
@click.option("--to-time", type=TIME, help="Only records with an earlier timestamp.")
@click.option(
    "-k",
    "--key",
    "keys",
    metavar="TEXT",
    multiple=True,
    help="Only records with this key. May be repeated.",
)
@click.option(
    "-n",
    "--tail",
    type=click.IntRange(1, MAX_TAIL),
    metavar="COUNT",
    help="Only the last so many of each partition, of those that fit the other options.",
)
@click.option(
    "-c",
    "--limit",
    type=click.IntRange(1, MAX_LIMIT),
    metavar="COUNT",
    help="Stop after so many in all.",
)
@click.option(
    "-o",
    "--offset",
    "bounds",
    metavar="OFFSET",
    multiple=True,
    callback=bounds_of,
    help="As kcat's: an offset for --from, -N for --tail, s@TIME for --from-time, e@TIME for"
    " --to-time.",
)
@click.option(
    "--output-format",
    type=click.Choice(FORMS),
    help="Readable text; a JSON object a line; comma-separated values; Parquet; Arrow; or each"
    " value as it is and a newline (a tombstone is an empty line).  [default: text; with --output"
    " parquet, or jsonl without pyarrow; with --output-file by its name]",
)
@click.option(
    "-f",
    "--format",
    "template",
    metavar="FORMAT",
    help="A line of your own, as kcat's, such as '%t [%p] %o: %k %s\\n': see above. Or a name that"
    " --output-format takes.",
)
@click.option("-J", "--json", "is_json", is_flag=True, help="Short for --output-format jsonl.")
@click.option("-Z", "--null", "is_null_named", is_flag=True, help="With -f: NULL for null.")
@click.option(
    "--output",
    metavar="DIR",
    type=click.Path(),
    help="New directory for a file a partition, in the layout topic=TOPIC/partition=NUMBER.",
)
@click.option("--output-file", metavar="FILE", type=click.Path(), help="New file for everything.")
@click.option(
    "-s",
    "--deserialize",
    metavar="[PART=]NAME",
    multiple=True,
    help="Show keys and values as JSON: json, avro (behind a schema registry's prefix) or protobuf;"
    " key=NAME or value=NAME for one of them.",
)
@click.option(
    "-r", "--registry", metavar="URL", help="Schema registry, asked for ids that no file has."
)
@click.option(
    "--key-schema",
    metavar="[ID=]FILE",
    multiple=True,
    help="Avro schema of keys with this id in their prefix, or Protobuf descriptors (of protoc"
    " --include_imports --descriptor_set_out).",
)
@click.option("--value-schema", metavar="[ID=]FILE", multiple=True, help="The same of values.")
@click.option("--key-message", metavar="NAME", help="Protobuf message of keys, by its full name.")
@click.option("--value-message", metavar="NAME", help="The same of values.")
@storage_option
@click.option(
    "--decode",
    is_flag=True,
    help="Decode keys and values of __consumer_offsets and __transaction_state.",
)
def read(
    paths: tuple[str, ...],
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    storage_options: dict[str, str],
    **options: Any,
) -> int:
    """Print the records that a consumer would receive.

    PATH is a partition directory, a segment file, or a directory of partitions such as a broker's
    log directory. Reading starts at the log start offset. After damage it continues at the next
    valid batch, and reports on standard error what is lost.

    \b
    Exit status:
      0    nothing worse than info
      1    damage at which a consumer would stop
      2    records are lost, or were deleted meanwhile
      3    a log could not be read, or an output not written
      64   invalid command line
      130  Ctrl-C

    \b
    With -f FORMAT:
      %s %S  value, its size in bytes (-1: null)
      %k %K  key, its size in bytes (-1: null)
      %R     size of the value as four bytes
      %T     timestamp in ms since 1970
      %h     headers, as name=value,name=value
      %t %p %o  topic, partition, offset
      \\n \\r \\t \\e \\xNN \\\\ %%  characters
    """  # noqa: D301 - click's mark of lines to keep
    form, template = _form(options)
    selection = _selection(options)
    lines = _own_lines(form, template, options)
    deserialize = _deserialize(options)
    output = Output(form, lines, parsed=deserialize.parsed if deserialize else (False, False))
    target = _target(options, paths)
    try:
        sources, is_whole = find(paths, topics, partitions, storage_options)
        _check(sources, options)
        output.has_titles = len(sources) > 1
        reading = Reading(sources, selection, storage_options, deserialize, goes_on=target is None)
        if target is None:
            output.to_standard_output(reading)
        elif options["output"] is not None:
            output.to_directory(target, reading)
        else:
            output.to_file(target, reading)
    except NotAPartitionError as error:
        complain(error)
        return IO_ERROR
    status = reading.finish()
    for what in deserialize.left_out() if deserialize else ():
        complain(what)
    if target is not None:
        say(f"{target}: {count(reading.written, 'record')} of {count(len(sources), 'partition')}")
    return status if is_whole else IO_ERROR


def _form(options: dict[str, Any]) -> tuple[str, str | None]:
    """Returns the name of the format, and the format string if there is one.

    Raises:
        UsageError: they contradict each other, or nothing says which it is.
    """
    template, named = options["template"], options["output_format"]
    asked = {form for form in (named, "jsonl" if options["is_json"] else None) if form}
    if template in FORMS:
        asked.add(template)
        template = None
    if len(asked) + (template is not None) > 1:
        raise click.UsageError("one format at a time: --output-format, -f or -J")
    if options["is_null_named"] and template is None:
        raise click.UsageError("-Z goes with a format string, -f")
    if template is not None:
        return "text", template
    if asked:
        return asked.pop(), None
    if options["output"] is not None:
        return _default_table(), None
    if options["output_file"] is not None:
        ending = os.path.splitext(options["output_file"])[1].lower()
        if ending not in ENDINGS:
            known = ", ".join(ENDINGS)
            raise click.UsageError(
                f"--output-file {options['output_file']}: its name does not end in one of {known}:"
                " say --output-format"
            )
        return ENDINGS[ending], None
    return "text", None


def _default_table() -> str:
    from importlib.util import find_spec

    return "jsonl" if find_spec("pyarrow") is None else "parquet"


def _selection(options: dict[str, Any]) -> Selection:
    """Returns which records were asked for.

    Raises:
        UsageError: two options say the same.
    """
    names = ("from_offset", "to_offset", "from_time", "to_time", "tail", "limit")
    wanted = {name: options[name] for name in names}
    for name, value in options["bounds"].items():
        if wanted[name] is not None:
            raise click.UsageError("-o says what another option says, too")
        wanted[name] = value
    keys = frozenset(key.encode() for key in options["keys"])
    return Selection(isolation=options["isolation"], keys=keys, **wanted)


def _own_lines(form: str, template: str | None, options: dict[str, Any]) -> Lines | None:
    """Returns what writes lines of a form of their own, if anything does.

    Raises:
        UsageError: the format string is none, or `--decode` does not go with a format.
    """
    if options["decode"]:
        if template is not None or form not in {"text", "jsonl"}:
            raise click.UsageError(f"--decode does not support {template or form}: use jsonl")
        from ottla.cli.reading.decoded import decoded_lines

        return decoded_lines(form)
    if template is None:
        return None
    from ottla.cli.reading.template import template_lines

    is_file = options["output"] is not None or options["output_file"] is not None
    null = b"NULL" if options["is_null_named"] else b""
    is_terminal = not is_file and sys.stdout.isatty()
    try:
        return template_lines(template, null=null, is_terminal=is_terminal)
    except ValueError as error:
        raise click.UsageError(f"-f {template}: {error}") from error


def _deserialize(options: dict[str, Any]) -> Deserializers | None:
    names = (
        "deserialize",
        "registry",
        "key_schema",
        "value_schema",
        "key_message",
        "value_message",
    )
    if not any(options[name] for name in names):
        return None
    if options["decode"]:
        raise click.UsageError("--decode and -s are two ways: give one of them")
    from ottla.cli.reading.deserializers import deserializers_of

    return deserializers_of(options)


def _target(options: dict[str, Any], paths: Sequence[str]) -> str | None:
    """Returns where results are to be written, if not to standard output.

    Raises:
        UsageError: results cannot be there.
    """
    directory, file = options["output"], options["output_file"]
    if directory is not None and file is not None:
        raise click.UsageError("--output is a directory, --output-file a file: give one of them")
    target: str | None = directory if file is None else file
    if target is None:
        return None
    from ottla.logs.output import check_output
    from ottla.storage.directory import check_new_directory, check_new_file

    hint = "--output" if file is None else "--output-file"
    try:
        (check_new_directory if file is None else check_new_file)(target)
        check_output(target, paths)
    except StorageError:
        raise
    except (FileExistsError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint=hint) from error
    return target


def _check(sources: Sequence[Source], options: dict[str, Any]) -> None:
    """Raises UsageError if partitions do not go with an option."""
    if options["decode"]:
        from ottla.cli.reading.decoded import INTERNAL_TOPICS

        if any(source.topic not in INTERNAL_TOPICS for source in sources):
            topics = ", ".join(INTERNAL_TOPICS)
            raise click.UsageError(f"--decode works on partitions of {topics}: choose them by -t")
    if options["output"] is not None:
        known: dict[str, str] = {}
        for source in sources:
            other = known.setdefault(source.title, source.name)
            if other != source.name:
                raise click.UsageError(
                    f"{other} and {source.name} are both {source.title}: --output takes one of them"
                )
