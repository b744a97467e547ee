"""`ottla help`: the help of the program, or of a verb."""

from __future__ import annotations

import difflib

import click

from ottla.cli.options import Verb

__all__ = ["help_of", "unknown_verb"]


def _verbs(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    program = context.find_root()
    verbs = (
        program.command.list_commands(program) if isinstance(program.command, click.Group) else []
    )
    return [verb for verb in verbs if verb.startswith(begun)]


def unknown_verb(verb: str, program: click.Context) -> click.UsageError:
    """Returns the error about a verb that there is not, with the one that may be meant."""
    names = (
        program.command.list_commands(program) if isinstance(program.command, click.Group) else ()
    )
    near = difflib.get_close_matches(verb, names, n=1)
    hint = f"did you mean {near[0]}?" if near else "`ottla help` lists all commands."
    return click.UsageError(f"no command is named {verb!r}; {hint}", program)


@click.command("help", cls=Verb)
@click.argument("verb", required=False, shell_complete=_verbs)
@click.pass_context
def help_of(context: click.Context, verb: str | None) -> int:
    """Show the help of ottla, or of a verb.

    VERB is a command, as `ottla help` lists them.
    """
    program = context.find_root()
    if verb is None:
        click.echo(program.get_help())
        return 0
    if not isinstance(program.command, click.Group):
        raise click.UsageError("there are no verbs")
    command = program.command.get_command(program, verb)
    if command is None:
        raise unknown_verb(verb, program)
    with click.Context(command, info_name=verb, parent=program) as of_verb:
        click.echo(command.get_help(of_verb))
    return 0
