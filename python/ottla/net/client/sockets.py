"""Sockets to brokers: names resolved, and addresses tried in turn."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

__all__ = ["connected"]

_PATIENCE_S: Final = 2.0
"""With an address that does not answer, where there is another one."""


async def connected(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    """Returns a socket that is connected to one of the addresses of a host.

    Raises:
        OSError: the name has no address, or none takes the connection.
    """
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError(f"{host!r} is no name of a host") from error
    faults: list[OSError] = []
    for index, (family, kind, protocol, _, address) in enumerate(found):
        patience_s = _PATIENCE_S if index < len(found) - 1 else None
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(0)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.wait_for(loop.sock_connect(sock, address), patience_s)
        except asyncio.TimeoutError:
            sock.close()
            faults.append(TimeoutError(f"{address[0]} does not answer"))
        except OSError as error:
            sock.close()
            faults.append(error)
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise faults[0] if faults else OSError(f"{host!r} has no address")
