"""What code and documentation cite is in the repository: files, folders and numbered sections."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

import pytest
from support.sources import DATA, FILES, ROOT, name_of

NAMES = frozenset(name_of(path) for path in FILES)
FOLDERS = frozenset(str(folder) for name in NAMES for folder in PurePosixPath(name).parents)
# Every path, and what is left of it without the folders it begins with.
ENDS = frozenset(
    "/".join(parts[start:])
    for parts in (PurePosixPath(name).parts for name in NAMES | FOLDERS)
    for start in range(len(parts))
)

# What commands make; none of it is kept.
MADE = frozenset({"dist/", "target/musl", "target/site"})

CITED_FILE = re.compile(r"(?<![\w./*-])(?:[\w.-]+/)*[\w-]+\.(?:md|rs|py|pyi|svg)\b")
# Quick to see in a file that has nothing to look at.
CITES = re.compile(r"§|\.(?:md|rs|py|pyi|svg)\b")
CODE_SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
SECTION = re.compile(r"§(\d+(?:\.\d+)*)")
# A page and the sections named of it, as in "`log-dir.md` §4–§6".
CITED_SECTIONS = re.compile(r"([\w-]+\.md)`? (§[\d.]*\d(?:(?:–|, | and )§[\d.]*\d)*)")


@cache
def comments_of(path: Path) -> str:
    """What a file says to its readers, line breaks and comment marks taken out."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    if not CITES.search(text):
        return ""
    if path.suffix == ".rs":
        found = [line.split("//", 1)[1].lstrip("/!") for line in text.splitlines() if "//" in line]
    elif path.suffix in {".py", ".pyi"}:
        found = [*python_comments(text), *docstrings(ast.parse(text))]
    else:
        found = [line.split("#", 1)[1] for line in text.splitlines() if "#" in line]
    return re.sub(r"\s+", " ", " ".join(found))


def python_comments(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("#")


def docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def readable() -> list[Path]:
    """Files with comments, and pages."""
    suffixes = {".md", ".py", ".pyi", ".rs", ".toml"}
    names = {"Makefile", ".ci/run"}
    return [
        path
        for path in FILES
        if (path.suffix in suffixes or name_of(path) in names)
        and not name_of(path).startswith(DATA)
    ]


def exists(cited: str, citing: Path) -> bool:
    """Whether a path leads to something: from the root, from beside, or as the end of a path."""
    cited = cited.rstrip("/")
    beside = (citing.parent / cited).resolve()
    if beside.is_relative_to(ROOT) and name_of(beside) in NAMES | FOLDERS:
        return True
    return cited in ENDS


def headings_of(page: str) -> list[str]:
    return HEADING.findall((ROOT / page).read_text(encoding="utf-8"))


@cache
def sections_of(page: str) -> set[str]:
    numbers = (re.match(r"(\d+(?:\.\d+)*)\.? ", heading) for heading in headings_of(page))
    return {number[1] for number in numbers if number}


def page_named(name: str) -> str | None:
    """The one page of a name, wherever it is."""
    pages = [known for known in NAMES if PurePosixPath(known).name == name]
    return pages[0] if len(pages) == 1 else None


def cited_sections(path: Path) -> Iterator[tuple[str | None, str]]:
    """Sections that a file cites, each with its page; a numbered page need not name itself."""
    text = comments_of(path)
    own = name_of(path) if path.suffix == ".md" and sections_of(name_of(path)) else None
    for page, sections in CITED_SECTIONS.findall(text):
        yield from ((page_named(page), number) for number in SECTION.findall(sections))
    for number in SECTION.findall(CITED_SECTIONS.sub("", text)):
        yield own, number


def test_every_file_that_a_comment_or_page_cites_exists() -> None:
    missing = [
        f"{name_of(path)}: {cited}"
        for path in readable()
        for cited in CITED_FILE.findall(comments_of(path))
        if not exists(cited, path)
    ]
    assert missing == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_every_path_that_developers_are_sent_to_exists(page: str) -> None:
    path = ROOT / page
    paths = {
        span
        for span in CODE_SPAN.findall(path.read_text(encoding="utf-8"))
        if "/" in span and PATH.fullmatch(span)
    }
    # A module may be named without its suffix, with what is meant of it behind a dot.
    modules = {span: [span, f"{span}.rs", f"{span}.py"] for span in paths}
    for span in paths:
        modules[span].append(f"{span.rsplit('.', 1)[0]}.py")
    missing = [
        span
        for span, candidates in modules.items()
        if span not in MADE and not any(exists(candidate, path) for candidate in candidates)
    ]
    assert sorted(missing) == []


def test_every_link_between_pages_leads_somewhere() -> None:
    broken = []
    for path in readable():
        if path.suffix != ".md":
            continue
        for link in LINK.findall(path.read_text(encoding="utf-8")):
            if re.match(r"https?://", link):
                continue
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            if not target.exists() or (anchor and anchor not in anchors_of(target)):
                broken.append(f"{name_of(path)}: {link}")
    assert broken == []


def anchors_of(page: Path) -> set[str]:
    """Headings as links name them."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings_of(name_of(page)))
    return {heading.replace(" ", "-") for heading in plain}


def test_every_section_that_is_cited_is_in_its_page() -> None:
    missing = [
        f"{name_of(path)}: {page or 'no page'} §{number}"
        for path in readable()
        for page, number in cited_sections(path)
        if page is None or number not in sections_of(page)
    ]
    assert missing == []
