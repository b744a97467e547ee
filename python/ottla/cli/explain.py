"""`ottla explain`: what a finding means and what to do."""

from __future__ import annotations

import difflib
import shutil
import textwrap

import click

from ottla.audit.explain import Explanation, catalogue
from ottla.audit.findings import SEVERITIES


@click.command()
@click.argument("name", required=False)
def explain(name: str | None) -> int:
    """Tells what a finding means, what causes it and what to do; without NAME, lists them all."""
    width = min(shutil.get_terminal_size().columns, 100)
    rows = catalogue()
    if name is None:
        for severity in SEVERITIES:
            click.secho(severity, bold=True)
            for row in rows.values():
                if row.severity == severity:
                    click.echo(_listed(row, width))
        return 0
    if name not in rows:
        near = difflib.get_close_matches(name, rows, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`ottla explain` lists them all."
        raise click.UsageError(f"there is no finding named {name!r}; {hint}")
    row = rows[name]
    click.secho(f"{row.name} ({row.severity})", bold=True)
    for title, text in (
        ("", row.meaning),
        ("Causes: ", row.causes),
        ("What to do: ", row.action),
        ("In Kafka: ", row.kafka),
    ):
        click.echo()
        click.echo(textwrap.fill(title + text, width, break_on_hyphens=False))
    return 0


def _listed(row: Explanation, width: int) -> str:
    return textwrap.fill(
        row.meaning,
        width,
        initial_indent=f"  {row.name:<26}",
        subsequent_indent=" " * 28,
        break_on_hyphens=False,
    )
