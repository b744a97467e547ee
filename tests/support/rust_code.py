"""Rust as the tests of its structure read it: functions, types, and which file uses which.

No parser: comments and texts are blanked, and braces and paths matched in what is left.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import accumulate
from pathlib import PurePosixPath
from typing import NamedTuple

_BLANKED = re.compile(
    r"""
    //[^\n]*
    | /\*.*?\*/
    | \b(?:b|c)?r(?P<hashes>\#*)".*?"(?P=hashes)
    | (?:\bb|\bc)?"(?:[^"\\]|\\.)*"
    | (?:\bb)?'(?:[^'\\\n]|\\[^u\n]|\\x[0-9a-fA-F]{2}|\\u\{[0-9a-fA-F_]+\})'
    """,
    re.VERBOSE | re.DOTALL,
)
_TESTS = re.compile(r"^[ \t]*#\[cfg\(test\)\]", re.MULTILINE)
_FUNCTION = re.compile(r"\bfn\s+(\w+)")
_TYPE = re.compile(r"\b(?:struct|enum|union|trait|type)\s+([A-Za-z_]\w*)")
_BLOCK = re.compile(r"\b(mod|impl|trait|fn|struct|enum|union|macro_rules)\b")
_USE = re.compile(r"(?:\bpub(?:\([^)]*\))?\s+)?\buse\s+([^;]+);")
_CHILD = re.compile(r"\bmod\s+(\w+)\s*;")
_INLINE = re.compile(r"\bmod\s+(\w+)\s*\{")
_PATH = re.compile(r"(?<![\w:])(?:\w+\s*::\s*)+\w+")
_DEFINED = re.compile(
    r"\b(?:fn|struct|enum|union|trait|type|mod|macro_rules!|const|static(?:\s+mut)?)\s+(\w+)"
)
_WORD = re.compile(r"\w+")


@lru_cache(maxsize=1024)
def code_of(text: str) -> str:
    """A file with blanks for comments, texts, and the module of tests at its end."""
    blank = _BLANKED.sub(_blank, text)
    tests = _TESTS.search(blank)
    return blank if tests is None else blank[: tests.start()]


class Function(NamedTuple):
    """A function with a body."""

    name: str
    line: int
    lines: int


def functions(text: str) -> Iterator[Function]:
    """The functions of a file, from `fn` to the last brace."""
    code = code_of(text)
    starts = list(accumulate(map(len, code.splitlines(keepends=True)), initial=0))
    for match in _FUNCTION.finditer(code):
        opening = _body(code, match.end())
        if opening is None:
            continue
        first = bisect_right(starts, match.start())
        last = bisect_right(starts, _closing(code, opening))
        yield Function(match[1], first, last - first + 1)


def _body(code: str, position: int) -> int | None:
    """Where the body of a function opens; None for one that is only declared."""
    depth = 0
    for at in range(position, len(code)):
        if code[at] in "([":
            depth += 1
        elif code[at] in ")]":
            depth -= 1
        elif depth == 0 and code[at] in "{;":
            return at if code[at] == "{" else None
    return None


def _closing(code: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(code)):
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        if depth == 0:
            return at
    return len(code) - 1


def types(text: str) -> Iterator[str]:
    """Names of the types that a file defines as items: none of those inside impls and functions."""
    code = code_of(text)
    inside: list[bool] = []
    begin = 0
    for brace in re.finditer(r"[{};]", code):
        head = code[begin : brace.start()]
        if all(inside):
            yield from _TYPE.findall(head)
        if brace[0] == "{":
            block = _BLOCK.search(head)
            inside.append(block is not None and block[1] == "mod")
        elif brace[0] == "}" and inside:
            inside.pop()
        begin = brace.end()


Module = tuple[str, ...]
"""The path of a module in its crate; empty for the root."""


def module_of(name: str) -> Module:
    """The module that a file below `src/` is."""
    parts = PurePosixPath(name).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("lib", "mod") else parts


class _Use(NamedTuple):
    within: Module
    """The module it stands in, which may be one without a file of its own."""
    path: tuple[str, ...]
    name: str
    """What it is called here; `*` for everything."""
    is_public: bool


class Crate:
    """The files of a crate by module, and the uses among them.

    An edge leads to the file that defines what is used: through a module that hands it on, not to
    it. A module that only hands a name on does not use it.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        """`sources` are texts by the names of files below `src/`."""
        self._names = {module_of(name): name for name in sources}
        self._code = {module_of(name): code_of(text) for name, text in sources.items()}
        self._uses = {module: list(_uses(module, code)) for module, code in self._code.items()}
        # Blanked, so that positions stay.
        self._rest = {
            module: _CHILD.sub(_blank, _USE.sub(_blank, code))
            for module, code in self._code.items()
        }
        self._defined = {module: set(_DEFINED.findall(code)) for module, code in self._code.items()}

    def graph(self) -> dict[str, set[str]]:
        """Names of files by those they use."""
        return {
            self._names[module]: {self._names[used] for used in self._used(module)} - {name}
            for module, name in self._names.items()
        }

    def _used(self, module: Module) -> Iterator[Module]:
        rest = self._rest[module]
        words = set(_WORD.findall(rest))
        for use in self._uses[module]:
            if use.name == "*" and use.is_public:
                continue
            if not use.is_public or use.name in words:
                yield from self._targets(use.within, use.path)
        blocks = list(_inline_modules(rest))
        for match in _PATH.finditer(rest):
            path = tuple(_WORD.findall(match[0]))
            if path[0] in ("crate", "self", "super") or (*module, path[0]) in self._names:
                yield from self._targets(_within(module, blocks, match.start()), path)

    def _targets(self, module: Module, path: tuple[str, ...]) -> Iterator[Module]:
        target = self._resolved(module, path, frozenset())
        if target is not None:
            yield target

    def _resolved(
        self, module: Module, path: tuple[str, ...], seen: frozenset[tuple[Module, str]]
    ) -> Module | None:
        """The module that defines what a path names; None for what is of another crate."""
        at = module
        left = list(path)
        if left[0] == "crate":
            at = ()
            left.pop(0)
        elif left[0] in ("self", "super"):
            while left and left[0] in ("self", "super"):
                at = at[:-1] if left.pop(0) == "super" else at
        elif (*module, left[0]) not in self._names:
            return None
        while left and (*at, left[0]) in self._names:
            at = (*at, left.pop(0))
        while at not in self._names:
            # Of a module inside the file.
            at = at[:-1]
        if not left or left[0] == "*" or left[0] in self._defined[at] or (at, left[0]) in seen:
            return at
        return self._handed_on(at, left[0], seen | {(at, left[0])}) or at

    def _handed_on(
        self, module: Module, name: str, seen: frozenset[tuple[Module, str]]
    ) -> Module | None:
        """The module that defines what this one imports by a name."""
        for use in self._uses[module]:
            if use.name == name:
                return self._resolved(use.within, use.path, seen)
        for use in self._uses[module]:
            if use.name == "*":
                there = self._resolved(use.within, use.path[:-1], seen)
                if there is not None and there != module:
                    if name in self._defined[there]:
                        return there
                    if (there, name) not in seen:
                        found = self._handed_on(there, name, seen | {(there, name)})
                        if found is not None:
                            return found
        return None


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _inline_modules(code: str) -> Iterator[tuple[str, int, int]]:
    """Name, start and end of the modules that a file holds in braces."""
    for match in _INLINE.finditer(code):
        yield match[1], match.end(), _closing(code, match.end() - 1)


def _within(module: Module, blocks: Iterable[tuple[str, int, int]], position: int) -> Module:
    """The module in which a place of a file lies."""
    return (*module, *(name for name, start, end in blocks if start <= position < end))


def _uses(module: Module, code: str) -> Iterator[_Use]:
    blocks = list(_inline_modules(code))
    for match in _USE.finditer(code):
        is_public = match[0].lstrip().startswith("pub")
        within = _within(module, blocks, match.start())
        for path, name in _flattened(re.sub(r"\s+", " ", match[1]).strip(), ()):
            yield _Use(within, path, name, is_public)


def _flattened(tree: str, prefix: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The paths of a use tree, each with the name it is called by."""
    head, brace, inside = tree.partition("{")
    if brace:
        names = tuple(_WORD.findall(head))
        for part in _parts(inside.rsplit("}", 1)[0]):
            yield from _flattened(part, (*prefix, *names))
        return
    path, _, alias = tree.partition(" as ")
    parts = tuple(re.findall(r"\w+|\*", path))
    if not parts:
        return
    full = (*prefix, *parts) if parts != ("self",) or not prefix else prefix
    yield full, alias.strip() or full[-1]


def _parts(inside: str) -> Iterable[str]:
    """What stands between the commas of a use tree's braces."""
    depth = 0
    begin = 0
    for at, char in enumerate(inside):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            yield inside[begin:at].strip()
            begin = at + 1
    if inside[begin:].strip():
        yield inside[begin:].strip()
