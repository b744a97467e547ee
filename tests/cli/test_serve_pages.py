"""The pages about `ottla serve`: what they have one type is typed, and says what they show.

A block of `console` is run line by line; what is behind a line of `$` is in what it says, in that
order. A block of `properties` that begins with the name of a file becomes that file. Ports are free
ones: each that a page names stands for the one that the broker's first line names in its place.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest

DOCS = Path(__file__).parents[2] / "docs" / "broker"
PAGES = ("serve.md", "security.md")
BLOCK = re.compile(r"^```(console|properties)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PORT = re.compile(r"(?<=:)\d{4,5}\b")
WITHIN_S = 60


def commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """Commands, each with the lines that the page shows of what it says."""
    shown: list[str] = []
    command = ""
    for line in block.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line.removeprefix("$ "), []
        else:
            shown.append(line)
    if command:
        yield command, shown


class Terminal:
    """Where a page's commands are typed: in a folder of their own, one broker at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broker: subprocess.Popen[str] | None = None
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `close`
        self.ports: dict[str, str] = {}
        programs = folder / "programs"
        programs.mkdir()
        program = programs / "ottla"
        start = "from ottla_command import main; main()"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{start}" "$@"\n')
        program.chmod(0o700)
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}

    def type(self, command: str, shown: list[str]) -> None:
        if command.startswith("ottla serve"):
            self.serve(command, shown)
            return
        ran = subprocess.run(
            ["sh", "-c", self.translated(command)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        assert ran.returncode == 0, (command, ran.stderr)
        self.hold([self.translated(line) for line in shown], ran.stdout.splitlines(), command)

    def serve(self, command: str, shown: list[str]) -> None:
        self.end()
        for file in self.folder.glob("*.properties"):
            file.write_text(PORT.sub("0", file.read_text()))
        command = re.sub(r"--metrics \d+", "--metrics 0", command)
        if "--config" not in command:
            command = re.sub(r"--port \d+", "", command) + " --port 0"
        self.broker = subprocess.Popen(
            shlex.split(command),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        kill = Timer(WITHIN_S, self.broker.kill)
        kill.start()
        assert self.broker.stdout is not None
        line = self.broker.stdout.readline().rstrip("\n")
        kill.cancel()
        # What is advertised is as the page says, and no port that is listened on.
        named = PORT.findall(shown[0])
        found = PORT.findall(line)
        assert PORT.sub("PORT", line) == PORT.sub("PORT", shown[0]), command
        self.ports = dict(zip(named, found, strict=True))
        self.errors.seek(0)
        self.hold(shown[1:], self.errors.read().splitlines(), command)

    def translated(self, text: str) -> str:
        return PORT.sub(lambda port: self.ports.get(port[0], port[0]), text)

    @staticmethod
    def hold(shown: list[str], said: list[str], command: str) -> None:
        lines = iter(said)
        for line in shown:
            assert line in lines, (command, line, said)

    def end(self) -> None:
        if self.broker is None:
            return
        self.broker.send_signal(signal.SIGTERM)
        self.broker.communicate(timeout=WITHIN_S)
        assert self.broker.returncode == 0
        self.broker = None
        self.errors.seek(0)
        self.errors.truncate()

    def close(self) -> None:
        if self.broker is not None:
            self.broker.kill()
            self.broker.communicate(timeout=WITHIN_S)
        self.errors.close()


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_has_one_type_says_what_it_shows(page: str, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    try:
        for kind, block in BLOCK.findall((DOCS / page).read_text()):
            if kind == "properties":
                name, _, text = block.partition("\n")
                (tmp_path / name.removeprefix("# ")).write_text(text)
                continue
            for command, shown in commands(block):
                terminal.type(command, shown)
        terminal.end()
    finally:
        terminal.close()


def test_every_option_that_serve_has_is_known_to_it_where_a_page_names_one() -> None:
    from ottla.cli.serve import serve  # noqa: PLC0415

    known = {name for parameter in serve.params for name in parameter.opts}
    # An endpoint for tests is told of here and on the page about tests.
    elsewhere = {"--control", "--add-scram"}
    named = {
        name
        for page in PAGES
        for name in re.findall(r"(?<![\w-])--[a-z][a-z-]+", (DOCS / page).read_text())
    }
    assert named - known - elsewhere == set()


def test_bounds_on_the_page_are_those_of_the_code() -> None:
    from ottla.net.limits import MAX_HTTP_CONNECTIONS, Limits  # noqa: PLC0415

    page = (DOCS / "security.md").read_text()
    limits = Limits()
    assert f"| {limits.max_early_frame_bytes >> 10} KiB (" in page
    assert f", {limits.max_frame_bytes >> 20} MiB afterwards" in page
    assert f"login are done | {limits.max_early_ms // 1000} s |" in page
    assert f"| {limits.max_early_connections:,}: of more" in page
    assert f"| {limits.max_connections:,} (`max.connections`)" in page
    assert f"| {limits.max_unsent_total_bytes >> 20} MiB each" in page
    assert limits.max_held_total_bytes == limits.max_unsent_total_bytes
    assert f"{MAX_HTTP_CONNECTIONS} connections each" in page
