"""The command line: one module per verb. Errors become exit statuses here.

| status | |
| --- | --- |
| 0, 1, 2 | `ottla audit`: nothing worse than info, warnings, errors |
| 0, 2 | `ottla validate`: all accepted, some rejected |
| 0, 2 | `ottla rebuild`: all rebuilt, some only up to damage |
| 0 | `ottla serve`: stopped by Ctrl-C or SIGTERM |
| 3 | an input or output could not be read or written; takes precedence over 0 to 2 |
| 64 | invalid command line |
| 130 | Ctrl-C |
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from ottla import __version__
from ottla.cli.terminal import complain, discard, open_streams, try_to_tell
from ottla.errors import (
    EngineError,
    MissingDependencyError,
    SchemaError,
    SparkError,
    StorageError,
)
from ottla.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main", "run"]

USAGE_ERROR = 64
IO_ERROR = 3
INTERRUPTED = 130

COMPLETE_VARIABLE = "_OTTLA_COMPLETE"
"""Where the script of a shell says what to complete."""

WHOLE_SENTENCE = 1000
"""More characters than a first sentence has: below that, click cuts it."""

VERBS: Final = {
    "audit": "audit",
    "completion": "completion",
    "explain": "explain",
    "help": "help_of",
    "inspect": "inspect",
    "read": "read",
    "rebuild": "rebuild",
    "serve": "serve",
    "validate": "validate_files",
    "version": "version",
}
"""The verbs, each a module of this package, and what it calls its command."""


class _Verbs(click.Group):
    """The verbs, of which only the one that runs is loaded: a broker needs nothing of an audit."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click has it
        return list(VERBS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - as click has it
        cmd_name: str,
    ) -> click.Command | None:
        return command_of(cmd_name) if cmd_name in VERBS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in VERBS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from ottla.cli.help import unknown_verb

            raise unknown_verb(args[0], ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the whole first sentence of each verb, however narrow the terminal is."""
        verbs = {name: command_of(name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, verb.get_short_help_str(WHOLE_SENTENCE)) for name, verb in verbs.items()]
            )


def command_of(verb: str) -> click.Command:
    """Returns the command of a verb."""
    command: click.Command = getattr(import_module(f"ottla.cli.{verb}"), VERBS[verb])
    return command


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "-v", "--version", message="%(prog)s %(version)s")
def ottla() -> None:
    """Audit, read and rebuild Kafka's logs, validate produce requests, serve a broker."""


def main() -> None:
    """Entry point of the program `ottla`."""
    open_streams()
    # Names and records may hold characters that the terminal's encoding lacks.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    asked = os.environ.get(COMPLETE_VARIABLE)
    status = run(sys.argv[1:]) if asked is None else _complete(asked)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
    sys.exit(status)


def run(arguments: Sequence[str]) -> int:
    """Runs a command line, given without the program's name, and returns its exit status."""
    try:
        # Not `ottla.main`, which has its own exit statuses.
        with ottla.make_context("ottla", list(arguments)) as context:
            status = ottla.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.UsageError as error:
        _show(error)
        return USAGE_ERROR
    except StorageError as error:
        complain(error)
        return USAGE_ERROR
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has seen enough, as in `| head`.
        discard(sys.stdout)
        return 0
    except (EngineError, MissingDependencyError, SchemaError, SparkError) as error:
        complain(error)
        return IO_ERROR
    except click.ClickException as error:
        _show(error)
        return IO_ERROR
    except OSError as error:
        path = error.filename
        place = "" if path is None else f"{os.fsdecode(path)!s}: "
        is_missing = isinstance(error, FileNotFoundError) and isinstance(path, (str, bytes))
        complain(f"{place}{error.strerror or error}{_near(path) if is_missing else ''}")
        return IO_ERROR
    except Exception as error:
        # The outermost loop: Python's own status would be that of warnings.
        if sys.flags.dev_mode:
            raise
        complain(
            f"internal error: {type(error).__name__}: {error}; please report it"
            " (python -X dev shows where)"
        )
        return IO_ERROR
    return status if isinstance(status, int) else 0


def _complete(asked: str) -> int:
    """Tells a shell what the words of its command line may go on with."""
    from click.shell_completion import shell_complete

    return shell_complete(ottla, {}, "ottla", COMPLETE_VARIABLE, asked)


def _near(path: str | bytes) -> str:
    """Returns what there is of a similar name, in words."""
    from ottla.logs.near import near_paths

    return near_paths(os.path.abspath(os.fsencode(path)))


def _show(error: click.ClickException) -> None:
    """Prints an error of the command line, which may repeat any argument."""
    text = "\n".join(map(visible, error.format_message().expandtabs(2).split("\n")))
    try_to_tell(click.UsageError(text, getattr(error, "ctx", None)).show)
