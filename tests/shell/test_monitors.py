"""Sockets are watched and closed as fast as a node under faults does it."""

import asyncio
import warnings
from typing import Any

import zmq

from tests.patience import PATIENCE_S
from weft.shell.monitors import Monitors

ROUNDS, SOCKETS = 20, 50


def test_new_sockets_are_watched_while_libzmq_still_closes_those_before() -> None:
    async def main() -> None:
        context: zmq.Context[Any] = zmq.Context()
        monitors = Monitors(context)
        for _ in range(ROUNDS):
            made = [context.socket(zmq.DEALER) for _ in range(SOCKETS)]
            for each in made:
                monitors.watch(each, zmq.EVENT_DISCONNECTED, lambda *_: None)
            del each
            await asyncio.sleep(0)
            while made:  # the next ones may get their places in memory
                each = made.pop()
                monitors.ignore(each)
                each.close(0)
                del each
        monitors.close()
        await asyncio.to_thread(context.term)

    asyncio.run(main())


def test_a_socket_that_tries_several_ports_has_one_monitor() -> None:
    """It is watched before each: the monitor before was left open, and whoever counted at it counted no more."""

    async def main() -> None:
        context: zmq.Context[Any] = zmq.Context()
        monitors, made = Monitors(context), context.socket(zmq.ROUTER)
        told = asyncio.Event()
        for _ in range(3):
            monitors.watch(made, zmq.EVENT_LISTENING, lambda *_: told.set())
        made.bind("tcp://127.0.0.1:*")
        await told.wait()
        monitors.ignore(made)
        made.close(0)
        await asyncio.to_thread(context.term)

    with warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always", ResourceWarning)
        asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
    assert [] == left
