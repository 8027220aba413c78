"""How a command that goes on ends: a signal, its own work, or whoever reads has seen enough."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


async def until_any(*works: Coroutine[Any, Any, None]) -> None:
    """Do all of it until one has ended, or somebody wants an end; what went wrong with one is raised.

    The first signal ends in good order, a second one at once.
    """
    running = [asyncio.ensure_future(work) for work in (signalled(), *works)]
    await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    over = [task for task in running if task.done()]
    for task in running:
        task.cancel()
    for task in over:
        task.result()


async def signalled() -> None:
    """Until somebody wants the program to end."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()

    def note(number: int) -> None:
        asked.set()
        loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, note, number)
    await asked.wait()
