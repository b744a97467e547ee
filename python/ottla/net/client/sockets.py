"""Sockets to brokers: names resolved, and addresses tried in turn."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["connected"]

_PATIENCE_S: Final = 2.0
"""With an address that does not answer, where there is another one."""


async def connected(
    loop: asyncio.AbstractEventLoop, host: str, port: int, hold: Callable[[socket.socket], None]
) -> socket.socket:
    """Returns a socket that is connected to one of the addresses of a host.

    Args:
        loop: the running one.
        host: its name, or an address.
        port: of the broker.
        hold: is given each socket before it is connected.

    Raises:
        OSError: the name has no address, or none takes the connection.
    """
    found = await _resolved(loop, host, port)
    faults: list[OSError] = []
    for index, (family, kind, protocol, _, address) in enumerate(found):
        patience_s = _PATIENCE_S if index < len(found) - 1 else None
        sock = socket.socket(family, kind, protocol)
        hold(sock)
        try:
            sock.settimeout(0)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.wait_for(loop.sock_connect(sock, address), patience_s)
        except asyncio.TimeoutError:
            sock.close()
            faults.append(TimeoutError(f"{address[0]} does not answer"))
        except OSError as error:
            sock.close()
            faults.append(OSError(os.strerror(error.errno)) if error.errno else error)
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise faults[0] if faults else OSError(f"{host!r} has no address")


async def _resolved(loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[Any]:
    try:
        # An address as such needs no thread to be looked up in.
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass
    except UnicodeError as error:
        raise OSError(f"{host!r} is no name of a host") from error
    try:
        return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise OSError(f"the name {host} is not known here ({error.strerror})") from error
    except UnicodeError as error:
        raise OSError(f"{host!r} is no name of a host") from error
