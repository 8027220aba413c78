"""Closes a server of asyncio safely, even if somebody connects in that moment."""

import asyncio


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
