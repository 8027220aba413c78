"""How a continuous command ends: by a signal, because its work is done, or because its output is closed."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


async def until_any(*works: Coroutine[Any, Any, None]) -> None:
    """Run all tasks until one of them ends or a signal comes; raises the error of a task that failed.

    The first signal ends the command in order, a second one at once.
    """
    running = [asyncio.ensure_future(work) for work in (signalled(), *works)]
    await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    over = [task for task in running if task.done()]
    for task in running:
        task.cancel()
    for task in over:
        task.result()


async def signalled() -> None:
    """Wait for a signal to end the program."""
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()

    def note(number: int) -> None:
        stopping.set()
        loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, note, number)
    await stopping.wait()
