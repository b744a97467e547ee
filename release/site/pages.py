"""Pages that are generated: one a finding, one a package of the API."""

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from ottla.audit.catalogue.explain import Explanation, catalogue, going_on
from ottla.severity import SEVERITIES

API = {
    "ottla": "api/ottla.md",
    "ottla.client": "api/client.md",
    "ottla.testing": "api/testing.md",
    "ottla.spark": "api/spark.md",
}
_STOPS = {
    "all": "Consumers stop here.",
    "read_committed": "Consumers of committed records stop here.",
}


def generated() -> Iterator[tuple[str, str]]:
    """Returns the path and the text of each page."""
    for row in catalogue().values():
        yield finding_path(row.name), _finding(row)
    for package, path in API.items():
        yield path, _package(import_module(package))


def finding_path(name: str) -> str:
    """Returns the path of the page of a finding."""
    return f"findings/{name}.md"


def findings_by_severity() -> list[dict[str, list[dict[str, str]]]]:
    """Returns the pages of findings as navigation has them."""
    return [
        {
            severity: [
                {row.name: finding_path(row.name)}
                for row in catalogue().values()
                if row.severity == severity
            ]
        }
        for severity in SEVERITIES
    ]


def _finding(row: Explanation) -> str:
    lines = [f"# {row.name}", "", row.meaning, "", f"Usual severity: **{row.severity}**."]
    if row.stops is not None:
        lines += ["", _STOPS[row.stops]]
    lines += ["", "## Causes", "", row.causes, "", "## What to do", "", row.action]
    if row.is_rebuildable:
        lines += ["", "```console", "$ ottla rebuild PARTITION --output rebuilt", "```"]
    if going_on(row.name):
        link = "../findings.md#going-on-behind-damage"
        lines += ["", f"Where no replica has the records: [going on behind damage]({link})."]
    traced = set(row.trace_of)
    causing = [name for name, other in catalogue().items() if traced & set(other.effects)]
    links = ", ".join(f"[{name}]({name}.md)" for name in causing if name != row.name)
    if links:
        lines += ["", f"It can be a trace of: {links}."]
    lines += ["", "## In Kafka", "", row.kafka]
    lines += ["", "## At a terminal", "", "```console", f"$ ottla explain {row.name}", "```"]
    return "\n".join(lines) + "\n"


def _package(package: ModuleType) -> str:
    title = package.__name__
    kinds: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors": [], "Values": []}
    for name in package.__all__:
        if not name.startswith("__"):
            kinds[_kind(getattr(package, name))].append(name)
    lines = [f"# {title}", "", (inspect.getdoc(package) or "").split("\n", 1)[0]]
    for kind, names in kinds.items():
        lines += ["", f"## {kind}"] if names else []
        for name in names:
            lines += ["", f"::: {_identifier(package, name)}"]
    return "\n".join(lines) + "\n"


def _kind(value: object) -> str:
    if inspect.isclass(value):
        return "Errors" if issubclass(value, BaseException) else "Classes"
    return "Functions" if callable(value) else "Values"


def _identifier(package: ModuleType, name: str) -> str:
    """Returns where to find a name: a function that hides a module of its name is inside of it."""
    value = getattr(package, name)
    hides = f"{package.__name__}.{name}" in sys.modules
    return f"{value.__module__ if hides else package.__name__}.{name}"
