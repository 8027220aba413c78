"""Where servers of asyncio listen, and how they are closed safely, even if somebody connects in that moment."""

import asyncio
from typing import Final

from weft.base.endpoints import is_loopback

EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104  # compared with, not bound to


def with_loopback(host: str) -> list[str]:
    """The addresses to listen at: the host, and loopback, too, so that local programs always reach the server."""
    return [host] if host in EVERYWHERE or is_loopback(host) else [host, "127.0.0.1"]


async def stop_listening(server: asyncio.Server) -> None:
    """Accept no more connections, and close the server.

    asyncio attaches a connection to its server one turn of the loop after it has accepted it. If the server is closed in
    between, asyncio fails later (an assertion, or a None that is iterated). So the last connections are attached first.
    """
    loop = asyncio.get_running_loop()
    for socket in server.sockets:
        loop.remove_reader(socket.fileno())
    await asyncio.sleep(0)
    server.close()
