"""Mutation testing of the Python code: changes that no test notices.

    python -m support.mutants [FILE | DIRECTORY ...] [--count N]

Each mutant is the code with one small change: a bound moved, a condition turned round, a call left
out. The tests of its package run against a copy of the package with it; a mutant that they do not
notice is printed with its line. `--count` tries so many, spread over the files.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
CODE = ROOT / "python"
PACKAGES = ("logs", "audit", "protocol", "broker", "net", "testing", "spark")

# Folders of tests/ that hold a package, beside the one of its own name, nearest first.
ALSO = {
    "logs": ("audit", "findings"),
    "audit": ("findings", "samples", "cli"),
    "protocol": (),
    "broker": ("plane", "testing"),
    "net": ("testing",),
    "testing": (),
    "spark": (),
}

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}


class Change(NamedTuple):
    """A change of a field of a node."""

    node: ast.AST
    field: str
    value: object


class Mutant(NamedTuple):
    """A source with one change."""

    line: int
    before: str
    after: str
    source: str


def changes_of(node: ast.AST) -> Iterator[Change]:
    """Yield the changes of a node itself."""
    match node:
        case ast.Compare(ops=[op, *rest]):
            yield Change(node, "ops", [COMPARISONS[type(op)](), *rest])
        case ast.BoolOp(op=op):
            yield Change(node, "op", ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.BinOp(op=op) if type(op) in OPERATORS:
            yield Change(node, "op", OPERATORS[type(op)]())
        case ast.Constant(value=bool(value)):
            yield Change(node, "value", not value)
        case ast.Constant(value=int(value)):
            yield Change(node, "value", value + 1)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield Change(node, "test", ast.UnaryOp(ast.Not(), test))
        case ast.Expr(value=ast.Call()):
            yield Change(node, "value", ast.Constant(None))
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield Change(node, "value", ast.Constant(None))


def is_for_types_only(node: ast.AST) -> bool:
    """Whether code is read by type checkers alone."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a node that run: no annotations, nothing for type checkers alone."""
    for name, field in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.AST) and not is_for_types_only(child):
                yield child
                yield from walk(child)


def shown(node: ast.AST) -> str:
    """Return the first line of a node's source."""
    return ast.unparse(node).partition("\n")[0]


def mutants_of(source: str) -> Iterator[Mutant]:
    """Yield every mutant of a source."""
    tree = ast.parse(source)
    for node in list(walk(tree)):
        for change in changes_of(node):
            before, known = shown(node), getattr(node, change.field)
            setattr(node, change.field, change.value)
            ast.fix_missing_locations(tree)
            yield Mutant(getattr(node, "lineno", 0), before, shown(node), ast.unparse(tree))
            setattr(node, change.field, known)


def tests_of(path: Path) -> list[str]:
    """Return the folders of tests for a module, the nearest first."""
    package = path.relative_to(CODE / "ottla").parts[0]
    nearest = ROOT / "tests" / path.parent.relative_to(CODE / "ottla")
    folders = [nearest, *(ROOT / "tests" / name for name in (package, *ALSO.get(package, ())))]
    return list(dict.fromkeys(str(folder) for folder in folders if folder.is_dir()))


def fails(package: Path, tests: list[str], timeout_s: float | None = None) -> bool:
    """Whether a test notices, or does not end: the package is that of a directory."""
    marks = "not slow and not shared and not tables" + (
        "" if "spark" in tests[0] else " and not spark"
    )
    paths = f"pythonpath={package} {ROOT} {ROOT / 'tests'}"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", marks, "-o", paths, *tests]
    quiet = ["-p", "no:cacheprovider", "-p", "no:randomly"]
    environment = os.environ | {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [*command, *quiet],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def try_all(chosen: list[tuple[Path, Mutant]], say: Callable[[str], object]) -> int:
    """Try mutants; tell of those that live, and return how many."""
    limits: dict[tuple[str, ...], float] = {}
    alive = 0
    with tempfile.TemporaryDirectory() as scratch:
        package = Path(scratch) / "python"
        shutil.copytree(CODE, package, ignore=shutil.ignore_patterns("__pycache__"))
        for path, mutant in chosen:
            tests = tests_of(path)
            if tuple(tests) not in limits:
                start = time.monotonic()
                if fails(package, tests):
                    sys.exit(f"the tests fail without any change: {' '.join(tests)}")
                limits[tuple(tests)] = 60 + 5 * (time.monotonic() - start)
            changed = package / path.relative_to(CODE)
            changed.write_text(mutant.source)
            if not fails(package, tests, limits[tuple(tests)]):
                alive += 1
                place = f"{path.relative_to(ROOT)}:{mutant.line}"
                say(f"{place}: {mutant.before}  ->  {mutant.after}\n")
            changed.write_text(path.read_text())
    return alive


def main(arguments: list[str]) -> None:
    """Try the mutants that are asked for, and list those that live."""
    parser = argparse.ArgumentParser(prog="python -m support.mutants", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--count", type=int, help="try so many, spread over the files")
    asked = parser.parse_args(arguments)
    places = [path.resolve() for path in asked.paths]
    places = places or [CODE / "ottla" / package for package in PACKAGES]
    files = [f for place in places for f in ([place] if place.is_file() else place.rglob("*.py"))]
    every = [(file, mutant) for file in sorted(files) for mutant in mutants_of(file.read_text())]
    step = max(1, len(every) // asked.count) if asked.count else 1
    chosen = every[::step]
    alive = try_all(chosen, lambda line: (sys.stdout.write(line), sys.stdout.flush()))
    sys.stdout.write(f"{alive} of {len(chosen)} mutants live ({len(every)} are possible)\n")


if __name__ == "__main__":
    main(sys.argv[1:])
