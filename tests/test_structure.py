"""Rooms of the house: how long files and functions may be, names of types, and no circles.

Each list of exceptions holds what is not as it should be yet. It can only shrink: what is not in it
fails, and so does an exception that is needed no more.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest
from support.circles import circles
from support.python_imports import import_graph
from support.rust_code import Crate, functions, types
from support.sources import FILES, name_of, python_trees, rust_sources

MAX_FILE_LINES = 700
MAX_FUNCTION_LINES = 70

CRATES = (
    "ottla-kernels",
    "ottla-format",
    "ottla-log",
    "ottla-leader",
    "ottla-plane",
    "ottla-audit",
    "ottla-py-batches",
    "ottla-py-logs",
    "ottla-py-plane",
    "ottla-py",
)

# Lines of today, which may become fewer.
LONG_FILES = {
    # The face of one extension module, all but the data plane of a broker.
    "python/ottla/_engine.pyi": 1203,
}
LONG_FUNCTIONS: dict[str, int] = {}

# Types of one name in one crate.
REPEATED_TYPES: dict[str, set[str]] = {}

# Files of a crate that use each other in a circle.
CIRCLES: dict[str, list[list[str]]] = {}


@cache
def texts_of(crate: str) -> dict[str, str]:
    """Texts of a crate by the names of files below its `src/`."""
    folder = f"rust/{crate}/src/"
    return {
        name_of(path).removeprefix(folder): path.read_text(encoding="utf-8")
        for path in rust_sources(crate)
    }


def measured(found: dict[str, int], allowed: dict[str, int]) -> tuple[dict[str, int], list[str]]:
    """What is longer than it may be, and exceptions that are needed no more."""
    grown = {name: lines for name, lines in found.items() if lines > allowed.get(name, 0)}
    return grown, sorted(allowed.keys() - found.keys())


def test_files_fit_a_room() -> None:
    rust = {*rust_sources(*CRATES)}
    names = {
        name_of(path): path
        for path in FILES
        if path.suffix in {".py", ".pyi", ".rs"}
        and (name_of(path).startswith("python/") or path in rust)
    }
    lines = {
        name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in names.items()
    }
    long = {name: count for name, count in lines.items() if count > MAX_FILE_LINES}
    assert measured(long, LONG_FILES) == ({}, [])


def python_functions() -> Iterator[tuple[str, int]]:
    for under in ("python/", "benches/", "examples/"):
        for name, tree in python_trees(under):
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                    yield f"{name}: {node.name}", node.end_lineno - node.lineno + 1


def rust_functions() -> Iterator[tuple[str, int]]:
    for crate in CRATES:
        for name, text in texts_of(crate).items():
            for function in functions(text):
                yield f"rust/{crate}/src/{name}: {function.name}", function.lines


def test_functions_fit_a_screen() -> None:
    long: dict[str, int] = {}
    for name, lines in (*python_functions(), *rust_functions()):
        if lines > MAX_FUNCTION_LINES:
            long[name] = max(lines, long.get(name, 0))
    assert measured(long, LONG_FUNCTIONS) == ({}, [])


@pytest.mark.parametrize("crate", CRATES)
def test_no_type_name_is_defined_twice_in_a_crate(crate: str) -> None:
    counts = Counter(name for text in texts_of(crate).values() for name in types(text))
    twice = {name for name, count in counts.items() if count > 1}
    assert twice == REPEATED_TYPES.get(crate, set())


def test_no_python_files_import_each_other_in_a_circle() -> None:
    assert circles(import_graph(python_trees("python/"), "python/")) == []


@pytest.mark.parametrize("crate", CRATES)
def test_no_rust_files_use_each_other_in_a_circle(crate: str) -> None:
    assert circles(Crate(texts_of(crate)).graph()) == CIRCLES.get(crate, [])


def test_circles_are_found_wherever_an_import_stands() -> None:
    sources = {
        "p/__init__.py": "from p.a import f",
        "p/a.py": "def f():\n    import p.b",
        "p/b.py": "if TYPE_CHECKING:\n    from p import c",
        "p/c.py": "from p.a import f",
        "p/d.py": "from p import f",
    }
    graph = import_graph(((name, ast.parse(text)) for name, text in sources.items()), "")
    assert graph["p/d.py"] == {"p/__init__.py"}
    assert circles(graph) == [["p/a.py", "p/b.py", "p/c.py"]]


def test_a_module_that_hands_a_name_on_is_no_part_of_a_circle() -> None:
    sources = {
        "lib.rs": "mod a; pub use a::left::Left; pub use a::{right as r, *};",
        "a/mod.rs": "mod left; mod right; pub use self::left::Left; pub(crate) use right::go;",
        "a/left.rs": "use super::go; pub struct Left; fn f() { go(); }",
        "a/right.rs": 'pub fn go() {} // crate::Left\nfn g() -> &\'static str { "crate::Left" }',
    }
    assert Crate(sources).graph()["a/left.rs"] == {"a/right.rs"}
    assert circles(Crate(sources).graph()) == []
    sources["a/right.rs"] += "fn h(left: crate::Left) {}"
    assert circles(Crate(sources).graph()) == [["a/left.rs", "a/right.rs"]]


def test_a_parent_with_code_may_not_be_used_by_the_child_it_uses() -> None:
    sources = {
        "lib.rs": "mod a;",
        "a/mod.rs": "mod child; pub struct Shared; fn f() { child::go(); }",
        "a/child.rs": "use super::Shared; pub fn go() {}",
    }
    assert circles(Crate(sources).graph()) == [["a/child.rs", "a/mod.rs"]]


def test_functions_and_types_of_rust_are_told_from_what_looks_like_them() -> None:
    text = """
trait Shape { type Side; fn side(&self) -> [u8; 2]; }
impl Shape for Square { type Side = u8; fn side(&self) -> [u8; 2] {
    // fn no() {
    let brace = '{'; let text = r#"fn no() { struct No; "#;
    struct Local;
    [0; 2]
} }
mod inner { pub(crate) enum Kind { One { type_: u8 } } }
pub type Alias<'a> = &'a str;
#[cfg(test)]
mod tests { struct Hidden; fn hidden() {} }
"""
    assert list(types(text)) == ["Shape", "Kind", "Alias"]
    assert [(found.name, found.line, found.lines) for found in functions(text)] == [("side", 3, 6)]
