"""What the process of a broker does that `ottla.testing.own_process` has started."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from typing import TYPE_CHECKING, Any

from ottla.net.control import ControlSite, error_object, new_token
from ottla.net.memory import keep_freed_memory
from ottla.net.operations import Operations
from ottla.net.settings import ListenerSettings
from ottla.testing.options import Options, address_of, prepare, server_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["main"]

LOOK_EVERY_S = 1.0


def main() -> None:
    """Serves until standard input ends, or the parent is another than it was."""
    # Ctrl-C at a terminal reaches both; a test that is interrupted ends its broker itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_freed_memory()
    parent = os.getppid()
    options = Options(**json.loads(sys.stdin.readline()))
    asked_to_stop, stop = os.pipe()
    try:
        server = server_of(options, _log)
        token = new_token()
        site = ControlSite(server, token, stop=lambda: os.close(stop))
        address = server.add_site(site, ListenerSettings(name="CONTROL"))
        server.wait_awake()
        server.start()
        prepare(options, server, Operations(server))
    except Exception as error:  # noqa: BLE001 - the parent raises it
        _tell({"error": error_object(error)})
        return
    _tell(
        {
            "bootstrap_servers": address_of(server),
            "host": address.host,
            "port": address.port,
            "token": token,
        }
    )
    # A process that was forked off the parent may hold the pipe open, so it is not enough alone.
    while os.getppid() == parent:
        if select.select([sys.stdin, asked_to_stop], [], [], LOOK_EVERY_S)[0]:
            break
    server.stop()


def _tell(told: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def _log(line: str) -> None:
    sys.stderr.write(f"ottla: {line}\n")
