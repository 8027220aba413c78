"""Sockets are watched and closed as fast as a node under faults does it."""

import asyncio
from typing import Any

import zmq

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
