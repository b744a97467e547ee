"""`ottla serve --control`: what the ready line says, who gets in, and how it ends."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from os import environ
from pathlib import Path
from typing import Any

import pytest
from support.commands import Run

COMMAND = [sys.executable, "-c", "from ottla_command import main; main()", "serve", "--port", "0"]
READY = re.compile(r"ready: bootstrap\.servers=\S+ control=(\S+?):(\d+)(?: token=(\S+))?\n")


@contextmanager
def served(
    *options: str, env: Mapping[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], re.Match[str]]]:
    with subprocess.Popen(
        [*COMMAND, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environ, **(env or {})},
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = READY.fullmatch(line)
            assert found is not None, line
            yield process, found
        finally:
            process.kill()


def ask(ready: re.Match[str], token: str, operation: str, **arguments: object) -> Any:
    client = HTTPConnection(ready[1], int(ready[2]), timeout=30)
    try:
        headers = {"Authorization": f"Bearer {token}"}
        client.request("POST", f"/{operation}", json.dumps(arguments), headers)
        response = client.getresponse()
        told = json.loads(response.read())
        return response.status, told.get("result", told.get("error"))
    finally:
        client.close()


def test_the_ready_line_names_the_endpoint_and_a_random_token() -> None:
    with served("--control", "0", "--topic", "orders:3") as (process, ready):
        assert ready[1] == "127.0.0.1"
        assert len(ready[3]) == 32
        assert ask(ready, ready[3], "topics") == (200, {"orders": 3})
        assert ask(ready, "wrong", "topics")[0] == 401
        process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate(timeout=30)
        assert (process.returncode, complaints) == (0, "")


def test_a_stop_that_is_asked_for_is_a_clean_end() -> None:
    with served("--control", "127.0.0.1:0") as (process, ready):
        assert ask(ready, ready[3], "stop") == (200, None)
        assert process.wait(30) == 0


def test_a_token_that_is_given_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("open-sesame\n")
    with served("--control", "0", "--control-token-file", str(file)) as (_, ready):
        assert ready[3] is None
        assert ask(ready, "open-sesame", "topics") == (200, {})
    with served("--control", "0", env={"OTTLA_CONTROL_TOKEN": "by-variable"}) as (_, ready):
        assert ready[3] is None
        assert ask(ready, "by-variable", "topics") == (200, {})


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--control", "many"], 64, "'many' is no port from 0 to 65535"),
        (["--control", "70000"], 64, "'70000' is no port from 0 to 65535"),
        (["--control-token-file", "/no/such"], 64, "--control, which is missing"),
        (["--control", "0", "--control-token-file", "/no/such"], 3, "No such file"),
        (["--control", "0", "--control-token-file", "/dev/null"], 64, "has no token"),
    ],
)
def test_what_is_wrong_is_one_message(run: Run, options: list[str], status: int, said: str) -> None:
    ran = run("serve", "--port", "0", *options)
    assert (ran.status, ran.out) == (status, "")
    assert said in ran.err
