"""The documentation site: pages are there, links lead somewhere, and a phone can show it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from ottla.audit.catalogue.explain import catalogue
from support.programs import required

pytest.importorskip("mkdocs", reason="the site is built by Python 3.11 or newer")
pytest.importorskip("griffe", reason="the site is built by Python 3.11 or newer")

from release.site import links
from release.site.docstrings import with_fences
from release.site.hooks import with_links
from release.site.pages import API

PHONE, DESK = 390, 1280
# In seconds; ends what hangs.
PATIENCE = 240
# Each page in a frame of its own, one after the other: how much wider it is than what shows it,
# how many boxes of tables and of code end outside of it, and how many scroll.
MEASURE = """<!doctype html><body><script>
const measured = [];
async function measure(page, width) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width: ${width}px; height: 900px; border: 0`;
  const there = new Promise((resolve) => { frame.onload = resolve; });
  frame.src = page;
  document.body.append(frame);
  await there;
  const root = frame.contentDocument.documentElement;
  const wrapped = (table) => table.closest(".md-typeset__scrollwrap") || table;
  const boxes = [...root.querySelectorAll(".md-typeset table:not([class])")].map(wrapped);
  boxes.push(...root.querySelectorAll(".md-typeset pre > code"));
  measured.push({
    page, width,
    over: root.scrollWidth - root.clientWidth,
    spilt: boxes.filter((box) => box.getBoundingClientRect().right > width + 1).length,
    scrolled: boxes.filter((box) => box.scrollWidth > box.clientWidth).length,
  });
  frame.remove();
}
(async () => {
  for (const width of WIDTHS) { for (const page of PAGES) { await measure(page, width); } }
  await fetch("/measured", { method: "POST", body: JSON.stringify(measured) });
})();
</script>"""


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site, built once for all tests."""
    built = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(built)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return built


@pytest.mark.slow
def test_every_link_of_the_site_leads_somewhere_and_nothing_is_loaded_from_elsewhere(
    site: Path,
) -> None:
    assert links.broken(site) == []


@pytest.mark.slow
def test_every_finding_has_a_page_that_its_list_links(site: Path) -> None:
    listed = (site / "findings.html").read_text(encoding="utf-8")
    for name, row in catalogue().items():
        page = (site / f"findings/{name}.html").read_text(encoding="utf-8")
        assert f'href="findings/{name}.html"' in listed
        assert f"ottla explain {name}" in re.sub("<[^>]*>", "", page)
        assert row.action.split()[0] in page


@pytest.mark.slow
@pytest.mark.parametrize("package", API)
def test_every_public_name_is_described(site: Path, package: str) -> None:
    page = (site / API[package]).with_suffix(".html").read_text(encoding="utf-8")
    names = [name for name in import_module(package).__all__ if not name.startswith("__")]
    places = set(re.findall(r'id="([\w.]+)"', page))
    assert [name for name in names if not any(p.endswith(f".{name}") for p in places)] == []


@pytest.mark.slow
def test_classes_of_the_engine_are_described_by_its_own_words(site: Path) -> None:
    page = (site / "api/ottla.html").read_text(encoding="utf-8")
    text = re.sub(r"\s+", " ", re.sub("<[^>]*>", "", page))
    record = import_module("ottla").Record
    assert record.__doc__.split("\n")[0] in text


@pytest.mark.slow
def test_what_is_searched_for_is_in_the_index(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"] for entry in index["docs"]}
    assert {"findings/crc-mismatch.html", "api/ottla.html#ottla.read_partition"} <= found


def measured_by_a_browser(site: Path, pages: list[str], profile: Path) -> list[dict[str, Any]]:
    """What a browser on this machine says of pages, each at both widths."""
    browser = shutil.which("chromium") or required("chromium-headless-shell")
    said: Queue[bytes] = Queue()

    class Handler(SimpleHTTPRequestHandler):
        def do_POST(self) -> None:
            said.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    measure = MEASURE.replace("WIDTHS", str([PHONE, DESK])).replace("PAGES", json.dumps(pages))
    (site / "measure.htm").write_text(measure, encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
    command += [f"--user-data-dir={profile}", "--window-size=1400,1000"]
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        place = f"http://127.0.0.1:{server.server_port}/measure.htm"
        # Debian's command is a script: the browser behind it is ended with the group of both.
        shown = subprocess.Popen(
            [*command, place], stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            found: list[dict[str, Any]] = json.loads(said.get(timeout=PATIENCE))
        finally:
            os.killpg(shown.pid, signal.SIGKILL)
            shown.wait()
            server.shutdown()
            thread.join()
    return found


@pytest.mark.slow
def test_no_page_is_wider_than_a_phone_or_a_desk_and_long_tables_scroll(
    site: Path, tmp_path: Path
) -> None:
    pages = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    findings = [page for page in pages if page.startswith("findings/")]
    pages = [page for page in pages if page not in {*findings[1:], "404.html"}]
    measured = measured_by_a_browser(site, pages, tmp_path)
    assert len(measured) == 2 * len(pages)
    assert [row for row in measured if row["over"] > 0 or row["spilt"]] == []
    assert any(row["width"] == PHONE and row["scrolled"] for row in measured)


def test_a_link_leads_into_the_site_or_into_the_repository() -> None:
    text = "[a](../tests/a.py), [b](tables.md#batches), [c](../README.md), [d](https://e.org)"
    kept = "[b](tables.md#batches), [c](index.md), [d](https://e.org)"
    assert with_links(text, "kips.md", "", "v1") == f"a, {kept}"
    address = "https://e.org/o/n"
    linked = f"[a]({address}/blob/v1/tests/a.py)"
    assert with_links(text, "kips.md", address, "v1") == f"{linked}, {kept}"


def test_a_link_in_code_stays_as_it_is() -> None:
    text = "```python\nx = [a](b.py)\n```\n"
    assert with_links(text, "kips.md", "", "v1") == text


def test_examples_of_a_docstring_are_code() -> None:
    fenced = "It adds:\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    assert with_fences("It adds::\n\n>>> 1 + 1\n2\n\nMore.") == fenced


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top"></h1><a href="b.html#x">b</a><a href="#top">a</a>'
    )
    (tmp_path / "b.html").write_text(
        '<a href="c.html"></a><script src="https://e.org/s.js"></script>'
    )
    assert links.broken(tmp_path) == [
        "a.html: b.html#x leads nowhere",
        "b.html: c.html leads nowhere",
        "b.html: https://e.org/s.js is loaded from elsewhere",
    ]
