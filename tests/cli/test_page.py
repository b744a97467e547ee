"""A report is drawn on a terminal and is the same text without styles elsewhere."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ottla.cli.page import open_page, whole

OTTLA = Path(sys.executable).with_name("ottla")
STYLE = re.compile(r"\x1b\[[0-9;]*m")


def audited(demo: Path, **environment: str) -> str:
    command = [str(OTTLA), "audit", str(demo), "--all"]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    return re.sub(r"in [0-9.]+ s", "in 1 s", done.stdout)


@pytest.mark.parametrize("columns", ["50", "80", "200"])
def test_a_report_is_the_same_text_drawn_and_plain(demo: Path, columns: str) -> None:
    drawn = audited(demo, FORCE_COLOR="1", TERM="xterm", COLUMNS=columns)
    assert STYLE.search(drawn)
    assert STYLE.sub("", drawn) == audited(demo, COLUMNS=columns)


def test_a_terminal_gets_styles(demo: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [str(OTTLA), "audit", str(demo)], stdout=theirs, env=os.environ | {"TERM": "xterm"}
    ) as process:
        os.close(theirs)
        drawn = b""
        try:
            while data := os.read(ours, 4096):
                drawn += data
        except OSError:
            pass  # The end of a terminal.
        process.wait()
    os.close(ours)
    assert STYLE.search(drawn.decode())


def test_what_is_not_drawn_loads_no_rich(demo: Path) -> None:
    program = (
        "import sys, ottla.cli; ottla.cli.run(['audit', sys.argv[1]]);"
        "sys.exit(any(name.split('.')[0] == 'rich' for name in sys.modules))"
    )
    command = [sys.executable, "-c", program, str(demo)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("is_drawn", [False, True])
def test_a_line_quotes_nothing_that_a_terminal_obeys(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_drawn: bool
) -> None:
    if is_drawn:
        monkeypatch.setenv("TTY_COMPATIBLE", "1")
        monkeypatch.setenv("NO_COLOR", "1")
    opened = open_page()
    opened.print("topic\x1b[2J\u202e[bold]:smile:\t", whole("topic", "dim"))
    opened.print()
    told = STYLE.sub("", capsys.readouterr().out)
    assert told == "topic\\x1b[2J\\xe2\\x80\\xae[bold]:smile:\\x09\n\n"


@pytest.mark.parametrize(
    ("columns", "lines", "size"),
    [("100", "30", (100, 30)), ("", "", (80, 25)), ("wide", "-1", (80, 25)), ("60", "", (60, 25))],
)
def test_a_page_without_a_terminal_is_as_large_as_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, columns: str, lines: str, size: tuple[int, int]
) -> None:
    def none(_: int) -> os.terminal_size:
        raise OSError

    monkeypatch.setattr(os, "get_terminal_size", none)
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("LINES", lines)
    opened = open_page()
    assert (opened.width, opened.height) == size
