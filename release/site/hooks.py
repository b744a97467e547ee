"""What MkDocs is told beside docs/: generated pages, the project's own, and where links lead."""

import posixpath
import re
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

from release.crates import ROOT
from release.site.pages import finding_path, findings_by_severity, generated

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

# Pages of the repository outside of docs/, by their place in the site.
PROJECT = {
    "index.md": "README.md",
    "project/CHANGELOG.md": "CHANGELOG.md",
    "project/CONTRIBUTING.md": "CONTRIBUTING.md",
    "project/ARCHITECTURE.md": "ARCHITECTURE.md",
    "project/SECURITY.md": "SECURITY.md",
}
_PLACES = {source: page for page, source in PROJECT.items()}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_FINDING = re.compile(r"^### ([a-z-]+)$", re.MULTILINE)


def on_config(config: "MkDocsConfig") -> None:
    """Adds the pages of findings to the navigation."""
    for entry in config.nav or ():
        if "Findings" in entry:
            entry["Findings"] += findings_by_severity()


def on_files(files: "Files", config: "MkDocsConfig") -> None:
    """Adds the pages that are not in docs/."""
    for page, source in PROJECT.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    for page, text in generated():
        files.append(File.generated(config, page, content=text))
    style = ROOT / "release/site/site.css"
    files.append(File.generated(config, "assets/site.css", abs_src_path=str(style)))


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    """Returns a page whose links lead where its readers are: into the site, or the repository."""
    del files
    name = page.file.src_uri
    if name == "findings.md":
        markdown = _FINDING.sub(lambda found: _linked(found[1]), markdown)
    if not page.file.generated_by or name in PROJECT:
        markdown = with_links(markdown, name, config.repo_url or "", config.extra["tag"])
    return markdown


def with_links(markdown: str, page: str, address: str, tag: str) -> str:
    """Returns a page with links to files of the repository as its place in the site has them.

    What the site does not hold is linked at `address`; without one, its name alone is left.
    """
    source = PROJECT.get(page, f"docs/{page}")

    def moved(link: re.Match[str]) -> str:
        picture, label, path, anchor = link.groups(default="")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        place = _PLACES.get(target, "")
        if target.startswith("docs/"):
            place = target.removeprefix("docs/")
        if place:
            return f"{picture}[{label}]({_relative(place, page)}{anchor})"
        return f"{picture}[{label}]({address}/blob/{tag}/{target}{anchor})" if address else label

    parts = _FENCE.split(markdown)
    return "".join(part if part.startswith("```") else _LINK.sub(moved, part) for part in parts)


def _relative(place: str, page: str) -> str:
    return posixpath.relpath(place, posixpath.dirname(page) or ".")


def _linked(name: str) -> str:
    return f"### [{name}]({finding_path(name)})"
