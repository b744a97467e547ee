"""Holds the links of a built site: `python -m release.site.links target/site`."""

import sys
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself; anything else waits for a reader to follow it.
_LOADED = {"img", "script", "iframe", "source", "audio", "video", "embed", "object", "use"}
_LOADED_BY_LINK = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "modulepreload"}


@dataclass
class Page(HTMLParser):
    """The places of a page that a link can name, its links, and what it has a browser load."""

    places: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Takes down the places and links of one element."""
        values = {name: value for name, value in attrs if value}
        self.places.update(values[name] for name in ("id", "name") if name in values)
        address = values.get("href") or values.get("src") or values.get("data")
        if address is None:
            return
        relations = set(values.get("rel", "").split())
        self.links.append(address)
        if tag in _LOADED or (tag == "link" and relations & _LOADED_BY_LINK):
            self.loaded.append(address)


def broken(site: Path) -> list[str]:
    """Returns each link of a site that leads nowhere, and each thing loaded from elsewhere."""
    found = []
    for path in sorted(site.rglob("*.html")):
        page = _page(path)
        name = path.relative_to(site).as_posix()
        found += [
            f"{name}: {link} leads nowhere" for link in page.links if not _leads(site, path, link)
        ]
        found += [
            f"{name}: {link} is loaded from elsewhere" for link in page.loaded if _is_outside(link)
        ]
    return found


def _leads(site: Path, path: Path, link: str) -> bool:
    if _is_outside(link):
        return True
    parts = urlsplit(link)
    start = site if parts.path.startswith("/") else path.parent
    target = start / unquote(parts.path).lstrip("/") if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if not target.resolve().is_relative_to(site.resolve()) or not target.is_file():
        return False
    place = unquote(parts.fragment)
    return not place or target.suffix != ".html" or place in _page(target).places


def _is_outside(link: str) -> bool:
    parts = urlsplit(link)
    return bool(parts.netloc) or parts.scheme not in ("", "file")


@cache
def _page(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def main() -> int:
    """Prints what is broken."""
    site = Path(sys.argv[1])
    found = broken(site)
    print(
        "\n".join(found) or f"{len(list(site.rglob('*.html')))} pages, every link leads somewhere"
    )
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
