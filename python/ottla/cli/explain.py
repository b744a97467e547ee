"""`ottla explain`: what a finding means and what to do, and how the profiles differ."""

from __future__ import annotations

import difflib
import shutil
import textwrap

import click

from ottla.audit.explain import Explanation, catalogue
from ottla.audit.findings import SEVERITIES
from ottla.records import profile_differences


@click.command()
@click.argument("name", required=False)
@click.option(
    "--profiles", is_flag=True, help="Where the strict profile of a verdict differs from Kafka."
)
def explain(name: str | None, profiles: bool) -> int:
    """Tells what a finding means, what causes it and what to do; without NAME, lists them all."""
    width = min(shutil.get_terminal_size().columns, 100)
    if profiles:
        if name is not None:
            raise click.UsageError("--profiles lists every difference and takes no NAME")
        _print_profiles(width)
        return 0
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


def _print_profiles(width: int) -> None:
    for row in profile_differences():
        click.secho(row["id"], bold=True)
        for part in ("kafka", "strict", "why"):
            click.echo(
                textwrap.fill(
                    f"{part + ':':<8}{row[part]}",
                    width,
                    initial_indent="  ",
                    subsequent_indent=" " * 10,
                    break_on_hyphens=False,
                )
            )


def _listed(row: Explanation, width: int) -> str:
    return textwrap.fill(
        row.meaning,
        width,
        initial_indent=f"  {row.name:<26}",
        subsequent_indent=" " * 28,
        break_on_hyphens=False,
    )
