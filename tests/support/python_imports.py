"""Which file of a Python package imports which, wherever the import stands."""

import ast
from collections.abc import Iterable, Iterator


def import_graph(trees: Iterable[tuple[str, ast.Module]], root: str) -> dict[str, set[str]]:
    """Files by those they import: under TYPE_CHECKING and inside functions, too.

    A name taken from a package is an import of the package's own file, unless it is a module. That
    importing a module runs the packages above it is no import of theirs.

    Args:
        trees: name and syntax of each file.
        root: the folder in which the package lies, such as ``python/``.
    """
    parsed = dict(trees)
    files = {_module_of(name, root): name for name in parsed}
    return {
        name: {
            files[module] for module in _imported(tree, frozenset(files)) if files[module] != name
        }
        for name, tree in parsed.items()
    }


def _module_of(name: str, root: str) -> str:
    module = name.removeprefix(root).removesuffix(".py").replace("/", ".")
    return module.removesuffix(".__init__")


def _imported(tree: ast.Module, modules: frozenset[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if full in modules:
                    yield full
                elif node.module in modules and alias.name != "_engine":
                    yield node.module
