"""The code against its own rules, those that no linter knows."""

import ast
import re
from collections.abc import Iterator

import pytest
from support.sources import DATA, FILES, ROOT, name_of, python_trees, rust_sources

# Written by a tool, which names its registry in it.
LOCKS = ("Cargo.lock",)


# The engine's crates of safe code, lowest first: each may use those before it.
ENGINE = ("ottla-format", "ottla-log", "ottla-leader", "ottla-plane", "ottla-audit")

# Those that convert between Python and the engine.
PYTHON = ("ottla-py-batches", "ottla-py-logs", "ottla-py-plane", "ottla-py")


def texts() -> Iterator[tuple[str, str]]:
    """Name and content of every file somebody wrote by hand."""
    for path in FILES:
        name = name_of(path)
        if name.startswith(DATA):
            continue
        try:
            yield name, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def lines_with(
    pattern: str, *, suffixes: tuple[str, ...] = (), skip: tuple[str, ...] = ()
) -> list[str]:
    """Places where a line matches, as `file:line: text`."""
    found = []
    expression = re.compile(pattern)
    for name, text in texts():
        if name in skip or (suffixes and not name.endswith(suffixes)):
            continue
        found += [
            f"{name}:{number}: {line.strip()[:120]}"
            for number, line in enumerate(text.splitlines(), 1)
            if expression.search(line)
        ]
    return found


def code_of(text: str) -> Iterator[tuple[int, str]]:
    """Lines of a Rust file without its comments and without its test module, which is the last."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#[cfg(test)]"):
            return
        code = line.split("//", 1)[0]
        if code.strip():
            yield number, code


def matches_in_rust(pattern: str, *crates: str) -> list[str]:
    expression = re.compile(pattern)
    return [
        f"{name_of(path)}:{number}: {line.strip()}"
        for path in rust_sources(*crates)
        for number, line in code_of(path.read_text(encoding="utf-8"))
        if expression.search(line)
    ]


def test_the_rules_look_at_real_files() -> None:
    names = {name_of(path) for path in FILES}
    assert {"Cargo.toml", "pyproject.toml", "examples/data/meta.properties"} <= names
    assert all(rust_sources(crate) for crate in ENGINE)
    assert any(python_trees("python/ottla/"))


def test_no_python_line_is_longer_than_100_columns() -> None:
    assert lines_with(r"^.{101}", suffixes=(".py", ".pyi")) == []


def test_nothing_is_left_open_in_a_comment() -> None:
    this = ("tests/test_tidy.py", "pyproject.toml")
    assert lines_with(r"\b(TODO|FIXME|XXX|HACK)\b", skip=(*LOCKS, *this)) == []


def test_unsafe_code_stands_in_the_kernels_alone() -> None:
    assert matches_in_rust(r"\bunsafe\b", *ENGINE, *PYTHON) == []
    for crate in ENGINE:
        lib = (ROOT / f"rust/{crate}/src/lib.rs").read_text(encoding="utf-8")
        assert "#![forbid(unsafe_code)]" in lib
    for crate in PYTHON:
        glue = (ROOT / f"rust/{crate}/src/lib.rs").read_text(encoding="utf-8")
        assert "#![deny(unsafe_code)]" in glue


def test_every_unsafe_block_says_why_it_is_sound() -> None:
    bare = []
    for path in rust_sources("ottla-kernels"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, code in code_of("\n".join(lines)):
            before = lines[max(0, number - 9) : number]
            if re.search(r"\bunsafe\s*\{", code) and not any("SAFETY:" in near for near in before):
                bare.append(f"{name_of(path)}:{number}: {code.strip()}")
    assert bare == []


def test_no_rust_code_panics_on_purpose() -> None:
    pattern = r"\.unwrap\(\)|\.expect\(|\b(panic|unreachable|todo|unimplemented)!"
    assert matches_in_rust(pattern, "ottla-kernels", *ENGINE, *PYTHON) == []


def test_no_rust_code_panics_where_an_assertion_fails() -> None:
    """What must hold is shown by the compiler, by a test, or by an error; kernels check memory."""
    assertions = matches_in_rust(r"\bassert(_eq|_ne)?!", *ENGINE, *PYTHON)
    # One that the compiler evaluates.
    assert [line for line in assertions if ": const _: () = assert!" not in line] == []
    held = matches_in_rust(r"\bassert(_eq|_ne)?!", "ottla-kernels")
    assert sorted(line.split(":")[0] for line in held) == [
        "rust/ottla-kernels/src/build/mod.rs",
        "rust/ottla-kernels/src/copies.rs",
    ]


def test_nothing_is_borrowed_while_python_is_called() -> None:
    """What a thread keeps between calls is taken out and put back: a `RefCell` would panic."""
    assert matches_in_rust(r"borrow_mut|\.borrow\(\)\.|with_borrow|\bRefCell\b", *PYTHON) == []
    # With the interpreter's lock or without it, a panic in the engine becomes our exception.
    calls = matches_in_rust(r"\.detach\(", *PYTHON)
    assert [line.split(":")[0] for line in calls] == ["rust/ottla-py-batches/src/calls.rs"]


def test_indexing_is_allowed_by_item_alone_and_with_the_reason() -> None:
    lint = "clippy::indexing_slicing"
    for crate in (*ENGINE, *PYTHON, "ottla-kernels"):
        lib = (ROOT / f"rust/{crate}/src/lib.rs").read_text(encoding="utf-8")
        assert lint in lib, crate
    for path in rust_sources("ottla-kernels", *ENGINE, *PYTHON):
        code = "\n".join(line for _, line in code_of(path.read_text(encoding="utf-8")))
        for attribute in re.findall(r"#!?\[(?:allow|expect)\([^]]*\)\]", code):
            if lint in attribute:
                assert "reason" in attribute, (name_of(path), attribute)
                # A file of kernels has one reason; anywhere else an item has its own.
                of_file = attribute.startswith("#!")
                assert not of_file or "ottla-kernels" in name_of(path), (name_of(path), attribute)


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    places = "|".join(("wo" + "rk", "ro" + "ot", "ho" + "me"))
    assert lines_with(rf"(?<![\w.$)/-])/({places})/", skip=LOCKS) == []


def test_no_file_names_a_registry() -> None:
    hosts = r"pypi\.org|pythonhosted\.org|crates\.io/|static\.crates|repo\d?\.maven"
    options = r"--(extra-)?index-url|--find-links"
    this = ("tests/test_tidy.py",)
    assert lines_with(rf"https?://\S*({hosts})|{options}", skip=(*LOCKS, *this)) == []


def test_text_ends_with_a_newline_and_has_no_trailing_blanks() -> None:
    endless = [name for name, text in texts() if text and not text.endswith("\n")]
    assert endless == []
    assert lines_with(r"[ \t]+$", suffixes=(".py", ".pyi", ".rs", ".toml", ".md", ".txt")) == []


def test_no_folder_is_kept_for_later() -> None:
    assert [name_of(path) for path in FILES if path.name in {".gitkeep", ".keep"}] == []
    packages = {path.parent for path in FILES if path.name == "__init__.py"}
    filled = {path.parent for path in FILES if path.suffix == ".py" and path.name != "__init__.py"}
    # A package of packages is filled by them.
    filled |= {folder.parent for folder in packages}
    assert sorted(name_of(folder) for folder in packages - filled) == []


def imports_of(tree: ast.Module) -> Iterator[str]:
    """Every module or name that is imported, in full."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module != "ottla" or any(alias.name != "_engine" for alias in node.names):
                yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_only_records_logs_audit_error_codes_and_the_plane_import_the_engine() -> None:
    folders = (
        "records",
        "logs/",
        "audit/",
        "protocol/error_code.py",
        "broker/plane.py",
        "__init__.py",
    )
    allowed = tuple(f"python/ottla/{folder}" for folder in folders)
    importers = [
        name
        for name, tree in python_trees("python/ottla/")
        if "ottla._engine" in imports_of(tree) and not name.startswith(allowed)
    ]
    assert importers == []


def test_no_layer_below_the_shells_imports_the_whole_package() -> None:
    importers = [
        name
        for name, tree in python_trees("python/ottla/")
        if not name.startswith(("python/ottla/cli/", "python/ottla/spark/"))
        and "ottla" in imports_of(tree)
    ]
    assert importers == []


CRATES: dict[str, set[str]] = {
    "ottla-kernels": set(),
    "ottla-format": {"ottla-kernels"},
    "ottla-log": {"ottla-kernels", "ottla-format"},
    "ottla-leader": {"ottla-kernels", "ottla-format", "ottla-log"},
    # A broker has no findings.
    "ottla-plane": {"ottla-format", "ottla-log", "ottla-leader"},
    "ottla-audit": {"ottla-kernels", "ottla-format", "ottla-log"},
}


@pytest.mark.parametrize("crate", CRATES)
def test_a_crate_depends_only_on_those_below_it(crate: str) -> None:
    manifest = (ROOT / f"rust/{crate}/Cargo.toml").read_text(encoding="utf-8")
    dependencies = manifest.partition("[dependencies]")[2]
    assert set(re.findall(r"^ottla-\w+", dependencies, re.MULTILINE)) <= CRATES[crate]
    assert "pyo3" not in manifest


@pytest.mark.parametrize(
    ("folder", "forbidden"), [("sidefiles", "producers|recovery"), ("producers", "recovery")]
)
def test_the_modules_of_a_log_depend_downwards_only(folder: str, forbidden: str) -> None:
    places = matches_in_rust(rf"\bcrate::({forbidden})\b", "ottla-log")
    assert [place for place in places if f"/src/{folder}/" in place] == []


@pytest.mark.parametrize("under", ["tests/", "benches/"])
def test_test_names_are_sentences(under: str) -> None:
    terse = [
        f"{name}:{node.lineno}: {node.name}"
        for name, tree in python_trees(under)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and node.name.count("_") < 3
    ]
    assert terse == []
