"""The end of a server of asyncio, whoever connects in the same moment."""

import asyncio


async def stop_listening(server: asyncio.Server) -> None:
    """Accept nobody any more, and close the server.

    Who was accepted in the turn before is first made known to the server: asyncio attaches a connection one turn after it
    accepted it, and a server that is closed in between fails on it later (an assertion, or a None that is iterated).
    """
    loop = asyncio.get_running_loop()
    for socket in server.sockets:
        loop.remove_reader(socket.fileno())
    await asyncio.sleep(0)
    server.close()
