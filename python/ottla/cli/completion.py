"""`ottla completion`: what a shell reads to complete command lines."""

from __future__ import annotations

import click

from ottla.cli.options import Verb

__all__ = ["completion"]

SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Verb)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print a script that completes command lines of ottla.

    \b
    For good, in the file that the shell reads at its start:
      bash  eval "$(ottla completion bash)"
      zsh   eval "$(ottla completion zsh)"
      fish  ottla completion fish | source
    """  # noqa: D301 - click's mark of lines to keep
    from click.shell_completion import get_completion_class

    from ottla.cli import COMPLETE_VARIABLE

    completes = get_completion_class(shell)
    if completes is None:
        raise click.UsageError(f"click {click.__version__} knows no completion for {shell}")
    program = context.find_root().command
    # Not its `source()`, which of bash asks a bash for its version.
    script = completes(program, {}, "ottla", COMPLETE_VARIABLE)
    click.echo(script.source_template % script.source_vars())
    return 0
