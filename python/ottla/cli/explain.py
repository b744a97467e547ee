"""`ottla explain`: what a finding means, what to do, and where profiles and releases differ."""

from __future__ import annotations

import difflib
import shutil
import textwrap

import click

from ottla.audit.catalogue.explain import CauseExplanation, Explanation, catalogue, causes, going_on
from ottla.cli.options import Verb
from ottla.records import profile_differences, release_differences
from ottla.severity import SEVERITIES

MIN_WIDTH = 60
"""Columns that the list is written for at least: names and indents take half of them."""


def _names(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    return [name for name in (*catalogue(), *causes()) if name.startswith(begun)]


@click.command(cls=Verb)
@click.argument("name", required=False, shell_complete=_names)
@click.option(
    "--profiles",
    is_flag=True,
    help="List where the profile strict of `ottla validate` differs from Kafka.",
)
@click.option(
    "--releases",
    is_flag=True,
    help="List what releases of Kafka decide otherwise, for `ottla validate --kafka-version`.",
)
def explain(name: str | None, profiles: bool, releases: bool) -> int:
    """Explain a finding or a cause of missing offsets.

    NAME is a finding or a cause, as named in the report of `ottla audit`. Without NAME, all of them
    are listed.
    """
    width = max(MIN_WIDTH, min(shutil.get_terminal_size().columns, 100))
    if profiles and releases:
        raise click.UsageError("--profiles and --releases are two lists: give one of them")
    if profiles:
        if name is not None:
            raise click.UsageError("--profiles lists all differences and takes no NAME")
        _print_profiles(width)
        return 0
    if releases:
        if name is not None:
            raise click.UsageError("--releases lists all differences and takes no NAME")
        _print_releases(width)
        return 0
    rows = catalogue()
    if name is None:
        for severity in SEVERITIES:
            click.secho(severity, bold=True)
            for row in rows.values():
                if row.severity == severity:
                    click.echo(_catalogue_entry(row, width))
        click.secho("causes of gaps", bold=True)
        for cause in causes().values():
            click.echo(_catalogue_entry(cause, width))
        return 0
    if name not in rows and name not in causes():
        near = difflib.get_close_matches(name.lower(), [*rows, *causes()], n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`ottla explain` lists all names."
        raise click.UsageError(f"no finding or cause is named {name!r}; {hint}")
    if name in rows:
        row = rows[name]
        _print_page(f"{name} ({row.severity})", "Causes", row, width)
        for line in going_on(name):
            if line.startswith("$"):
                click.echo(textwrap.indent(line, "  "))
            else:
                click.echo()
                click.echo(textwrap.fill(line, width, break_on_hyphens=False))
    if name in causes():
        if name in rows:
            click.echo()
        _print_page(f"{name} (cause of a gap)", "How it happens", causes()[name], width)
    return 0


def _print_page(title: str, why: str, row: Explanation | CauseExplanation, width: int) -> None:
    click.secho(title, bold=True)
    for text in (
        row.meaning,
        f"{why}: {row.causes}",
        f"What to do: {row.action}",
        f"In Kafka: {row.kafka}",
    ):
        click.echo()
        click.echo(textwrap.fill(text, width, break_on_hyphens=False))


def _print_profiles(width: int) -> None:
    for row in profile_differences():
        _print_row(row["id"], {part: row[part] for part in ("kafka", "strict", "why")}, width)


def _print_releases(width: int) -> None:
    for row in release_differences():
        parts = {"from": ", ".join(row["releases"]), "before": row["before"], "since": row["since"]}
        _print_row(row["id"], parts, width)


def _print_row(name: str, parts: dict[str, str], width: int) -> None:
    click.secho(name, bold=True)
    for part, text in parts.items():
        click.echo(
            textwrap.fill(
                f"{part + ':':<8}{text}",
                width,
                initial_indent="  ",
                subsequent_indent=" " * 10,
                break_on_hyphens=False,
            )
        )


def _catalogue_entry(row: Explanation | CauseExplanation, width: int) -> str:
    return textwrap.fill(
        row.meaning,
        width,
        initial_indent=f"  {row.name:<26}",
        subsequent_indent=" " * 28,
        break_on_hyphens=False,
    )
