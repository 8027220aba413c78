"""Servers that end while clients connect."""

import asyncio
import gc
import sys

import pytest

from weft.shell.listening import stop_listening

TURNS = 8
"""A connection is accepted in the second or third turn after a client asked for it, and attached in the next."""


@pytest.mark.parametrize("turns", range(TURNS))
def test_a_server_ends_in_whichever_turn_a_client_is_accepted(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asyncio.run(_failures(turns, monkeypatch)) == []


async def _failures(turns: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a loop and its garbage say of a server that is stopped some turns after a client asked for a connection."""
    failures: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(context["message"]))
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: failures.append(str(raised.exc_value)))
    server = await asyncio.start_server(_hang_up, "127.0.0.1", 0)
    client = asyncio.create_task(asyncio.open_connection(*server.sockets[0].getsockname()))
    await _turn(turns)
    await stop_listening(server)
    await asyncio.wait([client], timeout=5)
    if not client.cancelled() and client.exception() is None:
        client.result()[1].close()
    await _turn(TURNS)
    gc.collect()
    return failures


async def _turn(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


async def _hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()
